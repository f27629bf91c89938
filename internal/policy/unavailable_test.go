package policy

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/testkit"
)

// unavailable lists every reason why a decider may give no usable answer.
var unavailable = []Reason{
	ReasonDeciderTimeout, ReasonDeciderUnreachable, ReasonDeciderBadReply, ReasonDeciderRefused, ReasonDeciderOverloaded,
	ReasonDeciderBreakerOpen, ReasonDeciderMismatch, ReasonDeciderNotFound, ReasonDeciderNotAllowed, ReasonDeciderNotVerified,
	ReasonFingerprintRequired, ReasonQuestionNotSupported, ReasonInputTooLong, ReasonLanguageNotSupported, ReasonLowCoverage,
	ReasonDeciderCanceled, ReasonDeciderUnavailable,
}

func TestUnavailable(t *testing.T) {
	asks := testkit.Asks(toAllow, testkit.Questions("asked"))
	for name, c := range map[string]struct {
		class   v1alpha1.ClassName
		options []testkit.ClassOption
		want    string
	}{
		"ReadOnly asks a person":                    {read, nil, "Confirm"},
		"Write asks a person":                       {write, nil, "Confirm"},
		"External blocks":                           {external, nil, "Block"},
		"Destructive blocks":                        {destructive, nil, "Block"},
		"Destructive when unsure still blocks":      {destructive, []testkit.ClassOption{testkit.Approval("WhenUnsure")}, "Block"},
		"ReadOnly may block":                        {read, []testkit.ClassOption{testkit.WhenUnavailable("Block")}, "Block"},
		"Destructive may ask a person":              {destructive, []testkit.ClassOption{testkit.WhenUnavailable("Confirm")}, "Confirm"},
		"a class of one's own has that of its base": {"Own", []testkit.ClassOption{testkit.Base("External")}, "Block"},
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, "p", testkit.WithDecider("judge"), testkit.WithClass(c.class, append(c.options, asks)...), testkit.WithTool("act", c.class))
			for _, reason := range unavailable {
				want := shown{c.want, reason, byDecider}
				if reason == ReasonLanguageNotSupported {
					want.Outcome = "Confirm" // what a decider cannot read a person can
				}
				// The answers that came with it are not looked at.
				a := Answered{Unavailable: reason, Fingerprint: testkit.Fingerprint, Answers: questions.Answers{"asked": yes(1)}}
				got := judge(request("act", nil), p).Settle([]Answered{a}, nil)
				if diff := cmp.Diff(want, show(got)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}

func TestWhatIsNoAnswer(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	good := questions.Answers{"asked": yes(0.9), "severity": score(0.5, 0.25, 0.25, 0), "tone": tones(0.25), "verdict": bareVerdict("allow")}
	with := func(name string, a questions.Answer) questions.Answers {
		out := questions.Answers{name: a}
		for k, v := range good {
			if k != name {
				out[k] = v
			}
		}
		return out
	}
	without := func(name string) questions.Answers {
		out := with(name, questions.Answer{})
		delete(out, name)
		return out
	}
	p := asking(t, toAllow, testkit.Questions("asked", "severity", "tone", "verdict"), testkit.Step(toBlock, testkit.Below("asked", 10)))
	for name, c := range map[string]struct {
		answered []Answered
		want     Reason
	}{
		"nothing at all":           {nil, ReasonDeciderUnavailable},
		"the zero value":           {[]Answered{{}}, ReasonDeciderMismatch},
		"no answers":               {[]Answered{{Fingerprint: testkit.Fingerprint}}, ReasonDeciderBadReply},
		"another model":            {[]Answered{{Fingerprint: "judge-2", Answers: good}}, ReasonDeciderMismatch},
		"a model without a name":   {[]Answered{{Answers: good}}, ReasonDeciderMismatch},
		"a fingerprint cut short":  {[]Answered{{Fingerprint: testkit.Fingerprint[:4], Answers: good}}, ReasonDeciderMismatch},
		"one answer is missing":    {[]Answered{{Fingerprint: testkit.Fingerprint, Answers: without("tone")}}, ReasonDeciderBadReply},
		"one answer too many":      {[]Answered{{Fingerprint: testkit.Fingerprint, Answers: with("declined", yes(0))}}, ReasonDeciderBadReply},
		"NaN":                      {[]Answered{{Fingerprint: testkit.Fingerprint, Answers: with("asked", yes(nan))}}, ReasonDeciderBadReply},
		"infinity":                 {[]Answered{{Fingerprint: testkit.Fingerprint, Answers: with("asked", yes(inf))}}, ReasonDeciderBadReply},
		"more than certain":        {[]Answered{{Fingerprint: testkit.Fingerprint, Answers: with("asked", yes(1.01))}}, ReasonDeciderBadReply},
		"less than nothing":        {[]Answered{{Fingerprint: testkit.Fingerprint, Answers: with("asked", yes(-0.01))}}, ReasonDeciderBadReply},
		"another type":             {[]Answered{{Fingerprint: testkit.Fingerprint, Answers: with("asked", tones(0.25))}}, ReasonDeciderBadReply},
		"probabilities beyond one": {[]Answered{{Fingerprint: testkit.Fingerprint, Answers: with("severity", score(0.5, 0.5, 0.5, 0))}}, ReasonDeciderBadReply},
		"an option of nobody":      {[]Answered{{Fingerprint: testkit.Fingerprint, Answers: with("tone", choice("harsh", map[string]float64{"friendly": 0.5, "rude": 0.5}))}}, ReasonDeciderBadReply},
		"a bare verdict where a number is compared": {[]Answered{{Fingerprint: testkit.Fingerprint, Answers: with("tone", bareVerdict("rude"))}}, ReasonDeciderBadReply},
		"a verdict of nobody":                       {[]Answered{{Fingerprint: testkit.Fingerprint, Answers: with("verdict", bareVerdict("maybe"))}}, ReasonDeciderBadReply},
	} {
		t.Run(name, func(t *testing.T) {
			j := judge(request("act", nil), p)
			if diff := cmp.Diff(shown{"Confirm", c.want, byDecider}, show(j.Settle(c.answered, nil))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if answers, _ := j.Answers(); len(answers) != 0 {
				t.Errorf("records hold %v, which was not taken", answers)
			}
		})
	}
	j := judge(request("act", nil), p)
	if diff := cmp.Diff(shown{"Allow", ReasonNoThresholdMatched, byDecider}, show(j.Settle(replying(j, good), nil))); diff != "" {
		t.Errorf("the good answers (-want +got):\n%s", diff)
	}
}

func TestFingerprints(t *testing.T) {
	asks := func(end v1alpha1.Outcome, steps ...v1alpha1.Threshold) testkit.Option {
		return testkit.WithClass(write, testkit.Asks(end, testkit.Questions("asked"), steps...))
	}
	for name, c := range map[string]struct {
		class       testkit.Option
		fingerprint v1alpha1.Fingerprint
		answered    string
		needs       bool
		want        shown
	}{
		"pinned and answered by it":           {asks(toAllow), "m1", "m1", false, shown{"Allow", ReasonNoThresholdMatched, byDecider}},
		"pinned and answered by another":      {asks(toAllow), "m1", "m2", false, shown{"Confirm", ReasonDeciderMismatch, byDecider}},
		"an end that allows must be pinned":   {asks(toAllow), "", "m1", true, shown{"Confirm", ReasonFingerprintRequired, byDecider}},
		"a step that allows must be pinned":   {asks(toBlock, testkit.Step(toAllow, testkit.AtLeast("asked", 99))), "", "m1", true, shown{"Confirm", ReasonFingerprintRequired, byDecider}},
		"what only tightens need not":         {asks(toConfirm, testkit.Step(toBlock, testkit.Below("asked", 50))), "", "m1", false, shown{"Confirm", ReasonNoThresholdMatched, byDecider}},
		"what only tightens and pins is held": {asks(toConfirm), "m1", "m2", false, shown{"Confirm", ReasonDeciderMismatch, byDecider}},
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, "p", testkit.WithUnpinnedDecider("judge", c.fingerprint), c.class, testkit.WithTool("act", write))
			if got := p.NeedsFingerprint(); got != c.needs || p.Decider() != "judge" {
				t.Errorf("NeedsFingerprint is %v, want %v; decider %q", got, c.needs, p.Decider())
			}
			j := judge(request("act", nil), p)
			if c.needs && len(j.Asks()) != 0 {
				t.Errorf("asked %+v, whose answers cannot be used", j.Asks())
			}
			got := j.Settle([]Answered{{Fingerprint: c.answered, Answers: questions.Answers{"asked": yes(0.8)}}}, nil)
			if diff := cmp.Diff(c.want, show(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	tool := compiled(t, "p", testkit.WithUnpinnedDecider("judge", ""), testkit.WithClass(write, testkit.Asks(toConfirm, testkit.Questions("asked"))),
		testkit.WithTool("act", write, testkit.ToolOtherwise(toAllow)))
	if !tool.NeedsFingerprint() {
		t.Error("a tool whose own end allows what was judged needs no fingerprint")
	}
	if p := compiled(t, "p"); p.Decider() != "" || p.NeedsFingerprint() {
		t.Errorf("a policy without a decider has %q", p.Decider())
	}
}
