package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
)

// bigLog has many decisions of two classes in several files, signed, and the key beside it.
func bigLog(t *testing.T) (log, key string) {
	t.Helper()
	dir := t.TempDir()
	log, key = filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "key.json")
	keys, err := audit.LoadOrCreateKeys(key, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := audit.Open(log, audit.Options{Signer: keys, Rotation: audit.Rotation{MaxBytes: 4000}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		r := &audit.Record{
			Time: time.Date(2026, 1, 2, 12, i, 0, 0, time.UTC), ID: fmt.Sprintf("d-%02d", i), Caller: audit.Caller{Namespace: "shop", ServiceAccount: "agent"},
			Tool: "item.get", Class: "ReadOnly", Outcome: review.Allow, Reason: "RulesPassed", By: "rules",
		}
		switch i % 20 {
		case 7:
			r.Class, r.Tool, r.Outcome, r.Reason = "Destructive", "item.delete", review.Confirm, "Irreversible"
		case 9:
			r.Outcome, r.Reason = review.Block, "UnknownTool"
		}
		if err := f.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return log, key
}

func TestAuditCommandsGoThroughAllFiles(t *testing.T) {
	log, key := bigLog(t)
	dir := filepath.Dir(log)
	parts, err := audit.Parts(log)
	if err != nil || len(parts) < 3 {
		t.Fatalf("%v, %v", parts, err)
	}
	public := filepath.Join(t.TempDir(), "public.json")
	out, errs, code := command(t, "", "audit", "key", key)
	if code != exitOK || strings.Contains(out, "seed") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	if err := os.WriteFile(public, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"verify by the name of the log":       {[]string{"verify", log, "--key", public}, exitOK, []string{"signed up to", "head "}},
		"verify by the folder":                {[]string{"verify", dir, "--key", key}, exitOK, []string{"signed up to", "0 records behind that"}},
		"verify without a key":                {[]string{"verify", log}, exitOK, []string{"whose signatures were not checked"}},
		"verify one full file in the middle":  {[]string{"verify", parts[1]}, exitFailed, []string{"no record says that they were dropped"}},
		"verify by a key that is none":        {[]string{"verify", log, "--key", log}, exitError, []string{"no file of audit keys"}},
		"verify by checkpoints that are none": {[]string{"verify", log, "--checkpoints", "none"}, exitError, []string{"no such file"}},
		"query the first of all":              {[]string{"query", log, "--id", "d-00"}, exitOK, []string{"item.get"}},
		"query the newest over two files":     {[]string{"query", log, "--kind", "decision", "--limit", "3", "-o", "json"}, exitOK, []string{`"d-57"`, `"d-58"`, `"d-59"`}},
		"query by class":                      {[]string{"query", dir, "--class", "Destructive", "-o", "json"}, exitOK, []string{`"d-07"`, `"d-27"`, `"d-47"`}},
		"query records of the log itself":     {[]string{"query", log, "--kind", "rotated"}, exitOK, []string{"audit.jsonl.00000000000000000001"}},
		"sample":                              {[]string{"sample", log, "--per-class", "2"}, exitOK, []string{"Destructive Confirm: 2 of 3", "ReadOnly Allow: 2 of 54"}},
		"sample blocks":                       {[]string{"sample", log, "--outcome", "Block"}, exitOK, []string{"ReadOnly Block: 3 of 3"}},
		"sample none":                         {[]string{"sample", log, "--per-class", "0"}, exitUsage, []string{"--per-class"}},
		"replay without calls":                {[]string{"replay", log}, exitUsage, []string{"--capture-dir are required"}},
		"export from nowhere":                 {[]string{"export", "http://h/S"}, exitUsage, []string{"want nats://"}},
		"label as something else":             {[]string{"../label", "d", "maybe"}, exitUsage, []string{"want allow or block"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"audit"}, test.args...)
			if rest, ok := strings.CutPrefix(test.args[0], "../"); ok {
				args = append([]string{rest}, test.args[1:]...)
			}
			out, errs, code := command(t, "", args...)
			if code != test.code {
				t.Errorf("exit %d, want %d\n%s%s", code, test.code, out, errs)
			}
			for _, want := range test.want {
				if !strings.Contains(out+errs, want) {
					t.Errorf("%q is not in:\n%s%s", want, out, errs)
				}
			}
		})
	}
}

func TestAuditSampleIsTheSameForTheSameSeed(t *testing.T) {
	log, _ := bigLog(t)
	draw := func(seed string) string {
		out, errs, code := command(t, "", "audit", "sample", log, "--per-class", "3", "--seed", seed, "-o", "json")
		if code != exitOK {
			t.Fatalf("exit %d: %s", code, errs)
		}
		var ids []string
		for line := range strings.Lines(out) {
			var e audit.Entry
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, e.ID)
		}
		return strings.Join(ids, " ")
	}
	first := draw("1")
	if diff := cmp.Diff(first, draw("1")); diff != "" {
		t.Errorf("the same seed draws others (-first +second):\n%s", diff)
	}
	others := map[string]bool{}
	for seed := range 10 {
		others[draw(fmt.Sprint(seed))] = true
	}
	if len(others) < 5 || len(strings.Fields(first)) != 6 {
		t.Errorf("ten seeds draw %d samples; the first is %s", len(others), first)
	}
}

// A rewritten log is shown with the records between which it was changed.
func TestAuditVerifyNamesWhatWasRewritten(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	auditLog(t, log, "a", "b", "c", "d", "e")
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := audit.LoadOrCreateKeys(filepath.Join(t.TempDir(), "key.json"), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	var outside strings.Builder
	for _, n := range []int{2, 4} {
		head, err := audit.LastHead([]byte(strings.Join(lines[:n], "")))
		if err != nil {
			t.Fatal(err)
		}
		c, err := json.Marshal(keys.Checkpoint(head, time.Now()))
		if err != nil {
			t.Fatal(err)
		}
		outside.Write(append(c, '\n'))
	}
	if err := os.WriteFile(log+audit.CheckpointSuffix, []byte(outside.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := command(t, "", "audit", "verify", log); code != exitOK {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	auditLog(t, log, "a", "b", "x", "d", "e") // written anew, with a chain that holds
	for _, path := range []string{log, filepath.Dir(log)} {
		out, errs, code := command(t, "", "audit", "verify", path)
		if code != exitFailed || !strings.Contains(out, "somewhere from record 3 to 4") || !strings.Contains(out, "not what the gate has signed") {
			t.Errorf("%s: exit %d: %s%s", path, code, out, errs)
		}
	}
}

// forgeLog writes a log anew as somebody does who has no key: one file, a chain that holds, other outcomes, no checkpoints.
func forgeLog(t *testing.T, log string) string {
	t.Helper()
	parts, err := audit.Parts(log)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	prev, seq := "sha256:"+strings.Repeat("0", 64), 0
	for _, part := range parts {
		data, err := os.ReadFile(part)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), `"kind":`)
			if strings.HasPrefix(rest, `"checkpoint"`) || strings.HasPrefix(rest, `"rotated"`) {
				continue
			}
			seq++
			line = fmt.Sprintf(`{"v":1,"seq":%d,"prev":%q,"kind":`, seq, prev) + strings.ReplaceAll(rest, `"outcome":"Block"`, `"outcome":"Allow"`)
			prev = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(line)))
			out.WriteString(line + "\n")
		}
	}
	forged := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(forged, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return forged
}

// A log that was written anew with its signatures taken out is not whole when there is a key to check it by.
func TestAuditVerifyRefusesWhatNothingSignedVouchesFor(t *testing.T) {
	log, key := bigLog(t)
	forged := forgeLog(t, log)
	for name, test := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"the log itself": {[]string{log, "--key", key}, exitOK, []string{"0 records behind that", "no checkpoints outside: there is no " + log + audit.CheckpointSuffix}},
		"the forgery":    {[]string{forged, "--key", key}, exitFailed, []string{"nothing in the log is signed with the keys given: there are 60 records"}},
		"the forgery without a key: its chain holds": {[]string{forged}, exitOK, []string{"60 records"}},
		"a copy from the first minute":               {[]string{forged, "--key", key, "--as-of", "2026-01-02T12:01:00Z"}, exitFailed, []string{"nothing in the log is signed"}},
		"a time that is none":                        {[]string{log, "--key", key, "--as-of", "noon"}, exitUsage, []string{"--as-of: want a time"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := command(t, "", append([]string{"audit", "verify"}, test.args...)...)
			if code != test.code {
				t.Errorf("exit %d, want %d\n%s%s", code, test.code, out, errs)
			}
			for _, want := range test.want {
				if !strings.Contains(out+errs, want) {
					t.Errorf("%q is not in:\n%s%s", want, out, errs)
				}
			}
		})
	}
}
