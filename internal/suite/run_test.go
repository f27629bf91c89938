package suite

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/policy"
)

const testPolicy = `apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: p, namespace: ns}
spec:
  deciderRef: {name: d, fingerprint: f1}
  questions:
  - {name: mood, type: Choice, instructions: "How is the user?", choice: {options: [{name: calm}, {name: angry}]}}
  classes:
  - name: Write
    decider: Ask
    questions: [asked, severity, mood]
    thresholds:
    - when: [{question: asked, below: 50}]
      outcome: Block
      reason: NotAsked
    - when: [{question: severity, atLeast: 200}]
      outcome: Confirm
    - when: [{question: mood, option: angry, above: 90}]
      outcome: Clarify
    otherwise: {outcome: Allow}
  tools:
  - name: look
    class: ReadOnly
  - name: change
    class: Write
    rules:
    - {name: not-the-root, when: args.id == 0, outcome: Block, message: choose another}
    - {name: no-fraction, when: type(args.id) == double, outcome: Confirm, message: whole numbers}
  - name: drop
    class: Destructive
    argumentsSchema: {type: object, required: [id]}
`

const testHead = `apiVersion: suite.gatewright.dev/v1alpha1
kind: PolicySuite
metadata: {name: s}
policies: [p.yaml]
defaults:
  caller: {namespace: ns, serviceAccount: a}
  arguments: {id: 1}
  decider: {answers: {asked: 0.9, severity: 0, mood: {calm: 1}}}
cases:
`

// runText runs a suite over testPolicy.
func runText(t *testing.T, suite string, o Options) SuiteReport {
	t.Helper()
	folder := t.TempDir()
	put(t, filepath.Join(folder, "p.yaml"), testPolicy)
	put(t, filepath.Join(folder, "s.yaml"), suite)
	o.Paths = []string{filepath.Join(folder, "s.yaml")}
	report, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	report.Suites[0].Error = strings.ReplaceAll(report.Suites[0].Error, folder+string(filepath.Separator), "")
	report.Suites[0].File = filepath.Base(report.Suites[0].File)
	return report.Suites[0]
}

func TestDifferencesAreReported(t *testing.T) {
	tests := map[string]struct {
		one  string
		want []Difference
	}{
		"all is as wanted": {
			one: `{tool: change, want: {outcome: Allow, by: decider, asked: [severity, mood, asked], class: Write, wouldBe: []}}`},
		"what is not written is not compared": {one: `{tool: look, want: {outcome: Allow}}`},
		"another outcome": {
			one:  `{tool: look, want: {outcome: Block}}`,
			want: []Difference{{"outcome", "Block", "Allow"}}},
		"several fields at once": {
			one:  `{tool: look, want: {outcome: Confirm, reason: Irreversible, by: "policy:irreversible", class: Write}}`,
			want: []Difference{{"outcome", "Confirm", "Allow"}, {"reason", "Irreversible", "RulesPassed"}, {"by", "policy:irreversible", "rules"}, {"class", "Write", "ReadOnly"}}},
		"a question that was asked and should not be": {
			one:  `{tool: change, want: {outcome: Allow, asked: none}}`,
			want: []Difference{{"asked", "none", "asked, mood, severity"}}},
		"a question that was not asked": {
			one:  `{tool: look, want: {outcome: Allow, asked: [asked]}}`,
			want: []Difference{{"asked", "asked", "none"}}},
		"another pointer is missing": {
			one:  `{tool: drop, arguments: {}, want: {outcome: Block, missing: [/name]}}`,
			want: []Difference{{"missing", "/name", "/id"}}},
		"a verdict of a policy in mode Audit that is not there": {
			one:  `{tool: look, want: {outcome: Allow, wouldBe: [{policy: ToolPolicy/ns/q, outcome: Block}]}}`,
			want: []Difference{{"wouldBe", "ToolPolicy/ns/q Block", "none"}}},
		"a number is whole, as JSON has it":     {one: `{tool: change, arguments: {id: 0}, want: {outcome: Block, by: "rule:not-the-root", asked: none}}`},
		"a number with a point is none":         {one: `{tool: change, arguments: {id: 0.5}, want: {outcome: Confirm, by: "rule:no-fraction"}}`},
		"answers of a case replace one by one":  {one: `{tool: change, decider: {answers: {asked: 0.49}}, want: {outcome: Block, reason: NotAsked}}`},
		"a score is the expected level":         {one: `{tool: change, decider: {answers: {severity: 2}}, want: {outcome: Confirm, reason: Threshold}}`},
		"a score just below a level":            {one: `{tool: change, decider: {answers: {severity: 1.99}}, want: {outcome: Allow}}`},
		"a score in levels":                     {one: `{tool: change, decider: {answers: {severity: {levels: {"3": 0.8, "0": 0.2}}}}, want: {outcome: Confirm}}`},
		"a choice with probabilities":           {one: `{tool: change, decider: {answers: {mood: {angry: 0.91, calm: 0.09}}}, want: {outcome: Clarify}}`},
		"a decider that is not there":           {one: `{tool: change, decider: {unavailable: DeciderTimeout}, want: {outcome: Confirm, reason: DeciderTimeout}}`},
		"a decider of another fingerprint":      {one: `{tool: change, decider: {fingerprint: f2}, want: {outcome: Confirm, reason: DeciderMismatch}}`},
		"a person approved what was asked for":  {one: `{tool: drop, approved: true, want: {outcome: Allow, reason: Approved, asked: none}}`},
		"without the person it is not approved": {one: `{tool: drop, want: {outcome: Confirm, reason: Irreversible}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := runText(t, testHead+"- "+strings.Replace(test.one, "{", "{name: one, ", 1)+"\n", Options{})
			want := []CaseReport{{Name: "one", Line: 10, Differences: test.want}}
			if diff := cmp.Diff(want, got.Cases); diff != "" || got.Error != "" {
				t.Error(got.Error, diff)
			}
			if got.Passed() != (test.want == nil) {
				t.Errorf("Passed() = %v", got.Passed())
			}
		})
	}
}

func TestCasesWithoutAVerdict(t *testing.T) {
	tests := map[string]struct{ one, want string }{
		"an approval of what nobody is asked": {
			`{tool: look, approved: true, want: {outcome: Allow}}`, "approved: without an approval the call is Allow (RulesPassed), so that nobody is asked: remove approved"},
		"a probability above 1": {
			`{tool: change, decider: {answers: {asked: 1.5}}, want: {outcome: Allow}}`, "line 10: question asked: not a probability"},
		"an answer of another form": {
			`{tool: change, decider: {answers: {asked: {calm: 1}}}, want: {outcome: Allow}}`, "line 10: asked is a YesNo and is answered in another form"},
		"a level beyond the last": {
			`{tool: change, decider: {answers: {severity: 3.5}}, want: {outcome: Allow}}`, "line 10: severity has levels 0 to 3"},
		"an option that is not offered": {
			`{tool: change, decider: {answers: {mood: {happy: 1}}}, want: {outcome: Allow}}`, "line 10: mood has only these: calm, angry"},
		"probabilities that do not sum to 1": {
			`{tool: change, decider: {answers: {mood: {calm: 0.5}}}, want: {outcome: Allow}}`, "line 10: question mood: probabilities do not sum to 1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := runText(t, testHead+"- "+strings.Replace(test.one, "{", "{name: one, ", 1)+"\n", Options{})
			if got.Error != "" || len(got.Cases) != 1 || got.Cases[0].Error != test.want {
				t.Errorf("got %q %+v, want error %q", got.Error, got.Cases, test.want)
			}
			if got.Passed() {
				t.Error("passed without a verdict")
			}
		})
	}
}

func TestAnUnansweredQuestionIsNamed(t *testing.T) {
	head := strings.Replace(testHead, "  decider: {answers: {asked: 0.9, severity: 0, mood: {calm: 1}}}\n", "", 1)
	got := runText(t, head+"- {name: one, tool: change, want: {outcome: Allow}}\n", Options{})
	want := "decider.answers: ToolPolicy/ns/p asks what has no answer here: asked, severity, mood"
	if len(got.Cases) != 1 || got.Cases[0].Error != want || got.Passed() {
		t.Errorf("got %+v, want %q", got, want)
	}
}

func TestSuitesThatAreRefused(t *testing.T) {
	good := "- {name: one, tool: look, want: {outcome: Allow}}\n"
	tests := map[string]struct{ suite, want string }{
		"an unknown key at the top":            {testHead + good + "policy: x\n", "s.yaml:11: field policy not found in type suite.File"},
		"an unknown key of a case":             {testHead + "- {name: one, tool: look, wants: {outcome: Allow}}\n", "s.yaml:10: field wants not found in type suite.Case"},
		"an unknown key of want":               {testHead + "- name: one\n  tool: look\n  want: {outcome: Allow, raeson: X}\n", "s.yaml:12: field raeson not found in type suite.Want"},
		"an unknown key of the decider":        {testHead + "- {name: one, tool: look, decider: {answer: {}}, want: {outcome: Allow}}\n", "s.yaml:10: field answer not found in type suite.Script"},
		"a key that is there twice":            {testHead + "- {name: one, tool: look, tool: drop, want: {outcome: Allow}}\n", `s.yaml:10: mapping key "tool" already defined at line 10`},
		"text that is no YAML":                 {testHead + "- {name: one\n", "s.yaml:"},
		"two documents":                        {testHead + good + "---\n" + testHead + good, "s.yaml: more than one document"},
		"another kind":                         {strings.Replace(testHead, "kind: PolicySuite", "kind: Suite", 1) + good, `s.yaml: apiVersion and kind are "suite.gatewright.dev/v1alpha1" and "Suite"`},
		"no name":                              {strings.Replace(testHead, "{name: s}", "{}", 1) + good, "s.yaml: metadata.name is required"},
		"no policies":                          {strings.Replace(testHead, "[p.yaml]", "[]", 1) + good, "s.yaml: policies is required"},
		"a policy that is not there":           {strings.Replace(testHead, "[p.yaml]", "[gone.yaml]", 1) + good, "s.yaml: policies: stat gone.yaml: no such file or directory"},
		"a file without a policy":              {strings.Replace(testHead, "[p.yaml]", "[s.yaml]", 1) + good, "s.yaml: holds no ToolPolicy and no ClusterToolPolicy"},
		"no cases":                             {strings.Replace(testHead, "cases:\n", "cases: []\n", 1), "s.yaml: cases is required"},
		"a case without a name":                {testHead + "- {tool: look, want: {outcome: Allow}}\n", `s.yaml:10: case "": name is required`},
		"two cases of one name":                {testHead + good + good, `s.yaml:11: there are two cases "one"`},
		"a case without a tool":                {testHead + "- {name: one, want: {outcome: Allow}}\n", `s.yaml:10: case "one": tool is required`},
		"a case without a caller":              {strings.Replace(testHead, "  caller: {namespace: ns, serviceAccount: a}\n", "", 1) + good, `s.yaml:9: case "one": caller.namespace and caller.serviceAccount are required`},
		"a case that wants nothing":            {testHead + "- {name: one, tool: look}\n", `s.yaml:10: case "one": want.outcome is ""`},
		"an outcome that does not exist":       {testHead + "- {name: one, tool: look, want: {outcome: Deny}}\n", `want.outcome is "Deny": write one of Allow, Confirm, Clarify, Block`},
		"arguments that are no object":         {testHead + "- {name: one, tool: look, arguments: [1], want: {outcome: Allow}}\n", "arguments and facts are objects"},
		"a role that does not exist":           {testHead + "- {name: one, tool: look, messages: [{role: admin, content: x}], want: {outcome: Allow}}\n", `role is "admin"`},
		"a clock that is no time":              {testHead + good + "now: tomorrow\n", `s.yaml: now is "tomorrow"`},
		"a clock of a case that is no time":    {testHead + "- {name: one, tool: look, now: noon, want: {outcome: Allow}}\n", `now is "noon"`},
		"asked in another form":                {testHead + "- {name: one, tool: look, want: {outcome: Allow, asked: all}}\n", "s.yaml:10: asked is a list of questions, or none"},
		"an answer in another form":            {testHead + "- {name: one, tool: look, decider: {answers: {asked: yes}}, want: {outcome: Allow}}\n", "s.yaml:10: an answer is a number"},
		"an answer to an unknown question":     {testHead + "- {name: one, tool: look, decider: {answers: {askd: 0.5}}, want: {outcome: Allow}}\n", `s.yaml:10: decider.answers: no policy of this suite knows the question "askd"`},
		"a number that JSON does not know":     {testHead + "- {name: one, tool: look, arguments: {id: 0x10}, want: {outcome: Allow}}\n", "s.yaml:10: the number 0x10 is not written as JSON writes it"},
		"a number that a double cannot hold":   {testHead + "- {name: one, tool: look, arguments: {id: 9007199254740993}, want: {outcome: Allow}}\n", "s.yaml:10: \"/id\" at byte 6: number is not exactly what a double can hold"},
		"arguments that refer to an anchor":    {testHead + "- {name: one, tool: look, arguments: {a: &x [1], b: *x}, want: {outcome: Allow}}\n", "s.yaml:10: write the value out instead of referring to an anchor"},
		"a binary value":                       {testHead + "- {name: one, tool: look, arguments: {a: !!binary aGk=}, want: {outcome: Allow}}\n", "s.yaml:10: a value of type !!binary has no place in JSON"},
		"a key of arguments that is no text":   {testHead + "- {name: one, tool: look, arguments: {[1]: 2}, want: {outcome: Allow}}\n", "s.yaml:10: a key is a plain text"},
		"a merged key":                         {testHead + "- {name: one, tool: look, arguments: {<<: {a: 1}}, want: {outcome: Allow}}\n", "s.yaml:10: a key is a plain text"},
		"a key of arguments that stands twice": {testHead + "- {name: one, tool: look, arguments: {a: 1, \"a\": 2}, want: {outcome: Allow}}\n", "s.yaml:10: \"/a\" at byte 7: key appears twice"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := runText(t, test.suite, Options{})
			if !strings.Contains(got.Error, test.want) {
				t.Errorf("error is %q, want %q in it", got.Error, test.want)
			}
			if got.Passed() || got.Cases != nil {
				t.Errorf("a suite that is refused was run: %+v", got.Cases)
			}
		})
	}
}

func TestPoliciesThatDoNotCompile(t *testing.T) {
	folder := t.TempDir()
	put(t, filepath.Join(folder, "p.yaml"), strings.Replace(testPolicy, "args.id == 0", "args.id ==", 1))
	put(t, filepath.Join(folder, "s.yaml"), testHead+"- {name: one, tool: look, want: {outcome: Allow}}\n")
	report, err := Run(t.Context(), Options{Paths: []string{folder}})
	if err != nil {
		t.Fatal(err)
	}
	got := report.Suites[0]
	if !strings.Contains(got.Error, "p.yaml: ToolPolicy ns/p: spec.tools[1].rules[0].when") || got.Passed() {
		t.Errorf("error is %q, want it to name file, policy and field", got.Error)
	}
}

func TestCoverageNamesWhatWasNotReached(t *testing.T) {
	head := testHead + `- {name: one, tool: change, want: {outcome: Allow}}
- {name: two, tool: change, decider: {answers: {severity: 2}}, want: {outcome: Confirm}}
- {name: three, tool: drop, want: {outcome: Confirm}}
`
	point := func(kind policy.PointKind, place string) policy.Point {
		return policy.Point{Policy: "ToolPolicy/ns/p", Kind: kind, Place: place}
	}
	want := &Coverage{Reached: 4, Total: 12, NotReached: []policy.Point{
		point(policy.PointRule, "unknownTools"),
		point(policy.PointRule, "tools[change].rules[not-the-root]"),
		point(policy.PointRule, "tools[change].rules[no-fraction]"),
		point(policy.PointThreshold, "classes[Write].thresholds[0]"),
		point(policy.PointThreshold, "classes[Write].thresholds[2]"),
		point(policy.PointFallback, "classes[Write].whenDeciderUnavailable"),
		point(policy.PointRule, "tools[drop].argumentsSchema"),
		point(policy.PointFallback, "classes[ReadOnly].otherwise"),
	}}
	got := runText(t, head, Options{MinimumCoverage: 33})
	if diff := cmp.Diff(want, got.Coverage); diff != "" || !got.Passed() {
		t.Errorf("Passed() = %v, coverage (-want +got):\n%s", got.Passed(), diff)
	}
	if got := runText(t, head, Options{MinimumCoverage: 34}); got.Passed() {
		t.Error("a suite that reaches 33 % passed with 34 % wanted")
	}
	only := runText(t, head, Options{MinimumCoverage: 34, Only: regexp.MustCompile("^two$")})
	if len(only.Cases) != 1 || only.Coverage != nil || !only.Passed() {
		t.Errorf("one case of three: %+v", only)
	}
	if none := runText(t, head, Options{Only: regexp.MustCompile("^four$")}); none.Passed() {
		t.Error("no case was run, and the suite passed")
	}
}

func TestPathsWithoutSuites(t *testing.T) {
	empty := t.TempDir()
	put(t, filepath.Join(empty, "p.yaml"), testPolicy)
	for name, paths := range map[string][]string{
		"no path": nil, "a path that is not there": {filepath.Join(empty, "gone.yaml")}, "a folder without suites": {empty},
	} {
		t.Run(name, func(t *testing.T) {
			if report, err := Run(t.Context(), Options{Paths: paths}); err == nil {
				t.Errorf("got %+v, want an error", report)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Options{Paths: []string{samples}}); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancelling: %v", err)
	}
}

func TestQuestionsForCodeAreWarnedAbout(t *testing.T) {
	tests := map[string]struct {
		instructions string
		want         []string
	}{
		"a question about wishes":      {"Did the user ask for this refund?", nil},
		"a question with a number":     {"Does the user mention order 5521?", nil},
		"a question that goes over":    {"Did the user change their mind over the course of the chat?", nil},
		"an amount against a limit":    {"Is the refund greater than the total of the order?", []string{"p.yaml: question mood compares amounts: do that in a rule over arguments and facts"}},
		"an amount against a number":   {"Is the amount more than 100?", []string{"p.yaml: question mood compares amounts: do that in a rule over arguments and facts"}},
		"an amount against a currency": {"Is it at most €50?", []string{"p.yaml: question mood compares amounts: do that in a rule over arguments and facts"}},
		"a date":                       {"Was the order placed before the deadline?", []string{"p.yaml: question mood compares dates: do that in code, and state the result as a fact"}},
		"a span of time":               {"Was it delivered within 14 days?", []string{"p.yaml: question mood compares dates: do that in code, and state the result as a fact"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			put(t, filepath.Join(folder, "p.yaml"), strings.Replace(testPolicy, "How is the user?", test.instructions, 1))
			put(t, filepath.Join(folder, "s.yaml"), testHead+"- {name: one, tool: look, want: {outcome: Allow}}\n")
			report, err := Run(t.Context(), Options{Paths: []string{folder}})
			if err != nil || report.Suites[0].Error != "" {
				t.Fatal(err, text(t, report))
			}
			if diff := cmp.Diff(test.want, report.Suites[0].Warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}
