package learn

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/questions"
)

// record is a decision by the ladder of the written policy.
func record(id string, change func(*audit.Record)) audit.Entry {
	p, d := 0.8, 0.1
	r := audit.Record{
		Kind: audit.KindDecision, Time: start, ID: id, Tool: "note.write", Class: "Write", Base: "Write", Outcome: review.Confirm, By: "decider",
		UserTurnsDigest: "sha256:turns",
		Obligations:     []review.Obligation{{Outcome: review.Confirm, By: "decider", Policy: written}},
		Deciders: []audit.Asked{{Policy: written, Decider: "d", Fingerprint: printed, Answers: map[string]review.Answer{
			"asked": {Probability: &p}, "declined": {Probability: &d},
		}}},
	}
	change(&r)
	return audit.Entry{Record: r}
}

func label(id string, o review.Outcome) audit.Entry {
	return audit.Entry{Record: audit.Record{Kind: audit.KindLabel, Label: &audit.Label{Decision: id, Outcome: o}}}
}

func approvedBy(name, outcome string) func(*audit.Record) {
	return func(r *audit.Record) {
		r.Approval = &audit.Approval{Name: name, Outcome: outcome}
		if outcome != "" {
			r.Deciders, r.Obligations, r.Time = nil, nil, start.Add(time.Minute)
		}
	}
}

func TestWhatALogSays(t *testing.T) {
	same := func(*audit.Record) {}
	tests := map[string]struct {
		log       []audit.Entry
		wantLabel map[string]Label
		wantRest  policy.Outcome
		wantWords int
		wantLeft  map[string]int
	}{
		"a decision that nobody looked at": {
			[]audit.Entry{record("a", same)}, map[string]Label{"a": ""}, policy.Allow, 0, nil,
		},
		"the last word about a decision counts": {
			[]audit.Entry{record("a", same), label("a", review.Allow), label("a", review.Block)}, map[string]Label{"a": LabelBlock}, policy.Allow, 0, nil,
		},
		"a label may stand before its decision is read": {
			[]audit.Entry{label("a", review.Allow), record("a", same)}, map[string]Label{"a": LabelAllow}, policy.Allow, 0, nil,
		},
		"an approval labels the call that raised it": {
			[]audit.Entry{record("a", approvedBy("ta-1", "")), record("b", approvedBy("ta-1", "Approved"))},
			map[string]Label{"a": LabelAllow}, policy.Allow, 1, map[string]int{leftNoAnswers: 1},
		},
		"a rejection is heard once, however often its call comes back": {
			[]audit.Entry{record("a", approvedBy("ta-1", "")), record("b", approvedBy("ta-1", "Rejected")), record("c", approvedBy("ta-1", "Rejected"))},
			map[string]Label{"a": LabelBlock}, policy.Allow, 1, map[string]int{leftNoAnswers: 2},
		},
		"a label outranks an approval": {
			[]audit.Entry{record("a", approvedBy("ta-1", "")), record("b", approvedBy("ta-1", "Approved")), label("a", review.Block)},
			map[string]Label{"a": LabelBlock}, policy.Allow, 1, map[string]int{leftNoAnswers: 1},
		},
		"what rules hold stays": {
			[]audit.Entry{record("a", func(r *audit.Record) {
				r.Obligations = append(r.Obligations, review.Obligation{Outcome: review.Clarify, By: "rule:argument-source", Policy: written})
			})}, map[string]Label{"a": ""}, policy.Clarify, 0, nil,
		},
		"what another policy's ladder holds stays": {
			[]audit.Entry{record("a", func(r *audit.Record) {
				r.Obligations = append(r.Obligations, review.Obligation{Outcome: review.Confirm, By: "decider", Policy: "ToolPolicy/shop/q"})
			})}, map[string]Label{"a": ""}, policy.Confirm, 0, nil,
		},
		"a policy in mode Audit is judged by what it would have been": {
			[]audit.Entry{record("a", func(r *audit.Record) {
				r.Deciders[0].Audit, r.Obligations = true, []review.Obligation{{Outcome: review.Block, By: "rule:missing-scope", Policy: "ToolPolicy/shop/q"}}
				r.WouldBe = []review.WouldBe{{Policy: written, Outcome: review.Confirm, By: "decider"}}
			})}, map[string]Label{"a": ""}, policy.Allow, 0, nil,
		},
		"a rule of a policy in mode Audit holds there": {
			[]audit.Entry{record("a", func(r *audit.Record) {
				r.Deciders[0].Audit = true
				r.WouldBe = []review.WouldBe{{Policy: written, Outcome: review.Block, By: "rule:missing-scope"}}
			})}, map[string]Label{"a": ""}, policy.Block, 0, nil,
		},
		"an outcome that nobody knows is Block": {
			[]audit.Entry{record("a", func(r *audit.Record) {
				r.Obligations = []review.Obligation{{Outcome: "Perhaps", By: "rule:x", Policy: written}}
			})}, map[string]Label{"a": ""}, policy.Block, 0, nil,
		},
		"what no threshold took part in": {
			[]audit.Entry{
				record("a", func(r *audit.Record) { r.Deciders[0].Error = "Timeout" }),
				record("b", func(r *audit.Record) { r.By = "gate" }),
				record("c", func(r *audit.Record) { r.DryRun = true }),
				record("d", func(r *audit.Record) { r.Deciders = nil }),
				{Record: audit.Record{Kind: audit.KindCheckpoint}},
			}, map[string]Label{}, policy.Allow, 0, map[string]int{leftNoAnswers: 2, leftGate: 1, leftDryRun: 1},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := NewLog()
			for i := range test.log {
				l.Add(&test.log[i])
			}
			got := l.Evidence()
			labels := map[string]Label{}
			for _, e := range got.Examples {
				labels[e.ID] = e.Label
				want := map[string]Seen{written: {Answers: yesNo(0.8, 0.1), Fingerprint: printed, Rest: test.wantRest, Audit: e.Seen[written].Audit}}
				if diff := cmp.Diff(want, e.Seen); diff != "" || e.Cluster != "sha256:turns" {
					t.Errorf("%s (-want +got):\n%s", e.ID, diff)
				}
			}
			if test.wantLeft == nil {
				test.wantLeft = map[string]int{}
			}
			if diff := cmp.Diff(test.wantLabel, labels) + cmp.Diff(test.wantLeft, got.Left); diff != "" || len(got.Words) != test.wantWords {
				t.Errorf("%d words (-want +got):\n%s", len(got.Words), diff)
			}
		})
	}
}

func TestAnswersAreReadAsTheyWereGiven(t *testing.T) {
	score, p := 1.5, 0.25
	tests := map[string]struct {
		given review.Answer
		want  questions.Answer
	}{
		"a YesNo":            {review.Answer{Probability: &p}, questions.Answer{Type: questions.YesNo, Probability: 0.25, Coverage: 1}},
		"a Score":            {review.Answer{Score: &score, Probabilities: map[string]float64{"1": 0.5, "2": 0.5}}, questions.Answer{Type: questions.Score, Score: 1.5, Probabilities: map[string]float64{"1": 0.5, "2": 0.5}, Coverage: 1}},
		"a Choice":           {review.Answer{Choice: "a", Probabilities: map[string]float64{"a": 1}}, questions.Answer{Type: questions.Choice, Choice: "a", Probabilities: map[string]float64{"a": 1}, Coverage: 1}},
		"a verdict alone":    {review.Answer{Choice: "block"}, questions.Answer{Type: questions.Choice, Choice: "block", Coverage: 1, Verdict: true}},
		"nothing whatsoever": {review.Answer{}, questions.Answer{Type: questions.Choice, Coverage: 1, Verdict: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, answerOf(test.given)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
