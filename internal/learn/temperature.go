package learn

import (
	"fmt"
	"math"
	"slices"

	"gatewright.dev/gatewright/internal/evaluation/stats"
	"gatewright.dev/gatewright/internal/questions"
)

// Forecast is a distribution that a decider gave, and what was right.
type Forecast struct {
	// Cluster is the user's request that it is about.
	Cluster string
	Type    questions.Type
	// Probabilities in a fixed order; for a YesNo those of yes and of no.
	Probabilities []float64
	// Right is the place of what was right.
	Right int
}

// Temperatures that are looked at, as the API bounds them, in thousandths.
const (
	MinMilli = 50
	MaxMilli = 20000
	neutral  = 1000
)

// least is the smallest probability that counts in a loss: a decider that rounds to 0 must not lose without bound.
const least = 1e-6

// soften raises probabilities to 1/T and normalises.
func soften(p []float64, milli int) []float64 {
	if milli == neutral {
		return p
	}
	top, sum := slices.Max(p), 0.0
	out := make([]float64, len(p))
	for i, v := range p {
		out[i] = math.Pow(v/top, neutral/float64(milli))
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// LogLoss is the mean surprise at what was right, in nats; 0 without forecasts.
func LogLoss(list []Forecast, milli int) float64 {
	sum := 0.0
	for _, f := range list {
		sum -= math.Log(math.Max(least, soften(f.Probabilities, milli)[f.Right]))
	}
	return sum / math.Max(1, float64(len(list)))
}

// FitTemperature finds the temperature with the least log loss, in thousandths between MinMilli and MaxMilli. The loss is
// convex in 1/T, so it has one valley in log T, and a golden-section search finds its ground.
func FitTemperature(list []Forecast) int {
	if len(list) == 0 {
		return neutral
	}
	loss := func(x float64) float64 { return LogLoss(list, int(math.Round(math.Exp(x)))) }
	low, high := math.Log(MinMilli), math.Log(MaxMilli)
	const golden = 0.6180339887498949
	a, b := high-golden*(high-low), low+golden*(high-low)
	lossA, lossB := loss(a), loss(b)
	for range 48 { // the interval shrinks to a 10^-9 part: far below a thousandth
		if lossA <= lossB {
			high, b, lossB = b, a, lossA
			a = high - golden*(high-low)
			lossA = loss(a)
		} else {
			low, a, lossA = a, b, lossB
			b = low + golden*(high-low)
			lossB = loss(b)
		}
	}
	return min(MaxMilli, max(MinMilli, int(math.Round(math.Exp((low+high)/2)))))
}

// calibrationError is the expected calibration error of what was stated: of yes for a YesNo, of the top answer otherwise.
func calibrationError(list []Forecast, milli int) (float64, bool) {
	forecasts := make([]stats.Forecast, 0, len(list))
	for _, f := range list {
		p := soften(f.Probabilities, milli)
		stated := 0
		if f.Type != questions.YesNo {
			stated = slices.Index(p, slices.Max(p))
		}
		forecasts = append(forecasts, stats.Forecast{Probability: min(1, max(0, p[stated])), True: f.Right == stated})
	}
	return stats.ECE(stats.Reliability(forecasts, 10))
}

// CalibrationOptions of Calibrate.
type CalibrationOptions struct {
	// Seed of the split and of the intervals.
	Seed uint64
	// Minimum of labelled answers of a type in each part, 50 by default.
	Minimum int
	// Margin by which the calibration error has to be worse before it counts, 0.02 by default.
	Margin float64
}

// Temperature is what came of one type of question.
type Temperature struct {
	Type    questions.Type `json:"type"`
	Answers int            `json:"answers"`
	// Requests are users' requests that these are about.
	Requests int `json:"requests"`
	// Milli is the temperature to use on top of the present one, in thousandths. 1000: none was kept.
	Milli int `json:"milli"`
	// Fitted is what fitted best, kept or not.
	Fitted int `json:"fitted,omitempty"`
	// LogLossSaved on the held-back part by the fitted temperature; above 0 is better.
	LogLossSaved *stats.Interval `json:"logLossSaved,omitempty"`
	// ErrorBefore and ErrorAfter are calibration errors on the held-back part.
	ErrorBefore float64 `json:"errorBefore,omitempty"`
	ErrorAfter  float64 `json:"errorAfter,omitempty"`
	// Excess is by how much the error before exceeds that after, on the held-back part.
	Excess *stats.Interval `json:"excess,omitempty"`
	// IsWorse says that the excess is beyond the margin, interval and all: what is in use does not fit these answers.
	IsWorse bool `json:"isWorse,omitempty"`
	// Enough is the number of answers that would be enough, if there are too few.
	Enough int `json:"enough,omitempty"`
	// Why says what was found, in words.
	Why string `json:"why"`
}

// Calibrate fits a temperature for each type on one half of the requests, and keeps it only if it improves the log loss on
// the other half, with an interval at 95 percent above 0. Forecasts are what the decider says now: with a temperature in
// use, what is fitted multiplies it.
func Calibrate(list []Forecast, o CalibrationOptions) []Temperature {
	if o.Minimum <= 0 {
		o.Minimum = 50
	}
	if o.Margin <= 0 {
		o.Margin = 0.02
	}
	var out []Temperature
	for _, kind := range []questions.Type{questions.YesNo, questions.Choice, questions.Score} {
		var fit, held []Forecast
		requests := map[string]bool{}
		for _, f := range list {
			if f.Type != kind {
				continue
			}
			requests[f.Cluster] = true
			if isHeld(o.Seed, f.Cluster) {
				held = append(held, f)
			} else {
				fit = append(fit, f)
			}
		}
		if len(requests) > 0 {
			t := Temperature{Type: kind, Answers: len(fit) + len(held), Requests: len(requests), Milli: neutral}
			t.learn(fit, held, o)
			out = append(out, t)
		}
	}
	return out
}

func (t *Temperature) learn(fit, held []Forecast, o CalibrationOptions) {
	if less := min(len(fit), len(held)); less < o.Minimum {
		t.Enough = enoughOf(o.Minimum)
		t.Why = fmt.Sprintf("too few: the smaller part has %d labelled answers and needs %d, so about %d in all are enough", less, o.Minimum, t.Enough)
		return
	}
	t.Fitted = FitTemperature(fit)
	clusters := clustersOf(held)
	b := stats.Bootstrap{Seed: o.Seed}
	before, after := losses(held, neutral), losses(held, t.Fitted)
	if saved, ok := b.Clustered(clusters, func(members []int) (float64, bool) {
		sum := 0.0
		for _, m := range members {
			sum += before[m] - after[m]
		}
		return sum / float64(len(members)), true
	}); ok {
		t.LogLossSaved = &saved
	}
	t.compareErrors(held, clusters, b, o.Margin)
	t.keep(len(held))
}

func losses(list []Forecast, milli int) []float64 {
	out := make([]float64, len(list))
	for i, f := range list {
		out[i] = -math.Log(math.Max(least, soften(f.Probabilities, milli)[f.Right]))
	}
	return out
}

func clustersOf(list []Forecast) [][]int {
	keys := make([]string, len(list))
	for i, f := range list {
		keys[i] = f.Cluster
	}
	return stats.Clusters(keys)
}

func (t *Temperature) compareErrors(held []Forecast, clusters [][]int, b stats.Bootstrap, margin float64) {
	t.ErrorBefore, _ = calibrationError(held, neutral)
	t.ErrorAfter, _ = calibrationError(held, t.Fitted)
	drawn := make([]Forecast, 0, len(held))
	excess, ok := b.Clustered(clusters, func(members []int) (float64, bool) {
		drawn = drawn[:0]
		for _, m := range members {
			drawn = append(drawn, held[m])
		}
		before, ok := calibrationError(drawn, neutral)
		after, _ := calibrationError(drawn, t.Fitted)
		return before - after, ok
	})
	if ok {
		t.Excess = &excess
		t.IsWorse = excess.Low > margin
	}
}

// keep decides. An interval that reaches 0 shrinks with the root of the number, which says how many would be enough.
func (t *Temperature) keep(held int) {
	s := t.LogLossSaved
	switch {
	case s == nil:
		t.Why = "not kept: the held-back part has too few requests to draw from"
	case s.Low > 0:
		t.Milli = t.Fitted
		t.Why = "kept: it improves the log loss of the half that it was not fitted on"
	case s.Value > 0:
		ratio := (s.Value - s.Low) / s.Value
		t.Enough = int(math.Ceil(min(1e6, ratio*ratio*float64(held)*2)))
		t.Why = fmt.Sprintf("not kept: the improvement may be chance; if it is as it looks, about %d labelled answers show it", t.Enough)
	default:
		t.Why = "not kept: it does not improve the half that it was not fitted on, so what is in use stays"
	}
}
