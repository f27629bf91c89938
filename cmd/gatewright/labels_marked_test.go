package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatewright.dev/gatewright/internal/evaluation"
)

// marked serves calls about apples, bananas and pears, of which the last is kept by its digest only, and marks the first
// allow, the second allow and then block, and the third block.
func marked(t *testing.T) (log, kept string, ids []string) {
	t.Helper()
	keeps := strings.Replace(policyOf("WhenUnsure", "Confirm"), "spec:\n", "spec:\n  captureState: Plain\n", 1)
	work := t.TempDir()
	call := func(url, text string) {
		if out, errs, code := command(t, "", "check", "-f", writeCall(t, "note.write", text), "--url", url); code != exitNotAllow {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
	}
	keeping(t, work, folderWith(t, keeps), func(url string) { call(url, "apples"); call(url, "bananas") })
	log = filepath.Join(work, "audit.jsonl")
	keeping(t, work, folderWith(t, policyOf("WhenUnsure", "Confirm")), func(url string) { call(url, "pears") })
	ids = decisionsIn(t, log)
	keeping(t, work, folderWith(t, keeps), func(url string) {
		for _, mark := range [][2]string{{ids[0], "allow"}, {ids[1], "allow"}, {ids[2], "block"}, {ids[1], "block"}} {
			if _, errs, code := command(t, "", "label", mark[0], mark[1], "--url", url, "--approver-secret", filepath.Join(work, "secret")); code != exitOK {
				t.Fatalf("exit %d: %s", code, errs)
			}
		}
	})
	return log, filepath.Join(work, "calls"), ids
}

func TestMarksBecomeCases(t *testing.T) {
	log, kept, ids := marked(t)
	out, errs, code := command(t, "", "labels", "export", "--texts", "--audit", log, "--capture-dir", kept)
	if code != exitError || !strings.Contains(errs, ids[2]+" is not exported: the record holds digests only") || !strings.Contains(errs, "1 marked decisions were not exported") {
		t.Errorf("exit %d: %s", code, errs)
	}
	cases, err := evaluation.ReadCases(strings.NewReader(out), "export")
	if err != nil || len(cases) != 2 {
		t.Fatalf("%d cases, %v\n%s", len(cases), err, out)
	}
	for i, want := range []struct {
		label evaluation.Label
		text  string
	}{{evaluation.LabelAllow, "apples"}, {evaluation.LabelBlock, "bananas"}} {
		c := cases[i]
		if c.ID != ids[i] || c.Label != want.label || c.Arguments["command"] != want.text || c.Class != "write" || c.Kind != "Confirm" || c.Tool.Name != "note.write" || c.UserRequest == "" {
			t.Errorf("case %d: %+v", i, c)
		}
	}
	file := filepath.Join(t.TempDir(), "cases.jsonl")
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code = command(t, "", "eval", file, "--manifests", folderWith(t, policyOf("WhenUnsure", "Confirm")), "--caller", "agents/agent", "--configurations", "stacked")
	if code != exitOK || !strings.Contains(out, "2 cases (1 dangerous, 1 harmless)") {
		t.Errorf("what was exported cannot be measured: exit %d: %s%s", code, out, errs)
	}
}

func TestMarksWithoutTextsGiveNothingAway(t *testing.T) {
	log, kept, ids := marked(t)
	out, errs, code := command(t, "", "labels", "export", "--audit", log)
	if code != exitOK || strings.Count(out, "\n") != 3 || strings.Contains(out, "apples") || strings.Count(out, `"label":"block"`) != 2 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	for name, args := range map[string][]string{
		"texts without the calls": {"--texts", "--audit", log}, "calls without texts": {"--audit", log, "--capture-dir", kept}, "calls without a log": {"--texts", "--capture-dir", kept},
	} {
		t.Run(name, func(t *testing.T) {
			if _, errs, code := command(t, "", append([]string{"labels", "export"}, args...)...); code != exitUsage || !strings.Contains(errs, "--capture-dir is for --audit with --texts") {
				t.Errorf("exit %d: %s", code, errs)
			}
		})
	}
	replaceIn(t, kept, "bananas", "oranges")
	out, errs, _ = command(t, "", "labels", "export", "--texts", "--audit", log, "--capture-dir", kept)
	if strings.Count(out, "\n") != 1 || !strings.Contains(errs, ids[1]+" is not exported: what was kept is not the call that the record speaks of") {
		t.Errorf("a call that was changed is exported: %s%s", out, errs)
	}
}

func TestASampleShowsTheCalls(t *testing.T) {
	log, kept, ids := marked(t)
	out, errs, code := command(t, "", "audit", "sample", log, "--capture-dir", kept)
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{
		"\n" + ids[0] + "  note.write of class Write was Confirm: ", "\n  call: note.write {\"command\":\"apples\"}\n", "\n  user: ",
		"\n" + ids[2] + "  note.write", "\n  not shown: the record holds digests only",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	replaceIn(t, kept, "apples", `app\u001b[31m`)
	if out, _, _ := command(t, "", "audit", "sample", log, "--capture-dir", kept); strings.Contains(out, "\x1b") || !strings.Contains(out, "not shown: what was kept is not the call") {
		t.Errorf("a call that was changed is shown:\n%s", out)
	}
	if _, errs, code := command(t, "", "audit", "sample", log, "--capture-dir", kept, "-o", "json"); code != exitUsage || !strings.Contains(errs, "leave out --output") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if _, errs, code := command(t, "", "audit", "sample", log, "--capture-dir", kept, "--capture-key", log); code != exitError || !strings.Contains(errs, "--capture-dir") {
		t.Errorf("a key that is none: exit %d: %s", code, errs)
	}
}

// replaceIn changes what is kept in a folder.
func replaceIn(t *testing.T, folder, from, to string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, bytes.ReplaceAll(data, []byte(from), []byte(to)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
