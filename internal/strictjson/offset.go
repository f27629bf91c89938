package strictjson

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// offsetOf finds where the value at a path, or its key, begins in a document
// that Parse accepted, or -1. It serves messages only: nothing is judged by
// this second reading.
func offsetOf(data []byte, path []string, atKey bool) int64 {
	p := parsers.Get().(*parser)
	defer p.release()
	p.reset(data, DefaultLimits)
	key := int64(-1)
	for _, name := range path {
		var ok bool
		if key, ok = enter(p.dec, name); !ok {
			return -1
		}
	}
	if atKey {
		return startOfToken(data, key)
	}
	return startOfToken(data, p.dec.InputOffset())
}

// enter reads the beginning of an object or array up to the named member, and
// gives the offset in front of that member.
func enter(dec *jsontext.Decoder, name string) (int64, bool) {
	open, err := dec.ReadToken()
	if err != nil {
		return 0, false
	}
	isObject := open.Kind() == jsontext.KindBeginObject
	for i := 0; ; i++ {
		before := dec.InputOffset()
		switch dec.PeekKind() {
		case jsontext.KindEndObject, jsontext.KindEndArray, jsontext.KindInvalid:
			return 0, false
		}
		here := strconv.Itoa(i)
		if isObject {
			tok, err := dec.ReadToken()
			if err != nil {
				return 0, false
			}
			here = tok.String()
		}
		if here == name {
			return before, true
		}
		if dec.SkipValue() != nil {
			return 0, false
		}
	}
}
