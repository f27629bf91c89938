package policy

import "gatewright.dev/gatewright/internal/strictjson"

// isMisspelt says whether the arguments have a name on the way that a tool may read as the one that the expression looks
// at. The expression would find nothing there, and the tool something. All that is looked at is charged to the budget, in
// whatever order it comes.
func (r reading) isMisspelt(v any, b *budget) bool {
	for i, name := range r {
		switch name {
		case everyItem:
			return eachChild(v, b, func(child any) bool { return r[i+1:].isMisspelt(child, b) })
		case anyDepth:
			return len(r) > i+1 && r[i+1:].isMisspeltBelow(v, b)
		}
		object, ok := v.(map[string]any)
		if !ok {
			return false
		}
		if b.isSpeltOtherwise(object, name) {
			return true
		}
		v = object[name]
	}
	return false
}

// isMisspeltBelow looks at a value and at everything in it.
func (r reading) isMisspeltBelow(v any, b *budget) bool {
	here := r.isMisspelt(v, b)
	return eachChild(v, b, func(child any) bool { return r.isMisspeltBelow(child, b) }) || here
}

// eachChild says whether something holds for a child, and asks all of them unless the budget ends.
func eachChild(v any, b *budget, holds func(any) bool) bool {
	found := false
	ask := func(child any) {
		b.charge(1)
		if !b.spent {
			found = holds(child) || found
		}
	}
	switch parent := v.(type) {
	case map[string]any:
		for _, child := range parent {
			ask(child)
		}
	case []any:
		for _, child := range parent {
			ask(child)
		}
	}
	return found
}

// protoName is a name that JavaScript takes for the object from which another one inherits: what stands below it may be
// read as if it stood in the object itself.
const protoName = "__proto__"

// foldCost is what it costs to fold a byte of a name, in the units of runLimit.
const foldCost = 4

// isSpeltOtherwise says whether an object has a name that a reader may take for this one. Once the budget is spent that is
// not looked into, and counts as so.
func (b *budget) isSpeltOtherwise(object map[string]any, name string) bool {
	found := false
	b.charge(uint64(len(object)))
	for other := range object {
		if b.spent {
			return true
		}
		found = found || other == protoName && name != protoName
		found = strictjson.SameNameBy(other, name, b.fold) && other != name || found
	}
	return found
}

// fold is strictjson.FoldedName, once for each name of a call: only names beyond ASCII are dear to fold.
func (b *budget) fold(name string) string {
	folded, ok := b.folded[name]
	if !ok {
		b.charge(foldCost * uint64(len(name)))
		folded = strictjson.FoldedName(name)
		if b.folded == nil {
			b.folded = map[string]string{}
		}
		b.folded[name] = folded
	}
	return folded
}
