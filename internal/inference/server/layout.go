package server

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"gatewright.dev/gatewright/internal/questions"
)

// layout is what the tree of a body does not hold: in which order members were sent. The order of options and of the
// state's members is part of the prompt.
type layout struct {
	state        jsontext.Value
	ids          []string                  // of the questions
	options      map[string][]string       // names in criteria, by question
	instructions map[string]jsontext.Value // by question
}

// layoutOf reads a body that the strict reader has accepted, so each name stands once and all of it is valid.
func layoutOf(body []byte) (layout, error) {
	l := layout{options: map[string][]string{}, instructions: map[string]jsontext.Value{}}
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	err := members(dec, func(name string) (err error) {
		switch name {
		case "state":
			l.state, err = rawValue(dec)
			return err
		case "questions":
			return members(dec, func(id string) error {
				l.ids = append(l.ids, id)
				return l.question(dec, id)
			})
		default:
			return dec.SkipValue()
		}
	})
	return l, err
}

func (l layout) question(dec *jsontext.Decoder, id string) error {
	return members(dec, func(name string) (err error) {
		switch name {
		case "instructions":
			l.instructions[id], err = rawValue(dec)
			return err
		case "criteria":
			return members(dec, func(option string) error {
				l.options[id] = append(l.options[id], option)
				return dec.SkipValue()
			})
		default:
			return dec.SkipValue()
		}
	})
}

func rawValue(dec *jsontext.Decoder) (jsontext.Value, error) {
	v, err := dec.ReadValue()
	return v.Clone(), err
}

// members calls each for every member of an object, which must read the value. What is no object is skipped.
func members(dec *jsontext.Decoder, each func(name string) error) error {
	if dec.PeekKind() != jsontext.KindBeginObject {
		return dec.SkipValue()
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != jsontext.KindEndObject {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if err := each(name.String()); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

var (
	errSameNames = errors.New("two names in one object are the same for the model")
	errBadState  = errors.New("the value cannot be rendered")
)

// render writes one JSON value as the text that a model reads:
//
//   - a string as its own text, without quotes;
//   - anything else as JSON without white space, members in the order in which they were sent, numbers in their RFC 8785
//     form, strings with the fewest escapes;
//   - every string and every member name neutralised, as the state of a call is.
//
// Members are not sorted: what stays the same from call to call can come first, and a prompt is worked out again only
// from its first difference on. Rendering what the gate's own client sends gives the bytes that it rendered.
func render(value jsontext.Value) ([]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(value))
	if dec.PeekKind() == jsontext.KindString {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, errBadState
		}
		return []byte(questions.Neutralise(token.String())), nil
	}
	var buf bytes.Buffer
	enc := jsontext.NewEncoder(&buf)
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, errBadState
		}
		if token, err = shown(token); err != nil {
			return nil, errBadState
		}
		if err := enc.WriteToken(token); err != nil {
			return nil, errSameNames // all else was checked when the body was read
		}
		if dec.StackDepth() == 0 {
			return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
		}
	}
}

func shown(t jsontext.Token) (jsontext.Token, error) {
	switch t.Kind() {
	case jsontext.KindString:
		return jsontext.String(questions.Neutralise(t.String())), nil
	case jsontext.KindNumber:
		f, err := t.Float()
		if f == 0 {
			return jsontext.Int(0), err // RFC 8785 has no negative zero
		}
		return jsontext.Float(f), err
	default:
		return t, nil
	}
}
