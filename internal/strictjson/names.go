package strictjson

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// SameName says whether some reader may take two names of one object for the same: Go's own JSON package, for one, fills
// a field from a name in other capitals, and the last one wins.
func SameName(a, b string) bool { return SameNameBy(a, b, FoldedName) }

// SameNameBy is SameName with a FoldedName that may remember what it has folded. It is asked only if a name is beyond ASCII.
func SameNameBy(a, b string, fold func(string) string) bool {
	if isASCII(a) && isASCII(b) {
		return strings.EqualFold(a, b)
	}
	return fold(a) == fold(b)
}

// FoldedName is the same for all spellings of a name that differ in case, or that compatibility normalisation makes
// equal.
func FoldedName(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, norm.NFKC.String(s))
}

// manyNames is how many names of an object are compared pair by pair, which needs no memory.
const manyNames = 12

// AmbiguousName finds an object with two names that some reader may take for one, in a tree that Parse returned. What is
// checked under one of them might then run under the other. It returns the JSON Pointer of the later name in sorted order.
func AmbiguousName(v any) (pointer string, found bool) {
	switch v := v.(type) {
	case map[string]any:
		if name, twice := nameTwice(v); twice {
			return "/" + EscapeToken(name), true
		}
		for name, child := range v {
			if at, found := AmbiguousName(child); found {
				return "/" + EscapeToken(name) + at, true
			}
		}
	case []any:
		for i, child := range v {
			if at, found := AmbiguousName(child); found {
				return "/" + strconv.Itoa(i) + at, true
			}
		}
	}
	return "", false
}

func nameTwice(object map[string]any) (string, bool) {
	if len(object) < 2 {
		return "", false
	}
	if len(object) > manyNames {
		return nameTwiceOfMany(object)
	}
	for a := range object {
		for b := range object {
			if a != b && SameName(a, b) {
				return max(a, b), true
			}
		}
	}
	return "", false
}

func nameTwiceOfMany(object map[string]any) (string, bool) {
	seen := make(map[string]bool, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		folded := FoldedName(name)
		if seen[folded] {
			return name, true
		}
		seen[folded] = true
	}
	return "", false
}
