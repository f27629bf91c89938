package policy

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxRepeats is how often a schema may hold one value against the same part of it. Where parts refer to parts several
	// times that number doubles at each step, and a call of one agent would keep a processor busy for hours.
	maxRepeats = 1000
	// maxSteps bounds the reckoning itself.
	maxSteps = 500_000
	// argumentDepth is how deep arguments are nested at most.
	argumentDepth = 33
)

var errRepeats = errors.New("may hold a value against the same part of it more than " + strconv.Itoa(maxRepeats) +
	" times, since parts of it refer to others several times or to themselves: refer to each once, or say it flatter")

// within is a part of a schema that is about a value inside. Labels tell apart which: a property or an item of its own, each
// of them, or the names of properties.
type within struct {
	label string
	of    *jsonschema.Schema
}

const eachProperty, eachItem, propertyNames = "{", "[", "N"

// eachOf is the label of what is about each value, for those of one of its own, by their first letter.
var eachOf = map[byte]string{'.': eachProperty, '#': eachItem}

// repeatsTooOften says whether a schema may hold one value against the same part of it too often. It reckons with too much
// rather than too little.
func repeatsTooOften(root *jsonschema.Schema) bool {
	w := &schemaWalk{
		seen: map[*jsonschema.Schema]bool{}, open: map[*jsonschema.Schema]bool{}, anchors: map[string][]*jsonschema.Schema{},
		place: map[*jsonschema.Schema]int{},
	}
	w.collect(root)
	for _, s := range w.all {
		w.sort(s)
	}
	if w.isCyclic {
		return true
	}
	now := w.spread(repeats{root: 1})
	for range argumentDepth {
		next := w.inside(now)
		if w.isTooMuch {
			return true
		}
		if len(next) == 0 || maps.Equal(next, now) {
			return false
		}
		now = next
	}
	return false
}

// repeats is how often each part of a schema is held against a value, at most.
type repeats map[*jsonschema.Schema]float64

// spread adds the parts that are held against the same value.
func (w *schemaWalk) spread(start repeats) repeats {
	var all []*jsonschema.Schema
	var reach func(s *jsonschema.Schema)
	out := repeats{}
	reach = func(s *jsonschema.Schema) {
		if _, known := out[s]; known {
			return
		}
		out[s] = start[s]
		all = append(all, s)
		for _, t := range w.beside(s) {
			reach(t)
		}
	}
	for s := range start {
		reach(s)
	}
	slices.SortFunc(all, func(a, b *jsonschema.Schema) int { return w.place[b] - w.place[a] })
	for _, s := range all {
		for _, t := range w.beside(s) {
			out[t] += out[s]
		}
		w.steps++
		w.isTooMuch = w.isTooMuch || out[s] > maxRepeats || w.steps > maxSteps
	}
	return out
}

// inside says how often each part is held against a value one level deeper, whichever value that is.
func (w *schemaWalk) inside(now repeats) repeats {
	labelled := map[string]repeats{}
	for s, n := range now {
		for _, c := range children(s) {
			if labelled[c.label] == nil {
				labelled[c.label] = repeats{}
			}
			labelled[c.label][c.of] += n
		}
	}
	for label, of := range labelled {
		for s, n := range labelled[eachOf[label[0]]] {
			of[s] += n
		}
	}
	most := repeats{}
	for _, of := range labelled {
		for s, n := range w.spread(of) {
			most[s] = max(most[s], n)
		}
		if w.isTooMuch {
			return most
		}
	}
	return most
}

// schemaWalk knows all parts of a schema, in an order in which those that are about the same value come before those that
// refer to them.
type schemaWalk struct {
	all        []*jsonschema.Schema
	seen, open map[*jsonschema.Schema]bool
	anchors    map[string][]*jsonschema.Schema
	place      map[*jsonschema.Schema]int // in order
	steps      int
	// isCyclic says that a part leads to itself on the same value, isTooMuch that a bound is passed.
	isCyclic, isTooMuch bool
}

func (w *schemaWalk) collect(s *jsonschema.Schema) {
	if s == nil || w.seen[s] {
		return
	}
	w.seen[s] = true
	w.all = append(w.all, s)
	if s.DynamicAnchor != "" {
		w.anchors[s.DynamicAnchor] = append(w.anchors[s.DynamicAnchor], s)
	}
	for _, t := range w.beside(s) {
		w.collect(t)
	}
	for _, c := range children(s) {
		w.collect(c.of)
	}
}

func (w *schemaWalk) sort(s *jsonschema.Schema) {
	isOpen, isKnown := w.open[s]
	if isKnown {
		w.isCyclic = w.isCyclic || isOpen
		return
	}
	w.open[s] = true
	for _, t := range w.beside(s) {
		w.sort(t)
	}
	w.open[s] = false
	w.place[s] = len(w.place)
}

// beside are the parts that are held against the same value.
func (w *schemaWalk) beside(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else, s.ContentSchema}
	if s.DynamicRef != nil {
		all = append(append(all, s.DynamicRef.Ref), w.anchors[s.DynamicRef.Anchor]...)
	}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		all = append(all, list...)
	}
	for _, t := range s.DependentSchemas {
		all = append(all, t)
	}
	for _, t := range s.Dependencies {
		all = append(all, schemasOf(t)...)
	}
	out := all[:0]
	for _, t := range all {
		if t != nil {
			out = append(out, t)
		}
	}
	return out
}

// children are the parts that are held against what is inside a value, an object's properties or an array's items.
func children(s *jsonschema.Schema) []within {
	var out []within
	add := func(label string, list ...*jsonschema.Schema) {
		for _, t := range list {
			if t != nil {
				out = append(out, within{label, t})
			}
		}
	}
	for name, t := range s.Properties {
		add("."+name, t)
	}
	for _, t := range s.PatternProperties {
		add(eachProperty, t)
	}
	add(eachProperty, append(schemasOf(s.AdditionalProperties), s.UnevaluatedProperties)...)
	add(propertyNames, s.PropertyNames)
	for i, t := range s.PrefixItems {
		add("#"+strconv.Itoa(i), t)
	}
	add(eachItem, s.Contains, s.Items2020, s.UnevaluatedItems)
	add(eachItem, append(schemasOf(s.AdditionalItems), schemasOf(s.Items)...)...)
	return out
}

// schemasOf gives what is a schema, or a list of them, of what may be something else.
func schemasOf(v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return []*jsonschema.Schema{v}
	case []*jsonschema.Schema:
		return v
	}
	return nil
}
