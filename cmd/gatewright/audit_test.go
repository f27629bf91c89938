package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
)

// auditLog writes decisions on these tools as a gate does, one more for each call on the same path.
func auditLog(t *testing.T, path string, tools ...string) {
	t.Helper()
	f, err := audit.Open(path, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, tool := range tools {
		r := &audit.Record{
			Time: time.Date(2026, 1, 2, 12, i, 0, 0, time.UTC), ID: "d-" + tool, Caller: audit.Caller{Namespace: "shop", ServiceAccount: "agent"},
			Tool: tool, Class: "Routine", Base: "Write", Outcome: review.Allow, Reason: "RulesPassed", By: "rules", Milliseconds: 0.125,
		}
		if i%2 == 1 {
			r.Outcome, r.Reason, r.By = review.Block, "PathNotAllowed", "rule:path-escape"
		}
		if err := f.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "part.jsonl")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// auditLines are the lines of a sound log of five, with the head that verify prints of the first n.
func auditLines(t *testing.T) (lines [][]byte, head func(n int) string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	auditLog(t, path, "a", "b", "c", "d", "e")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines = slices.Collect(bytes.Lines(data))
	return lines, func(n int) string {
		s, err := audit.Verify(bytes.NewReader(bytes.Join(lines[:n], nil)))
		if err != nil {
			t.Fatal(err)
		}
		return s.Head.String()
	}
}

func TestAuditVerify(t *testing.T) {
	l, head := auditLines(t)
	file := func(lines ...[]byte) string { return writeFile(t, bytes.Join(lines, nil)) }
	flipped := slices.Clone(l[1])
	flipped[bytes.Index(flipped, []byte(`"Block"`))+1] ^= 1
	broken := slices.Clone(l[1])
	broken[0] ^= 1
	other := file(l...)
	auditLog(t, other, "f")
	tests := map[string]struct {
		args []string
		code int
		want []string
	}{
		"a whole log":                            {[]string{file(l...)}, exitOK, []string{": 5 records\n", "head " + head(5) + "\n"}},
		"an empty log":                           {[]string{file()}, exitOK, []string{": 0 records", "head none"}},
		"a log that went on":                     {[]string{other, "--head", head(5)}, exitOK, []string{": 6 records"}},
		"a head that was noted long ago":         {[]string{file(l...), "--head", head(2)}, exitOK, []string{"head " + head(5)}},
		"parts in order":                         {[]string{file(l[:2]...), file(l[2]), file(l[3:]...)}, exitOK, []string{": 2 records", ": 1 records", "head " + head(5)}},
		"a head in the first of two parts":       {[]string{file(l[:2]...), file(l[2:]...), "--head", head(1)}, exitOK, []string{"head " + head(5)}},
		"a flipped byte":                         {[]string{file(l[0], flipped, l[2])}, exitFailed, []string{"line      3,", "sequence  3 ", "expected  sha256:", "found     sha256:", "the line before this one was changed", "breaks at line 3"}},
		"a flipped byte that is no entry then":   {[]string{file(l[0], broken, l[2])}, exitFailed, []string{"line      2,", "sequence  2 ", "an entry of version 1", "something else"}},
		"a flipped byte in the last line":        {[]string{file(l[0], flipped), "--head", head(2)}, exitFailed, []string{"line      2,", "expected  " + head(2)[2:], "whose digest was noted down"}},
		"a line that is missing":                 {[]string{file(l[0], l[2])}, exitFailed, []string{"line      2,", "expected  2\n", "found     3\n", "lines are missing"}},
		"two lines that were swapped":            {[]string{file(l[0], l[2], l[1], l[3])}, exitFailed, []string{"line      2,", "expected  2\n", "found     3\n"}},
		"a log without its first lines":          {[]string{file(l[2:]...)}, exitFailed, []string{"line      1, from byte 0", "expected  1\n", "found     3\n", "the lines before this one are not here"}},
		"lines that were cut off, unnoticed":     {[]string{file(l[:3]...)}, exitOK, []string{"head " + head(3)}},
		"lines that were cut off behind a head":  {[]string{file(l[:3]...), "--head", head(5)}, exitFailed, []string{"missing at the end: expected at least 5, found 3"}},
		"all lines cut off":                      {[]string{file(), "--head", head(1)}, exitFailed, []string{"expected at least 1, found 0"}},
		"an end in the middle of a line":         {[]string{file(l[0], l[1][:30])}, exitFailed, []string{"line      2,", "found     30 bytes without one", "not finished"}},
		"parts in the wrong order":               {[]string{file(l[2:]...), file(l[:2]...)}, exitFailed, []string{"oldest first"}},
		"a part that is missing":                 {[]string{file(l[0]), file(l[2:]...)}, exitFailed, []string{"line      1,", "expected  2\n", "found     3\n", "give all files"}},
		"a part whose last line was changed":     {[]string{file(l[0], flipped), file(l[2:]...)}, exitFailed, []string{"line      1,", "sequence  3 ", "does not follow the one before"}},
		"a part that is another chain":           {[]string{file(l...), file(l...)}, exitFailed, []string{"a chain of its own"}},
		"a file that is not there":               {[]string{"none.jsonl"}, exitError, []string{"no such file"}},
		"a folder":                               {[]string{t.TempDir()}, exitError, []string{"holds no file of an audit log"}},
		"no file":                                {nil, exitUsage, []string{"requires at least 1 arg"}},
		"a head that is none":                    {[]string{"--head", "5", file(l...)}, exitUsage, []string{"--head: want a number"}},
		"a head that is empty":                   {[]string{"--head", "", file(l...)}, exitUsage, []string{"--head: want a number"}},
		"a file name that would move the cursor": {[]string{filepath.Join(t.TempDir(), "\x1b[2J")}, exitError, []string{"no such file"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out, errs, code := command(t, "", append([]string{"audit", "verify"}, test.args...)...)
			if code != test.code {
				t.Errorf("exit %d, want %d", code, test.code)
			}
			if code != exitOK && strings.Contains(out, "head ") {
				t.Error("it prints a head of a log that is not whole")
			}
			for _, want := range test.want {
				if !strings.Contains(out+errs, want) {
					t.Errorf("%q is not in:\n%s%s", want, out, errs)
				}
			}
		})
	}
}

// Whatever byte is changed, a log is not what it was when its head was noted down.
func TestAuditVerifySeesEveryFlippedByte(t *testing.T) {
	l, head := auditLines(t)
	whole := bytes.Join(l[:2], nil)
	kept := head(2)
	for i := range whole {
		changed := bytes.Clone(whole)
		changed[i] ^= 1
		if out, _, code := command(t, "", "audit", "verify", "--head", kept, writeFile(t, changed)); code != exitFailed {
			t.Fatalf("byte %d: exit %d\n%s", i, code, out)
		}
	}
}

func TestAuditVerifyOfARecoveredLog(t *testing.T) {
	l, _ := auditLines(t)
	path := writeFile(t, bytes.Join([][]byte{l[0], l[1][:30]}, nil))
	auditLog(t, path, "f")
	out, errs, code := command(t, "", "audit", "verify", path)
	if code != exitOK || !strings.Contains(out, ": 3 records, 1 of them of kind recovered\n") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	out, _, code = command(t, "", "audit", "query", path)
	if code != exitOK || !strings.Contains(out, "recovered") || !strings.Contains(out, ".torn-") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// toolsOf gives the TOOL column of a table.
func toolsOf(table string) string {
	var out []string
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] != "TOOL" {
			out = append(out, fields[2])
		}
	}
	return strings.Join(out, "")
}

func TestAuditQuery(t *testing.T) {
	l, _ := auditLines(t)
	log := writeFile(t, bytes.Join(l, nil))
	torn := writeFile(t, bytes.Join([][]byte{l[0], l[1], l[2][:30]}, nil))
	bad := writeFile(t, bytes.Join([][]byte{l[0], []byte("{}\n"), l[1]}, nil))
	tests := map[string]struct {
		args  []string
		code  int
		tools string
		err   string
	}{
		"all":                            {[]string{log}, exitOK, "abcde", ""},
		"outcomes":                       {[]string{log, "--outcome", "Block,Confirm"}, exitOK, "bd", ""},
		"a tool":                         {[]string{log, "--tool", "c"}, exitOK, "c", ""},
		"a caller":                       {[]string{log, "--caller", "shop/agent"}, exitOK, "abcde", ""},
		"another caller":                 {[]string{log, "--caller", "shop/other"}, exitOK, "", ""},
		"a reason":                       {[]string{log, "--reason", "PathNotAllowed"}, exitOK, "bd", ""},
		"what decided":                   {[]string{log, "--by", "rule:"}, exitOK, "bd", ""},
		"a policy that never applied":    {[]string{log, "--policy", "starter"}, exitOK, "", ""},
		"an id":                          {[]string{log, "--id", "d-e"}, exitOK, "e", ""},
		"since and until":                {[]string{log, "--since", "2026-01-02T12:01:00Z", "--until", "2026-01-02T14:03:00+02:00"}, exitOK, "bc", ""},
		"since an hour ago":              {[]string{log, "--since", "1h"}, exitOK, "", ""},
		"until an hour ago":              {[]string{log, "--until", "1h"}, exitOK, "abcde", ""},
		"the newest two":                 {[]string{log, "--limit", "2"}, exitOK, "de", ""},
		"the newest of those selected":   {[]string{log, "--limit", "1", "--outcome", "Block"}, exitOK, "d", ""},
		"more than there are":            {[]string{log, "--limit", "9"}, exitOK, "abcde", ""},
		"a torn end is said":             {[]string{torn}, exitError, "ab", "line 3: the last line is not finished"},
		"a torn end behind the newest":   {[]string{torn, "--limit", "1"}, exitError, "b", "line 3: the last line is not finished"},
		"a bad line is said":             {[]string{bad}, exitError, "a", "line 2: not a line of this log"},
		"a bad line hides what is newer": {[]string{bad, "--limit", "1"}, exitError, "", "line 2: not a line of this log"},
		"a file that is not there":       {[]string{"none.jsonl"}, exitError, "", "no such file"},
		"no file":                        {nil, exitUsage, "", "accepts 1 arg"},
		"an outcome that is none":        {[]string{log, "--outcome", "Deny"}, exitUsage, "", "Allow, Clarify, Confirm or Block"},
		"a caller that is none":          {[]string{log, "--caller", "agent"}, exitUsage, "", "NAMESPACE/NAME"},
		"a tool pattern that is none":    {[]string{log, "--tool", "*.read"}, exitUsage, "", "last character"},
		"a time that is none":            {[]string{log, "--since", "yesterday"}, exitUsage, "", "--since"},
		"a time to come":                 {[]string{log, "--until", "-1h"}, exitUsage, "", "--until"},
		"a limit below zero":             {[]string{log, "--limit", "-1"}, exitUsage, "", "--limit"},
		"an end of what goes on":         {[]string{log, "--until", "1h", "--follow"}, exitUsage, "", "--follow"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out, errs, code := command(t, "", append([]string{"audit", "query"}, test.args...)...)
			if code != test.code || toolsOf(out) != test.tools || !strings.Contains(errs, test.err) {
				t.Errorf("exit %d, want %d, tools %q, and error %q in:\n%s%s", code, test.code, test.tools, test.err, out, errs)
			}
		})
	}
}

func TestAuditQueryFormats(t *testing.T) {
	l, _ := auditLines(t)
	log := writeFile(t, bytes.Join(l[:2], nil))
	var want []audit.Entry
	for _, line := range l[:2] {
		e, err := audit.Decode(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, e)
	}
	tests := map[string]func(out string) []audit.Entry{
		"json": func(out string) []audit.Entry {
			var got []audit.Entry
			for line := range strings.Lines(out) {
				var e audit.Entry
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Error(err)
				}
				got = append(got, e)
			}
			return got
		},
		"yaml": func(out string) []audit.Entry {
			var got []audit.Entry
			for _, document := range strings.Split(out, "---\n")[1:] {
				var e audit.Entry
				if err := yaml.UnmarshalStrict([]byte(document), &e); err != nil {
					t.Error(err)
				}
				got = append(got, e)
			}
			return got
		},
	}
	for format, parse := range tests {
		t.Run(format, func(t *testing.T) {
			out, errs, code := command(t, "", "audit", "query", "-o", format, log)
			if code != exitOK {
				t.Fatalf("exit %d %s", code, errs)
			}
			if diff := cmp.Diff(want, parse(out)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	const table = "" +
		"TIME                      CALLER            TOOL              CLASS        OUTCOME  BY                  REASON              MS\n" +
		"2026-01-02T12:00:00.000Z  shop/agent        a                 Routine      Allow    rules               RulesPassed         0.12\n" +
		"2026-01-02T12:01:00.000Z  shop/agent        b                 Routine      Block    rule:path-escape    PathNotAllowed      0.12\n"
	out, _, _ := command(t, "", "audit", "query", log)
	if diff := cmp.Diff(table, out); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// What a caller named cannot move the cursor, break a row, or push later rows out of sight.
func TestAuditQueryIsSafeToPrint(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	auditLog(t, log, "\x1b[2J\r\n\u009b1A", strings.Repeat("long", 1000), "short")
	out, _, code := command(t, "", "audit", "query", log)
	rows := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if code != exitOK || len(rows) != 4 || strings.ContainsAny(out, "\x1b\r\u009b") {
		t.Errorf("exit %d, %d rows:\n%q", code, len(rows), out)
	}
	if len(rows[len(rows)-1]) > 200 {
		t.Errorf("a short row has %d bytes", len(rows[len(rows)-1]))
	}
}

func TestAuditQueryFollows(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	auditLog(t, log, "a", "b", "c")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in, out := io.Pipe()
	ended := make(chan error, 1)
	root := newRoot("gatewright")
	root.SetArgs([]string{"audit", "query", "--follow", "--limit", "2", log})
	root.SetOut(out)
	go func() {
		err := root.ExecuteContext(ctx)
		out.Close()
		ended <- err
	}()
	rows := bufio.NewReader(in)
	read := func(n int) string {
		t.Helper()
		var got strings.Builder
		for range n {
			row, err := rows.ReadString('\n')
			if err != nil {
				t.Fatalf("%v after:\n%s", err, got.String())
			}
			got.WriteString(row)
		}
		return toolsOf(got.String())
	}
	if got := read(3); got != "bc" { // the heading and two rows
		t.Errorf("first come %q", got)
	}
	auditLog(t, log, "d", "e")
	if got := read(2); got != "de" {
		t.Errorf("then come %q", got)
	}
	cancel()
	if rest, _ := rows.ReadString('\n'); rest != "" {
		t.Errorf("at the end comes %q", rest)
	}
	if err := <-ended; err != nil {
		t.Errorf("the end: %v", err)
	}
}
