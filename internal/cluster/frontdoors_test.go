package cluster

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approverapi"
)

// knownCalls is a cache of calls in two namespaces before an API server that answers when it is let.
type knownCalls struct {
	all   map[string]approval.Approval
	asked atomic.Int64
	// answer holds back who decides; nil: nobody.
	answer chan struct{}
}

func (k *knownCalls) Known(name string) (approval.Approval, error) {
	if a, ok := k.all[name]; ok {
		return a, nil
	}
	return approval.Approval{}, approval.ErrNotFound
}

func (k *knownCalls) Get(_ context.Context, name string) (approval.Approval, error) {
	k.asked.Add(1)
	a, err := k.Known(name)
	a.State = approval.Approved
	return a, err
}

func (k *knownCalls) List(context.Context) ([]approval.Approval, error) { return nil, nil }

func (k *knownCalls) Decide(context.Context, string, approval.Decision) error {
	k.asked.Add(1)
	if k.answer != nil {
		<-k.answer
	}
	return nil
}

var doorsNoon = time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)

func doorKey() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) }

func waitingCalls(t *testing.T) *knownCalls {
	t.Helper()
	jwk, err := json.Marshal(jose.JSONWebKey{Key: doorKey().Public()})
	if err != nil {
		t.Fatal(err)
	}
	k := &knownCalls{all: map[string]approval.Approval{}}
	for name, state := range map[string]approval.State{
		"loud/waits": approval.Pending, "quiet/waits": approval.Pending, "quiet/decided": approval.Rejected, "quiet/over": approval.Expired,
	} {
		namespace, short, _ := strings.Cut(name, "/")
		k.all[namespace+"-"+short] = approval.Approval{
			Name: namespace + "-" + short, ID: name, State: state, Call: approval.Call{
				Binding:  approval.Binding{Caller: namespace + "/agent", AttestedBy: "chat", OnBehalfOf: "sam"},
				RaisedAt: doorsNoon.Add(-time.Minute), ExpiresAt: doorsNoon.Add(time.Hour),
				Approvers: approval.Approvers{
					Channels:  []approval.Channel{approval.ChannelAttested},
					Attestors: []approval.Attestor{{Name: "chat", Key: jwk}},
				},
			},
		}
	}
	return k
}

// says is a verdict with evidence of the front door, as a body.
func says(t *testing.T, key ed25519.PrivateKey, namespace, call, user string) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: key}, (&jose.SignerOptions{}).WithType(approval.EvidenceType))
	if err != nil {
		t.Fatal(err)
	}
	object, err := signer.Sign(fmt.Appendf(nil, `{"call":%q,"namespace":%q,"outcome":"Approve","user":%q,"iat":%d}`, call, namespace, user, doorsNoon.Unix()))
	if err != nil {
		t.Fatal(err)
	}
	text, err := object.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"evidence":%q}`, text)
}

func doors(k *knownCalls) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+approverapi.Path+"/{name}", FrontDoors(k, clocktesting.NewFakePassiveClock(doorsNoon), slog.New(slog.DiscardHandler)))
	return mux
}

func post(t *testing.T, h http.Handler, name string, body io.Reader) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, approverapi.Path+"/"+name, body))
	return w
}

func TestTheAPIServerIsAskedOnlyAboutEvidenceThatHolds(t *testing.T) {
	stranger := ed25519.NewKeyFromSeed([]byte(strings.Repeat("x", ed25519.SeedSize)))
	for name, test := range map[string]struct {
		approval, body string
		status         int
		asked          int64
	}{
		"of a front door":                   {"quiet-waits", says(t, doorKey(), "quiet", "quiet/waits", "jo"), http.StatusOK, 2},
		"no evidence":                       {"quiet-waits", `{"evidence":"a.b.c"}`, http.StatusBadRequest, 0},
		"of a stranger":                     {"quiet-waits", says(t, stranger, "quiet", "quiet/waits", "jo"), http.StatusBadRequest, 0},
		"about another call":                {"quiet-waits", says(t, doorKey(), "quiet", "quiet/decided", "jo"), http.StatusBadRequest, 0},
		"by whose call it is":               {"quiet-waits", says(t, doorKey(), "quiet", "quiet/waits", "sam"), http.StatusForbidden, 0},
		"about what was decided":            {"quiet-decided", says(t, doorKey(), "quiet", "quiet/decided", "jo"), http.StatusConflict, 0},
		"about what is over":                {"quiet-over", says(t, doorKey(), "quiet", "quiet/over", "jo"), http.StatusConflict, 0},
		"about what nobody has raised":      {"quiet-none", says(t, doorKey(), "quiet", "quiet/none", "jo"), http.StatusNotFound, 0},
		"in one's own name, without a word": {"quiet-waits", `{"outcome":"Approve"}`, http.StatusBadRequest, 0},
	} {
		t.Run(name, func(t *testing.T) {
			k := waitingCalls(t)
			w := post(t, doors(k), test.approval, strings.NewReader(test.body))
			if w.Code != test.status || k.asked.Load() != test.asked {
				t.Errorf("HTTP %d, %d requests to the API server, want %d and %d: %s", w.Code, k.asked.Load(), test.status, test.asked, w.Body)
			}
			if test.status == http.StatusOK && !strings.Contains(w.Body.String(), `"Approved"`) {
				t.Errorf("what it has become is not shown: %s", w.Body)
			}
		})
	}
}

// slow is a body of which nothing comes until it is let go.
type slow struct{ began, until chan struct{} }

func (s slow) Read([]byte) (int, error) {
	s.began <- struct{}{}
	<-s.until
	return 0, io.EOF
}

func TestNobodyKeepsOtherFrontDoorsOut(t *testing.T) {
	k := waitingCalls(t)
	h, began, until, ended := doors(k), make(chan struct{}), make(chan struct{}), make(chan int)
	for range 2 * maxVerdicts {
		go func() { ended <- post(t, h, "loud-waits", slow{began, until}).Code }()
		<-began
	}
	if w := post(t, h, "quiet-waits", strings.NewReader(says(t, doorKey(), "quiet", "quiet/waits", "jo"))); w.Code != http.StatusOK {
		t.Errorf("while requests come in slowly: HTTP %d %s", w.Code, w.Body)
	}
	close(until)
	for range 2 * maxVerdicts {
		<-ended
	}
	k.answer = make(chan struct{})
	loud := says(t, doorKey(), "loud", "loud/waits", "jo")
	for range maxVerdicts {
		go func() { ended <- post(t, h, "loud-waits", strings.NewReader(loud)).Code }()
	}
	for range maxVerdicts / 2 { // those of one namespace that get no place
		if code := <-ended; code != http.StatusServiceUnavailable {
			t.Errorf("HTTP %d, want a refusal", code)
		}
	}
	quiet := make(chan int)
	go func() {
		quiet <- post(t, h, "quiet-waits", strings.NewReader(says(t, doorKey(), "quiet", "quiet/waits", "jo"))).Code
	}()
	close(k.answer)
	if code := <-quiet; code != http.StatusOK {
		t.Errorf("while another namespace has many decisions: HTTP %d", code)
	}
	for range maxVerdicts / 2 {
		if code := <-ended; code != http.StatusOK {
			t.Errorf("HTTP %d", code)
		}
	}
}
