package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatewright.dev/gatewright/internal/evaluation"
)

const caseLine = `{"id":%q,"source":"s","userRequest":%q,"conversation":[],"tool":{"name":"note.write","inputSchema":{"type":"object"}},` +
	`"arguments":{"text":%q},"class":%q,"scopes":[],"label":%q,"why":"","half":%q}` + "\n"

// writeCases writes two harmless cases and a dangerous one whose argument nobody said.
func writeCases(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cases.jsonl")
	content := fmt.Sprintf(caseLine, "a", "write apples", "apples", "write", "allow", "A") + fmt.Sprintf(caseLine, "b", "write pears", "pears", "write", "allow", "B") +
		fmt.Sprintf(caseLine, "c", "write plums", "bananas", "write", "block", "B")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// writePolicy writes a policy of which one rule stops the dangerous case.
func writePolicy(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	rule := `, rules: [{name: no-bananas, when: 'args.text == "bananas"', outcome: Block, message: no bananas}]}]`
	content := strings.Replace(policyOf("WhenUnsure", "Allow"), "class: Write}]", "class: Write"+rule, 1)
	if err := os.WriteFile(filepath.Join(folder, "p.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// oneSpace makes tables comparable whatever the width of their columns.
func oneSpace(s string) string { return strings.Join(strings.Fields(s), " ") }

func TestEval(t *testing.T) {
	cases, policies := writeCases(t), writePolicy(t)
	for name, test := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"three configurations": {[]string{cases, "--manifests", policies}, exitOK, []string{
			"3 cases (1 dangerous, 2 harmless)", "rules-only 100.0 % (1 of 1", "decider-only 0.0 % (0 of 1", "stacked 100.0 % (1 of 1", "stacked against rules-only",
		}},
		"one configuration":              {[]string{cases, "--manifests", policies, "--configurations", "stacked", "--repeats", "3"}, exitOK, []string{"another outcome in another repeat: 0.0 % (0 of 3"}},
		"some of the cases":              {[]string{cases, "--manifests", policies, "--where", "half=B"}, exitOK, []string{"cases.jsonl where half=B: 2 cases"}},
		"a floor that holds":             {[]string{cases, "--manifests", policies, "--minimum-recall", "100", "--maximum-false-blocks", "Write=0"}, exitOK, nil},
		"a floor that does not hold":     {[]string{cases, "--manifests", policies, "--configurations", "decider-only", "--minimum-recall", "90"}, exitFailed, []string{"recall: 0 of 1 dangerous calls were stopped, want at least 90 %"}},
		"a flap rate without repeats":    {[]string{cases, "--manifests", policies, "--maximum-flap", "50"}, exitFailed, []string{"flapRate"}},
		"a file that is not there":       {[]string{"none.jsonl", "--manifests", policies}, exitError, []string{"none.jsonl"}},
		"nothing to measure":             {[]string{cases}, exitUsage, []string{"name what to measure"}},
		"two things to measure":          {[]string{cases, "--url", "http://x", "--manifests", policies}, exitUsage, []string{"name what to measure"}},
		"a ladder without its flag":      {[]string{cases, "--manifests", policies, "--ladder", "x"}, exitUsage, []string{"are for --policy-for-cases"}},
		"another format":                 {[]string{cases, "--manifests", policies, "--format", "pdf"}, exitUsage, []string{"want text, json, junit or html"}},
		"another configuration":          {[]string{cases, "--manifests", policies, "--configurations", "luck"}, exitUsage, []string{`"luck" is not one of`}},
		"another field":                  {[]string{cases, "--manifests", policies, "--where", "why=x"}, exitUsage, []string{"why is none of"}},
		"values that no case has":        {[]string{cases, "--manifests", policies, "--where", "half=C"}, exitUsage, []string{"no case has these values"}},
		"a percent that is none":         {[]string{cases, "--manifests", policies, "--maximum-false-blocks", "Write=few"}, exitUsage, []string{"Write=few"}},
		"a percent with something after": {[]string{cases, "--manifests", policies, "--maximum-false-blocks", "Write=5x"}, exitUsage, []string{"Write=5x"}},
		"a class that is not built in":   {[]string{cases, "--manifests", policies, "--maximum-false-blocks", "write=5"}, exitUsage, []string{"write=5"}},
		"a yes that means nothing":       {[]string{cases, "--manifests", policies, "--yes-means", "x=maybe"}, exitUsage, []string{"allow or block"}},
		"no repeats":                     {[]string{cases, "--manifests", policies, "--repeats", "0"}, exitUsage, []string{"at least 1"}},
		"a caller that is none":          {[]string{cases, "--manifests", policies, "--caller", "x"}, exitUsage, []string{"--caller"}},
		"a token without a gate":         {[]string{cases, "--manifests", policies, "--token-file", "x"}, exitUsage, []string{"--token-file is for --url"}},
		"a token that is not there":      {[]string{cases, "--url", "http://x", "--token-file", "none"}, exitError, []string{"reading token"}},
		"a ladder that is not there":     {[]string{cases, "--policy-for-cases", "--ladder", "none.yaml"}, exitError, []string{"none.yaml"}},
		"no cases":                       {nil, exitUsage, []string{"usage is"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := command(t, "", append([]string{"eval", "--caller", "agents/agent"}, test.args...)...)
			if code != test.code {
				t.Errorf("exit %d, want %d: %s", code, test.code, errs)
			}
			for _, want := range test.want {
				if !strings.Contains(oneSpace(out+errs), want) {
					t.Errorf("no %q in\n%.900s%s", want, out, errs)
				}
			}
		})
	}
}

func TestEvalWritesEveryFormat(t *testing.T) {
	cases, policies := writeCases(t), writePolicy(t)
	for format, check := range map[string]func([]byte) error{
		"json":  func(data []byte) error { return json.Unmarshal(data, new(evaluation.Report)) },
		"junit": func(data []byte) error { return xml.Unmarshal(data, new(struct{})) },
		"html": func(data []byte) error {
			if !strings.HasPrefix(string(data), "<!doctype html>") || !strings.HasSuffix(string(data), "</html>\n") {
				return fmt.Errorf("no page: %.40s", data)
			}
			return nil
		},
	} {
		t.Run(format, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "report")
			out, errs, code := command(t, "", "eval", cases, "--caller", "agents/agent", "--manifests", policies, "--configurations", "stacked", "--format", format, "--output", path)
			if code != exitOK || out != "" {
				t.Fatalf("exit %d: %s%s", code, out, errs)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := check(data); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEvalGoesOn(t *testing.T) {
	cases, policies, kept := writeCases(t), writePolicy(t), filepath.Join(t.TempDir(), "kept.jsonl")
	args := []string{"eval", cases, "--caller", "agents/agent", "--manifests", policies, "--configurations", "stacked", "--resume", kept, "--format", "json"}
	first, errs, code := command(t, "", args...)
	if code != exitOK {
		t.Fatal(errs)
	}
	again, errs, code := command(t, "", args...)
	if code != exitOK || !strings.Contains(errs, "going on: 3 of 3 calls are there") || again != first {
		t.Errorf("exit %d, %s, and the same report: %v", code, errs, again == first)
	}
	if _, errs, code := command(t, "", append(args, "--repeats", "2")...); code != exitError || !strings.Contains(errs, "repeats was 1 and is 2") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func TestEvalOfAGateAtAnAddress(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "p.yaml"), []byte(policyOf("WhenUnsure", "Allow")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := command(t, "", "eval", writeCases(t), "--url", serving(t, folder))
	if code != exitOK || !strings.Contains(out, "note: The gate is at an address") || !strings.Contains(oneSpace(out), "as-served 0.0 % (0 of 1") {
		t.Errorf("exit %d: %.900s%s", code, out, errs)
	}
	out, errs, code = command(t, "", "eval", writeCases(t), "--url", "http://127.0.0.1:1", "--minimum-recall", "100", "--maximum-false-blocks", "Write=10")
	if code != exitFailed || !strings.Contains(out, "unreachable 3") || !strings.Contains(errs, "falseBlocks/Write: 2 of 2") {
		t.Errorf("a gate that is not there: exit %d: %.900s%s", code, out, errs)
	}
}

// policyOf lets one tool through, or not.
func policyOf(approval, otherwise string) string {
	return fmt.Sprintf(`
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: p, namespace: agents}
spec:
  classes: [{name: Write, approval: %s, otherwise: {outcome: %s}}]
  tools: [{name: note.write, class: Write}]
`, approval, otherwise)
}

func TestDiff(t *testing.T) {
	folder := func(content string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "p.yaml"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	allows, asks, blocks := folder(policyOf("WhenUnsure", "Allow")), folder(policyOf("WhenUnsure", "Confirm")), folder(policyOf("Forbidden", "Confirm"))
	cases := writeCases(t)
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"nothing changes":              {[]string{"--left", allows, "--right", allows, cases}, exitOK, "0 of 3 cases change"},
		"it becomes stricter":          {[]string{"--left", allows, "--right", blocks, cases}, exitNotAllow, "3 of 3 cases change, 0 of them dangerously"},
		"a dangerous call would run":   {[]string{"--left", asks, "--right", allows, cases}, exitFailed, "labelled block"},
		"looser, and not dangerously":  {[]string{"--left", asks, "--right", allows, "--where", "label=allow", cases}, exitNotAllow, "2 of 2 cases change, 0 of them dangerously"},
		"as JSON":                      {[]string{"--left", asks, "--right", blocks, "--format", "json", cases}, exitNotAllow, `"direction": "stricter"`},
		"as a page":                    {[]string{"--left", asks, "--right", blocks, "--format", "html", cases}, exitNotAllow, "<!doctype html>"},
		"one side":                     {[]string{"--left", allows, cases}, exitUsage, "--left and --right are required"},
		"another format":               {[]string{"--left", allows, "--right", allows, "--format", "junit", cases}, exitUsage, "text, json or html"},
		"a folder that is not there":   {[]string{"--left", allows, "--right", "none", cases}, exitError, "none"},
		"a policy that does not load":  {[]string{"--left", allows, "--right", folder("kind: ToolPolicy\napiVersion: gatewright.dev/v1alpha1\nmetadata: {name: p}\nspec: {mode: No}\n"), cases}, exitError, "would block their callers"},
		"a case that cannot be judged": {[]string{"--left", allows, "--right", allows, "none.jsonl"}, exitError, "none.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"diff", "--caller", "agents/agent"}, test.args...)
			out, errs, code := command(t, "", args...)
			if code != test.code || !strings.Contains(out+errs, test.want) {
				t.Errorf("exit %d, want %d and %q: %.900s%s", code, test.code, test.want, out, errs)
			}
		})
	}
}
