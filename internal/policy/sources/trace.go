package sources

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gatewright.dev/gatewright/internal/strictjson"
)

// Trace finds the source of every leaf of the arguments, sorted by pointer. Empty containers have no leaf. A member name
// below the top that is data rather than a parameter counts as well: with its leaf, or as a finding of its container. A whole
// match in the user's words wins, then Facts, then what the schema offers, then Tool; partial matches follow in the
// same order. A null or an empty string has source Schema when the schema describes and permits it there.
func (x *Index) Trace(arguments map[string]any, schema *ArgumentsSchema) []Finding {
	t := tracer{index: x, known: map[string]matches{}, budget: &budget{maxPlaces}}
	t.walk("", "", arguments, schema.root(), false)
	slices.SortFunc(t.out, func(a, b Finding) int { return cmp.Compare(a.Pointer, b.Pointer) })
	return t.out
}

// maxPlaces is how many places may be tried for the values of one call, some tenths of a second's work.
const maxPlaces = 1 << 20

// budget is how many places of a source may still be tried. A value for which none is left is taken to be absent, which
// trusts it less: a call with very many values may not keep a gate busy for seconds.
type budget struct{ left int }

// take reports whether one more place may be tried.
func (b *budget) take() bool {
	b.left--
	return b.left >= 0
}

// tracer is one walk over the arguments.
type tracer struct {
	index  *Index
	known  map[string]matches // by value, since lists repeat
	budget *budget
	last   matches // of the leaf that was found last
	out    []Finding
}

// walk visits a value; name is the nearest member name, offered tells that an enclosing value is a schema's choice.
func (t *tracer) walk(pointer, name string, v any, nodes []node, offered bool) {
	offered = offered || offers(nodes, v)
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) { // in one order, since the budget may end on the way
			at := pointer + "/" + strictjson.EscapeToken(k)
			from := len(t.out)
			t.walk(at, k, v[k], property(nodes, k), offered)
			if pointer != "" && !offered && isData(nodes, k) {
				t.join(from, at, t.text(k))
			}
		}
	case []any:
		for i, e := range v {
			t.walk(pointer+"/"+strconv.Itoa(i), name, e, item(nodes, i), offered)
		}
	default:
		m := t.leaf(name, v, nodes, offered)
		t.last = m
		t.out = append(t.out, m.finding(pointer))
	}
}

func (t *tracer) leaf(name string, v any, nodes []node, offered bool) matches {
	m := matches{None, None, None, None}
	switch x := v.(type) {
	case nil:
		offered = offered || permitsEmpty(nodes, x)
	case bool:
		m = t.lookup("b"+strconv.FormatBool(x), func() *value { return newValue(strconv.FormatBool(x), false, t.budget) })
		if t.index.flags[name]&flagOf(x) != 0 {
			m[1] = Exact
		}
		offered = offered || allowsBoolean(nodes)
	case string:
		if strings.TrimSpace(x) == "" {
			offered = offered || permitsEmpty(nodes, x)
			break
		}
		m = t.text(x)
	default:
		if text, ok := numberText(v); ok {
			if n, ok := parseDecimal(text); ok {
				m = t.lookup("n"+n, func() *value { return newNumber(n, t.budget) })
			}
		}
	}
	if offered {
		m[2] = Exact
	}
	return m
}

// join adds the name of a member to what was found for the member: to the finding of a leaf, so that both have to stand
// where it says, or else as a finding of its own.
func (t *tracer) join(from int, pointer string, name matches) {
	if len(t.out) == from+1 && t.out[from].Pointer == pointer {
		for i, m := range t.last {
			if name[i].atLeast(m) {
				name[i] = m
			}
		}
		t.out = t.out[:from]
	}
	t.out = append(t.out, name.finding(pointer))
}

// text finds a text that no schema speaks of.
func (t *tracer) text(s string) matches {
	return t.lookup("s"+s, func() *value { return newValue(s, true, t.budget) })
}

// isData reports whether the name of a member says something, as in {"bob@example.com": "reader"}: the schema has members
// there without saying their names, or, where there is no schema, it is no name that a program would have.
func isData(nodes []node, name string) bool {
	described := false
	for _, n := range nodes {
		if properties, ok := n.schema["properties"].(map[string]any); ok {
			if _, ok := properties[name]; ok {
				return false
			}
		}
		described = described || n.schema["properties"] != nil || n.schema["additionalProperties"] != nil || n.schema["patternProperties"] != nil
	}
	return described || !isPlainName(name)
}

func isPlainName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '_' && c != '-' && !isWord(rune(c)) || c >= utf8.RuneSelf {
			return false
		}
	}
	return s != "" && len(s) <= 64
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
