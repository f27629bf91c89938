package learn

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/evaluation/stats"
	"gatewright.dev/gatewright/internal/policy"
)

func TestTheBarThatTellsCallsApartIsFound(t *testing.T) {
	tests := map[string]struct {
		bar  int
		data world
		want Direction
		// wantBar lies between these.
		low, high int32
	}{
		"a bar that asks too often is lowered to where danger begins": {
			95, world{tool: "note.write", class: "Write", n: 1200, dangerous: 0.4, low: 0.6, high: 0.6, rest: policy.Allow}, Loosen, 55, 62,
		},
		"a bar that lets danger through is raised to where it ends": {
			30, world{tool: "note.write", class: "Write", n: 400, dangerous: 0.4, low: 0.7, high: 0.6, rest: policy.Allow}, Tighten, 56, 62,
		},
		"a tool's own bar is its own": {
			30, world{tool: "note.move", class: "Write", n: 400, dangerous: 0.4, low: 0.7, high: 0.6, rest: policy.Allow}, Tighten, 56, 62,
		},
		"a bar for what cannot be undone is raised too": {
			30, world{tool: "mail.send", class: "Send", n: 400, dangerous: 0.4, low: 0.7, high: 0.6, rest: policy.Allow}, Tighten, 56, 62,
		},
		"few labels are enough to raise a bar": {
			30, world{tool: "note.write", class: "Write", n: 40, dangerous: 0.4, low: 0.7, high: 0.6, rest: policy.Allow}, Tighten, 40, 70,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := suggest(t, policies(t, test.bar), Options{Seed: 1}, test.data.examples(1))
			if len(r.Suggest) != 1 || r.Suggest[0].Direction != test.want || len(r.Suggest[0].Moves) != 1 {
				t.Fatalf("got %+v, refused %+v", r.Suggest, r.Refused)
			}
			m := r.Suggest[0].Moves[0]
			if m.Number != "asked above" || m.From != int32(test.bar) || m.To < test.low || m.To > test.high {
				t.Errorf("got %+v, want a bar from %d to %d", m, test.low, test.high)
			}
		})
	}
}

func TestAPatchThatIsAppliedHasThePromisedEffect(t *testing.T) {
	tests := map[string]struct {
		bar  int
		data world
	}{
		"a class that is loosened":  {95, world{tool: "note.write", class: "Write", n: 1000, dangerous: 0.4, low: 0.5, high: 0.7, rest: policy.Allow}},
		"a class that is tightened": {30, world{tool: "note.write", class: "Write", n: 300, dangerous: 0.4, low: 0.5, high: 0.7, rest: policy.Allow}},
		"a tool that is loosened":   {95, world{tool: "note.move", class: "Write", n: 1000, dangerous: 0.4, low: 0.5, high: 0.7, rest: policy.Allow}},
		"a tool that is tightened":  {30, world{tool: "note.move", class: "Write", n: 300, dangerous: 0.4, low: 0.5, high: 0.7, rest: policy.Allow}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, examples := policies(t, test.bar), test.data.examples(2)
			r := suggest(t, p, Options{Seed: 1}, examples)
			if len(r.Suggest) != 1 {
				t.Fatalf("%d suggestions, refused %+v", len(r.Suggest), r.Refused)
			}
			patched := apply(t, p.Tool[0], r)
			if cmp.Equal(patched.Spec, p.Tool[0].Spec) {
				t.Fatal("the patch changes nothing")
			}
			got := map[string][4]stats.Proportion{"before": counted(t, p.Tool[0], examples), "after": counted(t, patched, examples)}
			e := r.Suggest[0].Effect
			want := map[string][4]stats.Proportion{
				"before": {e.FalseAllowBefore, e.FalseBlockBefore, e.FalseDenyBefore}, "after": {e.FalseAllow, e.FalseBlock, e.FalseDeny},
			}
			for when := range got {
				g, w := got[when], want[when]
				w[3] = g[3]
				if diff := cmp.Diff(w, g); diff != "" {
					t.Errorf("%s (-promised +by the engine):\n%s", when, diff)
				}
			}
			before, after := got["before"][3], got["after"][3]
			if saved := 1000 * (float64(before.Count) - float64(after.Count)) / float64(before.Of); math.Abs(saved-e.ConfirmationsSaved.Value) > 1e-6 {
				t.Errorf("%v confirmations are saved in 1,000 calls, promised were %v", saved, e.ConfirmationsSaved.Value)
			}
		})
	}
}

// counted has the engine judge what was held back: false allows, false blocks, false denials, and confirmations of all.
func counted(t *testing.T, p *v1alpha1.ToolPolicy, examples []Example) [4]stats.Proportion {
	t.Helper()
	var n tally
	confirmed, all := 0, 0
	judged := engine(t, p)
	for i := range examples {
		e := &examples[i]
		if !isHeld(1, e.Cluster) {
			continue
		}
		o := judged(e)
		n.add(e.Label, o)
		all++
		if o == policy.Confirm {
			confirmed++
		}
	}
	return [4]stats.Proportion{
		stats.Wilson(n.dangerousAllowed, n.dangerous), stats.Wilson(n.harmlessStopped, n.harmless), stats.Wilson(n.harmlessDenied, n.harmless), stats.Wilson(confirmed, all),
	}
}

func TestWhatIsRefused(t *testing.T) {
	separable := func(change func(*world)) []Example {
		w := world{tool: "note.write", class: "Write", n: 1000, dangerous: 0.4, low: 0.6, high: 0.6, rest: policy.Allow}
		change(&w)
		return w.examples(3)
	}
	tests := map[string]struct {
		bar        int
		examples   []Example
		options    Options
		want       string
		wantEnough bool
	}{
		"no label at all":                        {95, separable(func(w *world) { w.unlabelled = true }), Options{}, "too few to suggest anything", true},
		"a handful of labels":                    {30, separable(func(w *world) { w.n = 12 }), Options{}, "too few to suggest anything", true},
		"too few dangerous ones to loosen":       {95, separable(func(w *world) { w.n = 200 }), Options{}, "in each, none of which runs", true},
		"approvals only, none of them dangerous": {95, separable(func(w *world) { w.dangerous = 0 }), Options{}, "in each, none of which runs", true},
		"a lower floor needs more":               {95, separable(func(*world) {}), Options{MaxFalseAllow: 0.001}, "in each, none of which runs", true},
		"calls that cannot be undone":            {95, separable(func(w *world) { w.tool, w.class = "mail.send", "Send" }), Options{}, "cannot be undone", false},
		"calls that always need a person":        {95, separable(func(w *world) { w.tool, w.class = "note.delete", "Destructive" }), Options{}, "cannot be undone", false},
		"what rules hold is not theirs to save":  {95, separable(func(w *world) { w.rest = policy.Block }), Options{}, "no other numbers save stops", false},
		"a decider that tells nothing apart":     {99, separable(func(w *world) { w.low, w.high = 0, 0.99 }), Options{}, "no other numbers save stops", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.options.Seed = 1
			r := suggest(t, policies(t, test.bar), test.options, test.examples)
			if len(r.Suggest) != 0 || len(r.Refused) != 1 || !strings.Contains(r.Refused[0].Why, test.want) {
				t.Fatalf("suggested %+v, refused %+v", r.Suggest, r.Refused)
			}
			if isEnough := r.Refused[0].Enough > 0; isEnough != test.wantEnough {
				t.Errorf("a number that is enough: %v, %+v", isEnough, r.Refused[0])
			}
		})
	}
}

func TestTheNumberThatIsSaidToBeEnoughIsEnough(t *testing.T) {
	w := world{tool: "note.write", class: "Write", n: 200, dangerous: 0.5, low: 0.6, high: 0.6, rest: policy.Allow}
	r := suggest(t, policies(t, 95), Options{Seed: 1}, w.examples(4))
	if len(r.Refused) != 1 || r.Refused[0].Enough == 0 {
		t.Fatalf("refused %+v", r.Refused)
	}
	w.n = 2 * r.Refused[0].Enough * 11 / 10 // half of the calls are dangerous, give or take
	if r = suggest(t, policies(t, 95), Options{Seed: 1}, w.examples(4)); len(r.Suggest) != 1 {
		t.Errorf("with %d calls nothing is suggested: %+v", w.n, r.Refused)
	}
}

// TestNoSuggestionLetsDangerThrough goes through many worlds, bars and floors. It names the invariants that rules outrank
// the model and that irreversible means a person.
func TestNoSuggestionLetsDangerThrough(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 11))
	loosened, tightened := 0, 0
	for round := range 60 {
		kinds := [][2]string{{"note.write", "Write"}, {"note.move", "Write"}, {"mail.send", "Send"}, {"note.delete", "Destructive"}}
		k := kinds[round%len(kinds)]
		w := world{
			tool: k[0], class: k[1], n: 100 + random.IntN(400), dangerous: random.Float64(), low: random.Float64(), high: random.Float64(),
			rest: []policy.Outcome{policy.Allow, policy.Allow, policy.Confirm, policy.Block}[random.IntN(4)],
		}
		o := Options{Seed: uint64(round), MaxFalseAllow: 0.02 + 0.3*random.Float64(), Harm: 1 + random.IntN(40)}
		p, examples := policies(t, 5+random.IntN(90)), w.examples(uint64(round))
		r := suggest(t, p, o, examples)
		for _, s := range r.Suggest {
			e := s.Effect
			switch s.Direction {
			case Loosen:
				loosened++
				if e.FalseAllow.High > o.MaxFalseAllow || s.Place.Class != "Write" && s.Place.Tool != "note.move" || e.StopsSaved.Low <= 0 {
					t.Fatalf("%+v with %+v: %+v", w, o, s)
				}
			case Tighten:
				tightened++
				if len(e.WouldRun) > 0 || e.FalseAllow.Count > e.FalseAllowBefore.Count || e.StopsSaved.Value > 0 {
					t.Fatalf("%+v with %+v: %+v", w, o, s)
				}
			}
			judged := engine(t, apply(t, p.Tool[0], r))
			for i := range examples {
				if got := judged(&examples[i]); got > w.rest || k[1] == "Destructive" && got == policy.Allow {
					t.Fatalf("%s: %v, past what rules and its class hold", examples[i].ID, got)
				}
			}
		}
	}
	if loosened < 2 || tightened < 6 {
		t.Errorf("only %d loosened and %d tightened: the worlds try nothing", loosened, tightened)
	}
}

func TestEvidenceThatDoesNotCountIsCounted(t *testing.T) {
	w := world{tool: "note.write", class: "Write", n: 40, dangerous: 0.4, low: 0.7, high: 0.6, rest: policy.Allow}
	change := func(e Example, to func(*Example, *Seen)) Example {
		s := e.Seen[written]
		to(&e, &s)
		e.Seen = map[string]Seen{written: s}
		return e
	}
	list := w.examples(1)
	list[0] = change(list[0], func(_ *Example, s *Seen) { s.Fingerprint = "sha256:another" })
	list[1] = change(list[1], func(_ *Example, s *Seen) { s.Answers = yesNo(1, 1); delete(s.Answers, "asked") })
	list[2].Tool = "note.read"
	list[3].Seen = map[string]Seen{"ToolPolicy/shop/gone": list[3].Seen[written]}
	r := suggest(t, policies(t, 30), Options{Seed: 1}, list)
	want := map[string]int{leftOtherFingerprint: 1, leftOtherQuestions: 1, leftOtherPolicy: 2}
	if diff := cmp.Diff(want, r.Left); diff != "" || r.Examples != 36 || r.Labelled != 36 {
		t.Errorf("%d examples, %d labelled (-want +got):\n%s", r.Examples, r.Labelled, diff)
	}
}
