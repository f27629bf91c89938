package serve

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/console"
	"gatewright.dev/gatewright/internal/periodic"
	"gatewright.dev/gatewright/internal/permit"
	"gatewright.dev/gatewright/internal/strictjson"
)

// ApprovalsPath is where a person sees what waits and decides it: GET lists, GET of a name shows one, POST to a name
// decides.
const ApprovalsPath = "/v1alpha1/approvals"

// desk is where a person decides. Its secrets are its own: no token of a caller opens it.
type desk struct {
	approvers approvers
	// tokens tells approvers by tokens of an issuer; nil: none does.
	tokens    *tokenVerifier
	approvals approval.Store
	// keys publishes the public keys of permits, for tool servers.
	keys http.Handler
	// page is the web page; nil: there is none.
	page    http.Handler
	labels  labeler
	metrics *deskMetrics
	clock   clock.PassiveClock
	log     *slog.Logger
}

// Verdict is what a person says about a call.
type Verdict struct {
	// Outcome is Approve or Reject. Empty with Evidence, which says it.
	Outcome string `json:"outcome,omitempty"`
	// Message is handed on to the agent.
	Message string `json:"message,omitempty"`
	// ID of the approval that the person saw. If it is given and another stands under the name, nothing is decided.
	ID string `json:"id,omitempty"`
	// Evidence is what an end user's front door has signed, as a compact JWS.
	Evidence string `json:"evidence,omitempty"`
}

// Shown is an approval as a person sees it.
type Shown struct {
	approval.Approval
	// AlsoPending are the other calls of the same caller that wait, those of the same session first.
	AlsoPending []Other `json:"alsoPending,omitempty"`
}

// Other is another call that waits.
type Other struct {
	Name string `json:"name"`
	Tool string `json:"tool"`
	// Message asks in plain words.
	Message     string    `json:"message,omitempty"`
	SameSession bool      `json:"sameSession"`
	ExpiresAt   time.Time `json:"expiresAt"`
}

// newDesk reads the approvers' secrets, or makes one that only the user of this process can read.
func newDesk(path string, approvals approval.Store, keys http.Handler, log *slog.Logger) (*desk, error) {
	all, err := loadApprovers(path)
	if err != nil {
		return nil, err
	}
	return &desk{approvers: all, approvals: approvals, keys: keys, metrics: newDeskMetrics(), clock: clock.RealClock{}, log: log}, nil
}

// routes puts the desk beside the gate. Without tokens a request has to be addressed to loopback by name, so that a web
// page that points its own name there cannot ask.
func (c *Config) routes(gate http.Handler, d *desk) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", gate)
	mux.Handle("GET "+permit.JWKSPath, d.keys)
	mux.HandleFunc("GET "+ApprovalsPath, d.guard(d.list))
	mux.HandleFunc("GET "+ApprovalsPath+"/{name}", d.guard(d.show))
	mux.HandleFunc("POST "+ApprovalsPath+"/{name}", d.guard(d.decide))
	mux.HandleFunc("POST "+LabelsPath, d.guard(d.labels.take))
	if d.page != nil {
		mux.Handle(console.Path, d.page)
	}
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

// list answers with all approvals, or with those that a query selects by state and caller.
func (d *desk) list(w http.ResponseWriter, r *http.Request) {
	all, err := d.approvals.List(r.Context())
	if err != nil {
		d.unreadable(w, r, err)
		return
	}
	query := r.URL.Query()
	for _, f := range []struct {
		name string
		of   func(a *approval.Approval) string
	}{
		{"state", func(a *approval.Approval) string { return string(a.State) }},
		{"caller", func(a *approval.Approval) string { return a.Call.Caller }},
	} {
		if query.Has(f.name) {
			all = slices.DeleteFunc(all, func(a approval.Approval) bool { return f.of(&a) != query.Get(f.name) })
		}
	}
	answer(w, http.StatusOK, all)
}

func (d *desk) unreadable(w http.ResponseWriter, r *http.Request, err error) {
	d.log.ErrorContext(r.Context(), "approvals could not be read", "error", err)
	refuse(w, http.StatusInternalServerError, "Internal", "approvals could not be read")
}

// show answers with one approval and what else its caller waits for.
func (d *desk) show(w http.ResponseWriter, r *http.Request) {
	shown, err := d.view(r.Context(), r.PathValue("name"))
	switch {
	case errors.Is(err, approval.ErrNotFound):
		refuse(w, http.StatusNotFound, "NotFound", "there is no such approval")
	case err != nil:
		d.unreadable(w, r, err)
	default:
		answer(w, http.StatusOK, shown)
	}
}

func (d *desk) view(ctx context.Context, name string) (*Shown, error) {
	a, err := d.approvals.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	all, err := d.approvals.List(ctx)
	if err != nil {
		return nil, err
	}
	shown := &Shown{Approval: a}
	for i := range all {
		o := &all[i]
		if o.ID == a.ID || o.State != approval.Pending || o.Call.Caller != a.Call.Caller {
			continue
		}
		shown.AlsoPending = append(shown.AlsoPending, Other{
			Name: o.Name, Tool: o.Call.Tool, Message: o.Call.Message, ExpiresAt: o.Call.ExpiresAt,
			SameSession: o.Call.Session != "" && o.Call.Session == a.Call.Session,
		})
	}
	slices.SortStableFunc(shown.AlsoPending, func(x, y Other) int {
		if x.SameSession != y.SameSession {
			return map[bool]int{true: -1, false: 1}[x.SameSession]
		}
		return x.ExpiresAt.Compare(y.ExpiresAt)
	})
	return shown, nil
}

// maxVerdict bounds what a person sends: a message, and evidence of a front door.
const maxVerdict = 24 << 10

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
	name := r.PathValue("name")
	decision, err := d.decision(r.Context(), name, &v)
	if err == nil {
		err = d.approvals.Decide(r.Context(), name, decision)
	}
	if err != nil {
		d.undecided(w, r, name, err)
		return
	}
	d.log.InfoContext(r.Context(), "approval decided", "approval", name, "outcome", decision.Outcome, "by", decision.By.String())
	if a, err := d.approvals.Get(r.Context(), name); err == nil { // otherwise show says why
		d.metrics.decision(&a)
	}
	d.show(w, r)
}

var errOutcome = errors.New("outcome is Approve or Reject")

// decision is what a person has said, in the name of whoever sent it or, with evidence, of whoever its front door names.
func (d *desk) decision(ctx context.Context, name string, v *Verdict) (approval.Decision, error) {
	if v.Evidence != "" {
		if v.Outcome != "" || v.Message != "" {
			return approval.Decision{}, errOutcome // two voices
		}
		a, err := d.approvals.Get(ctx, name)
		if err != nil {
			return approval.Decision{}, err
		}
		return a.Call.Approvers.Read(v.Evidence, a.ID, &a.Call, d.clock.Now())
	}
	outcome := map[string]approval.State{"Approve": approval.Approved, "Reject": approval.Rejected}[v.Outcome]
	if outcome == "" {
		return approval.Decision{}, errOutcome
	}
	return approval.Decision{Outcome: outcome, By: approverOf(ctx), Message: v.Message, ID: v.ID}, nil
}

// undecided says why nothing was decided.
func (d *desk) undecided(w http.ResponseWriter, r *http.Request, name string, err error) {
	switch {
	case errors.Is(err, errOutcome):
		refuse(w, http.StatusBadRequest, "InvalidField", "outcome is Approve or Reject; with evidence it stays empty, and so does the message")
	case errors.Is(err, approval.ErrNotFound):
		refuse(w, http.StatusNotFound, "NotFound", "there is no such approval")
	case errors.Is(err, approval.ErrDecided), errors.Is(err, approval.ErrExpired), errors.Is(err, approval.ErrUsed):
		refuse(w, http.StatusConflict, "Decided", err.Error())
	case errors.Is(err, approval.ErrSelfApproval), errors.Is(err, approval.ErrChannel):
		refuse(w, http.StatusForbidden, "NotYours", err.Error())
	case errors.Is(err, approval.ErrBadDecision), errors.Is(err, approval.ErrTooLarge), errors.Is(err, approval.ErrBadEvidence):
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
	default:
		d.log.ErrorContext(r.Context(), "approval could not be decided", "approval", name, "error", err)
		refuse(w, http.StatusInternalServerError, "Internal", "the decision could not be kept: nothing has happened")
	}
}

// tidyEvery is how often the journal of approvals is looked through for what ended more than an hour ago.
const tidyEvery = 10 * time.Minute

// tidier keeps the journal of approvals short. The function that it returns ends that, and waits for it.
func tidier(ctx context.Context, approvals *approval.File, c clock.WithTicker, log *slog.Logger) (stop func()) {
	return periodic.Start(ctx, c, tidyEvery, func(ctx context.Context) {
		if err := approvals.Tidy(ctx); err != nil && ctx.Err() == nil {
			log.ErrorContext(ctx, "the journal of approvals could not be tidied up", "error", err)
		}
	})
}

// maxReported bounds what is logged about one journal; all of it is counted.
const maxReported = 20

// reportIgnored says which lines of the journal were not believed.
func reportIgnored(ctx context.Context, all []approval.Ignored, count func(reason string), log *slog.Logger) {
	for i, line := range all {
		count(string(line.Reason))
		if i < maxReported {
			log.ErrorContext(ctx, "a line of the approval log is not this gate's and was ignored", "line", line.Line, "op", line.Op, "approval", line.Name, "reason", line.Reason)
		}
	}
	if len(all) > maxReported {
		log.ErrorContext(ctx, "more lines of the approval log were ignored", "lines", len(all))
	}
}
