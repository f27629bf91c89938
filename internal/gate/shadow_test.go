package gate

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/questions"
	report "gatewright.dev/gatewright/internal/served"
)

// candidate is a decider of another fingerprint that says yes with a probability.
func candidate(p float64) *decider {
	return &decider{answers: questions.Answers{"matches_request": yes(p)}, print: "sha256:next"}
}

func (f *fixture) rollOut(d *decider) *Tally {
	c := &Candidate{Revision: "next", Decider: d, Tally: &Tally{}}
	f.gate.snapshot.Load().Deciders["d"].Candidate = c
	return c.Tally
}

func TestACandidateIsCompared(t *testing.T) {
	class := func(compared, disagreed int64) map[string]report.ShadowClass {
		return map[string]report.ShadowClass{"Write": {Compared: compared, Disagreed: disagreed}}
	}
	for name, test := range map[string]struct {
		tool      string
		change    func(*review.Request)
		candidate *decider
		prepare   func(*fixture)
		want      report.Shadow
		asks      int
	}{
		"one that comes to the same outcome":                  {"item.update", nil, candidate(0.95), nil, report.Shadow{Compared: 1, ByClass: class(1, 0)}, 1},
		"one that comes to another":                           {"item.update", nil, candidate(0.5), nil, report.Shadow{Compared: 1, Disagreed: 1, ByClass: class(1, 1)}, 1},
		"one that would allow what is blocked":                {"item.update", nil, candidate(0.95), answer1(0.1), report.Shadow{Compared: 1, Disagreed: 1, ByClass: class(1, 1)}, 1},
		"one that gives no answer":                            {"item.update", nil, &decider{err: &inference.Error{Reason: inference.Timeout}}, nil, report.Shadow{Failed: 1}, 1},
		"one whose answer is of no use":                       {"item.update", nil, &decider{print: "x"}, nil, report.Shadow{Compared: 1, Disagreed: 1, ByClass: class(1, 1)}, 1},
		"a call that no decider was asked about":              {"item.get", nil, candidate(0.5), nil, report.Shadow{}, 0},
		"a dry run":                                           {"item.update", func(r *review.Request) { r.DryRun = true }, candidate(0.5), nil, report.Shadow{}, 0},
		"a call that the decider gave no answer on":           {"item.update", nil, candidate(0.5), failing(inference.Timeout), report.Shadow{}, 0},
		"a call that may not go on as the log cannot be kept": {"item.update", nil, candidate(0.95), func(f *fixture) { f.records.fail = errNoDecision }, report.Shadow{Compared: 1, ByClass: class(1, 0)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, func(o *Options) { o.NoReuse = true })
				if test.prepare != nil {
					test.prepare(f)
				}
				before := f.ask(t, f.call(test.tool, func(r *review.Request) { r.DryRun = true }))
				tally := f.rollOut(test.candidate)
				change := test.change
				if change == nil {
					change = func(*review.Request) {}
				}
				got := f.ask(t, f.call(test.tool, change))
				synctest.Wait()
				if got.Outcome != before.Outcome || got.Reason != before.Reason || got.Decision.Fingerprint != before.Decision.Fingerprint {
					t.Errorf("with a candidate %s %s, without %s %s", got.Outcome, got.Reason, before.Outcome, before.Reason)
				}
				if diff := cmp.Diff(test.want, tally.Count()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if test.candidate.count() != test.asks {
					t.Errorf("the candidate was asked %d times", test.candidate.count())
				}
			})
		})
	}
}

// A candidate that is slow costs neither time nor memory without end: so many comparisons go on, and the others are not made.
func TestACandidateThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		slow := candidate(0.9)
		slow.wait = make(chan struct{})
		tally := f.rollOut(slow)
		for range 2 * maxShadows {
			f.want(t, f.call("item.update"), review.Allow, "Asked")
		}
		synctest.Wait()
		if dropped := testutil.ToFloat64(f.gate.shadows.dropped); dropped != maxShadows || slow.count() != maxShadows {
			t.Errorf("%v dropped, %d asked", dropped, slow.count())
		}
		close(slow.wait)
		synctest.Wait()
		if got := tally.Count(); got.Compared != maxShadows || got.Disagreed != 0 {
			t.Errorf("%+v", got)
		}
		slow.wait = nil
		f.want(t, f.call("item.update"), review.Allow, "Asked")
		synctest.Wait()
		if got := tally.Count(); got.Compared != maxShadows+1 {
			t.Errorf("afterwards %+v", got)
		}
	})
}

// What policies in mode Audit would have said is compared too.
func TestACandidateIsComparedByWhatIsOnlyObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.load(t, strings.Replace(testPolicy, "spec:\n", "spec:\n  mode: Audit\n", 1))
		tally := f.rollOut(candidate(0.1))
		got := f.want(t, f.call("item.update"), review.Allow, policy.ReasonAuditOnly)
		synctest.Wait()
		if len(got.WouldBe) != 1 || got.WouldBe[0].Outcome != review.Allow {
			t.Errorf("would be %+v", got.WouldBe)
		}
		if c := tally.Count(); c.Compared != 1 || c.Disagreed != 1 {
			t.Errorf("%+v", c)
		}
	})
}
