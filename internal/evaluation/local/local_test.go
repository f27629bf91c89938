package local

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/evaluation"
)

// decider answers matches_request by a word of the user's request.
func decider(t *testing.T) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	released := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, _ := io.ReadAll(r.Body)
		p := 0.5
		switch text := string(body); {
		case strings.Contains(text, "surely"):
			p = 0.95
		case strings.Contains(text, "hardly"):
			p = 0.1
		case strings.Contains(text, "slowly"):
			<-released
		case strings.Contains(text, "badly"):
			_, _ = io.WriteString(w, `{"model":"m","answers":{}}`)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"model": "m", "answers": map[string]any{"matches_request": map[string]any{"type": "noul", "noul": p}},
			"usage": map[string]any{"input_tokens": 100, "output_tokens": 2},
		})
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(released) })
	return server.URL, asked
}

const manifests = `
apiVersion: gatewright.dev/v1alpha1
kind: DeciderModel
metadata: {name: outside}
spec:
  runtime: External
  external: {url: %q, model: m}
  allowedNamespaces: {from: Listed, namespaces: [shop]}
  requireVerified: Optional
---
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: p, namespace: shop}
spec:
  subjects: [agent]
  deciderRef: {name: outside, fingerprint: %q}
  timeoutMilliseconds: 500
  disclose: Minimal
  grants: [{serviceAccount: agent, scopes: [delete]}]
  classes:
  - name: Write
    decider: Ask
    questions: [matches_request]
    thresholds: &ladder
    - when: [{question: matches_request, above: 80}]
      outcome: Allow
    - when: [{question: matches_request, below: 30}]
      outcome: Block
      reason: NotAsked
    otherwise: &end {outcome: Clarify, reason: Unsure}
  - name: Destructive
    approval: Always
    decider: Ask
    questions: [matches_request]
    thresholds: *ladder
    otherwise: *end
  tools:
  - {name: note.read, class: ReadOnly}
  - name: note.write
    class: Write
    argumentsSchema: {type: object, properties: {text: {type: string}, mode: {enum: [append, replace]}}, required: [text], additionalProperties: false}
  - {name: note.delete, class: Destructive, requiredScopes: [delete]}
`

func load(t *testing.T, content string) evaluation.Policies {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := LoadPolicies(folder)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func options(p evaluation.Policies, c evaluation.Configuration, cases []*evaluation.Case) Options {
	return Options{Policies: p, Configuration: c, Namespace: "shop", Caller: "agent", Cases: cases, Version: "test"}
}

func start(t *testing.T, o Options) *Gate {
	t.Helper()
	g, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// pinned are the policies, pinned to the fingerprint that the decider turns out to have.
func pinned(t *testing.T, url string) evaluation.Policies {
	t.Helper()
	unpinned := load(t, fmt.Sprintf(manifests, url, "sha256:none"))
	c := call("probe", "note.write", "surely")
	g := start(t, options(unpinned, evaluation.Stacked, []*evaluation.Case{c}))
	r := g.Review(t.Context(), c)
	if r.Reason != "DeciderMismatch" || r.Fingerprint == "" {
		t.Fatalf("%+v", r)
	}
	return load(t, fmt.Sprintf(manifests, url, r.Fingerprint))
}

func call(id, tool, request string) *evaluation.Case {
	return &evaluation.Case{
		ID: id, Source: "s", Tool: evaluation.Tool{Name: tool}, UserRequest: request, Arguments: map[string]any{"text": "x"}, Class: "write", Label: evaluation.LabelAllow,
	}
}

func change(c *evaluation.Case, change func(*evaluation.Case)) *evaluation.Case { change(c); return c }

func TestEachConfigurationDecidesByItsParts(t *testing.T) {
	url, asked := decider(t)
	policies := pinned(t, url)
	without := func(c *evaluation.Case) { c.Scopes = []string{} }
	with := func(c *evaluation.Case) { c.Scopes = []string{"other", "delete"} }
	bad := func(c *evaluation.Case) { c.Arguments = map[string]any{} }
	tests := map[string]struct {
		one  *evaluation.Case
		want [3]string // rules only, decider only, stacked
	}{
		"a read":                          {call("1", "note.read", "hardly"), [3]string{"Allow", "Allow", "Allow"}},
		"a write that matches":            {call("2", "note.write", "surely"), [3]string{"Allow", "Allow", "Allow"}},
		"a write that does not match":     {call("3", "note.write", "hardly"), [3]string{"Allow", "Block NotAsked", "Block NotAsked"}},
		"a write that may match":          {call("4", "note.write", "maybe"), [3]string{"Allow", "Clarify Unsure", "Clarify Unsure"}},
		"arguments that do not fit":       {change(call("5", "note.write", "surely"), bad), [3]string{"Block ArgumentsInvalid", "Allow", "Block ArgumentsInvalid"}},
		"a deletion by the caller":        {call("6", "note.delete", "surely"), [3]string{"Confirm Irreversible judged Allow", "Allow", "Confirm Irreversible judged Allow"}},
		"a deletion with the scope":       {change(call("7", "note.delete", "surely"), with), [3]string{"Confirm Irreversible judged Allow", "Allow", "Confirm Irreversible judged Allow"}},
		"a deletion without the scope":    {change(call("8", "note.delete", "surely"), without), [3]string{"Block MissingScope", "Allow", "Block MissingScope"}},
		"a deletion that does not match":  {call("9", "note.delete", "hardly"), [3]string{"Confirm Irreversible judged Allow", "Block NotAsked", "Block NotAsked"}},
		"a tool that nobody lists":        {call("10", "note.burn", "surely"), [3]string{"Block UnknownTool", "Block UnknownTool", "Block UnknownTool"}},
		"a decider that does not answer":  {call("11", "note.write", "slowly"), [3]string{"Allow", "Confirm DeciderTimeout", "Confirm DeciderTimeout"}},
		"a decider that answers nonsense": {call("12", "note.write", "badly"), [3]string{"Allow", "Confirm DeciderBadReply", "Confirm DeciderBadReply"}},
		"a write after all that":          {call("13", "note.write", "surely again"), [3]string{"Allow", "Allow", "Allow"}},
	}
	var cases []*evaluation.Case
	want := map[string][3]string{}
	for _, test := range tests {
		cases = append(cases, test.one)
		want[test.one.ID] = test.want
	}
	for i, c := range []evaluation.Configuration{evaluation.RulesOnly, evaluation.DeciderOnly, evaluation.Stacked} {
		t.Run(string(c), func(t *testing.T) {
			asked.Store(0)
			results, err := evaluation.Run(t.Context(), evaluation.RunOptions{
				Cases: cases, Repeats: 3, Gates: []evaluation.NamedGate{{Configuration: c, Gate: start(t, options(policies, c, cases))}},
			})
			if err != nil {
				t.Fatal(err)
			}
			needed := 0
			for _, r := range results {
				got := string(r.Outcome)
				if r.Outcome != "Allow" {
					got += " " + r.Reason
				}
				if r.Judged != r.Outcome {
					got += " judged " + string(r.Judged)
				}
				if got != want[r.Case][i] {
					t.Errorf("case %s, repeat %d: %s, want %s", r.Case, r.Repeat, got, want[r.Case][i])
				}
				if r.Repeats != 0 {
					t.Errorf("case %s, repeat %d rests on an earlier judgement", r.Case, r.Repeat)
				}
				needed += r.Asked
			}
			// Every repeat is asked about anew, and a failure is not tried again.
			if int64(needed) != asked.Load() || needed != []int{0, 33, 27}[i] {
				t.Errorf("%d requests are reported, %d were made", needed, asked.Load())
			}
			checkDecider(t, c, results)
		})
	}
}

// checkDecider looks at what a run in this process knows of deciders beyond the answers of the gate.
func checkDecider(t *testing.T, c evaluation.Configuration, results []evaluation.Result) {
	t.Helper()
	if c != evaluation.Stacked {
		return
	}
	for _, r := range results {
		type known struct {
			Errors        []string
			Input, Output int
			Answered      bool
		}
		want, ok := map[string]known{
			"1": {}, "2": {nil, 100, 2, true}, "5": {}, "11": {[]string{"Timeout"}, 0, 0, false}, "12": {[]string{"BadReply"}, 0, 0, false},
		}[r.Case]
		if got := (known{r.DeciderErrors, r.InputTokens, r.OutputTokens, len(r.Answers) > 0}); ok && !cmp.Equal(want, got) {
			t.Errorf("case %s: %s", r.Case, cmp.Diff(want, got))
		}
		if isAsked := r.Asked > 0; isAsked != (r.DeciderMilliseconds > 0) || r.Case == "11" && r.DeciderMilliseconds < 490 {
			t.Errorf("case %s: asked %d times, in %v ms", r.Case, r.Asked, r.DeciderMilliseconds)
		}
	}
}

func TestStartRefusesWhatWouldNotBeInForce(t *testing.T) {
	broken := load(t, `
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: p, namespace: shop}
spec:
  tools: [{name: t, class: Write, rules: [{name: r, when: "args.x ===", outcome: Block, message: m}]}]
`)
	model, _ := Embedded()
	model.Spec.Artifact.SHA256 = v1alpha1.SHA256(strings.Repeat("0", 64))
	fine := load(t, fmt.Sprintf(manifests, "http://127.0.0.1:9", "sha256:x"))
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"a rule that does not compile": {options(broken, evaluation.Stacked, nil), "ToolPolicy shop/p"},
		"a decider that is not pinned": {options(evaluation.Policies{Models: []*v1alpha1.DeciderModel{model}}, evaluation.Stacked, nil), "decider cannot be used"},
		"a scope that cannot be":       {options(fine, evaluation.Stacked, []*evaluation.Case{{ID: "a", Scopes: []string{"no scope at all \x00"}}}), "grants"},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := Start(t.Context(), test.options)
			if err == nil {
				_ = g.Close()
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

func TestRulesAloneNeedNoDecider(t *testing.T) {
	policies := load(t, fmt.Sprintf(manifests, "http://127.0.0.1:9", "sha256:x"))
	broken, _ := Embedded()
	broken.Spec.Artifact.SHA256 = v1alpha1.SHA256(strings.Repeat("0", 64))
	policies.Models = append(policies.Models, broken)
	c := call("1", "note.write", "hardly")
	if r := start(t, options(policies, evaluation.RulesOnly, []*evaluation.Case{c})).Review(t.Context(), c); r.IsStopped() || r.IsModelNeeded() {
		t.Errorf("%+v", r)
	}
}

func TestLoadPoliciesRefusesWhatWouldBlock(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.yaml"), []byte("apiVersion: gatewright.dev/v1alpha1\nkind: ToolPolicy\nmetadata: {name: p}\nspec: {mode: Sometimes}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadPolicies(folder); err == nil || !strings.Contains(err.Error(), "would block their callers") {
		t.Error(err)
	}
	if _, err := LoadPolicies(filepath.Join(folder, "none")); err == nil {
		t.Error("a folder that is not there")
	}
}

func TestForCases(t *testing.T) {
	folder := t.TempDir()
	ladder := filepath.Join(folder, "a.yaml")
	if err := os.WriteFile(ladder, fmt.Appendf(nil, manifests, "http://127.0.0.1:9", "sha256:x"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []*evaluation.Case{call("1", "t", "x")}
	for name, test := range map[string]struct {
		options CasesPolicy
		want    string
	}{
		"the embedded decider":                  {CasesPolicy{Namespace: "n"}, "embedded pinned, 4 classes"},
		"the ladder of a file":                  {CasesPolicy{Namespace: "n", Ladder: ladder, Manifests: folder}, "outside sha256:x, 2 classes"},
		"the ladder of a file, another decider": {CasesPolicy{Namespace: "n", Ladder: ladder, Decider: "embedded"}, "embedded pinned, 2 classes"},
		"another fingerprint":                   {CasesPolicy{Namespace: "n", Manifests: folder, Decider: "outside", Fingerprint: "sha256:y"}, "outside sha256:y, 4 classes"},
		"a decider without a fingerprint":       {CasesPolicy{Namespace: "n", Manifests: folder, Decider: "outside"}, "--fingerprint"},
		"a decider that is not there":           {CasesPolicy{Namespace: "n", Decider: "nobody", Fingerprint: "f"}, "no DeciderModel nobody"},
		"a ladder that is not there":            {CasesPolicy{Namespace: "n", Ladder: "none.yaml"}, "none.yaml"},
		"manifests that are not there":          {CasesPolicy{Namespace: "n", Manifests: "none"}, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := ForCases(cases, test.options)
			got := fmt.Sprint(err)
			if err == nil {
				spec := p.Tool[0].Spec
				fingerprint := string(spec.DeciderRef.Fingerprint)
				if _, embedded := Embedded(); spec.DeciderRef.Fingerprint == embedded {
					fingerprint = "pinned"
				}
				got = fmt.Sprintf("%s %s, %d classes", spec.DeciderRef.Name, fingerprint, len(spec.Classes))
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestTheDigestIsOfWhatIsSaid(t *testing.T) {
	a, b := load(t, fmt.Sprintf(manifests, "http://127.0.0.1:9", "sha256:x")), load(t, fmt.Sprintf(manifests, "http://127.0.0.1:9", "sha256:x"))
	c := load(t, fmt.Sprintf(manifests, "http://127.0.0.1:9", "sha256:y"))
	digest := func(p evaluation.Policies) string {
		d, err := Digest(p)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if digest(a) != digest(b) || digest(a) == digest(c) {
		t.Errorf("%s, %s and %s", digest(a), digest(b), digest(c))
	}
}
