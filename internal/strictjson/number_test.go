package strictjson

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func TestExactNumber(t *testing.T) {
	zeros := strings.Repeat("0", 1000)
	tests := map[string]struct {
		text   string
		want   any
		refuse bool
	}{
		"zero":                               {text: "0", want: int64(0)},
		"negative zero":                      {text: "-0", want: int64(0)},
		"negative zero with a fraction":      {text: "-0.000e5", want: int64(0)},
		"fifteen digits":                     {text: "-999999999999999", want: int64(-999999999999999)},
		"the last exact whole number":        {text: "9007199254740992", want: int64(1 << 53)},
		"its negative":                       {text: "-9007199254740992", want: int64(-1 << 53)},
		"the first that is not":              {text: "9007199254740993", refuse: true},
		"the next even one is a double":      {text: "9007199254740994", want: float64(1<<53 + 2)},
		"a whole number with a fraction":     {text: "1.0", want: int64(1)},
		"a whole number with an exponent":    {text: "1e2", want: int64(100)},
		"an upper case exponent":             {text: "1.5E+1", want: int64(15)},
		"a whole number from a fraction":     {text: "1200e-2", want: int64(12)},
		"a tenth":                            {text: "0.1", want: 0.1},
		"a tenth with a trailing zero":       {text: "0.10", want: 0.1},
		"money":                              {text: "19.99", want: 19.99},
		"a tenth with noise":                 {text: "0.1000000000000000055", refuse: true},
		"all digits of the double of 0.1":    {text: "0.1000000000000000055511151231257827021181583404541015625", refuse: true},
		"seventeen digits that are shortest": {text: "0.30000000000000004", want: math.Nextafter(0.3, 1)},
		"seventeen digits that are not":      {text: "0.10000000000000001", refuse: true},
		"a large round number":               {text: "1e21", want: 1e21},
		"a large number, digit by digit":     {text: "1000000000000000000000", want: 1e21},
		"the largest double":                 {text: "1.7976931348623157e308", want: math.MaxFloat64},
		"beyond the largest double":          {text: "1.7976931348623158e308", refuse: true},
		"the smallest double":                {text: "5e-324", want: math.SmallestNonzeroFloat64},
		"another name of the smallest":       {text: "4.9e-324", refuse: true},
		"rounds to zero":                     {text: "1e-324", refuse: true},
		"overflows":                          {text: "1e400", refuse: true},
		"a huge exponent":                    {text: "1e999999999", refuse: true},
		"a tiny exponent":                    {text: "-1e-999999999", refuse: true},
		"an exponent beyond int64":           {text: "1e99999999999999999999999", refuse: true},
		"zero with a huge exponent":          {text: "0.0e99999999999999999999999", want: int64(0)},
		"many zeros undone by the exponent":  {text: "0." + zeros + "1e1001", want: int64(1)},
		"many zeros undone the other way":    {text: "1" + zeros + "e-1000", want: int64(1)},
		"an exponent with leading zeros":     {text: "1e" + zeros + "2", want: int64(100)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := exactNumber([]byte(tt.text))
			if ok == tt.refuse || got != tt.want {
				t.Errorf("%s: got %v (%T), %v, want %v (%T)", shorten(tt.text, 40), got, got, ok, tt.want, tt.want)
			}
		})
	}
}

// TestExactNumberAgreesWithRationals compares the rule with exact arithmetic.
func TestExactNumberAgreesWithRationals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	accepted, refused := 0, 0
	for range 20_000 {
		text := randomNumber(r)
		got, ok := exactNumber([]byte(text))
		if want := exactByRationals(text); ok != want {
			t.Fatalf("%s: accepted is %v, want %v", text, ok, want)
		}
		if !ok {
			refused++
			continue
		}
		accepted++
		whole, isWhole := got.(int64)
		if f, _ := strconv.ParseFloat(text, 64); isWhole != (f == math.Trunc(f) && math.Abs(f) <= 1<<53) ||
			isWhole && float64(whole) != f || !isWhole && got != f {
			t.Fatalf("%s: got %v (%T)", text, got, got)
		}
	}
	if accepted < 2000 || refused < 2000 {
		t.Errorf("accepted %d and refused %d, too few of one to mean anything", accepted, refused)
	}
}

func randomNumber(r *rand.Rand) string {
	switch r.IntN(5) {
	case 0: // any double, shortest
		return strconv.FormatFloat(finite(r), 'g', -1, 64)
	case 1: // any double, a fixed number of digits
		return strconv.FormatFloat(finite(r), 'e', r.IntN(20), 64)
	case 2: // near 2^53
		return strconv.FormatInt(1<<53-50+r.Int64N(100), 10)
	case 3: // any whole number
		return strconv.FormatInt(r.Int64()>>r.IntN(60), 10)
	default: // a decimal with some zeros
		return fmt.Sprintf("%d.%0*de%d", r.IntN(1000), 1+r.IntN(17), r.IntN(10), r.IntN(40)-20)
	}
}

func finite(r *rand.Rand) float64 {
	for {
		if f := math.Float64frombits(r.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
	}
}

func exactByRationals(text string) bool {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return false
	}
	want, _ := new(big.Rat).SetString(text)
	got, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return want.Cmp(got) == 0
}
