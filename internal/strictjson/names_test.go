package strictjson

import (
	"fmt"
	"maps"
	"testing"
)

func TestAmbiguousNames(t *testing.T) {
	many := map[string]any{}
	for i := range 2 * manyNames {
		many[fmt.Sprintf("name-%d", i)] = nil
	}
	manyTwice := maps.Clone(many)
	manyTwice["NAME-7"] = nil
	for name, c := range map[string]struct {
		tree    any
		pointer string
		found   bool
	}{
		"a value that is no object":              {tree: "path"},
		"names that differ":                      {tree: map[string]any{"path": 1, "paths": 2, "pat": 3}},
		"names that differ only in case":         {map[string]any{"path": 1, "Path": 2}, "/path", true},
		"a Kelvin sign, which folds to k":        {map[string]any{"\u212aey": 1, "key": 2}, "/\u212aey", true},
		"a long s, which folds to s":             {map[string]any{"\u017fource": 1, "source": 2}, "/\u017fource", true},
		"full width in other capitals":           {map[string]any{"ＰＡＴＨ": 1, "path": 2}, "/ＰＡＴＨ", true},
		"deep in a list":                         {map[string]any{"a/b": []any{1, map[string]any{"x": 1, "X": 2}}}, "/a~1b/1/x", true},
		"many names that differ":                 {tree: many},
		"many names of which two differ in case": {manyTwice, "/name-7", true},
	} {
		t.Run(name, func(t *testing.T) {
			pointer, found := AmbiguousName(c.tree)
			if pointer != c.pointer || found != c.found {
				t.Errorf("got %q %v, want %q %v", pointer, found, c.pointer, c.found)
			}
		})
	}
}
