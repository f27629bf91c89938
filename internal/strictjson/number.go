package strictjson

import (
	"math"
	"strconv"
)

// maxExact bounds the whole numbers that become int64: up to here every whole
// number is a double of its own.
const maxExact = 1 << 53

// decimal is the number 0.d1d2d3... × 10^point with neither leading nor
// trailing zeros among its digits; zero has none. Two decimals denote the same
// number if and only if they are equal. A double's shortest form has at most
// 17 digits, so a longer one needs no room.
type decimal struct {
	negative bool
	digits   [17]byte
	n        int
	point    int64
}

// exactNumber gives the value of a number in JSON syntax if the shortest form
// of its double, which is what RFC 8785 writes, denotes the same decimal.
// The cost is linear in the text whatever the exponent.
func exactNumber(text []byte) (any, bool) {
	if v, ok := shortInteger(text); ok {
		return v, true
	}
	want, ok := readDecimal(text)
	if !ok {
		return nil, false
	}
	if want.n == 0 {
		return int64(0), true // -0 as well: the canonical form of both zeros is 0
	}
	f, ok := want.double()
	if !ok {
		return nil, false
	}
	var buf [32]byte
	if got, ok := readDecimal(strconv.AppendFloat(buf[:0], f, 'e', -1, 64)); !ok || got != want {
		return nil, false
	}
	if f == math.Trunc(f) && math.Abs(f) <= maxExact {
		return int64(f), true
	}
	return f, true
}

// shortInteger reads whole numbers of at most 15 digits, which are all exact.
func shortInteger(text []byte) (int64, bool) {
	digits := text
	if digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) > 15 {
		return 0, false
	}
	var v int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	if text[0] == '-' {
		v = -v
	}
	return v, true
}

// readDecimal reads a number in JSON syntax. It reports false if the number
// has more significant digits than the shortest form of any double.
func readDecimal(text []byte) (decimal, bool) {
	var d decimal
	i := 0
	if text[0] == '-' {
		d.negative = true
		i++
	}
	zeros, fraction := 0, false // zeros since the last digit that was kept
	for ; i < len(text) && text[i] != 'e' && text[i] != 'E'; i++ {
		switch c := text[i]; {
		case c == '.':
			fraction = true
			continue
		case c == '0' && d.n == 0: // leading zero
		case c == '0':
			zeros++
		case d.n+zeros >= len(d.digits):
			return decimal{}, false
		default:
			for ; zeros > 0; zeros-- {
				d.digits[d.n] = '0'
				d.n++
			}
			d.digits[d.n] = c
			d.n++
		}
		if !fraction && d.n > 0 {
			d.point++
		} else if fraction && d.n == 0 {
			d.point--
		}
	}
	if d.n == 0 {
		return decimal{}, true
	}
	if i < len(text) {
		d.point += readExponent(text[i+1:])
	}
	return d, true
}

// readExponent saturates far beyond any exponent that a body's worth of zeros
// could bring back into the range of doubles.
func readExponent(text []byte) int64 {
	const saturated = 1 << 48
	negative := text[0] == '-'
	if text[0] == '-' || text[0] == '+' {
		text = text[1:]
	}
	var e int64
	for _, c := range text {
		e = min(e*10+int64(c-'0'), saturated)
	}
	if negative {
		return -e
	}
	return e
}

// double gives the nearest double, or false beyond the range of doubles:
// 4.9e-324 is 0.49 × 10^-323 and 1.8e308 is 0.18 × 10^309.
func (d decimal) double() (float64, bool) {
	if d.point > 309 || d.point < -323 {
		return 0, false
	}
	var buf [32]byte
	text := buf[:0]
	if d.negative {
		text = append(text, '-')
	}
	text = append(text, '.')
	text = append(text, d.digits[:d.n]...)
	text = append(text, 'e')
	text = strconv.AppendInt(text, d.point, 10)
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil
}
