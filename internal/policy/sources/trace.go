package sources

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Trace finds the source of every leaf of the arguments, sorted by pointer. Empty containers have no leaf. A whole
// match in the user's words wins, then Facts, then what the schema offers, then Tool; partial matches follow in the
// same order. A null or an empty string has source Schema when the schema describes and permits it there.
func (x *Index) Trace(arguments map[string]any, schema *ArgumentsSchema) []Finding {
	t := tracer{index: x, known: map[string]matches{}}
	t.walk("", "", arguments, schema.root(), false)
	slices.SortFunc(t.out, func(a, b Finding) int { return cmp.Compare(a.Pointer, b.Pointer) })
	return t.out
}

// tracer is one walk over the arguments.
type tracer struct {
	index *Index
	known map[string]matches // by value, since lists repeat
	out   []Finding
}

// walk visits a value; name is the nearest member name, offered tells that an enclosing value is a schema's choice.
func (t *tracer) walk(pointer, name string, v any, nodes []node, offered bool) {
	offered = offered || offers(nodes, v)
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			t.walk(pointer+"/"+escapePointer(k), k, e, property(nodes, k), offered)
		}
	case []any:
		for i, e := range v {
			t.walk(pointer+"/"+strconv.Itoa(i), name, e, item(nodes, i), offered)
		}
	default:
		t.out = append(t.out, t.leaf(name, v, nodes, offered).finding(pointer))
	}
}

func (t *tracer) leaf(name string, v any, nodes []node, offered bool) matches {
	m := matches{None, None, None, None}
	switch x := v.(type) {
	case nil:
		offered = offered || permitsEmpty(nodes, x)
	case bool:
		m = t.lookup("b"+strconv.FormatBool(x), func() *value { return newValue(strconv.FormatBool(x), false) })
		if t.index.flags[name]&flagOf(x) != 0 {
			m[1] = Exact
		}
		offered = offered || allowsBoolean(nodes)
	case string:
		if strings.TrimSpace(x) == "" {
			offered = offered || permitsEmpty(nodes, x)
			break
		}
		m = t.lookup("s"+x, func() *value { return newValue(x, true) })
	default:
		if text, ok := numberText(v); ok {
			if n, ok := parseDecimal(text); ok {
				m = t.lookup("n"+n, func() *value { return newNumber(n) })
			}
		}
	}
	if offered {
		m[2] = Exact
	}
	return m
}

// lookup finds a value in the sources that hold text.
func (t *tracer) lookup(key string, prepare func() *value) matches {
	if m, ok := t.known[key]; ok {
		return m
	}
	v := prepare()
	m := matches{t.index.user.match(v), t.index.facts.match(v), None, t.index.tool.match(v)}
	t.known[key] = m
	return m
}

// parseDecimal brings a number of the arguments into canonical form.
func parseDecimal(text string) (string, bool) {
	body, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(body, ".")
	if whole == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return "", false // infinite, or not a number
	}
	return decimal{whole, fraction, negative}.canonical(0), true
}

func escapePointer(s string) string {
	if !strings.ContainsAny(s, "~/") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}
