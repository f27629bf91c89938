package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// expression is a compiled expression with the arguments that it looks at.
type expression struct {
	program cel.Program
	reads   []reading
}

// reading is a place in the arguments, name by name.
type reading []string

const (
	// everyItem stands for each item of a list and each value of an object.
	everyItem = "\x00"
	// anyDepth stands for a value and everything in it, where it is not known which part an expression holds. One name may
	// follow, and no more: each name of a longer way is a reading of its own.
	anyDepth = "\x01"
)

// readingsOf lists the places in the arguments that an expression looks at.
func readingsOf(e ast.Expr) []reading {
	w := readingWalk{variables: map[string][]reading{"args": {{}}}}
	w.walk(e)
	for i, r := range w.found { // without a name behind it there is nothing to find
		if len(r) > 0 && r[len(r)-1] == anyDepth {
			w.found[i] = r[:len(r)-1]
		}
	}
	w.found = slices.DeleteFunc(w.found, func(r reading) bool { return len(r) == 0 })
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
	variables map[string][]reading
}

// walk notes what an expression and its parts look at. What is put together of places is noted with its parts.
func (w *readingWalk) walk(e ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		w.found = append(w.found, w.places(e)...)
		w.walk(e.AsSelect().Operand())
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() == operators.Index {
			w.found = append(w.found, w.places(e)...)
		}
		for _, arg := range operands(call) {
			w.walk(arg)
		}
		if call.FunctionName() == operators.In && len(call.Args()) == 2 { // "name" in args.x
			w.found = append(w.found, extend(w.places(call.Args()[1]), segment(call.Args()[0]))...)
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
		c := e.AsComprehension()
		w.walk(c.IterRange())
		w.walk(c.AccuInit())
		w.inside(c, func() {
			for _, part := range []ast.Expr{c.LoopCondition(), c.LoopStep(), c.Result()} {
				w.walk(part)
			}
		})
	case ast.UnspecifiedExprKind, ast.IdentKind, ast.LiteralKind, ast.StructKind:
	}
}

// inside does something where the variables of a comprehension are bound.
func (w *readingWalk) inside(c ast.ComprehensionExpr, do func()) {
	items, start := w.items(c.IterRange()), w.places(c.AccuInit())
	outer := w.variables
	w.variables = maps.Clone(outer)
	w.variables[c.AccuVar()] = start
	w.variables[c.IterVar()] = items
	if c.HasIterVar2() {
		w.variables[c.IterVar2()] = items
	}
	do()
	w.variables = outer
}

// places follows an expression to the places in the arguments that its value may come from.
func (w *readingWalk) places(e ast.Expr) []reading {
	switch e.Kind() {
	case ast.IdentKind:
		return w.variables[e.AsIdent()]
	case ast.SelectKind:
		return w.child(e.AsSelect().Operand(), e.AsSelect().FieldName())
	case ast.MapKind:
		var values []reading
		for _, entry := range e.AsMap().Entries() {
			values = append(values, w.places(entry.AsMapEntry().Value())...)
		}
		return anyPart(values)
	case ast.ListKind, ast.ComprehensionKind:
		return anyPart(w.items(e))
	case ast.CallKind:
		return w.called(e.AsCall())
	case ast.UnspecifiedExprKind, ast.LiteralKind, ast.StructKind:
	}
	return nil
}

// child is what stands under a name. An object of the expression's own has names of its own.
func (w *readingWalk) child(of ast.Expr, name string) []reading {
	switch {
	case of.Kind() == ast.MapKind:
		return w.places(of)
	case name == everyItem:
		return w.items(of)
	}
	return extend(w.places(of), name)
}

// noPart are functions that give nothing of the arguments on but text, numbers and the like.
var noPart = map[string]bool{
	operators.Equals: true, operators.NotEquals: true, operators.LogicalAnd: true, operators.LogicalOr: true,
	operators.LogicalNot: true, operators.Less: true, operators.LessEquals: true, operators.Greater: true,
	operators.GreaterEquals: true, operators.In: true, "size": true, "string": true,
	"shell": true, "sql": true, "kubectl": true, "url": true,
}

func (w *readingWalk) called(call ast.CallExpr) []reading {
	args := operands(call)
	switch name := call.FunctionName(); {
	case noPart[name]:
		return nil
	case name == operators.Index && len(args) == 2:
		return w.child(args[0], segment(args[1]))
	case name == operators.Conditional && len(args) == 3:
		return unite(w.places, args[1:])
	case name == "dyn" && len(args) == 1:
		return w.places(args[0])
	}
	return anyPart(unite(w.places, args))
}

// items is where the items of a list may come from.
func (w *readingWalk) items(e ast.Expr) (found []reading) {
	switch e.Kind() {
	case ast.ListKind:
		return unite(w.places, e.AsList().Elements())
	case ast.ComprehensionKind: // of filter() and map(), for example, in which the list grows step by step
		c := e.AsComprehension()
		w.inside(c, func() { found = unite(w.items, []ast.Expr{c.AccuInit(), c.LoopStep(), c.Result()}) })
		return found
	case ast.CallKind:
		call := e.AsCall()
		switch args := call.Args(); {
		case call.FunctionName() == operators.Add && len(args) == 2:
			return unite(w.items, args)
		case call.FunctionName() == operators.Conditional && len(args) == 3:
			return unite(w.items, args[1:])
		}
	case ast.UnspecifiedExprKind, ast.IdentKind, ast.LiteralKind, ast.MapKind, ast.SelectKind, ast.StructKind:
	}
	return extend(w.places(e), everyItem)
}

// operands are all that a function is given.
func operands(call ast.CallExpr) []ast.Expr {
	if call.IsMemberFunction() {
		return append([]ast.Expr{call.Target()}, call.Args()...)
	}
	return call.Args()
}

// unite gathers the places of several expressions, each once.
func unite(places func(ast.Expr) []reading, of []ast.Expr) []reading {
	var all []reading
	for _, e := range of {
		all = append(all, places(e)...)
	}
	slices.SortFunc(all, slices.Compare)
	return slices.CompactFunc(all, slices.Equal)
}

// extend goes on by a name from each place.
func extend(places []reading, name string) []reading {
	further := make([]reading, 0, len(places))
	for _, r := range places {
		if i := slices.Index(r, anyDepth); i >= 0 {
			r = r[:i+1]
			if name == everyItem {
				further = append(further, r)
				continue
			}
		}
		further = append(further, append(slices.Clone(r), name))
	}
	return further
}

// anyPart is each place and everything in it.
func anyPart(places []reading) []reading {
	parts := make([]reading, 0, len(places))
	for _, r := range places {
		if i := slices.Index(r, anyDepth); i >= 0 {
			parts = append(parts, r[:i+1])
		} else {
			parts = append(parts, append(slices.Clone(r), anyDepth))
		}
	}
	return parts
}

// segment is the name that a key is for sure, or any.
func segment(key ast.Expr) string {
	if key.Kind() == ast.LiteralKind {
		if name, ok := key.AsLiteral().Value().(string); ok && !strings.ContainsAny(name, everyItem+anyDepth) {
			return name
		}
	}
	return everyItem
}
