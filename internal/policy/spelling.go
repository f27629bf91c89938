package policy

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"gatewright.dev/gatewright/internal/strictjson"
)

// expression is a compiled expression with the arguments that it looks at.
type expression struct {
	program cel.Program
	reads   []reading
}

// reading is a place in the arguments, name by name. everyItem stands for each item of a list and each value of an object.
type reading []string

const everyItem = "\x00"

// isMisspelt says whether the arguments have a name on the way that a tool may read as the one that the expression looks
// at. The expression would find nothing there, and the tool something.
func (r reading) isMisspelt(v any) bool {
	for i, name := range r {
		inner := func(child any) bool { return r[i+1:].isMisspelt(child) }
		switch parent := v.(type) {
		case map[string]any:
			if name == everyItem {
				for _, child := range parent {
					if inner(child) {
						return true
					}
				}
				return false
			}
			if isSpeltOtherwise(parent, name) {
				return true
			}
			v = parent[name]
		case []any:
			return name == everyItem && slices.ContainsFunc(parent, inner)
		default:
			return false
		}
	}
	return false
}

// protoName is a name that JavaScript takes for the object from which another one inherits: what stands below it may be
// read as if it stood in the object itself.
const protoName = "__proto__"

// isSpeltOtherwise says whether an object has a name that a reader may take for this one.
func isSpeltOtherwise(object map[string]any, name string) bool {
	for other := range object {
		if other != name && (strictjson.SameName(other, name) || other == protoName) {
			return true
		}
	}
	return false
}

// readingsOf lists the places in the arguments that an expression looks at.
func readingsOf(e ast.Expr) []reading {
	w := readingWalk{variables: map[string]reading{"args": {}}}
	w.walk(e)
	slices.SortFunc(w.found, slices.Compare)
	var longest []reading // a place includes those on the way to it
	for i, r := range w.found {
		if i+1 < len(w.found) && len(w.found[i+1]) >= len(r) && slices.Equal(w.found[i+1][:len(r)], r) {
			continue
		}
		longest = append(longest, r)
	}
	return longest
}

// readingWalk collects readings. Variables are args, and what macros like all and exists bind to items of it.
type readingWalk struct {
	found     []reading
	variables map[string]reading
}

func (w *readingWalk) walk(e ast.Expr) {
	if place, ok := w.place(e); ok && len(place) > 0 {
		w.found = append(w.found, place)
	}
	switch e.Kind() {
	case ast.SelectKind:
		w.walk(e.AsSelect().Operand())
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			w.walk(call.Target())
		}
		for _, arg := range call.Args() {
			w.walk(arg)
		}
		if call.FunctionName() == operators.In && len(call.Args()) == 2 {
			w.member(call.Args()[0], call.Args()[1])
		}
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			w.walk(item)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			w.walk(entry.AsMapEntry().Key())
			w.walk(entry.AsMapEntry().Value())
		}
	case ast.ComprehensionKind:
		w.comprehension(e.AsComprehension())
	case ast.UnspecifiedExprKind, ast.IdentKind, ast.LiteralKind, ast.StructKind:
	}
}

// member notes "name" in args.x.
func (w *readingWalk) member(name, of ast.Expr) {
	if place, ok := w.place(of); ok {
		w.found = append(w.found, append(slices.Clone(place), segment(name)))
	}
}

func (w *readingWalk) comprehension(c ast.ComprehensionExpr) {
	w.walk(c.IterRange())
	w.walk(c.AccuInit())
	outer := w.variables[c.IterVar()]
	if place, ok := w.place(c.IterRange()); ok {
		w.variables[c.IterVar()] = append(slices.Clone(place), everyItem)
	} else {
		delete(w.variables, c.IterVar())
	}
	for _, part := range []ast.Expr{c.LoopCondition(), c.LoopStep(), c.Result()} {
		w.walk(part)
	}
	delete(w.variables, c.IterVar())
	if outer != nil {
		w.variables[c.IterVar()] = outer
	}
}

// place follows an expression to its place in the arguments. What a function or a macro makes of a place counts as the
// same place: filter(), for one, gives items of it.
func (w *readingWalk) place(e ast.Expr) (reading, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		place, ok := w.variables[e.AsIdent()]
		return place, ok
	case ast.SelectKind:
		place, ok := w.place(e.AsSelect().Operand())
		return append(slices.Clone(place), e.AsSelect().FieldName()), ok
	case ast.ComprehensionKind:
		return w.place(e.AsComprehension().IterRange())
	case ast.CallKind:
		call := e.AsCall()
		switch {
		case call.IsMemberFunction():
			return w.place(call.Target())
		case call.FunctionName() == operators.Index && len(call.Args()) == 2:
			place, ok := w.place(call.Args()[0])
			return append(slices.Clone(place), segment(call.Args()[1])), ok
		case call.FunctionName() == "dyn" && len(call.Args()) == 1:
			return w.place(call.Args()[0])
		}
	case ast.UnspecifiedExprKind, ast.ListKind, ast.LiteralKind, ast.MapKind, ast.StructKind:
	}
	return nil, false
}

// segment is the name that a key is for sure, or any.
func segment(key ast.Expr) string {
	if key.Kind() == ast.LiteralKind {
		if name, ok := key.AsLiteral().Value().(string); ok && !strings.Contains(name, everyItem) {
			return name
		}
	}
	return everyItem
}
