package judge

import (
	"math"

	"gatewright.dev/gatewright/internal/questions"
)

// FactsVersion names the meaning of the facts. A changed meaning is a new version, for which a model has to be trained
// anew: it is part of the fingerprint.
const FactsVersion = "f5"

// Direction says which way a fact may move the risk that a model sees. Training holds models to it.
type Direction int

// The directions.
const (
	Lowers Direction = -1
	Free   Direction = 0
	Raises Direction = 1
)

// Fact is one number about a call.
type Fact struct {
	// Name is fixed: models refer to facts by it.
	Name string
	// Doc says what the number means; shares run from 0 to 1, -1 means that there is nothing to take a share of.
	Doc       string
	Direction Direction
	of        func(*view) float64
}

// conditionsFact is the fact on which models base their doubt.
const conditionsFact = "conditions"

// Vector holds the facts of one call in the order of Catalog.
type Vector []float64

// Catalog lists all facts in their fixed order.
func Catalog() []Fact { return append([]Fact(nil), catalog...) }

// Facts computes the facts of a call. It is pure and never fails: what cannot be read counts as standing nowhere. What a
// tool result or the assistant says moves no fact in the direction that a model takes for the milder one.
func Facts(s *questions.State) Vector { return newView(s).facts(false) }

// Strict computes the facts for heads to which the agent's own calls are no reason for anything either.
func Strict(s *questions.State) Vector { return newView(s).facts(true) }

// facts looks as a head looks, and computes.
func (v *view) facts(strict bool) Vector {
	v.look(strict)
	return factsOf(v)
}

func factsOf(v *view) Vector {
	out := make(Vector, len(catalog))
	for i := range catalog {
		out[i] = catalog[i].of(v)
	}
	return out
}

// catalog is in groups: what the values are and where they stand, whether the user's words ask for the tool, what
// tool results hold, and what went before.
var catalog = concat(valueFacts, requestFacts, resultFacts, historyFacts)

func concat(groups ...[]Fact) []Fact {
	var all []Fact
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

// number turns a truth into a number.
func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// solid reports a value that says something: no flag and not empty.
func (l *leaf) solid() bool { return l.shape&(shapeFlag|shapeNothing) == 0 }

// count counts values, up to a bound beyond which more says no more.
func (v *view) count(match func(*leaf) bool) float64 {
	n := 0
	for i := range v.leaves {
		if v.leaves[i].solid() && match(&v.leaves[i]) {
			n++
		}
	}
	const most = 4
	return float64(min(n, most))
}

// share is the part of the values that match; 0 if there are none.
func (v *view) share(match func(*leaf) bool) float64 {
	n, all := 0, 0
	for i := range v.leaves {
		if !v.leaves[i].solid() {
			continue
		}
		all++
		if match(&v.leaves[i]) {
			n++
		}
	}
	if all == 0 {
		return 0
	}
	return float64(n) / float64(all)
}

// shareOrAll is share, and 1 if there are no values: then none is in doubt.
func (v *view) shareOrAll(match func(*leaf) bool) float64 {
	if v.share(anything) == 0 {
		return 1
	}
	return v.share(match)
}

// worst is the largest of a number over the values that match, or none.
func (v *view) worst(none float64, match func(*leaf) bool, of func(*leaf) float64) float64 {
	out, found := math.Inf(-1), false
	for i := range v.leaves {
		if l := &v.leaves[i]; l.solid() && match(l) {
			out, found = max(out, of(l)), true
		}
	}
	if !found {
		return none
	}
	return out
}

func fromAny(from ...origin) func(*leaf) bool {
	var set [fromNowhere + 1]bool
	for _, o := range from {
		set[o] = true
	}
	return func(l *leaf) bool { return set[l.origin] }
}

// shaped narrows a match to values of a shape.
func shaped(s shape, match func(*leaf) bool) func(*leaf) bool {
	return func(l *leaf) bool { return l.shape&s != 0 && match(l) }
}

// short narrows a match to values that are no texts.
func short(match func(*leaf) bool) func(*leaf) bool {
	return func(l *leaf) bool { return l.shape&shapeText == 0 && match(l) }
}

var (
	nowhere  = fromAny(fromNowhere)
	fromTrue = fromAny(fromUser, fromFacts, fromSchema)
	unsure   = fromAny(fromPartUser, fromEarlier, fromRelated, fromRead, fromNowhere)
	looked   = fromAny(fromRelated, fromRead)
	related  = fromAny(fromRelated)
	anything = func(*leaf) bool { return true }
)
