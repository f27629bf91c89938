package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/permit"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/shares"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder keeps records in memory and fails when told to.
type recorder struct {
	mu      sync.Mutex
	records []audit.Record
	durable int
	fail    error
}

func (r *recorder) Append(_ context.Context, a *audit.Record) error {
	r.mu.Lock()
	r.durable++
	r.mu.Unlock()
	return r.Enqueue(a)
}

func (r *recorder) Enqueue(a *audit.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return r.fail
	}
	r.records = append(r.records, *a)
	return nil
}

func (r *recorder) Available() bool { return true }

func (r *recorder) last(t *testing.T) audit.Record {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.records) == 0 {
		t.Fatal("nothing was recorded")
	}
	return r.records[len(r.records)-1]
}

// decider answers as scripted and counts.
type decider struct {
	mu      sync.Mutex
	calls   int
	answers questions.Answers
	print   string
	err     error
	state   questions.State
	wait    chan struct{}
}

func (d *decider) Decide(ctx context.Context, r inference.Request) (inference.Result, error) {
	d.mu.Lock()
	d.calls++
	d.state = r.State
	wait, err := d.wait, d.err
	d.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return inference.Result{}, &inference.Error{Reason: inference.Timeout}
		}
	}
	if err != nil {
		return inference.Result{}, err
	}
	out := questions.Answers{}
	for _, q := range r.Questions {
		if a, ok := d.answers[q.Name]; ok {
			out[q.Name] = a
		}
	}
	return inference.Result{Answers: out, Fingerprint: d.print}, nil
}

func (d *decider) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

const fingerprint = "sha256:abc"

func yes(p float64) questions.Answer {
	return questions.Answer{Type: questions.YesNo, Probability: p, Coverage: 1}
}

const testPolicy = `
metadata: {name: shop, namespace: shop, generation: 7}
spec:
  deciderRef: {name: d, fingerprint: "` + fingerprint + `"}
  clarifyLimit: 2
  approvals: {ttlSeconds: 900, budget: {confirmations: 3, windowSeconds: 60}}
  classes:
  - name: Write
    decider: Ask
    questions: [matches_request]
    thresholds:
    - {when: [{question: matches_request, below: 20}], outcome: Block, reason: NotAsked}
    - {when: [{question: matches_request, below: 40}], outcome: Clarify, reason: Unclear}
    - {when: [{question: matches_request, above: 80}], outcome: Allow, reason: Asked}
    otherwise: {outcome: Confirm, reason: Unsure}
  tools:
  - {name: item.get, class: ReadOnly}
  - {name: item.update, class: Write, sensitive: [/secret]}
  - {name: item.delete, class: Destructive, confirmMessage: "'Delete ' + string(args.id) + '?'"}
  - {name: item.send, class: External, permit: Required, permitAudience: mail, decider: Skip, otherwise: {outcome: Allow}}
`

// fixture is a gate with everything around it in reach.
type fixture struct {
	gate      *Gate
	records   *recorder
	decider   *decider
	approvals *approval.Memory
	clock     *clocktesting.FakePassiveClock
	registry  *prometheus.Registry
}

func newFixture(t *testing.T, options ...func(*Options)) *fixture {
	t.Helper()
	now := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	f := &fixture{
		records: &recorder{}, registry: prometheus.NewRegistry(), clock: clocktesting.NewFakePassiveClock(now),
		decider: &decider{answers: questions.Answers{"matches_request": yes(0.9)}, print: fingerprint},
	}
	f.approvals = approval.NewMemory(f.clock)
	o := Options{
		Identify: Anyone{policy.Caller{Namespace: "shop", ServiceAccount: "agent"}}, Recorder: f.records, Approvals: f.approvals, Seals: f.approvals,
		Clock: f.clock, Registry: f.registry, Disclose: v1alpha1.DiscloseFull, Timeout: 5 * time.Second,
	}
	for _, set := range options {
		set(&o)
	}
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	f.gate = g
	f.load(t, testPolicy)
	return f
}

func (f *fixture) load(t *testing.T, manifests ...string) {
	t.Helper()
	var compiled []*policy.Compiled
	for _, m := range manifests {
		var p v1alpha1.ToolPolicy
		if err := yaml.UnmarshalStrict([]byte(m), &p); err != nil {
			t.Fatal(err)
		}
		c, errs := policy.Compile(&p)
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		compiled = append(compiled, c)
	}
	f.gate.SetSnapshot(&Snapshot{
		Policies: policy.NewSet(compiled),
		Deciders: map[string]*ServedDecider{"d": {Decider: f.decider, Verified: true, RequireVerified: true, Allowed: everywhere}},
	})
}

// uid makes a UUIDv7 of a time.
func uid(t time.Time) string {
	id := uuid.Must(uuid.NewV7())
	ms := t.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	return id.String()
}

func (f *fixture) call(tool string, change ...func(*review.Request)) *review.Request {
	r := &review.Request{UID: uid(f.clock.Now()), Tool: review.Tool{Name: tool}, Arguments: map[string]any{"id": "7"},
		Context: review.Context{UserRequest: "do something with item 7", Session: "s"}}
	for _, c := range change {
		c(r)
	}
	return r
}

func body(t *testing.T, r *review.Request) []byte {
	t.Helper()
	b, err := json.Marshal(review.ToolCallReview{APIVersion: review.APIVersion, Kind: review.Kind, Request: r})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func post(h http.Handler, target string, b []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, target, bytes.NewReader(b))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func (f *fixture) ask(t *testing.T, r *review.Request) *review.Response {
	t.Helper()
	w := post(f.gate, review.Path, body(t, r))
	if w.Code != http.StatusOK {
		t.Fatalf("HTTP %d: %s", w.Code, w.Body)
	}
	var out review.ToolCallReview
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	if out.Response.UID != r.UID {
		t.Fatalf("answer for uid %s, want %s", out.Response.UID, r.UID)
	}
	return out.Response
}

func (f *fixture) want(t *testing.T, r *review.Request, outcome review.Outcome, reason policy.Reason) *review.Response {
	t.Helper()
	got := f.ask(t, r)
	if got.Outcome != outcome || got.Reason != string(reason) {
		t.Fatalf("got %s %s by %s (%s), want %s %s", got.Outcome, got.Reason, got.By, got.Message, outcome, reason)
	}
	return got
}

func TestDecisions(t *testing.T) {
	tests := map[string]struct {
		tool    string
		prepare func(*fixture)
		outcome review.Outcome
		reason  policy.Reason
		by      string
	}{
		"a read is allowed by rules alone":               {"item.get", nil, review.Allow, policy.ReasonRulesPassed, "rules"},
		"a write that matches the request is allowed":    {"item.update", nil, review.Allow, "Asked", "decider"},
		"a write that does not match is blocked":         {"item.update", answer1(0.1), review.Block, "NotAsked", "decider"},
		"an unclear write is clarified":                  {"item.update", answer1(0.3), review.Clarify, "Unclear", "decider"},
		"an unsure write waits for a person":             {"item.update", answer1(0.5), review.Confirm, "Unsure", "decider"},
		"a deletion waits for a person":                  {"item.delete", nil, review.Confirm, policy.ReasonIrreversible, "policy:irreversible"},
		"an unlisted tool is blocked":                    {"item.none", nil, review.Block, policy.ReasonUnknownTool, "rule:unknown-tool"},
		"a tool that wants a permit is not allowed":      {"item.send", permitPolicy, review.Block, ReasonPermitUnavailable, "gate"},
		"a time-out of the decider waits for a person":   {"item.update", failing(inference.Timeout), review.Confirm, policy.ReasonDeciderTimeout, "decider"},
		"a decider that is gone waits for a person":      {"item.update", failing(inference.Unreachable), review.Confirm, policy.ReasonDeciderUnreachable, "decider"},
		"a reply that is wrong waits for a person":       {"item.update", failing(inference.BadReply), review.Confirm, policy.ReasonDeciderBadReply, "decider"},
		"a reply that was cut waits for a person":        {"item.update", failing(inference.CutReply), review.Confirm, policy.ReasonDeciderBadReply, "decider"},
		"a refusal waits for a person":                   {"item.update", failing(inference.Refused), review.Confirm, policy.ReasonDeciderRefused, "decider"},
		"an overloaded decider waits for a person":       {"item.update", failing(inference.Overloaded), review.Confirm, policy.ReasonDeciderOverloaded, "decider"},
		"a full queue waits for a person":                {"item.update", failing(inference.QueueFull), review.Confirm, policy.ReasonDeciderOverloaded, "decider"},
		"an open breaker waits for a person":             {"item.update", failing(inference.BreakerOpen), review.Confirm, policy.ReasonDeciderBreakerOpen, "decider"},
		"a call that is too long waits for a person":     {"item.update", failing(inference.TooLong), review.Confirm, policy.ReasonInputTooLong, "decider"},
		"an unreadable state waits for a person":         {"item.update", failing(inference.StateUnreadable), review.Confirm, policy.ReasonInputTooLong, "decider"},
		"an unsupported question waits for a person":     {"item.update", failing(inference.QuestionNotSupported), review.Confirm, policy.ReasonQuestionNotSupported, "decider"},
		"another model waits for a person":               {"item.update", failing(inference.ModelMismatch), review.Confirm, policy.ReasonDeciderMismatch, "decider"},
		"low coverage waits for a person":                {"item.update", failing(inference.LowCoverage), review.Confirm, policy.ReasonLowCoverage, "decider"},
		"a language nobody reads waits for a person":     {"item.update", failing(inference.LanguageNotSupported), review.Confirm, policy.ReasonLanguageNotSupported, "decider"},
		"a canceled question waits for a person":         {"item.update", failing(inference.Canceled), review.Confirm, policy.ReasonDeciderCanceled, "decider"},
		"another fingerprint waits for a person":         {"item.update", func(f *fixture) { f.decider.print = "sha256:other" }, review.Confirm, policy.ReasonDeciderMismatch, "decider"},
		"a missing answer waits for a person":            {"item.update", func(f *fixture) { f.decider.answers = nil }, review.Confirm, policy.ReasonDeciderBadReply, "decider"},
		"a decider that does not exist":                  {"item.update", served(func(d map[string]*ServedDecider) { delete(d, "d") }), review.Confirm, policy.ReasonDeciderNotFound, "decider"},
		"a decider for other namespaces":                 {"item.update", served(func(d map[string]*ServedDecider) { d["d"].Allowed = nil }), review.Confirm, policy.ReasonDeciderNotAllowed, "decider"},
		"a decider whose bytes nobody checked":           {"item.update", served(func(d map[string]*ServedDecider) { d["d"].Verified = false }), review.Confirm, policy.ReasonDeciderNotVerified, "decider"},
		"a log that cannot be written blocks a write":    {"item.update", func(f *fixture) { f.records.fail = audit.ErrUnavailable }, review.Block, ReasonAuditUnavailable, "gate"},
		"a log that cannot be written blocks a read too": {"item.get", func(f *fixture) { f.records.fail = audit.ErrUnavailable }, review.Block, ReasonAuditUnavailable, "gate"},
		"a full gate blocks at once":                     {"item.get", func(f *fixture) { f.gate.slots = shares.New(0) }, review.Block, ReasonOverloaded, "gate"},
		"a gate without policies blocks":                 {"item.get", func(f *fixture) { f.gate.snapshot.Store(nil) }, review.Block, ReasonNotReady, "gate"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if test.prepare != nil {
				test.prepare(f)
			}
			got := f.want(t, f.call(test.tool), test.outcome, test.reason)
			if got.By != test.by {
				t.Errorf("decided by %s, want %s", got.By, test.by)
			}
			if got.Message == "" || got.Decision.ID == "" {
				t.Errorf("answer has no message or id: %+v", got)
			}
			if f.records.fail == nil {
				if r := f.records.last(t); r.ID != got.Decision.ID || string(r.Outcome) != string(got.Outcome) || r.Reason != got.Reason {
					t.Errorf("record %s %s %s is not the answer's", r.ID, r.Outcome, r.Reason)
				}
			}
		})
	}
}

func answer1(p float64) func(*fixture) {
	return func(f *fixture) { f.decider.answers = questions.Answers{"matches_request": yes(p)} }
}

func failing(r inference.Reason) func(*fixture) {
	return func(f *fixture) { f.decider.err = &inference.Error{Reason: r} }
}

func served(change func(map[string]*ServedDecider)) func(*fixture) {
	return func(f *fixture) { change(f.gate.snapshot.Load().Deciders) }
}

func permitPolicy(f *fixture) {
	var p v1alpha1.ToolPolicy
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(testPolicy, "  tools:", "  - {name: External, approval: WhenUnsure}\n  tools:")), &p); err != nil {
		panic(err)
	}
	c, errs := policy.Compile(&p)
	if len(errs) > 0 {
		panic(errs.ToAggregate())
	}
	s := *f.gate.snapshot.Load()
	s.Policies = policy.NewSet([]*policy.Compiled{c})
	f.gate.SetSnapshot(&s)
}

func TestDurableBeforeAnAllowThatIsNoRead(t *testing.T) {
	f := newFixture(t)
	f.want(t, f.call("item.get"), review.Allow, policy.ReasonRulesPassed)
	if f.records.durable != 0 {
		t.Error("a read waited for the disk")
	}
	f.want(t, f.call("item.update"), review.Allow, "Asked")
	if f.records.durable != 1 {
		t.Error("a write left before its record was durable")
	}
}

func TestSameUID(t *testing.T) {
	f := newFixture(t)
	call := f.call("item.update")
	b := body(t, call)
	first, second := post(f.gate, review.Path, b), post(f.gate, review.Path, b)
	if first.Body.String() != second.Body.String() || f.decider.count() != 1 {
		t.Errorf("the same uid and body gave another answer, or asked the decider %d times", f.decider.count())
	}
	call.Arguments = map[string]any{"id": "8"}
	if w := post(f.gate, review.Path, body(t, call)); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), string(CodeUIDReused)) {
		t.Errorf("the same uid with another body: HTTP %d %s", w.Code, w.Body)
	}
}

func TestSameUIDOfAnotherCallerIsAnotherCall(t *testing.T) {
	f := newFixture(t)
	f.gate.options.Identify = Tokens{}
	call := body(t, f.call("item.get"))
	f.gate.options.Identify = Anyone{policy.Caller{Namespace: "shop", ServiceAccount: "one"}}
	one := post(f.gate, review.Path, call)
	f.gate.options.Identify = Anyone{policy.Caller{Namespace: "shop", ServiceAccount: "two"}}
	if two := post(f.gate, review.Path, call); two.Code != http.StatusOK || two.Body.String() == one.Body.String() {
		t.Errorf("two callers shared an answer: HTTP %d", two.Code)
	}
}

func TestARepeatedDenialDoesNotCostTheDecider(t *testing.T) {
	f := newFixture(t)
	answer1(0.1)(f)
	if got := f.want(t, f.call("item.update"), review.Block, "NotAsked"); got.Retryable {
		t.Error("a denial by the decider is not retryable")
	}
	got := f.want(t, f.call("item.update"), review.Block, "NotAsked")
	if got.Retryable || got.Decision.Repeats != 1 || f.decider.count() != 1 {
		t.Errorf("repeat: retryable %v, repeats %d, decider asked %d times", got.Retryable, got.Decision.Repeats, f.decider.count())
	}
	answer1(0.9)(f)
	f.want(t, f.call("item.update", func(r *review.Request) { r.Context.UserRequest = "yes, update item 7" }), review.Allow, "Asked")
	f.load(t, strings.ReplaceAll(testPolicy, "below: 20", "below: 5"))
	f.want(t, f.call("item.update"), review.Allow, "Asked") // another policy: judged anew
}

func TestAMismatchIsNotRememberedAsADenial(t *testing.T) {
	f := newFixture(t)
	f.load(t, strings.Replace(testPolicy, "    decider: Ask\n", "    decider: Ask\n    whenDeciderUnavailable: Block\n", 1))
	f.decider.print = "sha256:another"
	if got := f.want(t, f.call("item.update"), review.Block, policy.ReasonDeciderMismatch); !got.Retryable {
		t.Error("another decider may answer a little later")
	}
	f.decider.print = fingerprint
	f.want(t, f.call("item.update"), review.Allow, "Asked")
}

func TestATemporaryFailureIsRetryable(t *testing.T) {
	f := newFixture(t)
	failing(inference.Timeout)(f)
	if got := f.want(t, f.call("item.update"), review.Confirm, policy.ReasonDeciderTimeout); !got.Retryable {
		t.Error("a time-out is retryable")
	}
}

func TestClarifyIsExhausted(t *testing.T) {
	f := newFixture(t)
	answer1(0.3)(f)
	for range 2 {
		f.want(t, f.call("item.update"), review.Clarify, "Unclear")
	}
	if got := f.want(t, f.call("item.update"), review.Block, ReasonClarifyExhausted); got.Remedy != review.RemedyAskUser {
		t.Errorf("remedy %s", got.Remedy)
	}
	f.want(t, f.call("item.update", func(r *review.Request) { r.Context.UserRequest = "item 7, the red one" }), review.Clarify, "Unclear")
}

var approver = approval.Approver{Type: approval.LocalSecret, Name: "approver"}

func (f *fixture) decideApproval(t *testing.T, name string, outcome approval.State) {
	t.Helper()
	if err := f.approvals.Decide(t.Context(), name, approval.Decision{Outcome: outcome, By: approver, Message: "because"}); err != nil {
		t.Fatal(err)
	}
}

func TestAnApprovalCoversOneCall(t *testing.T) {
	f := newFixture(t)
	raised := f.want(t, f.call("item.delete"), review.Confirm, policy.ReasonIrreversible)
	if raised.Approval == nil {
		t.Fatal("no approval was raised")
	}
	waiting, err := f.approvals.Get(t.Context(), raised.Approval.Name)
	if err != nil || waiting.Call.Message != "Delete 7?" || string(waiting.Call.Arguments) != `{"id":"7"}` {
		t.Fatalf("the person sees %+v %v", waiting.Call, err)
	}
	again := f.want(t, f.call("item.delete"), review.Confirm, ReasonApprovalPending)
	if again.Approval.Name != raised.Approval.Name {
		t.Error("the same call waits twice")
	}
	f.decideApproval(t, raised.Approval.Name, approval.Approved)
	f.want(t, f.call("item.delete", func(r *review.Request) { r.Arguments["id"] = "8" }), review.Confirm, policy.ReasonIrreversible)
	f.want(t, f.call("item.delete", func(r *review.Request) { r.Context.UserRequest = "another turn" }), review.Confirm, policy.ReasonIrreversible)
	f.want(t, f.call("item.delete", func(r *review.Request) { r.DryRun = true }), review.Allow, policy.ReasonApproved)
	if got := f.want(t, f.call("item.delete"), review.Allow, policy.ReasonApproved); got.By != "approval:"+raised.Approval.Name {
		t.Errorf("by %s", got.By)
	}
	if got := f.ask(t, f.call("item.delete")); got.Outcome == review.Allow {
		t.Error("an approval was used twice")
	}
}

func TestAReadThatAsksAPersonCanBeApproved(t *testing.T) {
	f := newFixture(t)
	f.load(t, strings.ReplaceAll(testPolicy, "{name: item.get, class: ReadOnly}",
		"{name: item.get, class: ReadOnly, rules: [{name: big, when: 'args.id == \"7\"', outcome: Confirm, message: m}]}"))
	raised := f.want(t, f.call("item.get"), review.Confirm, policy.ReasonRule)
	f.decideApproval(t, raised.Approval.Name, approval.Approved)
	f.want(t, f.call("item.get"), review.Allow, policy.ReasonApproved)
	if got := f.ask(t, f.call("item.get")); got.Outcome == review.Allow {
		t.Error("an approval was used twice")
	}
}

func TestARejectionStays(t *testing.T) {
	f := newFixture(t)
	raised := f.want(t, f.call("item.delete"), review.Confirm, policy.ReasonIrreversible)
	f.decideApproval(t, raised.Approval.Name, approval.Rejected)
	got := f.want(t, f.call("item.delete"), review.Block, ReasonApprovalRejected)
	if got.Retryable || !strings.Contains(got.Message, "because") {
		t.Errorf("rejection: retryable %v, message %q", got.Retryable, got.Message)
	}
}

func TestOneApprovalOneUseUnderConcurrency(t *testing.T) {
	f := newFixture(t)
	raised := f.want(t, f.call("item.delete"), review.Confirm, policy.ReasonIrreversible)
	f.decideApproval(t, raised.Approval.Name, approval.Approved)
	var wait sync.WaitGroup
	var mu sync.Mutex
	allowed := 0
	for range 32 {
		wait.Go(func() {
			if got := f.ask(t, f.call("item.delete")); got.Outcome == review.Allow {
				mu.Lock()
				allowed++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if allowed != 1 {
		t.Errorf("one approval let %d calls through", allowed)
	}
}

func TestTheBudgetOfConfirmations(t *testing.T) {
	f := newFixture(t)
	for _, id := range []string{"1", "2", "3"} {
		f.want(t, f.call("item.delete", func(r *review.Request) { r.Arguments["id"] = id }), review.Confirm, policy.ReasonIrreversible)
	}
	f.want(t, f.call("item.delete", func(r *review.Request) { r.Arguments["id"] = "4" }), review.Block, ReasonConfirmationBudget)
	f.clock.SetTime(f.clock.Now().Add(61 * time.Second))
	f.want(t, f.call("item.delete", func(r *review.Request) { r.Arguments["id"] = "4" }), review.Confirm, policy.ReasonIrreversible)
}

// brokenApprovals fail as scripted.
type brokenApprovals struct {
	*approval.Memory
	find, raise, consume error
}

func (b *brokenApprovals) IsEmpty() bool { return false }

func (b *brokenApprovals) Find(ctx context.Context, x approval.Binding) ([]approval.Approval, error) {
	if b.find != nil {
		return nil, b.find
	}
	return b.Memory.Find(ctx, x)
}

func (b *brokenApprovals) Raise(ctx context.Context, c approval.Call) (approval.Approval, error) {
	if b.raise != nil {
		return approval.Approval{}, b.raise
	}
	return b.Memory.Raise(ctx, c)
}

func (b *brokenApprovals) Consume(ctx context.Context, id string) error {
	if b.consume != nil {
		return b.consume
	}
	return b.Memory.Consume(ctx, id)
}

func TestApprovalsThatFail(t *testing.T) {
	broken := errors.New("broken")
	tests := map[string]struct {
		approvals brokenApprovals
		approved  bool
		reason    policy.Reason
	}{
		"cannot be looked up":    {brokenApprovals{find: broken}, false, ReasonApprovalUnavailable},
		"cannot be raised":       {brokenApprovals{raise: broken}, false, ReasonApprovalUnavailable},
		"too many wait":          {brokenApprovals{raise: approval.ErrTooManyPending}, false, ReasonTooManyPending},
		"the call is too large":  {brokenApprovals{raise: approval.ErrTooLarge}, false, ReasonTooLargeToApprove},
		"cannot be used":         {brokenApprovals{consume: broken}, true, ReasonApprovalUnavailable},
		"was used by another":    {brokenApprovals{consume: approval.ErrUsed}, true, ReasonApprovalUsed},
		"expired while deciding": {brokenApprovals{consume: approval.ErrExpired}, true, ReasonApprovalExpired},
		"was rejected meanwhile": {brokenApprovals{consume: approval.ErrRejected}, true, ReasonApprovalRejected},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if test.approved {
				raised := f.want(t, f.call("item.delete"), review.Confirm, policy.ReasonIrreversible)
				f.decideApproval(t, raised.Approval.Name, approval.Approved)
			}
			test.approvals.Memory = f.approvals
			f.gate.options.Approvals = &test.approvals
			f.want(t, f.call("item.delete"), review.Block, test.reason)
		})
	}
}

func TestADeadlineThatPassesIsNoAllow(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Clock = clock.RealClock{} })
	f.decider.wait = make(chan struct{})
	defer close(f.decider.wait)
	call := f.call("item.update", func(r *review.Request) { r.UID = uid(time.Now()) })
	w := post(f.gate, review.Path+"?timeout=20ms", body(t, call))
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"Allow"`) {
		t.Errorf("HTTP %d %s", w.Code, w.Body)
	}
}

func TestDisclosure(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Disclose = "" })
	if got := f.ask(t, f.call("item.update")); got.Decision.Answers != nil || got.Decision.Obligations != nil {
		t.Errorf("numbers left without disclose: Full: %+v", got.Decision)
	}
	f.load(t, strings.Replace(testPolicy, "spec:", "spec:\n  disclose: Full", 1))
	if got := f.ask(t, f.call("item.update")); got.Decision.Answers["matches_request"].Probability == nil {
		t.Error("disclose: Full shows no numbers")
	}
}

func TestSensitiveArgumentsAreNotShown(t *testing.T) {
	f := newFixture(t)
	answer1(0.5)(f)
	got := f.ask(t, f.call("item.update", func(r *review.Request) { r.Arguments["secret"] = "hunter2" }))
	waiting, err := f.approvals.Get(t.Context(), got.Approval.Name)
	if err != nil || strings.Contains(string(waiting.Call.Arguments), "hunter2") || !strings.Contains(string(waiting.Call.Arguments), "9 bytes") {
		t.Errorf("shown: %s %v", waiting.Call.Arguments, err)
	}
}

func TestRoutes(t *testing.T) {
	f := newFixture(t)
	server := httptest.NewServer(f.gate.Routes(f.registry))
	defer server.Close()
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/healthz": {200, "ok"}, "/readyz": {200, "ok"}, "/metrics": {200, "gatewright_in_flight"},
		"/openapi.json": {200, `"ToolCallReview"`}, "/": {404, "NotFound"}, review.Path: {405, "MethodNotAllowed"},
	} {
		r, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if r.StatusCode != want.status || !strings.Contains(string(data), want.text) {
			t.Errorf("GET %s: HTTP %d %.200s", path, r.StatusCode, data)
		}
	}
}

// signer signs as scripted.
type signer struct {
	claims []permit.Claims
	err    error
}

func (s *signer) Sign(c permit.Claims, _ time.Duration) (string, error) {
	s.claims = append(s.claims, c)
	return "signed", s.err
}

func TestPermits(t *testing.T) {
	s := &signer{}
	f := newFixture(t, func(o *Options) { o.Permits = s })
	permitPolicy(f)
	got := f.want(t, f.call("item.send"), review.Allow, policy.ReasonRulesPassed)
	if got.Permit != "signed" || len(s.claims) != 1 || s.claims[0].Audience != "mail" || s.claims[0].Subject != "system:serviceaccount:shop:agent" ||
		s.claims[0].ArgumentsDigest != got.Decision.ArgumentsDigest || s.claims[0].Decision != got.Decision.ID {
		t.Errorf("permit %q with %+v", got.Permit, s.claims)
	}
	if got := f.ask(t, f.call("item.get")); got.Permit != "" {
		t.Error("a tool that requires no permit got one")
	}
	if got := f.ask(t, f.call("item.send", func(r *review.Request) { r.DryRun = true })); got.Permit != "" || got.Outcome != review.Allow {
		t.Errorf("dry run: %s, permit %q", got.Outcome, got.Permit)
	}
	s.err = errors.New("no key")
	if got := f.want(t, f.call("item.send"), review.Block, ReasonPermitUnavailable); !got.Retryable || got.Permit != "" {
		t.Errorf("a permit that cannot be signed: %+v", got)
	}
}

func TestThePermitOfAnApprovedCallIsTheApprovals(t *testing.T) {
	s := &signer{}
	f := newFixture(t, func(o *Options) { o.Permits = s })
	f.load(t, strings.ReplaceAll(testPolicy, "name: item.delete, class: Destructive,", "name: item.delete, class: Destructive, permit: Required, permitAudience: items,"))
	raised := f.want(t, f.call("item.delete"), review.Confirm, policy.ReasonIrreversible)
	f.decideApproval(t, raised.Approval.Name, approval.Approved)
	s.err = errors.New("no key")
	f.want(t, f.call("item.delete"), review.Block, ReasonPermitUnavailable)
	s.err = nil
	f.want(t, f.call("item.delete"), review.Allow, policy.ReasonApproved) // what could not be signed has used nothing up
	if waiting, err := f.approvals.Get(t.Context(), raised.Approval.Name); err != nil || s.claims[len(s.claims)-1].ID != waiting.ID {
		t.Errorf("permit %q is not the approval's %q (%v)", s.claims[len(s.claims)-1].ID, waiting.ID, err)
	}
}

func TestASlowDeciderOfAnAuditPolicyHoldsNobodyUp(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Clock = clock.RealClock{} })
	audit := strings.NewReplacer("name: shop, namespace", "name: observed, namespace", "spec:", "spec:\n  mode: Audit", "name: d,", "name: slow,").Replace(testPolicy)
	f.load(t, testPolicy, audit)
	slow := &decider{wait: make(chan struct{})}
	defer close(slow.wait)
	f.gate.snapshot.Load().Deciders["slow"] = &ServedDecider{Decider: slow, Verified: true, Allowed: everywhere}
	call := f.call("item.update", func(r *review.Request) { r.UID = uid(time.Now()) })
	w := post(f.gate, review.Path+"?timeout=400ms", body(t, call))
	var out review.ToolCallReview
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || out.Response == nil {
		t.Fatalf("HTTP %d %s", w.Code, w.Body)
	}
	got := out.Response
	if got.Outcome != review.Allow || got.Reason != "Asked" || got.Decision.Decider != "d" {
		t.Errorf("got %s %s by %s", got.Outcome, got.Reason, got.Decision.Decider)
	}
	if len(got.WouldBe) != 1 || got.WouldBe[0].Reason != string(policy.ReasonDeciderTimeout) {
		t.Errorf("would be %+v", got.WouldBe)
	}
}

// panicky is a decider with a fault of its own.
type panicky struct{}

func (panicky) Decide(context.Context, inference.Request) (inference.Result, error) { panic("fault") }

func TestAPanicOfADeciderIsNoAnswer(t *testing.T) {
	f := newFixture(t)
	f.gate.snapshot.Load().Deciders["d"].Decider = panicky{}
	f.want(t, f.call("item.update"), review.Confirm, policy.ReasonDeciderUnavailable)
}

func everywhere(string) bool { return true }
