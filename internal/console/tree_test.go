package console

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/approval"
)

// outline writes a tree as lines.
func outline(n *node, indent string) string {
	line := indent + marked(n.Name) + " " + n.Kind
	if n.Kind != "object" && n.Kind != "array" {
		line += " " + marked(n.Value)
	}
	if n.Source != "" {
		line += " from " + n.Source
	}
	if n.Sensitive {
		line += " sensitive"
	}
	if n.Backwards {
		line += " backwards"
	}
	if n.Head != nil {
		line = fmt.Sprintf("%s%s folded %d", indent, marked(n.Name), n.Length)
	}
	for i := range n.Children {
		line += "\n" + outline(&n.Children[i], indent+"  ")
	}
	return line
}

func TestArgumentsAreShownAsTheyAre(t *testing.T) {
	for name, test := range map[string]struct {
		in            string
		sources       map[string]string
		sensitive     []string
		want          string
		wantElsewhere []placed
	}{
		"each kind of value": {
			in:   `{"a":1e21,"b":[true,null,"x"],"c":{},"d":9007199254740993}`,
			want: " object\n  a number 1e21\n  b array\n    0 literal true\n    1 literal null\n    2 string x\n  c object\n  d number 9007199254740993",
		},
		"sources stand at their values, escapes of pointers included": {
			in: `{"a/b":{"c~d":"x"},"e":["y"]}`, sources: map[string]string{"/a~1b/c~0d": "User", "/e/0": "Nowhere", "/gone": "Tool"},
			want:          " object\n  a/b object\n    c~d string x from User\n  e array\n    0 string y from Nowhere",
			wantElsewhere: []placed{{"/gone", "Tool"}},
		},
		"what is sensitive says so, wherever it is": {
			in: `{"password":"(8 bytes, sha256:00)"}`, sensitive: []string{"/password", "/other"},
			want:          " object\n  password string (8 bytes, sha256:00) sensitive",
			wantElsewhere: []placed{{"/other", "sensitive"}},
		},
		"a name can deceive too": {
			in: `{"p\u0430th":"a"}`, want: " object\n  p[alike а‹U+0430›]th string a",
		},
		"letters that run backwards are noted": {
			in: `{"a":"שלום","b":"Grüße"}`, want: " object\n  a string שלום backwards\n  b string Grüße",
		},
		"a long value is folded and whole": {
			in:   `{"a":"` + strings.Repeat("x", foldOver+1) + `","b":"` + strings.Repeat("ä", foldOver) + `"}`,
			want: fmt.Sprintf(" object\n  a folded %d\n  b string %s", foldOver+1, strings.Repeat("ä", foldOver)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readArguments(json.RawMessage(test.in), test.sources, test.sensitive)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, outline(&got.Root, "")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(test.wantElsewhere, got.Elsewhere); diff != "" {
				t.Errorf("elsewhere (-want +got)\n%s", diff)
			}
		})
	}
}

func TestArgumentsThatCannotBeLaidOutAreNotHalfShown(t *testing.T) {
	for name, in := range map[string]string{
		"nothing":         ``,
		"no JSON":         `{"a":`,
		"two values":      `{} {}`,
		"a wrong bracket": `{"a":[1}`,
		"far too deep":    strings.Repeat(`[`, maxDepth+2) + strings.Repeat(`]`, maxDepth+2),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := readArguments(json.RawMessage(in), nil, nil); err == nil {
				t.Errorf("got %s", outline(&got.Root, ""))
			}
		})
	}
}

func TestACallThatCannotBeLaidOutCanOnlyBeRejected(t *testing.T) {
	d := newTestDesk(t, nil)
	b := d.signIn(t)
	a := d.raise(t, `{}`, nil)
	a.Call.Arguments = json.RawMessage(`{"a":`) // what no store takes
	d.Approvals = fixed{a}
	page := b.do(t, "GET", Path+"calls/"+a.Name, nil).Body.String()
	if strings.Contains(page, `value="approve"`) || !strings.Contains(page, `value="reject"`) || !strings.Contains(page, "could not be laid out") {
		t.Errorf("got %s", page)
	}
}

// fixed is a store of one approval.
type fixed struct{ approval.Approval }

func (f fixed) List(context.Context) ([]approval.Approval, error) {
	return []approval.Approval{f.Approval}, nil
}

func (f fixed) Get(context.Context, string) (approval.Approval, error) { return f.Approval, nil }

func (fixed) Decide(context.Context, string, approval.Decision) error { return approval.ErrUnavailable }
