package gate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/strictjson"
)

func TestRedact(t *testing.T) {
	tests := map[string]struct {
		arguments map[string]any
		sensitive []string
		shown     []string
	}{
		"nothing is sensitive":                    {map[string]any{"a": "secret"}, nil, []string{"secret"}},
		"a value":                                 {map[string]any{"a": "secret", "b": "plain"}, []string{"/a"}, []string{"plain", "(8 bytes"}},
		"a value in an object":                    {map[string]any{"a": map[string]any{"b": "secret", "c": "plain"}}, []string{"/a/b"}, []string{"plain"}},
		"a value in a list":                       {map[string]any{"a": []any{"plain", "secret"}}, []string{"/a/1"}, []string{"plain"}},
		"a name with a slash":                     {map[string]any{"a/b~": "secret"}, []string{"/a~1b~0"}, nil},
		"an object and a value in it":             {map[string]any{"a": map[string]any{"b": "secret"}}, []string{"/a", "/a/b"}, []string{"(14 bytes"}},
		"a list where an object is expected":      {map[string]any{"a": []any{map[string]any{"b": "secret"}}}, []string{"/a/b"}, nil},
		"a text where an object is expected":      {map[string]any{"a": "secret"}, []string{"/a/b", "/a/c"}, []string{"(8 bytes"}},
		"what is not there":                       {map[string]any{"b": "plain"}, []string{"/a"}, []string{"plain"}},
		"an item that is not there":               {map[string]any{"a": []any{"plain"}}, []string{"/a/7"}, []string{"plain"}},
		"an item that could be named in two ways": {map[string]any{"a": []any{"secret"}}, []string{"/a/00"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, err := strictjson.Canonical(test.arguments)
			if err != nil {
				t.Fatal(err)
			}
			got, err := strictjson.Canonical(redact(test.arguments, test.sensitive))
			if err != nil {
				t.Fatal(err)
			}
			if test.sensitive != nil && strings.Contains(string(got), "secret") {
				t.Errorf("the secret is shown: %s", got)
			}
			for _, want := range test.shown {
				if !strings.Contains(string(got), want) {
					t.Errorf("%s does not hold %q", got, want)
				}
			}
			after, err := strictjson.Canonical(test.arguments)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(before), string(after)); diff != "" {
				t.Errorf("the tree that runs was changed:\n%s", diff)
			}
		})
	}
}
