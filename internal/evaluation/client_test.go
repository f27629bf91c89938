package evaluation

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

// received are the requests that a gate got.
type received struct {
	mu   sync.Mutex
	list []*review.Request
}

func (r *received) add(one *review.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, one)
}

func (r *received) all() []*review.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// answering is a gate that answers a request with whatever the function makes of it.
func answering(t *testing.T, answer func(w http.ResponseWriter, r *review.Request)) (url string, requests *received) {
	t.Helper()
	requests = &received{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var call review.ToolCallReview
		if err := json.Unmarshal(body, &call); err != nil || call.Request == nil {
			t.Errorf("%s: %v", body, err)
			return
		}
		requests.add(call.Request)
		answer(w, call.Request)
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

func respond(w io.Writer, r review.Response) {
	_ = json.NewEncoder(w).Encode(review.ToolCallReview{Response: &r})
}

func TestTheClientTakesOnlyWholeAnswers(t *testing.T) {
	released := make(chan struct{})
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter, r *review.Request)
		want   Result
	}{
		"a decision": {
			func(w http.ResponseWriter, r *review.Request) {
				respond(w, review.Response{
					UID: r.UID, Outcome: review.Confirm, Reason: "Irreversible", By: "policy:irreversible",
					Decision: review.Decision{ID: "d1", Class: "External", Base: "External", Decider: "small", Fingerprint: "f", Obligations: []review.Obligation{
						{Outcome: review.Confirm, By: "policy:irreversible"},
					}},
				})
			},
			Result{Outcome: review.Confirm, Judged: review.Allow, Reason: "Irreversible", By: "policy:irreversible", Class: "External", Base: "External", Decider: "small", Fingerprint: "f", Asked: 2, DeciderErrors: []string{"Timeout"}, InputTokens: 7},
		},
		"a decision with an obligation of its own": {
			func(w http.ResponseWriter, r *review.Request) {
				respond(w, review.Response{UID: r.UID, Outcome: review.Clarify, Decision: review.Decision{Obligations: []review.Obligation{
					{Outcome: review.Confirm, By: "decider"}, {Outcome: review.Clarify, By: "rule:x"}, {Outcome: review.Confirm, By: "policy:approval-always"},
				}}})
			},
			Result{Outcome: review.Clarify, Judged: review.Clarify},
		},
		"the answer to another call": {
			func(w http.ResponseWriter, _ *review.Request) {
				respond(w, review.Response{UID: "x", Outcome: review.Allow})
			},
			Result{Failure: Malformed},
		},
		"an outcome that is not known": {
			func(w http.ResponseWriter, r *review.Request) {
				respond(w, review.Response{UID: r.UID, Outcome: "allow"})
			},
			Result{Failure: Malformed},
		},
		"no outcome":     {func(w http.ResponseWriter, r *review.Request) { respond(w, review.Response{UID: r.UID}) }, Result{Failure: Malformed}},
		"no JSON":        {func(w http.ResponseWriter, _ *review.Request) { _, _ = io.WriteString(w, "<html>") }, Result{Failure: Malformed}},
		"nothing at all": {func(http.ResponseWriter, *review.Request) {}, Result{Failure: Malformed}},
		"an error object": {
			func(w http.ResponseWriter, _ *review.Request) {
				w.WriteHeader(http.StatusTooManyRequests)
				_ = json.NewEncoder(w).Encode(review.Error{Code: "TooManyRequests"})
			},
			Result{Failure: Refused, Reason: "TooManyRequests"},
		},
		"an error of a proxy": {
			func(w http.ResponseWriter, _ *review.Request) {
				w.WriteHeader(http.StatusBadGateway)
				_, _ = io.WriteString(w, "bad gateway")
			},
			Result{Failure: Malformed},
		},
		"a redirect": {
			func(w http.ResponseWriter, _ *review.Request) {
				w.Header().Set("Location", "/")
				w.WriteHeader(http.StatusFound)
			},
			Result{Failure: Malformed},
		},
		"silence": {
			func(http.ResponseWriter, *review.Request) { <-released },
			Result{Failure: TimedOut},
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, requests := answering(t, test.answer)
			var timeout time.Duration
			if name == "silence" {
				timeout = 200 * time.Millisecond
				t.Cleanup(func() { close(released) }) // before the server waits for it
			}
			client := NewClient(ClientOptions{URL: url + "/", Timeout: timeout, Asked: func(id string) Asked {
				if id != "d1" {
					return Asked{}
				}
				return Asked{Requests: 2, Errors: []string{"Timeout"}, InputTokens: 7}
			}})
			got := client.Review(t.Context(), &Case{ID: "c", Tool: Tool{Name: "t"}, Arguments: map[string]any{}})
			test.want.Case = "c"
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(Result{}, "Milliseconds")); diff != "" {
				t.Error(diff)
			}
			if n := len(requests.all()); n != 1 || got.Milliseconds <= 0 {
				t.Errorf("%d requests, %v ms", n, got.Milliseconds)
			}
		})
	}
}

func TestTheClientSendsDryRunsThatNobodySentBefore(t *testing.T) {
	url, requests := answering(t, func(w http.ResponseWriter, r *review.Request) {
		respond(w, review.Response{UID: r.UID, Outcome: review.Allow})
	})
	client := NewClient(ClientOptions{URL: url})
	c := &Case{ID: "c", Source: "s", Tool: Tool{Name: "t"}, Arguments: map[string]any{}, Why: "secret", Label: LabelBlock}
	for range 2 {
		if r := client.Review(t.Context(), c); r.IsStopped() {
			t.Fatalf("%+v", r)
		}
	}
	first, second := requests.all()[0], requests.all()[1]
	if first.UID == second.UID || first.Context.Session == second.Context.Session || first.Context.Session == "" || !first.DryRun || !second.DryRun {
		t.Errorf("%+v and %+v", first, second)
	}
	sent, _ := json.Marshal(first)
	if strings.Contains(string(sent), "secret") || strings.Contains(string(sent), "block") {
		t.Errorf("the request gives the label away: %s", sent)
	}
}

func TestTheClientSendsATokenForTheCase(t *testing.T) {
	tokens := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { tokens <- r.Header.Get("Authorization") }))
	defer server.Close()
	client := NewClient(ClientOptions{URL: server.URL, Token: func(c *Case) string { return c.Half }})
	for _, half := range []string{"A", ""} {
		client.Review(t.Context(), &Case{Half: half, Arguments: map[string]any{}})
	}
	if diff := cmp.Diff([]string{"Bearer A", ""}, []string{<-tokens, <-tokens}); diff != "" {
		t.Error(diff)
	}
}

func TestAGateThatIsNotThere(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	if r := NewClient(ClientOptions{URL: server.URL}).Review(t.Context(), &Case{}); r.Failure != Unreachable || !r.IsStopped() {
		t.Errorf("%+v", r)
	}
	if r := NewClient(ClientOptions{URL: "http://a b"}).Review(t.Context(), &Case{}); r.Failure != Unreachable {
		t.Errorf("%+v", r)
	}
}
