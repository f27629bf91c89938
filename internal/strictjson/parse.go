package strictjson

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"
)

// Parse reads one JSON value into a tree of map[string]any, []any, string,
// bool, nil, int64 (whole numbers within ±2^53) and float64 (all others), or
// returns an *Error. The tree shares no memory with data.
func Parse(data []byte, l Limits) (any, error) {
	l = l.withDefaults()
	if err := checkBytes(data, l); err != nil {
		return nil, err
	}
	p := parsers.Get().(*parser)
	defer p.release()
	p.reset(data, l)
	v, err := p.document()
	if err != nil {
		return nil, err
	}
	return v, nil
}

// checkBytes holds the checks that need no tokens.
func checkBytes(data []byte, l Limits) error {
	switch {
	case len(data) > l.MaxBytes:
		return newError(TooLarge, "", int64(l.MaxBytes),
			"body has %d bytes, send at most %d", len(data), l.MaxBytes)
	case len(bytes.TrimLeft(data, jsonSpace)) == 0:
		return newError(Empty, "", 0, "body is empty, send one JSON value")
	case !utf8.Valid(data):
		return newError(InvalidUTF8, "", firstInvalid(data), "body is not UTF-8, encode it as UTF-8")
	case bytes.HasPrefix(data, []byte("\ufeff")):
		return newError(Syntax, "", 0, "body starts with a byte order mark, send it without")
	}
	return nil
}

const jsonSpace = " \t\r\n"

func firstInvalid(data []byte) int64 {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return int64(i)
		}
		i += n
	}
	return int64(len(data))
}

// parser turns the tokens of one document into its tree. The decoder reads
// straight from data, so that offsets index data.
type parser struct {
	dec    *jsontext.Decoder
	buf    *bytes.Buffer
	data   []byte
	limits Limits
	keys   int
}

var parsers = sync.Pool{New: func() any {
	buf := new(bytes.Buffer)
	return &parser{dec: jsontext.NewDecoder(buf), buf: buf}
}}

// keepParser bounds the documents whose decoder state is worth keeping.
const keepParser = 64 << 10

func (p *parser) reset(data []byte, l Limits) {
	*p.buf = *bytes.NewBuffer(data)
	p.dec.Reset(p.buf)
	p.data, p.limits, p.keys = data, l, 0
}

func (p *parser) release() {
	if len(p.data) > keepParser {
		return
	}
	p.reset(nil, Limits{})
	parsers.Put(p)
}

func (p *parser) document() (any, error) {
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	end := p.dec.InputOffset()
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, newError(TrailingData, "", startOfToken(p.data, end),
			"something follows the value, send exactly one JSON value")
	}
	return v, nil
}

func (p *parser) value() (any, error) {
	tok, err := p.dec.ReadToken()
	if err != nil {
		return nil, p.syntaxError(err)
	}
	switch tok.Kind() {
	case jsontext.KindNull:
		return nil, nil
	case jsontext.KindTrue:
		return true, nil
	case jsontext.KindFalse:
		return false, nil
	case jsontext.KindString:
		return tok.String(), nil
	case jsontext.KindNumber:
		return p.number()
	case jsontext.KindBeginObject:
		return p.object()
	case jsontext.KindBeginArray:
		return p.array()
	default:
		return nil, p.unexpected()
	}
}

// number finds the text of the number that was just read by walking back from
// its end: what precedes a number is never a character of numbers.
func (p *parser) number() (any, error) {
	end := p.dec.InputOffset()
	start := end
	for start > 0 && isNumberByte(p.data[start-1]) {
		start--
	}
	v, ok := exactNumber(p.data[start:end])
	if !ok {
		return nil, newError(NumberNotExact, string(p.dec.StackPointer()), start,
			"number is not exactly what a double can hold, send it as a string or with fewer digits")
	}
	return v, nil
}

func (p *parser) object() (any, error) {
	if err := p.checkDepth(); err != nil {
		return nil, err
	}
	m := make(map[string]any)
	var folded map[string]struct{} // NFKC forms of m's keys, once one key is not ASCII
	for p.dec.PeekKind() != jsontext.KindEndObject {
		before := p.dec.InputOffset()
		key, err := p.key(before)
		if err != nil {
			return nil, err
		}
		if folded, err = p.fold(folded, m, key, before); err != nil {
			return nil, err
		}
		if m[key], err = p.value(); err != nil {
			return nil, err
		}
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return nil, p.syntaxError(err)
	}
	return m, nil
}

func (p *parser) key(before int64) (string, error) {
	tok, err := p.dec.ReadToken()
	if err != nil {
		return "", p.syntaxError(err)
	}
	if tok.Kind() != jsontext.KindString {
		return "", p.unexpected()
	}
	if p.keys++; p.keys > p.limits.MaxKeys {
		return "", newError(TooManyKeys, string(p.dec.StackPointer()), startOfToken(p.data, before),
			"body has more than %d keys, send fewer", p.limits.MaxKeys)
	}
	return tok.String(), nil
}

// fold refuses a key that compatibility normalisation makes equal to an
// earlier one of the object. Keys equal after NFC are equal after NFKC too,
// and ASCII keys are their own NFKC form, so most objects need no set.
func (p *parser) fold(folded map[string]struct{}, m map[string]any, key string, before int64) (map[string]struct{}, error) {
	if folded == nil {
		if isASCII(key) {
			return nil, nil
		}
		folded = make(map[string]struct{}, len(m)+1)
		for k := range m {
			folded[k] = struct{}{}
		}
	}
	form := norm.NFKC.String(key)
	if _, clash := folded[form]; clash {
		return nil, newError(KeyNormalization, string(p.dec.StackPointer()), startOfToken(p.data, before),
			"key equals an earlier key of the object after Unicode normalisation, send one of them")
	}
	folded[form] = struct{}{}
	return folded, nil
}

func (p *parser) array() (any, error) {
	if err := p.checkDepth(); err != nil {
		return nil, err
	}
	a := []any{}
	for p.dec.PeekKind() != jsontext.KindEndArray {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		a = append(a, v)
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return nil, p.syntaxError(err)
	}
	return a, nil
}

func (p *parser) checkDepth() error {
	if p.dec.StackDepth() <= p.limits.MaxDepth {
		return nil
	}
	return newError(TooDeep, string(p.dec.StackPointer()), p.dec.InputOffset()-1,
		"value is nested deeper than %d, send it flatter", p.limits.MaxDepth)
}

// startOfToken skips what may stand between two tokens.
func startOfToken(data []byte, offset int64) int64 {
	rest := bytes.TrimLeft(data[offset:], jsonSpace+",:")
	return int64(len(data) - len(rest))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func isNumberByte(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}
