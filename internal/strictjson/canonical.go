package strictjson

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"
)

// AppendCanonical appends the RFC 8785 form of a tree as Parse makes it. It
// refuses other Go types, text that is not UTF-8, numbers that are not finite,
// whole numbers beyond ±2^53 in an int64, and trees deeper than 1000; dst is
// then returned as it was.
func AppendCanonical(dst []byte, v any) ([]byte, error) {
	c := canonicalizers.Get().(*canonicalizer)
	defer c.release()
	out, err := c.value(dst, v, 0)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// Canonical is AppendCanonical into a new slice.
func Canonical(v any) ([]byte, error) { return AppendCanonical(nil, v) }

// Digest gives "sha256:" and the hash of the canonical form in hexadecimal.
func Digest(v any) (string, error) {
	buf := buffers.Get().(*[]byte)
	defer releaseBuffer(buf)
	out, err := AppendCanonical((*buf)[:0], v)
	if err != nil {
		*buf = (*buf)[:cap(*buf)] // it may hold a part
		return "", err
	}
	*buf = out
	sum := sha256.Sum256(out)
	const prefix = "sha256:"
	var text [len(prefix) + 2*sha256.Size]byte
	copy(text[:], prefix)
	hex.Encode(text[len(prefix):], sum[:])
	return string(text[:]), nil
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// keepBuffer bounds what a pooled buffer may hold on to.
const keepBuffer = 256 << 10

func releaseBuffer(buf *[]byte) {
	if cap(*buf) > keepBuffer {
		return
	}
	clear(*buf) // arguments are private
	buffers.Put(buf)
}

// canonicalizer writes one tree. keys is a stack: every object that is being
// written has its sorted names on it, so that objects share one slice.
type canonicalizer struct{ keys []string }

var canonicalizers = sync.Pool{New: func() any { return new(canonicalizer) }}

func (c *canonicalizer) release() {
	if cap(c.keys) > 2*DefaultLimits.MaxKeys {
		return
	}
	clear(c.keys)
	c.keys = c.keys[:0]
	canonicalizers.Put(c)
}

func (c *canonicalizer) value(dst []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		return appendString(dst, v)
	case int64:
		if v < -maxExact || v > maxExact {
			return nil, errors.New("whole number is beyond ±2^53, which is not exact as a double")
		}
		return strconv.AppendInt(dst, v, 10), nil
	case float64:
		return appendFloat(dst, v)
	case map[string]any:
		return c.object(dst, v, depth+1)
	case Object:
		return c.object(dst, v, depth+1)
	case []any:
		return c.array(dst, v, depth+1)
	default:
		return nil, fmt.Errorf("type %T has no canonical form, use the types of a parsed tree", v)
	}
}

var errTooDeep = fmt.Errorf("tree is nested deeper than %d", deepest)

func (c *canonicalizer) object(dst []byte, m map[string]any, depth int) ([]byte, error) {
	if depth > deepest {
		return nil, errTooDeep
	}
	if m == nil {
		return nil, errors.New("object is nil, which is neither null nor an object")
	}
	start := len(c.keys)
	for k := range m {
		c.keys = append(c.keys, k)
	}
	keys := c.keys[start:]
	slices.SortFunc(keys, compareUTF16)
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendString(dst, k); err != nil {
			return nil, err
		}
		dst = append(dst, ':')
		if dst, err = c.value(dst, m[k], depth); err != nil {
			return nil, err
		}
	}
	clear(c.keys[start:])
	c.keys = c.keys[:start]
	return append(dst, '}'), nil
}

func (c *canonicalizer) array(dst []byte, a []any, depth int) ([]byte, error) {
	if depth > deepest {
		return nil, errTooDeep
	}
	if a == nil {
		return nil, errors.New("array is nil, which is neither null nor an array")
	}
	dst = append(dst, '[')
	for i, v := range a {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = c.value(dst, v, depth); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// compareUTF16 orders valid UTF-8 by UTF-16 code units. That is the order of
// the bytes, save where two lead bytes differ and exactly one begins a
// supplementary character (F0 and up): its surrogates (from D800) stand before
// U+E000 to U+FFFF, whose lead bytes are EE and EF.
func compareUTF16(a, b string) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
			return cmp.Compare(y, x)
		}
		return cmp.Compare(x, y)
	}
	return cmp.Compare(len(a), len(b))
}

// appendFloat writes a double as ECMAScript does: shortest digits, plain from
// 1e-6 up to 1e21, an exponent without leading zeros elsewhere.
func appendFloat(dst []byte, f float64) ([]byte, error) {
	abs := math.Abs(f)
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil, errors.New("number is not finite")
	case abs == 0:
		return append(dst, '0'), nil
	case abs >= 1e-6 && abs < 1e21:
		return strconv.AppendFloat(dst, f, 'f', -1, 64), nil
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	if n := len(dst); dst[n-4] == 'e' && dst[n-2] == '0' { // e-07: Go writes at least two digits
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst, nil
}

// appendString writes text in quotes with the fewest escapes.
func appendString(dst []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return nil, errors.New("text is not UTF-8")
	}
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = appendEscape(append(dst, s[start:i]...), c)
		start = i + 1
	}
	return append(append(dst, s[start:]...), '"'), nil
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\f':
		return append(dst, '\\', 'f')
	case '\r':
		return append(dst, '\\', 'r')
	default:
		const digits = "0123456789abcdef"
		return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
	}
}
