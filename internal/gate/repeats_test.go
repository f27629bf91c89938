package gate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/shares"
)

// An agent that was refused tries the same value in another spelling, with its first try in the conversation. That try did
// not run, and must not look to a decider like a call that did.
func TestADeciderIsToldWhichEarlierCallsWereRefused(t *testing.T) {
	f := newFixture(t)
	f.decider.answers["matches_request"] = yes(0.1)
	f.want(t, f.call("item.update", func(r *review.Request) { r.Arguments["note"] = "merge it" }), review.Block, "NotAsked")

	const refused, ran, otherwise = `[tool call] item.update {"note": "merge it", "id": "7"}`, `[tool call] item.get {"id":"7"}`, `[tool call] item.update {"id":`
	again := f.call("item.update", func(r *review.Request) {
		r.Arguments["note"] = "Merge it."
		for _, text := range []string{ran, refused, otherwise} {
			r.Context.Messages = append(r.Context.Messages, review.Message{Role: review.RoleAssistant, Content: text})
		}
		r.Context.Messages = append(r.Context.Messages, review.Message{Role: review.RoleTool, Content: "did not run"})
	})
	f.ask(t, again)
	want := []questions.Message{
		{Role: questions.RoleAssistant, Text: ran},
		{Role: questions.RoleAssistant, Text: refused, Refused: true},
		{Role: questions.RoleAssistant, Text: otherwise},
		{Role: questions.RoleTool, Text: "did not run"},
	}
	if diff := cmp.Diff(want, f.decider.state.Messages); diff != "" {
		t.Errorf("what the decider saw (-want +got):\n%s", diff)
	}
}

// What no decider was asked about, or what was blocked after its answer, did not run either.
func TestACallThatWasBlockedForAnyReasonIsMarked(t *testing.T) {
	for name, test := range map[string]struct {
		set    func(*fixture, *time.Duration)
		reason policy.Reason
	}{
		"the policies are too old":     {func(_ *fixture, age *time.Duration) { *age = time.Hour }, ReasonStaleSnapshot},
		"the gate has no policies":     {func(f *fixture, _ *time.Duration) { f.gate.snapshot.Store(nil) }, ReasonNotReady},
		"the gate is full":             {func(f *fixture, _ *time.Duration) { f.gate.slots = shares.New(0) }, ReasonOverloaded},
		"the record cannot be written": {func(f *fixture, _ *time.Duration) { f.records.fail = audit.ErrUnavailable }, ReasonAuditUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			age := new(time.Duration)
			f := newFixture(t, func(o *Options) { o.Age = func() time.Duration { return *age } })
			before, slots := f.gate.snapshot.Load(), f.gate.slots
			test.set(f, age)
			f.want(t, f.call("item.update"), review.Block, test.reason)

			*age, f.gate.slots, f.records.fail = 0, slots, nil
			f.gate.snapshot.Store(before)
			f.ask(t, f.call("item.update", func(r *review.Request) {
				r.Arguments["note"] = "once more"
				r.Context.Messages = []review.Message{{Role: review.RoleAssistant, Content: `[tool call] item.update {"id":"7"}`}}
			}))
			want := []questions.Message{{Role: questions.RoleAssistant, Text: `[tool call] item.update {"id":"7"}`, Refused: true}}
			if diff := cmp.Diff(want, f.decider.state.Messages); diff != "" {
				t.Errorf("what the decider saw (-want +got):\n%s", diff)
			}
		})
	}
}

// A call that is allowed after all did run.
func TestACallThatWasRefusedAndThenRanCounts(t *testing.T) {
	f := newFixture(t)
	f.decider.answers["matches_request"] = yes(0.1)
	f.want(t, f.call("item.update"), review.Block, "NotAsked")
	f.decider.answers["matches_request"] = yes(0.9)
	f.want(t, f.call("item.update", func(r *review.Request) { r.Context.UserRequest = "yes, update item 7" }), review.Allow, "Asked")
	f.ask(t, f.call("item.update", func(r *review.Request) {
		r.Arguments["note"] = "once more"
		r.Context.Messages = []review.Message{{Role: review.RoleAssistant, Content: `[tool call] item.update {"id":"7"}`}}
	}))
	want := []questions.Message{{Role: questions.RoleAssistant, Text: `[tool call] item.update {"id":"7"}`}}
	if diff := cmp.Diff(want, f.decider.state.Messages); diff != "" {
		t.Errorf("what the decider saw of the call that ran (-want +got):\n%s", diff)
	}
}

// A decider that is told that an earlier call was refused is asked about something else than one that is not. It has not
// changed its mind when its answer is another.
func TestAnotherAnswerBecauseACallWasRefusedIsNoChangeOfMind(t *testing.T) {
	f := newFixture(t)
	f.decider.answers["matches_request"] = yes(0.9)
	next := func(r *review.Request) {
		r.Arguments["note"] = "once more"
		r.Context.Messages = []review.Message{{Role: review.RoleAssistant, Content: `[tool call] item.update {"id":"7"}`}}
	}
	f.want(t, f.call("item.update", next), review.Allow, "Asked")
	f.decider.answers["matches_request"] = yes(0.1)
	f.want(t, f.call("item.update"), review.Block, "NotAsked")
	f.want(t, f.call("item.update", next), review.Block, "NotAsked")
	if got := series(t, f, "gatewright_decider_flaps_total"); len(got) != 0 {
		t.Errorf("changes of mind are counted: %v", got)
	}
}
