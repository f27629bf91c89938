package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/capture"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/questions"
)

// keeper keeps states in memory.
type keeper struct {
	mu    sync.Mutex
	modes map[capture.Mode]bool
	kept  map[string][]byte
	fail  error
}

func (k *keeper) Keeps(mode capture.Mode) bool { return k.modes[mode] }

func (k *keeper) Put(_ capture.Mode, digest string, state []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		return k.fail
	}
	k.kept[digest] = state
	return nil
}

func TestCallsAreKeptAsThePolicySays(t *testing.T) {
	everything := map[capture.Mode]bool{capture.Plain: true, capture.Encrypted: true}
	for name, test := range map[string]struct {
		state string // captureState of the policy
		modes map[capture.Mode]bool
		fail  error
		want  string // in the record
	}{
		"nothing is said":                 {"", everything, nil, ""},
		"digests only":                    {"captureState: Digest", everything, nil, ""},
		"as it is":                        {"captureState: Plain", everything, nil, "Plain"},
		"encrypted":                       {"captureState: Encrypted", everything, nil, "Encrypted"},
		"encrypted, and there is no key":  {"captureState: Encrypted", map[capture.Mode]bool{capture.Plain: true}, nil, ""},
		"as it is, and there is no room":  {"captureState: Plain", everything, capture.ErrFull, ""},
		"as it is, and there is no place": {"captureState: Plain", nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := &keeper{modes: test.modes, kept: map[string][]byte{}, fail: test.fail}
			f := newFixture(t, func(o *Options) { o.Capture = k })
			f.load(t, strings.Replace(testPolicy, "spec:\n", "spec:\n  "+test.state+"\n", 1))
			call := f.call("item.get", func(r *review.Request) { r.DryRun = true })
			f.want(t, call, review.Allow, policy.ReasonRulesPassed)
			record := f.records.last(t)
			if record.Captured != test.want || (len(k.kept) == 1) != (test.want != "") {
				t.Fatalf("the record says %q and %d calls are kept, want %q", record.Captured, len(k.kept), test.want)
			}
			if test.want == "" {
				return
			}
			var got capture.State
			if err := json.Unmarshal(k.kept[record.StateDigest], &got); err != nil {
				t.Fatal(err)
			}
			want := capture.State{Caller: "shop/agent", Request: *call}
			want.Request.UID, want.Request.DryRun = "", false
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			kept, err := KeptState(k.kept[record.StateDigest], record.StateDigest)
			if err != nil || kept.Caller != "shop/agent" || kept.Request.Context.UserRequest != call.Context.UserRequest {
				t.Errorf("read back: %+v, %v", kept, err)
			}
			if _, err := KeptState(bytes.Replace(k.kept[record.StateDigest], []byte("shop/agent"), []byte("shop/other"), 1), record.StateDigest); !errors.Is(err, ErrOtherState) {
				t.Errorf("another caller: %v, want ErrOtherState", err)
			}
			if _, err := KeptState([]byte("{"), record.StateDigest); !errors.Is(err, capture.ErrCorrupt) {
				t.Errorf("half a call: %v, want ErrCorrupt", err)
			}
			caller := policy.Caller{Namespace: "shop", ServiceAccount: "agent"}
			if _, r, err := f.gate.Replay(t.Context(), got, record.UID, record.StateDigest, caller); err != nil || r.Outcome != review.Allow {
				t.Errorf("judged again: %+v, %v", r, err)
			}
			got.Request.Arguments["id"] = "8"
			if _, _, err := f.gate.Replay(t.Context(), got, record.UID, record.StateDigest, caller); !errors.Is(err, ErrOtherState) {
				t.Errorf("a call that was changed: %v, want ErrOtherState", err)
			}
		})
	}
}

// Every policy's decider stands in the record with its own answers, those that are only observed too.
func TestEveryDeciderIsRecorded(t *testing.T) {
	f := newFixture(t)
	second := strings.Replace(testPolicy, "{name: shop,", "{name: second,", 1)
	observed := strings.Replace(strings.Replace(testPolicy, "{name: shop,", "{name: observed,", 1), "spec:\n", "spec:\n  mode: Audit\n", 1)
	f.load(t, testPolicy, second, observed)
	f.decider.answers = questions.Answers{"matches_request": yes(0.9)}
	f.want(t, f.call("item.update"), review.Allow, "Asked")
	got := f.records.last(t).Deciders
	answers := map[string]review.Answer{"matches_request": {Probability: new(0.9)}}
	want := []audit.Asked{
		{Policy: "ToolPolicy/shop/observed", Decider: "d", Audit: true, Answers: answers, Fingerprint: fingerprint, PromptVersion: promptVersion},
		{Policy: "ToolPolicy/shop/second", Decider: "d", Answers: answers, Fingerprint: fingerprint, PromptVersion: promptVersion},
		{Policy: "ToolPolicy/shop/shop", Decider: "d", Answers: answers, Fingerprint: fingerprint, PromptVersion: promptVersion},
	}
	for i := range got {
		got[i].Policy = strings.TrimSuffix(got[i].Policy, "@7")
	}
	sorted := cmpopts.SortSlices(func(a, b audit.Asked) bool { return a.Policy < b.Policy })
	if diff := cmp.Diff(want, got, sorted, cmpopts.IgnoreFields(audit.Asked{}, "Milliseconds")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// fleeting makes nothing durable and takes everything.
type fleeting struct{ recorder }

func (r *fleeting) Append(context.Context, *audit.Record) error { return audit.ErrNotDurable }

// A call that was refused because its record could not be made durable is recorded as refused: what the log says last of a
// decision is what was answered.
func TestARefusalForWantOfARecordIsRecorded(t *testing.T) {
	r := &fleeting{}
	f := newFixture(t, func(o *Options) { o.Recorder = r })
	answered := f.want(t, f.call("item.update"), review.Block, ReasonAuditUnavailable)
	record := r.last(t)
	if record.ID != answered.Decision.ID || record.Outcome != review.Block || record.Reason != string(ReasonAuditUnavailable) || record.By != byGate {
		t.Errorf("the log says %+v, and the answer was %+v", record, answered)
	}
	f.want(t, f.call("item.get"), review.Allow, policy.ReasonRulesPassed) // a read needs no durable record
}
