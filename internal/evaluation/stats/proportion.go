package stats

import "math"

// Proportion is a share with its Wilson interval at 95 percent. Of is what was counted over; with Of 0 nothing is known:
// the value is 0 and the interval is 0 to 1.
type Proportion struct {
	Count int     `json:"count"`
	Of    int     `json:"of"`
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// z95 is the normal quantile of a two-sided interval at 95 percent.
const z95 = 1.959963984540054

// Wilson gives the proportion of count in of. Wilson's interval stays between 0 and 1 and holds up at shares near them,
// where the plain one has no width; evaluations live there. Counts outside of 0..of are a mistake and panic.
func Wilson(count, of int) Proportion {
	if count < 0 || of < 0 || count > of {
		panic("stats: a count is not between 0 and what it is counted over")
	}
	if of == 0 {
		return Proportion{High: 1}
	}
	n, p := float64(of), float64(count)/float64(of)
	z2 := z95 * z95
	middle := (p + z2/(2*n)) / (1 + z2/n)
	half := z95 / (1 + z2/n) * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	out := Proportion{Count: count, Of: of, Value: p, Low: math.Max(0, middle-half), High: math.Min(1, middle+half)}
	// At the ends the interval touches exactly; floating point misses by the last digit.
	if count == 0 {
		out.Low = 0
	}
	if count == of {
		out.High = 1
	}
	return out
}

// Interval is an estimate with its range.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}
