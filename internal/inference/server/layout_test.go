package server

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/strictjson"
)

func TestRender(t *testing.T) {
	tests := map[string]struct{ value, want string }{
		"text":                          {`"plain\ntext"`, "plain\ntext"},
		"text with control tokens":      {`"<|im_end|> [INST] </state>"`, "< |im_end|> [ INST] < /state>"},
		"text that ends in a bracket":   {`"a<"`, "a< "},
		"an object without white space": {"{ \"b\" : 1 ,\n\"a\":[ ] }", `{"b":1,"a":[]}`},
		"members in the order sent":     {`{"z":{"y":1,"x":2},"a":0}`, `{"z":{"y":1,"x":2},"a":0}`},
		"numbers in one form":           {`[1.0,1e2,0.10,-0,-0.0,1e21,1E-7,9007199254740991]`, `[1,100,0.1,0,0,1e+21,1e-7,9007199254740991]`},
		"the fewest escapes":            {`["\u0041\/\u00e9\u2028\u0000\"\\\t"]`, "[\"A/é\u2028\\u0000\\\"\\\\\\t\"]"},
		"names too are neutralised":     {`{"</state>":"<eos>"}`, `{"< /state>":"< eos>"}`},
		"an escaped control token":      {`["\u003c|im_end|>"]`, `["< |im_end|>"]`},
		"literals":                      {`[true,false,null]`, `[true,false,null]`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := render(jsontext.Value(tt.value))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// seeds are bodies for the fuzz targets: good ones of each type, and one for each way in which reading went wrong.
var seeds = []string{
	asks(`"s"`), asks(`{"b":1,"a":["<|im_end|>",1.5,-0,true,null]}`), asks(`["a"]`), asks(`{"a":{}}`), asks(`"\ud83d\ude00"`),
	`{"model":"judge-1","state":"s","questions":{"c":{"type":"choice","instructions":{"z":1,"a":2},"criteria":{"z":"x","a":null}},"s":{"type":"score","instructions":"i","criteria":["a","b"]}}}`,
	`{"questions":{"q":{"criteria":{"false":"f","true":null},"instructions":["x"],"type":"noul"}},"state":"s"}`,
	`{"st\u0061te":"s","questions":{"q":{"type":"noul","instructions":"i"}}}`, asks(`{"<a":1,"< a":2}`), asks(`{"a":1,"a":2}`), `{}`, `[]`, `null`, ``, `{"state":`,
	asks(strings.Repeat("[", 79) + strings.Repeat("]", 79)),
}

var openBracket = regexp.MustCompile(`<[^\s\p{Z}\x{85}\\]`)

// FuzzParseRequest holds what must be true of every body, accepted or not.
func FuzzParseRequest(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, refused := parseRequest(body, 1<<16)
		again, refusedAgain := parseRequest(body, 1<<16)
		if diff := cmp.Diff(got, again, cmp.AllowUnexported(request{})); diff != "" || (refused == nil) != (refusedAgain == nil) {
			t.Fatalf("read differently a second time:\n%s", diff)
		}
		if refused != nil {
			if refused.status < 400 || refused.status >= 500 || refused.code == "" || refused.message == "" {
				t.Fatalf("refused with %+v", refused)
			}
			return
		}
		if len(got.state) == 0 || len(got.asked) == 0 || len(got.asked) > questions.MaxQuestions {
			t.Fatalf("accepted %+v", got)
		}
		// White space after a bracket may be written as an escape of JSON.
		if found := openBracket.FindString(string(got.state)); found != "" {
			t.Fatalf("the state is not neutral: %q in %q", found, got.state)
		}
		for _, q := range got.asked {
			if err := q.Validate(); err != nil {
				t.Fatal(err)
			}
			if n := len(q.PromptLabels()); n < 2 || n > 26 {
				t.Fatalf("%d labels", n)
			}
		}
	})
}

// FuzzRender renders what the strict reader takes: rendering again changes nothing, and nothing is left out.
func FuzzRender(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		before, err := strictjson.Parse(value, strictjson.Limits{MaxDepth: maxDepth})
		if err != nil {
			return
		}
		text, err := render(value)
		if err != nil {
			if _, isText := before.(string); isText {
				t.Fatalf("text was refused: %v", err)
			}
			return
		}
		if s, isText := before.(string); isText {
			if string(text) != questions.Neutralise(s) {
				t.Fatalf("%q became %q", s, text)
			}
			return
		}
		again, err := render(text)
		if err != nil || !bytes.Equal(again, text) {
			t.Fatalf("%q became %q (%v)", text, again, err)
		}
		after, err := strictjson.Parse(text, strictjson.Limits{MaxDepth: maxDepth, MaxBytes: 8 << 20})
		if err != nil {
			return // names that were apart may be equal after normalisation once brackets stand alone
		}
		// In one canonical form: go-cmp takes time that doubles with each level of nesting.
		want, wantErr := strictjson.Canonical(neutral(before))
		got, gotErr := strictjson.Canonical(after)
		if wantErr != nil || gotErr != nil || !bytes.Equal(want, got) {
			t.Fatalf("the value changed (%v, %v):\n%s\n%s", wantErr, gotErr, want, got)
		}
	})
}

// neutral neutralises every string and name of a tree.
func neutral(v any) any {
	switch v := v.(type) {
	case string:
		return questions.Neutralise(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = neutral(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, item := range v {
			out[questions.Neutralise(name)] = neutral(item)
		}
		return out
	default:
		return v
	}
}

// TestWhatTheGateRendersStaysAsItIs sends a state of every kind through the renderer of the server.
func TestWhatTheGateRendersStaysAsItIs(t *testing.T) {
	req := call(allTypes()...)
	for _, q := range req.Questions {
		state, err := questions.Render(req.State, q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := render(state)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(state), string(got)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
