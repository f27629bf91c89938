package sources

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"gatewright.dev/gatewright/internal/strictjson"
)

// ArgumentsSchema is what a tool's JSON Schema offers: enum members, consts, defaults and booleans.
type ArgumentsSchema struct{ document any }

// NewSchema takes a parsed JSON Schema. Nil offers nothing.
func NewSchema(schema any) *ArgumentsSchema { return &ArgumentsSchema{schema} }

// node is one schema that holds at a place, with the document that its references point into.
type node struct {
	document any
	schema   map[string]any
}

// Limits against schemas that refer to themselves; what lies beyond offers nothing.
const (
	maxNodes = 256
	maxDepth = 16
)

func (s *ArgumentsSchema) root() []node {
	if s == nil {
		return nil
	}
	return expand(nil, s.document, s.document, 0)
}

// expand appends a schema and all that it is combined of.
func expand(out []node, document, schema any, depth int) []node {
	m, ok := schema.(map[string]any)
	if !ok || depth > maxDepth || len(out) >= maxNodes {
		return out
	}
	out = append(out, node{document, m})
	if ref, ok := m["$ref"].(string); ok {
		out = expand(out, document, resolve(document, ref), depth+1)
	}
	for _, key := range [...]string{"anyOf", "oneOf", "allOf"} {
		for _, sub := range list(m[key]) {
			out = expand(out, document, sub, depth+1)
		}
	}
	return out
}

// resolve follows a reference inside the document; any other leads nowhere.
func resolve(document any, ref string) any {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil || pointer != "" && pointer[0] != '/' {
		return nil
	}
	at := document
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		token = strictjson.UnescapeToken(token)
		switch x := at.(type) {
		case map[string]any:
			at = x[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(x) {
				return nil
			}
			at = x[i]
		default:
			return nil
		}
	}
	return at
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// property steps into a member of an object.
func property(nodes []node, name string) []node {
	var out []node
	for _, n := range nodes {
		properties, _ := n.schema["properties"].(map[string]any)
		sub, ok := properties[name]
		if !ok {
			sub = n.schema["additionalProperties"]
		}
		out = expand(out, n.document, sub, 0)
	}
	return out
}

// item steps into an element of an array; items as a list is the older spelling of prefixItems.
func item(nodes []node, i int) []node {
	var out []node
	for _, n := range nodes {
		prefix := list(n.schema["prefixItems"])
		if len(prefix) == 0 {
			prefix = list(n.schema["items"])
		}
		sub := n.schema["items"]
		if i < len(prefix) {
			sub = prefix[i]
		} else if len(list(sub)) > 0 {
			sub = n.schema["additionalItems"]
		}
		out = expand(out, n.document, sub, 0)
	}
	return out
}

// offers reports whether a schema names exactly this value.
func offers(nodes []node, v any) bool {
	for _, n := range nodes {
		for _, e := range list(n.schema["enum"]) {
			if equal(e, v) {
				return true
			}
		}
		for _, key := range [...]string{"const", "default"} {
			if e, ok := n.schema[key]; ok && equal(e, v) {
				return true
			}
		}
	}
	return false
}

// equal compares JSON values; numbers by their value, whatever Go type they have.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		m, ok := b.(map[string]any)
		if !ok || len(a) != len(m) {
			return false
		}
		for k, e := range a {
			if other, ok := m[k]; !ok || !equal(e, other) {
				return false
			}
		}
		return true
	case []any:
		l, ok := b.([]any)
		return ok && slices.EqualFunc(a, l, equal)
	case nil, bool, string:
		switch b.(type) {
		case nil, bool, string:
			return a == b
		}
		return false
	}
	x, okX := numberText(a)
	y, okY := numberText(b)
	if !okX || !okY {
		return false
	}
	m, okX := parseDecimal(x)
	n, okY := parseDecimal(y)
	return okX && okY && m == n
}

func hasType(schema map[string]any, name string) bool {
	if t, ok := schema["type"].(string); ok {
		return t == name
	}
	return slices.ContainsFunc(list(schema["type"]), func(t any) bool { return t == name })
}

func allowsBoolean(nodes []node) bool {
	return slices.ContainsFunc(nodes, func(n node) bool { return hasType(n.schema, "boolean") })
}

// permitsEmpty reports whether a schema describes the place and lets it stay null or empty. What would need a closer
// look, such as a pattern, does not count as permission.
func permitsEmpty(nodes []node, v any) bool {
	name := "null"
	if _, ok := v.(string); ok {
		name = "string"
	}
	return slices.ContainsFunc(nodes, func(n node) bool {
		if name == "null" && n.schema["nullable"] == true {
			return true
		}
		if !hasType(n.schema, name) {
			return false
		}
		for _, key := range [...]string{"enum", "const", "pattern", "format", "minLength"} {
			if _, restricted := n.schema[key]; restricted && name == "string" {
				return false
			}
		}
		return true
	})
}
