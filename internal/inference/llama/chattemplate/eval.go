package chattemplate

import (
	"slices"
	"strconv"
	"strings"
)

// Values are string, bool, int, nil for none, undefined, []any, map[string]any and *namespace.
type (
	undefined struct{}
	namespace struct{ members map[string]any }
	// function is one of the few that a template may call, or a method of a text.
	function struct {
		name string
		self any
	}
)

type state struct {
	scopes []map[string]any
	out    strings.Builder
	steps  int
}

func (s *state) step() error {
	if s.steps++; s.steps > maxSteps || s.out.Len() > maxOutput {
		return notSupported("it does too much")
	}
	return nil
}

func (s *state) run(nodes []node) error {
	for _, n := range nodes {
		if err := s.step(); err != nil {
			return err
		}
		if err := s.statement(n); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) statement(n node) error {
	if n.kind == "text" {
		s.out.WriteString(n.text)
		return nil
	}
	v, err := s.eval(n.expr)
	if err != nil {
		return err
	}
	switch n.kind {
	case "print":
		text, err := asText(v)
		s.out.WriteString(text)
		return err
	case "if":
		if truth(v) {
			return s.run(n.body)
		}
		return s.run(n.other)
	case "set":
		return s.set(n, v)
	default:
		return s.loop(n, v)
	}
}

func (s *state) set(n node, v any) error {
	if n.attr == "" {
		s.scopes[len(s.scopes)-1][n.text] = v
		return nil
	}
	ns, ok := s.lookup(n.text).(*namespace)
	if !ok {
		return notSupported("%s is no namespace", n.text)
	}
	ns.members[n.attr] = v
	return nil
}

// loop gives its body a scope: what is set inside is gone afterwards.
func (s *state) loop(n node, v any) error {
	items, ok := v.([]any)
	if !ok {
		return notSupported("a for goes over what is no list")
	}
	depth := len(s.scopes)
	defer func() { s.scopes = s.scopes[:depth] }()
	for i, item := range items {
		s.scopes = append(s.scopes[:depth], map[string]any{n.text: item, "loop": map[string]any{
			"index": i + 1, "index0": i, "first": i == 0, "last": i == len(items)-1, "length": len(items),
		}})
		if err := s.run(n.body); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) lookup(name string) any {
	for _, scope := range slices.Backward(s.scopes) {
		if v, ok := scope[name]; ok {
			return v
		}
	}
	if name == "raise_exception" || name == "namespace" {
		return function{name: name}
	}
	return undefined{}
}

func (s *state) eval(e *expr) (any, error) {
	if err := s.step(); err != nil {
		return nil, err
	}
	switch e.kind {
	case "bad":
		return nil, notSupported("%s", e.text)
	case "text":
		return e.text, nil
	case "number":
		n, err := strconv.Atoi(e.text)
		return n, err
	case "constant":
		return map[string]any{"true": true, "false": false, "none": nil, "undefined": undefined{}}[e.text], nil
	case "name":
		return s.lookup(e.text), nil
	case "if":
		condition, err := s.eval(e.args[0])
		if err != nil {
			return nil, err
		}
		if truth(condition) {
			return s.eval(e.args[1])
		}
		return s.eval(e.args[2])
	case "binary":
		return s.binary(e)
	default:
		return s.compound(e)
	}
}

// compound evaluates all operands first.
func (s *state) compound(e *expr) (any, error) {
	args := make([]any, len(e.args))
	for i, a := range e.args {
		if a == nil {
			continue
		}
		var err error
		if args[i], err = s.eval(a); err != nil {
			return nil, err
		}
	}
	switch e.kind {
	case "list":
		return args, nil
	case "attr":
		return attribute(args[0], e.text)
	case "index":
		return index(args[0], args[1])
	case "slice":
		return slice(args[0], e.args[1:], args[1:])
	case "call":
		return call(args[0], args[1:], e.names)
	case "filter":
		return filter(e.text, args[0], args[1:])
	case "test":
		return test(e.text, args[0])
	default:
		return unary(e.text, args[0])
	}
}

func (s *state) binary(e *expr) (any, error) {
	left, err := s.eval(e.args[0])
	if err != nil {
		return nil, err
	}
	if e.text == "and" && !truth(left) || e.text == "or" && truth(left) {
		return left, nil
	}
	right, err := s.eval(e.args[1])
	if err != nil {
		return nil, err
	}
	return combine(e.text, left, right)
}

func unary(op string, v any) (any, error) {
	if op == "not" {
		return !truth(v), nil
	}
	n, ok := v.(int)
	if !ok {
		return nil, notSupported("a sign stands before what is no number")
	}
	return -n, nil
}
