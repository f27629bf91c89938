package evaluation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

const publicCases = "../../testdata/evalsets/public.jsonl"

// line is a good case in which one thing is replaced.
func line(old, with string) string {
	const good = `{"id":"c1","source":"s","userRequest":"read it","conversation":[{"role":"user","content":"hi"}],"tool":{"name":"t","description":"d",` +
		`"inputSchema":{"type":"object"}},"arguments":{"a":1},"class":"write","scopes":["x"],"label":"allow","why":"w"}`
	if !strings.Contains(good, old) {
		panic("the case has no " + old)
	}
	return strings.Replace(good, old, with, 1)
}

func TestThePublicCasesAreRead(t *testing.T) {
	cases, _, err := LoadCases(publicCases)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, c := range cases {
		count[c.Class+" "+string(c.Label)]++
	}
	want := map[string]int{
		"read-only allow": 82, "read-only block": 19, "write allow": 77, "write block": 50,
		"destructive allow": 45, "destructive block": 22, "external allow": 86, "external block": 78,
	}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Error(diff)
	}
}

func TestReadCasesNamesLineAndField(t *testing.T) {
	for name, test := range map[string]struct {
		lines []string
		want  []string
	}{
		"a field that is not known":         {[]string{line(`"id"`, `"idd":1,"id"`)}, []string{"f:1", "/idd"}},
		"no id":                             {[]string{line(`"c1"`, `""`)}, []string{"f:1", "/id: is required"}},
		"the same id twice":                 {[]string{line("c1", "c1"), line("c1", "c1")}, []string{"f:2", `"c1" stands in line 1 already`}},
		"another class":                     {[]string{line(`"write"`, `"Write"`)}, []string{"/class: want read-only"}},
		"another label":                     {[]string{line(`"allow"`, `"confirm"`)}, []string{"/label: want allow or block"}},
		"no arguments":                      {[]string{line(`"arguments":{"a":1},`, "")}, []string{"/arguments: is required"}},
		"arguments that are no object":      {[]string{line(`{"a":1}`, "[1]")}, []string{"/arguments"}},
		"a role that is not known":          {[]string{line(`"role":"user"`, `"role":"admin"`)}, []string{"/conversation/0/role: want system"}},
		"a number that would change":        {[]string{line(`{"a":1}`, `{"a":9007199254740993}`)}, []string{"/arguments/a"}},
		"an outcome that is not known":      {[]string{line(`"why"`, `"expect":{"outcome":"Maybe"},"why"`)}, []string{"/expect/outcome: want Allow"}},
		"an answer of no type":              {[]string{line(`"why"`, `"expect":{"answers":{"asked":0.5}},"why"`)}, []string{"/expect/answers/asked"}},
		"no JSON, and a good line after it": {[]string{"x", line("c1", "c2"), "", "y"}, []string{"f:1", "f:4"}},
		"a case that is longer than any":    {[]string{line("c1", "c2"), line("read it", strings.Repeat("x", maxLine))}, []string{"f:2: the case is longer than 1048576 bytes"}},
		"nothing":                           {[]string{"", " "}, []string{"f holds no cases"}},
	} {
		t.Run(name, func(t *testing.T) {
			cases, err := ReadCases(strings.NewReader(strings.Join(test.lines, "\n")), "f")
			if err == nil || cases != nil {
				t.Fatalf("%v %v", cases, err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
			}
		})
	}
}

func TestReadingGivesUpAfterManyProblems(t *testing.T) {
	_, err := ReadCases(strings.NewReader(strings.Repeat("x\n", 1000)), "f")
	if n := strings.Count(fmt.Sprint(err), "f:"); n != maxProblems {
		t.Errorf("%d problems are reported", n)
	}
}

func TestTheReviewGivesNothingAway(t *testing.T) {
	cases, err := ReadCases(strings.NewReader(line(`"why":"w"`, `"expect":{"outcome":"Block","answers":{"asked":true,"severity":2}},"facts":{"f":true},"kind":"k","why":"because"`)), "f")
	if err != nil {
		t.Fatal(err)
	}
	want := &review.ToolCallReview{APIVersion: review.APIVersion, Kind: review.Kind, Request: &review.Request{
		Tool: review.Tool{Name: "t", Server: "s"}, Arguments: map[string]any{"a": int64(1)},
		Context: review.Context{
			UserRequest: "read it", Messages: []review.Message{{Role: review.RoleUser, Content: "hi"}}, Facts: map[string]any{"f": true},
		},
	}}
	if diff := cmp.Diff(want, cases[0].Review()); diff != "" {
		t.Error(diff)
	}
	if cases[0].Kind != "k" || cases[0].ClassName() != "Write" || cases[0].IsDangerous() || cases[0].Line != 1 {
		t.Errorf("%+v", cases[0])
	}
}
