package strictjson

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// syntaxError gives the tokeniser's error one of our codes. It looks at the
// bytes where the tokeniser stopped, never at the wording of its error.
func (p *parser) syntaxError(err error) error {
	var s *jsontext.SyntacticError
	if !errors.As(err, &s) {
		return newError(Syntax, string(p.dec.StackPointer()), int64(len(p.data)),
			"body ends inside a value, send it whole")
	}
	pointer, at := string(s.JSONPointer), min(max(s.ByteOffset, 0), int64(len(p.data)))
	rest := p.data[at:]
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return newError(DuplicateKey, pointer, at, "key appears twice in one object, send it once")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return newError(Syntax, pointer, at, "body ends inside a value, send it whole")
	case isSurrogateEscape(rest):
		return newError(InvalidUTF8, pointer, at, "string holds half of a surrogate pair, send both halves or neither")
	case isNotFinite(p.data, at):
		return newError(NotFinite, pointer, at, "number is not finite, send a finite number or null")
	default:
		return newError(Syntax, pointer, at, "body is not JSON here: %s", shorten(s.Err.Error(), maxPointer))
	}
}

// unexpected is the answer to a token that the tokeniser should not give here.
func (p *parser) unexpected() error {
	return newError(Syntax, string(p.dec.StackPointer()), p.dec.InputOffset(),
		"body is not JSON here: a value is missing")
}

// isSurrogateEscape reports whether b starts with an escape of U+D800 to U+DFFF.
func isSurrogateEscape(b []byte) bool {
	return len(b) >= 6 && b[0] == '\\' && b[1] == 'u' && (b[2] == 'd' || b[2] == 'D') &&
		bytes.IndexByte([]byte("89abcdefABCDEF"), b[3]) >= 0
}

// isNotFinite reports whether the bad character at the offset belongs to one
// of the usual spellings of a number that is not finite. The tokeniser may stop
// one byte into it: behind a sign, or behind an n that could begin null.
func isNotFinite(data []byte, at int64) bool {
	for _, rest := range [][]byte{data[at:], data[max(at-1, 0):]} {
		rest = bytes.TrimLeft(rest, "+-")
		if len(rest) >= 3 && (bytes.EqualFold(rest[:3], []byte("nan")) || bytes.EqualFold(rest[:3], []byte("inf"))) {
			return true
		}
	}
	return false
}
