package questions

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s changed; a changed text needs a new version (-want +got):\n%s", name, diff)
	}
}

func TestBuiltinSetIsPinned(t *testing.T) {
	var all []Question
	for _, name := range BuiltinNames() {
		q, ok := Builtin(name)
		if !ok || q.Name != name {
			t.Fatalf("Builtin(%q) = %v, %v", name, q.Name, ok)
		}
		all = append(all, q)
	}
	got, err := json.MarshalIndent(map[string]any{"version": SetVersion, "questions": all}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "builtin_"+SetVersion+".json", append(got, '\n'))
	want := []string{"asked", "matches_request", "exceeds_scope", "declined", "same_item", "deletes_data", "moves_money", "leaves_the_system",
		"args_grounded", "appropriate", "needs_clarify", "severity", "instructed_by_content", "verdict"}
	if diff := cmp.Diff(want, BuiltinNames()); diff != "" {
		t.Error(diff)
	}
}

func TestBuiltinQuestionsCanBeAskedEverywhere(t *testing.T) {
	for _, name := range BuiltinNames() {
		q, _ := Builtin(name)
		if err := q.Validate(); err != nil {
			t.Error(err)
		}
		if q.Type == YesNo && (q.WhenTrue == "" || q.WhenFalse == "" || q.Polarity == "") {
			t.Errorf("%s lacks a description of an outcome, or its polarity", name)
		}
		if q.SeesToolResults != (name == "instructed_by_content") {
			t.Errorf("%s: SeesToolResults = %v", name, q.SeesToolResults)
		}
	}
	if _, ok := Builtin("no_such_question"); ok {
		t.Error("an unknown name has a question")
	}
}

func TestBuiltinIsACopy(t *testing.T) {
	q, _ := Builtin("verdict")
	q.Options[0].Name = "changed"
	if again, _ := Builtin("verdict"); again.Options[0].Name != "allow" {
		t.Error("a caller changed the built-in set")
	}
}

func TestValidate(t *testing.T) {
	options := func(n int) (o []Option) {
		for i := range n {
			o = append(o, Option{Name: letters[i%26:i%26+1] + strings.Repeat("x", i/26)})
		}
		return o
	}
	ok := Question{Name: "q", Instructions: "Is it?", Type: YesNo}
	with := func(change func(*Question)) Question { q := ok; change(&q); return q }
	tests := map[string]struct {
		q     Question
		valid bool
	}{
		"a yes-no without descriptions is fine": {ok, true},
		"a name with a slash is not":            {with(func(q *Question) { q.Name = "a/b" }), false},
		"an empty name is not":                  {with(func(q *Question) { q.Name = "" }), false},
		"instructions are required":             {with(func(q *Question) { q.Instructions = "" }), false},
		"an unknown type is refused":            {with(func(q *Question) { q.Type = "noul" }), false},
		"26 options fit":                        {with(func(q *Question) { q.Type, q.Options = Choice, options(26) }), true},
		"27 options do not":                     {with(func(q *Question) { q.Type, q.Options = Choice, options(27) }), false},
		"one option is no choice":               {with(func(q *Question) { q.Type, q.Options = Choice, options(1) }), false},
		"two equal options are refused":         {with(func(q *Question) { q.Type, q.Options = Choice, []Option{{Name: "a"}, {Name: "a"}} }), false},
		"an option needs a plain name":          {with(func(q *Question) { q.Type, q.Options = Choice, []Option{{Name: "a"}, {Name: "</b>"}} }), false},
		"two levels fit":                        {with(func(q *Question) { q.Type, q.Levels = Score, make([]string, 2) }), true},
		"one level is no scale":                 {with(func(q *Question) { q.Type, q.Levels = Score, make([]string, 1) }), false},
		"eleven levels are too many":            {with(func(q *Question) { q.Type, q.Levels = Score, make([]string, 11) }), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := tt.q.Validate(); (err == nil) != tt.valid {
				t.Errorf("Validate() = %v, want valid %v", err, tt.valid)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	yesNo := Question{Name: "y", Type: YesNo}
	choice := Question{Name: "c", Type: Choice, Options: []Option{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	score := Question{Name: "s", Type: Score, Levels: []string{"low", "mid", "high"}}
	abc := func(a, b, c float64) map[string]float64 { return map[string]float64{"a": a, "b": b, "c": c} }
	levels := func(a, b, c float64) map[string]float64 { return map[string]float64{"0": a, "1": b, "2": c} }
	tests := map[string]struct {
		q     Question
		a     Answer
		valid bool
	}{
		"a probability":                          {yesNo, Answer{Type: YesNo, Probability: 0.5, Coverage: 1}, true},
		"zero is a probability":                  {yesNo, Answer{Type: YesNo}, true},
		"more than one is none":                  {yesNo, Answer{Type: YesNo, Probability: 1.0001}, false},
		"less than zero is none":                 {yesNo, Answer{Type: YesNo, Probability: -0.0001}, false},
		"not a number is none":                   {yesNo, Answer{Type: YesNo, Probability: math.NaN()}, false},
		"infinity is none":                       {yesNo, Answer{Type: YesNo, Probability: math.Inf(1)}, false},
		"coverage that is not a number":          {yesNo, Answer{Type: YesNo, Coverage: math.NaN()}, false},
		"another type":                           {yesNo, Answer{Type: Choice}, false},
		"no type":                                {yesNo, Answer{}, false},
		"a yes-no with options":                  {yesNo, Answer{Type: YesNo, Choice: "a"}, false},
		"a yes-no verdict":                       {yesNo, Answer{Type: YesNo, Verdict: true}, false},
		"a whole choice":                         {choice, Answer{Type: Choice, Choice: "a", Probabilities: abc(.8, .15, .05)}, true},
		"rounded to 0.98":                        {choice, Answer{Type: Choice, Choice: "a", Probabilities: abc(.8, .15, .03)}, true},
		"a sum of 0.97":                          {choice, Answer{Type: Choice, Choice: "a", Probabilities: abc(.8, .15, .02)}, false},
		"a sum of 1.03":                          {choice, Answer{Type: Choice, Choice: "a", Probabilities: abc(.8, .15, .08)}, false},
		"an option that is not the likeliest":    {choice, Answer{Type: Choice, Choice: "b", Probabilities: abc(.8, .15, .05)}, false},
		"an option that was not offered":         {choice, Answer{Type: Choice, Choice: "d", Probabilities: abc(.8, .15, .05)}, false},
		"a missing option":                       {choice, Answer{Type: Choice, Choice: "a", Probabilities: map[string]float64{"a": .8, "b": .2}}, false},
		"an extra option":                        {choice, Answer{Type: Choice, Choice: "a", Probabilities: map[string]float64{"a": .8, "b": .2, "c": 0, "d": 0}}, false},
		"another option in place of one":         {choice, Answer{Type: Choice, Choice: "a", Probabilities: map[string]float64{"a": .8, "b": .2, "d": 0}}, false},
		"negative mass that sums to one":         {choice, Answer{Type: Choice, Choice: "a", Probabilities: abc(.9, .2, -.1)}, false},
		"a verdict":                              {choice, Answer{Type: Choice, Choice: "b", Verdict: true}, true},
		"a verdict that was not offered":         {choice, Answer{Type: Choice, Choice: "B", Verdict: true}, false},
		"a verdict with numbers":                 {choice, Answer{Type: Choice, Choice: "b", Verdict: true, Probabilities: abc(0, 1, 0)}, false},
		"a whole score":                          {score, Answer{Type: Score, Score: 0.5, Probabilities: levels(.6, .3, .1)}, true},
		"a score that its levels do not explain": {score, Answer{Type: Score, Score: 1.5, Probabilities: levels(.6, .3, .1)}, false},
		"a score above the top":                  {score, Answer{Type: Score, Score: 2.01, Probabilities: levels(0, 0, 1)}, false},
		"a score that is not a number":           {score, Answer{Type: Score, Score: math.NaN(), Probabilities: levels(.6, .3, .1)}, false},
		"levels by their words":                  {score, Answer{Type: Score, Score: 0, Probabilities: map[string]float64{"low": 1, "mid": 0, "high": 0}}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := tt.q.Check(tt.a); (err == nil) != tt.valid {
				t.Errorf("Check() = %v, want valid %v", err, tt.valid)
			}
		})
	}
}

func TestCheckAllWantsExactlyWhatWasAsked(t *testing.T) {
	asked := []Question{{Name: "a", Type: YesNo}, {Name: "b", Type: YesNo}}
	yes := Answer{Type: YesNo, Probability: 1, Coverage: 1}
	tests := map[string]struct {
		asked []Question
		got   Answers
		valid bool
	}{
		"both":             {asked, Answers{"a": yes, "b": yes}, true},
		"one is missing":   {asked, Answers{"a": yes}, false},
		"one too many":     {asked, Answers{"a": yes, "b": yes, "c": yes}, false},
		"another instead":  {asked, Answers{"a": yes, "c": yes}, false},
		"one is incorrect": {asked, Answers{"a": yes, "b": {}}, false},
		"nothing asked":    {nil, Answers{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := CheckAll(tt.asked, tt.got); (err == nil) != tt.valid {
				t.Errorf("CheckAll() = %v, want valid %v", err, tt.valid)
			}
		})
	}
}

func TestConfidence(t *testing.T) {
	tests := map[string]struct {
		a     Answer
		want  float64
		known bool
	}{
		"a yes-no counts both ways":  {Answer{Type: YesNo, Probability: 0.1}, 0.9, true},
		"a choice has its top":       {Answer{Type: Choice, Probabilities: map[string]float64{"a": .3, "b": .7}}, 0.7, true},
		"a verdict has none":         {Answer{Type: Choice, Choice: "a", Verdict: true}, 0, false},
		"no probabilities, no value": {Answer{Type: Score}, 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, known := tt.a.Confidence(); got != tt.want || known != tt.known {
				t.Errorf("Confidence() = %v, %v", got, known)
			}
		})
	}
}

func TestCalibrate(t *testing.T) {
	yesNo := Question{Type: YesNo}
	score := Question{Name: "s", Type: Score, Levels: []string{"a", "b"}}
	if got := yesNo.Calibrate(Answer{Type: YesNo, Probability: 0.8, Coverage: 1}, 2000).Probability; math.Abs(got-2.0/3) > 1e-9 {
		t.Errorf("odds of 4 at twice the temperature are 2, so p = 2/3, got %v", got)
	}
	for _, p := range []float64{0, 1} {
		if got := yesNo.Calibrate(Answer{Type: YesNo, Probability: p}, 1500).Probability; got != p {
			t.Errorf("certainty %v became %v", p, got)
		}
	}
	if got := yesNo.Calibrate(Answer{Type: YesNo, Probability: 0.501}, 1).Probability; math.IsNaN(got) || got < 0.5 || got > 1 {
		t.Errorf("the smallest temperature gave %v", got)
	}
	a := Answer{Type: Score, Score: 0.2, Probabilities: map[string]float64{"0": .8, "1": .2}, Coverage: 1}
	got := score.Calibrate(a, 500)
	if math.Abs(got.Score-1.0/17) > 1e-9 || score.Check(got) != nil {
		t.Errorf("Calibrate() = %+v", got)
	}
	if diff := cmp.Diff(a, score.Calibrate(a, 1000)); diff != "" {
		t.Error("a temperature of one changed the answer:", diff)
	}
}
