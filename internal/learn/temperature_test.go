package learn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gatewright.dev/gatewright/internal/questions"
)

// drawn are forecasts of a decider whose logits are times too large: dividing them by that makes them true.
func drawn(kind questions.Type, n, options int, times float64) []Forecast {
	random := rand.New(rand.NewPCG(7, uint64(n)))
	var out []Forecast
	for i := range n {
		logits := make([]float64, options)
		for j := range logits {
			logits[j] = 1.5 * random.NormFloat64()
		}
		right, at := 0, random.Float64()
		for at -= softmax(logits, 1)[0]; at > 0 && right < options-1; at -= softmax(logits, 1)[right] {
			right++
		}
		out = append(out, Forecast{Cluster: fmt.Sprint("request ", i/2), Type: kind, Probabilities: softmax(logits, times), Right: right})
	}
	return out
}

func softmax(logits []float64, times float64) []float64 {
	out, sum := make([]float64, len(logits)), 0.0
	for i, l := range logits {
		out[i] = math.Exp(l * times)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

func TestTheTemperatureThatWasPutInIsFound(t *testing.T) {
	tests := map[string]struct {
		kind    questions.Type
		options int
		times   float64
		want    int
	}{
		"a decider that is twice too sure":          {questions.YesNo, 2, 2, 2000},
		"a decider that is half as sure as it may":  {questions.YesNo, 2, 0.5, 500},
		"a decider that means what it says":         {questions.YesNo, 2, 1, 1000},
		"a choice of four, three times too sure":    {questions.Choice, 4, 3, 3000},
		"a score of five levels, a little too sure": {questions.Score, 5, 1.4, 1400},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := FitTemperature(drawn(test.kind, 4000, test.options, test.times))
			if math.Abs(float64(got-test.want)) > 0.08*float64(test.want) {
				t.Errorf("fitted %d, the data were made with %d", got, test.want)
			}
		})
	}
}

func TestTheFittedTemperatureHasTheLeastLoss(t *testing.T) {
	for _, times := range []float64{0.3, 0.8, 1.7, 6} {
		list := drawn(questions.YesNo, 400, 2, times)
		best := LogLoss(list, FitTemperature(list))
		for milli := MinMilli; milli <= MaxMilli; milli += 97 {
			if loss := LogLoss(list, milli); loss < best-1e-6 {
				t.Fatalf("at %d the loss is %f, less than the %f that was found", milli, loss, best)
			}
		}
	}
}

func TestTemperaturesStayInTheirBounds(t *testing.T) {
	alwaysRight, alwaysWrong := []Forecast{}, []Forecast{}
	for range 50 {
		alwaysRight = append(alwaysRight, Forecast{Probabilities: []float64{0.6, 0.4}})
		alwaysWrong = append(alwaysWrong, Forecast{Probabilities: []float64{1, 0}, Right: 1})
	}
	if got := FitTemperature(alwaysRight); got > 120 {
		t.Errorf("right however unsure: %d, want next to %d", got, MinMilli)
	}
	for name, list := range map[string][]Forecast{"right": alwaysRight, "wrong and sure": alwaysWrong, "none": nil} {
		if got := FitTemperature(list); got < MinMilli || got > MaxMilli {
			t.Errorf("%s: %d is out of bounds", name, got)
		}
		if got := LogLoss(list, FitTemperature(list)); math.IsNaN(got) || math.IsInf(got, 0) {
			t.Errorf("%s: the loss is %f", name, got)
		}
	}
}

func TestOnlyATemperatureThatImprovesTheOtherHalfIsKept(t *testing.T) {
	tests := map[string]struct {
		list       []Forecast
		wantKept   bool
		wantEnough bool
		wantWorse  bool
		wantWhy    string
	}{
		"a decider that is twice too sure":           {drawn(questions.YesNo, 800, 2, 2.5), true, false, true, "kept: "},
		"a decider that means what it says":          {drawn(questions.YesNo, 800, 2, 1), false, false, false, "not kept"},
		"too few answers, however wrong":             {drawn(questions.YesNo, 60, 2, 4), false, true, false, "too few"},
		"a choice that is twice too sure":            {drawn(questions.Choice, 800, 4, 2.5), true, false, true, "kept: "},
		"all answers to one request of one user":     {oneRequest(drawn(questions.YesNo, 500, 2, 3)), false, true, false, "too few"},
		"few answers with a difference next to none": {drawn(questions.YesNo, 240, 2, 1.05), false, false, false, "not kept"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Calibrate(test.list, CalibrationOptions{Seed: 1})
			if len(got) != 1 {
				t.Fatalf("%d types came of one", len(got))
			}
			g := got[0]
			if (g.Milli != neutral) != test.wantKept || g.IsWorse != test.wantWorse || !strings.HasPrefix(g.Why, test.wantWhy) {
				t.Errorf("got %+v", g)
			}
			if test.wantEnough && (g.Enough <= g.Answers && name != "all answers to one request of one user" || g.Enough == 0) {
				t.Errorf("%d answers are too few, but %d are said to be enough", g.Answers, g.Enough)
			}
			if test.wantKept && g.LogLossSaved.Low <= 0 {
				t.Errorf("kept by an interval that reaches 0: %+v", g.LogLossSaved)
			}
		})
	}
}

func oneRequest(list []Forecast) []Forecast {
	for i := range list {
		list[i].Cluster = "the same"
	}
	return list
}

func TestCalibratingTwiceIsTheSame(t *testing.T) {
	list := drawn(questions.YesNo, 400, 2, 2)
	a, b := Calibrate(list, CalibrationOptions{Seed: 3}), Calibrate(list, CalibrationOptions{Seed: 3})
	if fmt.Sprintf("%+v", *a[0].LogLossSaved) != fmt.Sprintf("%+v", *b[0].LogLossSaved) || a[0].Milli != b[0].Milli {
		t.Errorf("%+v and %+v", a[0], b[0])
	}
}

// questions.Calibrate is what a decider applies; what is fitted here must mean the same.
func TestSoftenIsWhatADeciderApplies(t *testing.T) {
	q, _ := questions.Builtin("asked")
	for _, p := range []float64{0, 0.001, 0.3, 0.5, 0.97, 1} {
		for _, milli := range []int{MinMilli, 700, 1000, 2500, MaxMilli} {
			want := q.Calibrate(questions.Answer{Type: questions.YesNo, Probability: p, Coverage: 1}, milli).Probability
			if got := soften([]float64{p, 1 - p}, milli)[0]; math.Abs(got-want) > 1e-12 {
				t.Errorf("%v at %d: %v, a decider makes it %v", p, milli, got, want)
			}
		}
	}
}
