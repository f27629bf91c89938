package serve

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/permit"
	"gatewright.dev/gatewright/internal/strictjson"
)

// ApprovalsPath is where a person sees what waits and decides it: GET lists, POST to a name decides.
const ApprovalsPath = "/v1alpha1/approvals"

// desk is where a person decides. Its secret is its own: no token of a caller opens it.
type desk struct {
	secret    [sha256.Size]byte
	approvals approval.Store
	labels    labeler
	// keys publishes the public keys of permits, for tool servers.
	keys http.Handler
	log  *slog.Logger
}

// Verdict is what a person says about a call.
type Verdict struct {
	// Outcome is Approve or Reject.
	Outcome string `json:"outcome"`
	// Message is handed on to the agent.
	Message string `json:"message,omitempty"`
}

// secretBytes is the length of a secret that is made.
const secretBytes = 32

// newDesk reads the secret, or makes one that only the user of this process can read.
func newDesk(path string, approvals approval.Store, keys http.Handler, log *slog.Logger) (*desk, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		data, err = makeSecret(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the approver's secret: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the approver's secret: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the approver's secret in %s can be read by others (mode %04o): chmod 600 it, and make a new one", path, info.Mode().Perm())
	}
	secret := strings.TrimSpace(string(data))
	if len(secret) < secretBytes {
		return nil, fmt.Errorf("the approver's secret in %s is shorter than %d characters: remove the file, and a new one is made", path, secretBytes)
	}
	return &desk{secret: sha256.Sum256([]byte(secret)), approvals: approvals, keys: keys, log: log}, nil
}

func makeSecret(path string) ([]byte, error) {
	random := make([]byte, secretBytes)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	secret := []byte(hex.EncodeToString(random) + "\n")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(secret)
	return secret, errors.Join(err, f.Close())
}

// routes puts the desk beside the gate. Without tokens a request has to be addressed to loopback by name, so that a web
// page that points its own name there cannot ask.
func (c *Config) routes(gate http.Handler, d *desk) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", gate)
	mux.Handle("GET "+permit.JWKSPath, d.keys)
	mux.HandleFunc("GET "+ApprovalsPath, d.guard(d.list))
	mux.HandleFunc("POST "+ApprovalsPath+"/{name}", d.guard(d.decide))
	mux.HandleFunc("POST "+LabelsPath, d.guard(d.labels.take))
	if c.TokenFile != "" {
		return mux
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r.Host) || !isLocalOrigin(r.Header.Get("Origin")) {
			refuse(w, http.StatusForbidden, "NotLocal", "this gate answers requests to localhost only")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func isLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

func isLocalOrigin(origin string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && isLocal(u.Host)
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, review.Error{Code: code, Message: message})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the person is gone if this fails
}

// guard lets in who holds the secret. No browser sends it by itself, so a page of another site cannot decide.
func (d *desk) guard(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		sum := sha256.Sum256([]byte(token))
		if !ok || subtle.ConstantTimeCompare(sum[:], d.secret[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "Unauthorized", "send the approver's secret as a bearer token; a caller's token does not do")
			return
		}
		h(w, r)
	}
}

func (d *desk) list(w http.ResponseWriter, r *http.Request) {
	all, err := d.approvals.List(r.Context())
	if err != nil {
		d.log.ErrorContext(r.Context(), "approvals could not be read", "error", err)
		refuse(w, http.StatusInternalServerError, "Internal", "approvals could not be read")
		return
	}
	answer(w, http.StatusOK, all)
}

// maxVerdict bounds what a person sends.
const maxVerdict = 16 << 10

// byDesk is how decisions of this desk are recorded: whoever holds the secret is one person to it.
const byDesk = "holder of the approver's secret"

func (d *desk) decide(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxVerdict))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "TooLarge", "the message is too long")
		return
	}
	var v Verdict
	if err := strictjson.Decode(data, strictjson.Limits{}, &v); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	outcome := map[string]approval.State{"Approve": approval.Approved, "Reject": approval.Rejected}[v.Outcome]
	if outcome == "" {
		refuse(w, http.StatusBadRequest, "InvalidField", "outcome is Approve or Reject")
		return
	}
	name := r.PathValue("name")
	err = d.approvals.Decide(r.Context(), name, approval.Decision{Outcome: outcome, By: byDesk, Message: v.Message})
	switch {
	case err == nil:
		d.log.InfoContext(r.Context(), "approval decided", "approval", name, "outcome", v.Outcome)
		answer(w, http.StatusOK, v)
	case errors.Is(err, approval.ErrNotFound):
		refuse(w, http.StatusNotFound, "NotFound", "there is no such approval")
	case errors.Is(err, approval.ErrDecided), errors.Is(err, approval.ErrExpired), errors.Is(err, approval.ErrUsed):
		refuse(w, http.StatusConflict, "Decided", err.Error())
	case errors.Is(err, approval.ErrBadDecision), errors.Is(err, approval.ErrTooLarge):
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
	default:
		d.log.ErrorContext(r.Context(), "approval could not be decided", "approval", name, "error", err)
		refuse(w, http.StatusInternalServerError, "Internal", "the decision could not be kept: nothing has happened")
	}
}
