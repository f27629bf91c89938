package shell_test

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatewright.dev/gatewright/internal/policy/effects/shell"
)

// Lines whose meaning hangs on where a quote, a comment, a here-document or a continued line ends, and what is put into them.
var (
	trickyLines = []string{
		"ls a # ' ; rm b", "ls # \\\nrm b", "cat <<E\n; rm x\nE\nls", "cat <<'E'\n$(rm x)\nE\n", "grep a <<-E\n\t' ; rm x\n\tE\nls",
		`echo 'a; rm x' "b; rm y"`, "ls \\\n; echo \\\nrm x", `ls a 2>/dev/null >&2; echo \; rm x`, `(ls; { cat; }) | grep 'rm' `,
		`sh -c 'ls "; rm x"'`, `tr a <<< "x; rm y"`, "! grep -q x rm", `echo "a'" ; ls '"; rm x'`, "cat <<A <<B\nrm x\nA\nrm y\nB\nls",
		`ls && echo "\"; rm x"`,
	}
	trickyParts = []string{
		"ls", "rm", " ", "\t", "\n", ";", "&&", "|", "(", ")", "{ ", "; }", "'", `"`, `\`, "#", "<<E", "\nE\n", "<<'E'", "<<-E", "\n\tE\n",
		`<<\E`, `<<E"F"`, "\nEF\n", "<<<", "a", "-x", "*", "{a,b}", "~", ">/dev/null", "2>&1", "!", "\\\n", "=", "[", "]", `\'`, `\"`, ">&", "<",
		"é", "--", "E", "EF", "$", "`", "time ", "sh -c ",
	}
)

// What real shells run of a line that is called a read are programs that the result names: where parser and shells come to
// see a line differently, this fails. Nothing but stubs can be found by the shells, and only reads are handed to them.
func TestShellsRunNoOtherPrograms(t *testing.T) {
	shells := installed("bash", "dash")
	if len(shells) == 0 {
		t.Skip("neither bash nor dash is installed")
	}
	box := newBox(t, "ls", "cat", "rm", "grep", "tr", "time")
	random := rand.New(rand.NewPCG(1, 2))
	for reads := 0; reads < 80; {
		line := trickyLines[random.IntN(len(trickyLines))]
		for range 1 + random.IntN(4) {
			at := random.IntN(len(line) + 1)
			line = line[:at] + trickyParts[random.IntN(len(trickyParts))] + line[at:]
		}
		r := shell.Parse(line)
		if !r.Parsed || !r.Effects.IsRead() {
			continue
		}
		reads++
		for _, path := range shells {
			for _, program := range box.run(t, path, line) {
				if !slices.Contains(r.Programs, program) && program != "time" { // a program to some shells, a word to others
					t.Errorf("%s runs %s of %q, whose programs are %v", path, program, line, r.Programs)
				}
			}
		}
	}
}

func installed(names ...string) []string {
	var paths []string
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// box is a folder in which shells find stubs only. Each stub notes that it ran.
type box struct{ folder, log string }

func newBox(t *testing.T, programs ...string) box {
	t.Helper()
	b := box{folder: t.TempDir()}
	b.log = filepath.Join(b.folder, "log")
	for _, folder := range []string{"bin", "work"} {
		if err := os.Mkdir(filepath.Join(b.folder, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range programs {
		stub := "#!/bin/sh\necho " + program + " >> '" + b.log + "'\n"
		if err := os.WriteFile(filepath.Join(b.folder, "bin", program), []byte(stub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/bin/sh", filepath.Join(b.folder, "bin", "sh")); err != nil {
		t.Fatal(err)
	}
	return b
}

// run gives the stubs that a shell ran for a line.
func (b box) run(t *testing.T, path, line string) []string {
	t.Helper()
	if err := os.WriteFile(b.log, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, path, "-c", line)
	command.Dir = filepath.Join(b.folder, "work")
	command.Env = []string{"PATH=" + filepath.Join(b.folder, "bin"), "LC_ALL=C.UTF-8"}
	_ = command.Run() // what the line comes to is of no interest
	if ctx.Err() != nil {
		t.Fatalf("%s does not end on %q", path, line)
	}
	ran, err := os.ReadFile(b.log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(ran))
}
