package gate

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
)

// authorizer answers what it is told to, and notes what it was asked.
type authorizer struct {
	isAllowed bool
	err       error
	asked     []string
}

func (a *authorizer) Authorize(_ context.Context, c policy.Caller, tool string) (bool, error) {
	a.asked = append(a.asked, c.String()+" "+tool)
	return a.isAllowed, a.err
}

func TestWhatMayNotGoOn(t *testing.T) {
	away := errors.New("away")
	const old = 301 * time.Second
	for name, test := range map[string]struct {
		tool       string
		age        time.Duration
		authorizer *authorizer
		outcome    review.Outcome
		reason     policy.Reason
		asks       int
	}{
		"a write by policies of five minutes ago":                       {"item.update", 300 * time.Second, nil, review.Allow, "Asked", 0},
		"a write by older policies":                                     {"item.update", old, nil, review.Block, ReasonStaleSnapshot, 0},
		"a call for a person by older policies":                         {"item.delete", old, nil, review.Block, ReasonStaleSnapshot, 0},
		"a read by older policies":                                      {"item.get", old, nil, review.Allow, policy.ReasonRulesPassed, 0},
		"what rules block says so, however old they are":                {"item.none", old, nil, review.Block, policy.ReasonUnknownTool, 0},
		"a write that RBAC allows":                                      {"item.update", 0, &authorizer{isAllowed: true}, review.Allow, "Asked", 1},
		"a write that RBAC does not allow":                              {"item.update", 0, &authorizer{}, review.Block, ReasonNotAuthorized, 1},
		"a read that RBAC does not allow":                               {"item.get", 0, &authorizer{}, review.Block, ReasonNotAuthorized, 1},
		"a call for a person that RBAC does not allow":                  {"item.delete", 0, &authorizer{}, review.Block, ReasonNotAuthorized, 1},
		"a write of which nobody can say whether RBAC allows it":        {"item.update", 0, &authorizer{err: away}, review.Block, ReasonAuthorizationUnavailable, 1},
		"an error counts even beside a yes":                             {"item.update", 0, &authorizer{isAllowed: true, err: away}, review.Block, ReasonAuthorizationUnavailable, 1},
		"a read of which nobody can say whether RBAC allows it":         {"item.get", 0, &authorizer{err: away}, review.Allow, policy.ReasonRulesPassed, 1},
		"what rules block is not asked about":                           {"item.none", 0, &authorizer{isAllowed: true}, review.Block, policy.ReasonUnknownTool, 0},
		"a write by older policies is not asked about":                  {"item.update", old, &authorizer{isAllowed: true}, review.Block, ReasonStaleSnapshot, 0},
		"a read by older policies needs RBAC too, if that can be asked": {"item.get", old, &authorizer{}, review.Block, ReasonNotAuthorized, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(o *Options) {
				o.Age = func() time.Duration { return test.age }
				if test.authorizer != nil {
					o.Authorize = test.authorizer
				}
			})
			got := f.want(t, f.call(test.tool), test.outcome, test.reason)
			wantRetry := test.reason == ReasonStaleSnapshot || test.reason == ReasonAuthorizationUnavailable
			wantAdmin := test.reason == ReasonNotAuthorized || test.reason == policy.ReasonUnknownTool
			if got.Retryable != wantRetry || got.Message == "" || wantAdmin != (got.Remedy == review.RemedyAskAdmin) {
				t.Errorf("retryable %v, remedy %s: %s", got.Retryable, got.Remedy, got.Message)
			}
			if test.authorizer != nil && len(test.authorizer.asked) != test.asks {
				t.Errorf("asked %v", test.authorizer.asked)
			}
			if isAllowed := test.outcome == review.Allow && test.tool == "item.update"; (f.decider.count() > 0) != isAllowed {
				t.Errorf("the decider was asked %d times", f.decider.count())
			}
			if r := f.records.last(t); r.Reason != string(test.reason) {
				t.Errorf("recorded %s", r.Reason)
			}
		})
	}
}

func TestTheAuthorizerIsToldCallerAndTool(t *testing.T) {
	a := &authorizer{isAllowed: true}
	f := newFixture(t, func(o *Options) { o.Authorize = a })
	f.ask(t, f.call("item.get"))
	if diff := cmp.Diff([]string{"shop/agent item.get"}, a.asked); diff != "" {
		t.Error(diff)
	}
}

func TestAnOldSnapshotIsStated(t *testing.T) {
	for age, want := range map[time.Duration]int64{0: 0, 14900 * time.Millisecond: 0, 15 * time.Second: 15, 42700 * time.Millisecond: 42} {
		f := newFixture(t, func(o *Options) { o.Age = func() time.Duration { return age } })
		got := f.ask(t, f.call("item.get"))
		if r := f.records.last(t); got.Decision.SnapshotAgeSeconds != want || r.SnapshotAgeSeconds != want {
			t.Errorf("%s: answer %d, record %d, want %d", age, got.Decision.SnapshotAgeSeconds, r.SnapshotAgeSeconds, want)
		}
	}
}

// failingIdentifier knows nobody.
type failingIdentifier struct{ err error }

func (f failingIdentifier) Identify(context.Context, *http.Request) (policy.Caller, error) {
	return policy.Caller{Namespace: "shop", ServiceAccount: "agent"}, f.err
}

func TestWhatACallerWhoIsNotKnownIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		status int
		code   Code
	}{
		"an unknown caller":               {ErrUnknownCaller, http.StatusUnauthorized, CodeUnauthorized},
		"any other error":                 {errors.New("secret"), http.StatusUnauthorized, CodeUnauthorized},
		"too many unknown callers":        {ErrTooManyUnknown, http.StatusTooManyRequests, CodeTooManyUnknown},
		"callers that nobody can look up": {ErrIdentityUnavailable, http.StatusServiceUnavailable, CodeIdentityUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(o *Options) { o.Identify = failingIdentifier{test.err} })
			w := post(f.gate, review.Path, body(t, f.call("item.get")))
			var got review.Error
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if w.Code != test.status || got.Code != string(test.code) || len(f.records.records) != 0 {
				t.Errorf("HTTP %d %+v, %d records", w.Code, got, len(f.records.records))
			}
			if isTemporary := test.status != http.StatusUnauthorized; (w.Header().Get("Retry-After") != "") != isTemporary {
				t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
			}
		})
	}
}
