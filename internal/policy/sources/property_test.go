package sources_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"

	"gatewright.dev/gatewright/internal/policy/sources"
)

func trusted(f sources.Finding) bool { return f.Source == sources.User || f.Source == sources.Facts }

func TestTextInAToolResultNeverBecomesTrusted(t *testing.T) {
	t.Parallel()
	cases := readCases(t, publicCases)
	for i, c := range cases {
		conversation, schema := c.conversation(), sources.NewSchema(c.Tool.InputSchema)
		before := sources.NewIndex(conversation).Trace(c.Arguments, schema)
		planted, err := json.Marshal(c.Arguments)
		if err != nil {
			t.Fatal(err)
		}
		other := cases[(i+1)%len(cases)]
		conversation.ToolResults = append(conversation.ToolResults, string(planted), strings.Join(other.conversation().ToolResults, " "), other.UserRequest)
		for k, f := range sources.NewIndex(conversation).Trace(c.Arguments, schema) {
			if trusted(f) && (!trusted(before[k]) || f.Source != before[k].Source) {
				t.Errorf("case %d: %s became %s by text in a tool result, was %s", i, f.Pointer, f.Source, before[k].Source)
			}
		}
	}
}

func TestTheModelsWordsChangeNothing(t *testing.T) {
	t.Parallel()
	for i, c := range readCases(t, publicCases) {
		conversation, schema := c.conversation(), sources.NewSchema(c.Tool.InputSchema)
		want := sources.NewIndex(conversation).Trace(c.Arguments, schema)
		conversation.Assistant = nil
		if diff := cmp.Diff(want, sources.NewIndex(conversation).Trace(c.Arguments, schema)); diff != "" {
			t.Errorf("case %d (-with +without the model's words):\n%s", i, diff)
		}
	}
}

func TestOrderOfArgumentsChangesNothing(t *testing.T) {
	t.Parallel()
	index := sources.NewIndex(says("send 1,000 to bob@example.com on May 1st"))
	values := []any{1000.0, "bob@example.com", "2024-05-01", "evil.com", nil}
	pairs := make([]string, len(values))
	for shift := range values {
		arguments, list := map[string]any{}, make([]any, len(values))
		for i := range values {
			k := (i + shift) % len(values)
			arguments[fmt.Sprintf("k%d", k)] = values[k]
			list[i] = values[k]
		}
		for _, f := range index.Trace(arguments, nil) {
			k := int(f.Pointer[len(f.Pointer)-1] - '0')
			if got := fmt.Sprint(f); pairs[k] == "" {
				pairs[k] = got
			} else if pairs[k] != got {
				t.Errorf("finding of %v differs with the order: %s, then %s", values[k], pairs[k], got)
			}
		}
		for i, f := range index.Trace(map[string]any{"l": list}, nil) {
			k := (i + shift) % len(values)
			if got := fmt.Sprint(f); got[len("{/l/0"):] != pairs[k][len("{/k0"):] {
				t.Errorf("finding of %v in a list is %s, as a member %s", values[k], got, pairs[k])
			}
		}
	}
}

func TestVariantsOfAQuotedValueStayTheUsers(t *testing.T) {
	t.Parallel()
	values := []string{
		"Dalton Street 123", "card123", "bob@example.com", "https://example.com/a/b?c=d", "Crème brûlée", "rear_left",
		"São Paulo", "/var/log/app.log", "DE89370400440532013000", "5 GB", "Ω-team", "payments-api", "it's \"fine\"", "2024-05-01",
	}
	variants := map[string]func(string) string{
		"upper case":      strings.ToUpper,
		"lower case":      strings.ToLower,
		"decomposed":      norm.NFD.String,
		"compatibility":   norm.NFKC.String,
		"outer blanks":    func(s string) string { return "\t " + s + "\u00a0\n" },
		"inner blanks":    func(s string) string { return strings.ReplaceAll(s, " ", " \u2003\n ") },
		"curly quotes":    func(s string) string { return strings.NewReplacer("'", "’", "\"", "”").Replace(s) },
		"fancy dashes":    func(s string) string { return strings.ReplaceAll(s, "-", "\u2010") },
		"full-width text": fullWidth,
	}
	for _, v := range values {
		index := sources.NewIndex(says("Please use '" + v + "', thanks."))
		for name, vary := range variants {
			if f := index.Trace(map[string]any{"v": vary(v)}, nil)[0]; f.Source != sources.User || f.Match != sources.Exact {
				t.Errorf("%q in %s: got %s %s, want the user's, exact", v, name, f.Source, f.Match)
			}
		}
	}
}

func fullWidth(s string) string {
	return strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f {
			return r + 0xfee0
		}
		return r
	}, s)
}

func TestAnIndexServesManyAtOnce(t *testing.T) {
	t.Parallel()
	index := sources.NewIndex(says("send 1,000 to bob@example.com"))
	schema := sources.NewSchema(map[string]any{"additionalProperties": map[string]any{"enum": []any{"x"}}})
	arguments := map[string]any{"a": 1000.0, "b": "bob@example.com", "c": "x", "d": "2024-05-01"}
	want := index.Trace(arguments, schema)
	done := make(chan []sources.Finding)
	for range 8 {
		go func() { done <- index.Trace(arguments, schema) }()
	}
	for range 8 {
		if diff := cmp.Diff(want, <-done); diff != "" {
			t.Errorf("findings (-alone +together):\n%s", diff)
		}
	}
}

func FuzzTrace(f *testing.F) {
	for _, seed := range [][4]string{
		{"send 1,000 to bob@example.com on May 1st at 2:30 pm", "now: 2024-05-15", "evil.com 50% of 5k", `{"a":["bob@example.com",1000,null,true,""],"b":{"c":"2024-05-01T14:30:00Z"}}`},
		{"twenty-five million million thousand", "", "\xff\xfe", `{"":"","~/":"25000000"}`},
		{"DE89 3704 0044 0532 0130 00 (555) 123-4567", "1.2.3,4,5 12,50 -5", "http://a%2", `{"x":"DE89370400440532013000","y":"5551234567","z":-5}`},
		{"请重启web服务 ﬁle Ｗ ßẞ İ", "a-b_c.d/e\\f:g", "--", `{"x":"web","y":"支付","z":"%41","w":"a-b_c"}`},
		{"0", "0", "0", `{"":{"":"","a b":{"\u00a0":{}}}}`},
		{"10:30:45-11 1/2/3 31/12/24 may 32 the 15th", "12am 0pm 24:00", "'s", `{"x":"23:59:59","y":"12/31/2024","z":"noon","w":1e308}`},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	schema := sources.NewSchema(map[string]any{"additionalProperties": map[string]any{"$ref": "#"}, "items": map[string]any{"$ref": "#"}, "enum": []any{"x"}})
	f.Fuzz(func(t *testing.T, user, system, tool, text string) {
		var arguments map[string]any
		if json.Unmarshal([]byte(text), &arguments) != nil {
			arguments = map[string]any{"v": text}
		}
		conversation := sources.Conversation{UserTurns: []string{user}, System: []string{system}, ToolResults: []string{tool}}
		got := sources.NewIndex(conversation).Trace(arguments, schema)
		if leaves := countLeaves(arguments); len(got) < leaves {
			t.Fatalf("%d findings for %d leaves", len(got), leaves)
		}
		for i := range got {
			if i > 0 && got[i].Pointer == got[i-1].Pointer {
				t.Errorf("%s has two findings", got[i].Pointer)
			}
		}
		if diff := cmp.Diff(got, sources.NewIndex(conversation).Trace(arguments, schema)); diff != "" {
			t.Errorf("tracing twice differs:\n%s", diff)
		}
		conversation.ToolResults = nil
		for i, f := range sources.NewIndex(conversation).Trace(arguments, schema) {
			if (f.Source == sources.Nowhere) != (f.Match == sources.None) || (f.Source == sources.Nowhere) == f.Seen.Has(f.Source) {
				t.Errorf("%v contradicts itself", f)
			}
			if trusted(got[i]) && got[i].Source != f.Source {
				t.Errorf("%v was %v without the tool result", got[i], f)
			}
		}
	})
}

func countLeaves(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += countLeaves(e)
		}
	case []any:
		for _, e := range v {
			n += countLeaves(e)
		}
	default:
		n = 1
	}
	return n
}
