package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const llamaPolicy = `
apiVersion: gatewright.dev/v1alpha1
kind: DeciderModel
metadata: {name: local}
spec:
  runtime: LlamaCpp
  artifact: {type: Bundled, bundled: {name: m.gguf}, sha256: b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53}
  allowedNamespaces: {from: All}
---
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: notes, namespace: default}
spec:
  deciderRef: {name: local, fingerprint: "sha256:00"}
  classes:
  - name: Write
    decider: Ask
    questions: [matches_request]
    thresholds: [{when: [{question: matches_request, above: 80}], outcome: Allow, reason: Matches}]
    otherwise: {outcome: Confirm, reason: Unsure}
  tools: [{name: note.write, class: Write}]
`

// A command that cannot run a policy's model says so, and measures nothing without it.
func TestCommandsThatRunAModel(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "p.yaml"), []byte(llamaPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(folder, "none")
	with := []string{"--models", folder, "--llama-library", folder, "--decider-program", none}
	call, cases := writeCall(t, "note.write", "x"), writeCases(t)
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"explain without a model":           {[]string{"explain", "--manifests", folder, "-f", call}, exitOK, "spec.runtime LlamaCpp: needs --models"},
		"explain without a program":         {append([]string{"explain", "--manifests", folder, "-f", call}, with...), exitError, "DeciderModel local: the decider program cannot be run"},
		"explain without a library":         {[]string{"explain", "--manifests", folder, "-f", call, "--models", folder}, exitError, "DeciderModel local: spec.runtime LlamaCpp: needs --models"},
		"eval without a model":              {[]string{"eval", cases, "--manifests", folder}, exitError, "spec.runtime LlamaCpp: needs --models"},
		"eval without a program":            {append([]string{"eval", cases, "--manifests", folder}, with...), exitError, "DeciderModel local: the decider program cannot be run"},
		"diff without a program":            {append([]string{"diff", "--left", folder, "--right", folder, cases}, with...), exitError, "DeciderModel local: the decider program cannot be run"},
		"calibrate without a program":       {append([]string{"calibrate", cases, "--manifests", folder}, with...), exitError, "DeciderModel local: the decider program cannot be run"},
		"audit replay without a program":    {append([]string{"audit", "replay", none, "--manifests", folder, "--capture-dir", folder}, with...), exitError, "DeciderModel local: the decider program cannot be run"},
		"audit replay by what was answered": {append([]string{"audit", "replay", none, "--manifests", folder, "--capture-dir", folder, "--recorded-answers"}, with...), exitError, "none: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs, code := command(t, "", tc.args...)
			if code != tc.code || !strings.Contains(errs, tc.want) {
				t.Errorf("exit %d, want %d with %q in\n%s", code, tc.code, tc.want, errs)
			}
		})
	}
}
