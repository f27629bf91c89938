package stats

import "math"

// Forecast is a probability that was stated, and whether it came true.
type Forecast struct {
	Probability float64
	True        bool
}

// Bin is one bar of a reliability diagram.
type Bin struct {
	// Low and High bound the probabilities of the bin. Low is part of it; High only of the last.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Count of forecasts, their mean and the share that came true. Empty bins have zeros.
	Count    int     `json:"count"`
	Mean     float64 `json:"mean"`
	Observed float64 `json:"observed"`
}

// Reliability sorts forecasts into bins of equal width. Probabilities outside of 0..1 panic: no answer may have one.
func Reliability(list []Forecast, bins int) []Bin {
	out := make([]Bin, bins)
	trues := make([]int, bins)
	sums := make([]float64, bins)
	for _, f := range list {
		if !(f.Probability >= 0 && f.Probability <= 1) {
			panic("stats: a probability is not between 0 and 1")
		}
		i := min(int(f.Probability*float64(bins)), bins-1)
		out[i].Count++
		sums[i] += f.Probability
		if f.True {
			trues[i]++
		}
	}
	for i := range out {
		out[i].Low, out[i].High = float64(i)/float64(bins), float64(i+1)/float64(bins)
		if n := out[i].Count; n > 0 {
			out[i].Mean, out[i].Observed = sums[i]/float64(n), float64(trues[i])/float64(n)
		}
	}
	return out
}

// ECE is the expected calibration error: how far stated and observed shares lie apart, averaged over bins by their count.
// False: there are no forecasts.
func ECE(bins []Bin) (float64, bool) {
	sum, n := 0.0, 0
	for _, b := range bins {
		sum += float64(b.Count) * math.Abs(b.Mean-b.Observed)
		n += b.Count
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

// Brier is the mean squared distance between forecast and truth: 0 is perfect, 0.25 is what saying one half always gives.
// False: there are no forecasts.
func Brier(list []Forecast) (float64, bool) {
	if len(list) == 0 {
		return 0, false
	}
	sum := 0.0
	for _, f := range list {
		truth := 0.0
		if f.True {
			truth = 1
		}
		sum += (f.Probability - truth) * (f.Probability - truth)
	}
	return sum / float64(len(list)), true
}

// Judged is one answer with its confidence and whether it was right.
type Judged struct {
	Confidence float64
	Right      bool
}

// Step is what is left when answers below a floor of confidence are set aside.
type Step struct {
	Floor float64 `json:"floor"`
	// Coverage is the share of answers that reach the floor.
	Coverage Proportion `json:"coverage"`
	// Accuracy is the share of these that are right.
	Accuracy Proportion `json:"accuracy"`
}

// Selective computes coverage and accuracy for each floor. A confidence equal to the floor reaches it.
func Selective(list []Judged, floors []float64) []Step {
	out := make([]Step, len(floors))
	for i, floor := range floors {
		kept, right := 0, 0
		for _, j := range list {
			if j.Confidence >= floor {
				kept++
				if j.Right {
					right++
				}
			}
		}
		out[i] = Step{floor, Wilson(kept, len(list)), Wilson(right, kept)}
	}
	return out
}
