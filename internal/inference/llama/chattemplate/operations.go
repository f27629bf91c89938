package chattemplate

import (
	"slices"
	"strconv"
	"strings"
)

func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	default:
		return true
	}
}

// asText writes only what has one obvious form.
func asText(v any) (string, error) {
	switch v := v.(type) {
	case undefined:
		return "", nil
	case string:
		return v, nil
	case int:
		return strconv.Itoa(v), nil
	default:
		return "", notSupported("it prints what is no text")
	}
}

func combine(op string, left, right any) (any, error) {
	switch op {
	case "and", "or":
		return right, nil
	case "==", "!=":
		same, err := equal(left, right)
		return same == (op == "=="), err
	case "in":
		return contains(right, left)
	case "~":
		l, err1 := asText(left)
		r, err2 := asText(right)
		if err1 != nil || err2 != nil {
			return nil, notSupported("it joins what is no text")
		}
		return l + r, nil
	}
	if l, ok := left.(string); ok && op == "+" {
		if r, ok := right.(string); ok {
			return l + r, nil
		}
	}
	l, ok1 := left.(int)
	r, ok2 := right.(int)
	if !ok1 || !ok2 {
		return nil, notSupported("operator %q has operands of other types", op)
	}
	return arithmetic(op, l, r)
}

func arithmetic(op string, l, r int) (any, error) {
	switch op {
	case "+":
		return l + r, nil
	case "-":
		return l - r, nil
	case "%":
		if r <= 0 {
			return nil, notSupported("a remainder of what is not positive")
		}
		return ((l % r) + r) % r, nil
	case "<":
		return l < r, nil
	case ">":
		return l > r, nil
	case "<=":
		return l <= r, nil
	default:
		return l >= r, nil
	}
}

// equal compares simple values; of others only whether both are the same kind of nothing.
func equal(left, right any) (bool, error) {
	for _, v := range []any{left, right} {
		switch v.(type) {
		case []any, map[string]any, *namespace, function:
			return false, notSupported("it compares what is no simple value")
		}
	}
	return left == right, nil
}

func contains(in, v any) (any, error) {
	switch in := in.(type) {
	case string:
		if text, ok := v.(string); ok {
			return strings.Contains(in, text), nil
		}
	case map[string]any:
		if key, ok := v.(string); ok {
			_, there := in[key]
			return there, nil
		}
	case []any:
		for _, item := range in {
			if same, err := equal(item, v); same || err != nil {
				return same, err
			}
		}
		return false, nil
	}
	return nil, notSupported("it looks for something in what holds nothing")
}

func attribute(of any, name string) (any, error) {
	switch of := of.(type) {
	case map[string]any:
		if v, ok := of[name]; ok {
			return v, nil
		}
		if name == "items" || name == "get" || name == "keys" || name == "values" {
			return nil, notSupported("method %s of a mapping is not known", name)
		}
		return undefined{}, nil
	case *namespace:
		if v, ok := of.members[name]; ok {
			return v, nil
		}
		return undefined{}, nil
	case string:
		return function{name: name, self: of}, nil
	default:
		return nil, notSupported("it asks for %s of what has no members", name)
	}
}

func index(of, at any) (any, error) {
	if key, ok := at.(string); ok {
		if _, isText := of.(string); isText {
			return nil, notSupported("a text has no members")
		}
		return attribute(of, key)
	}
	items, ok1 := of.([]any)
	i, ok2 := at.(int)
	if !ok1 || !ok2 {
		return nil, notSupported("an index into what is no list")
	}
	if i < 0 {
		i += len(items)
	}
	if i < 0 || i >= len(items) {
		return undefined{}, nil
	}
	return items[i], nil
}

// slice knows steps of 1 and, without bounds, of -1.
func slice(of any, given []*expr, bounds []any) (any, error) {
	items, ok := of.([]any)
	if !ok {
		return nil, notSupported("a slice of what is no list")
	}
	if given[2] != nil && bounds[2] != 1 {
		if bounds[2] != -1 || given[0] != nil || given[1] != nil {
			return nil, notSupported("a slice with that step")
		}
		reversed := slices.Clone(items)
		slices.Reverse(reversed)
		return reversed, nil
	}
	limits := [2]int{0, len(items)}
	for i := range limits {
		if given[i] == nil {
			continue
		}
		n, ok := bounds[i].(int)
		if !ok {
			return nil, notSupported("a slice whose bound is no number")
		}
		if n < 0 {
			n += len(items)
		}
		limits[i] = min(max(n, 0), len(items))
	}
	return slices.Clone(items[min(limits[0], limits[1]):limits[1]]), nil
}

func call(what any, args []any, names []string) (any, error) {
	f, ok := what.(function)
	if !ok {
		return nil, notSupported("it calls what is no function")
	}
	if f.self != nil {
		return method(f, args, names)
	}
	if f.name == "namespace" && len(args) == len(names) {
		ns := &namespace{members: map[string]any{}}
		for i, name := range names {
			ns.members[name] = args[i]
		}
		return ns, nil
	}
	if f.name == "raise_exception" && len(args) == 1 {
		text, _ := asText(args[0])
		return nil, notSupported("it refuses the conversation: %s", text)
	}
	return nil, notSupported("function %s with these arguments", f.name)
}

func method(f function, args []any, names []string) (any, error) {
	self, _ := f.self.(string)
	texts := make([]string, len(args))
	for i, a := range args {
		text, ok := a.(string)
		if !ok || len(names) > 0 {
			return nil, notSupported("method %s with these arguments", f.name)
		}
		texts[i] = text
	}
	const space = " \t\n\r\v\f"
	switch cut := append(slices.Clone(texts), space)[0]; {
	case f.name == "strip" && len(args) <= 1:
		return strings.Trim(self, cut), nil
	case f.name == "lstrip" && len(args) <= 1:
		return strings.TrimLeft(self, cut), nil
	case f.name == "rstrip" && len(args) <= 1:
		return strings.TrimRight(self, cut), nil
	case f.name == "startswith" && len(args) == 1:
		return strings.HasPrefix(self, texts[0]), nil
	case f.name == "endswith" && len(args) == 1:
		return strings.HasSuffix(self, texts[0]), nil
	case f.name == "split" && len(args) == 1 && texts[0] != "":
		var parts []any
		for part := range strings.SplitSeq(self, texts[0]) {
			parts = append(parts, part)
		}
		return parts, nil
	case f.name == "replace" && len(args) == 2:
		return strings.ReplaceAll(self, texts[0], texts[1]), nil
	default:
		return nil, notSupported("method %s with these arguments", f.name)
	}
}

func filter(name string, v any, args []any) (any, error) {
	text, isText := v.(string)
	list, isList := v.([]any)
	_, isUndefined := v.(undefined)
	switch {
	case name == "trim" && isText && len(args) == 0:
		return strings.TrimSpace(text), nil
	case (name == "length" || name == "count") && isList && len(args) == 0:
		return len(list), nil
	case name == "length" && isText && len(args) == 0:
		return len([]rune(text)), nil
	case name == "string" && isText && len(args) == 0:
		return text, nil
	case name == "default" && len(args) == 1:
		if isUndefined {
			return args[0], nil
		}
		return v, nil
	default:
		return nil, notSupported("filter %s with these operands", name)
	}
}

func test(name string, v any) (any, error) {
	_, isUndefined := v.(undefined)
	_, isText := v.(string)
	_, isList := v.([]any)
	_, isMap := v.(map[string]any)
	switch name {
	case "defined":
		return !isUndefined, nil
	case "undefined":
		return isUndefined, nil
	case "none":
		return v == nil, nil
	case "string":
		return isText, nil
	case "mapping":
		return isMap, nil
	case "iterable", "sequence":
		return isText || isList || isMap, nil
	case "true":
		return v == true, nil
	case "false":
		return v == false, nil
	default:
		return nil, notSupported("test %s is not known", name)
	}
}
