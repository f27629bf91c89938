package stats

import (
	"math"
	"slices"
)

// Spread is the distribution of durations, in milliseconds.
type Spread struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Worst float64 `json:"worst"`
	Mean  float64 `json:"mean"`
}

// SpreadOf computes the spread. Percentiles are values that occurred, by nearest rank.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	sum := 0.0
	for _, v := range sorted {
		sum += v
	}
	return Spread{
		Count: len(sorted), P50: nearest(sorted, 0.50), P95: nearest(sorted, 0.95), P99: nearest(sorted, 0.99),
		Worst: sorted[len(sorted)-1], Mean: sum / float64(len(sorted)),
	}
}

// Percentile is the smallest value that at least this share of the values does not exceed; 0 without values.
func Percentile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return nearest(slices.Sorted(slices.Values(values)), share)
}

func nearest(sorted []float64, share float64) float64 {
	// A hair less, so that 0.95*20 = 19.000000000000004 is rank 19.
	rank := int(math.Ceil(share*float64(len(sorted)) - 1e-9))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
