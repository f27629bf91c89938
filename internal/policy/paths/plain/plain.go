// Package plain answers what a string may look like to a reader that decodes it: percent-encoding is undone leniently,
// layer by layer, and characters that a person cannot see are told apart from text.
package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLayers is how many layers of percent-encoding are followed. Real values have one, proxies in a row make three; what
// is still encoded after this many was built to hide something.
const MaxLayers = 8

// Text reports whether s is valid UTF-8 without control characters, line separators and invisible format characters
// (bidirectional overrides, zero-width joiners, soft hyphens, tags): readers drop or reorder those, so that two readers
// see two values.
func Text(s string) bool {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < 0x20 || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return false
		}
		i += size
	}
	return true
}

// ASCII reports whether s holds ASCII bytes only.
func ASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Unescape undoes one layer of percent-encoding. A % that begins no escape stays, as in lenient decoders, so that an
// escape which only appears after decoding ("%%32e") is found by the next call. It reports whether anything changed.
func Unescape(s string) (string, bool) {
	i := nextEscape(s, 0)
	if i < 0 {
		return s, false
	}
	var b strings.Builder
	b.Grow(len(s))
	from := 0
	for ; i >= 0; i = nextEscape(s, from) {
		b.WriteString(s[from:i])
		b.WriteByte(unhex(s[i+1])<<4 | unhex(s[i+2]))
		from = i + 3
	}
	b.WriteString(s[from:])
	return b.String(), true
}

// WellFormed reports whether every % in s begins an escape.
func WellFormed(s string) bool {
	for i := strings.IndexByte(s, '%'); i >= 0; {
		if !escapeAt(s, i) {
			return false
		}
		next := strings.IndexByte(s[i+3:], '%')
		if next < 0 {
			return true
		}
		i += 3 + next
	}
	return true
}

func nextEscape(s string, from int) int {
	for {
		i := strings.IndexByte(s[from:], '%')
		if i < 0 {
			return -1
		}
		if escapeAt(s, from+i) {
			return from + i
		}
		from += i + 1
	}
}

func escapeAt(s string, i int) bool {
	return i+2 < len(s) && IsHex(s[i+1]) && IsHex(s[i+2])
}

// IsHex reports whether c is a hexadecimal digit.
func IsHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	default:
		return c - 'a' + 10
	}
}
