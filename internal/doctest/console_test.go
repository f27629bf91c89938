package doctest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a block marked console may run. A page that shows anything else marks it sh, and it is not run.
var mayRun = []string{"gatewright", "bash", "curl", "python3", "tail", "grep", "chmod", "echo"}

// documented is the address that pages show; the gate under test listens on another port.
const documented = "127.0.0.1:8470"

// TestConsole runs the commands of each page in order, in a folder of its own. It compares what they print with what the
// page shows, and their exit status, which is 0 unless the page goes on with "echo $?".
//
//	```console           $ starts a command, and what follows is its output, where "..." stands for anything
//	```json call.json    the block is the content of that file; a first line "# call.yaml" says the same
//
// A command "gatewright serve ... &" is started on a free port and goes on until the page ends or starts another.
func TestConsole(t *testing.T) {
	ran := map[string]int{}
	for _, page := range pages(t) {
		_, fences := split(read(t, page))
		if !slices.ContainsFunc(fences, func(f fence) bool { return f.info == "console" }) {
			continue
		}
		t.Run(page, func(t *testing.T) {
			s := newSession(t)
			defer s.stop(t)
			for _, f := range fences {
				ran[page] += s.play(t, page, f)
			}
		})
	}
	for _, page := range []string{"README.md", "docs/guides/install.md", "docs/guides/audit-log.md"} {
		if ran[page] == 0 {
			t.Errorf("%s runs no command", page)
		}
	}
}

// session is what one page's commands share.
type session struct {
	dir     string
	address string // of the gate, empty without one
	gate    *exec.Cmd
	exit    int // of the last command
}

func newSession(t *testing.T) *session {
	t.Helper()
	s := &session{dir: t.TempDir()}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config", "testdata", "clients", "docs"} {
		if err := os.Symlink(filepath.Join(top, name), filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// play does what a block says and returns how many commands it ran.
func (s *session) play(t *testing.T, page string, f fence) int {
	t.Helper()
	if name := fileOf(f); name != "" {
		s.write(t, name, strings.Join(f.text, "\n")+"\n")
		return 0
	}
	if f.info != "console" {
		return 0
	}
	steps := parse(f)
	for i, step := range steps {
		checked := i+1 < len(steps) && steps[i+1].command == "echo $?"
		if problem := s.run(t, step, checked); problem != "" {
			t.Fatalf("%s:%d: %s: %s", page, step.line, step.command, problem)
		}
	}
	return len(steps)
}

var firstLineNames = regexp.MustCompile(`^# ([\w./-]+\.\w+)$`)

// fileOf returns the name of the file that a block is the content of, or nothing.
func fileOf(f fence) string {
	words := strings.Fields(f.info)
	if len(words) == 2 && strings.Contains(words[1], ".") {
		return words[1]
	}
	if len(words) == 1 && len(f.text) > 0 {
		if name := firstLineNames.FindStringSubmatch(f.text[0]); name != nil {
			return name[1]
		}
	}
	return ""
}

func (s *session) write(t *testing.T, name, content string) {
	t.Helper()
	if !filepath.IsLocal(name) {
		t.Fatalf("%s is no name of a file in the folder", name)
	}
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// step is a command with the output that the page shows.
type step struct {
	line    int
	command string
	output  []string
}

func parse(f fence) []step {
	var steps []step
	continued := false
	for i, line := range f.text {
		command, starts := strings.CutPrefix(line, "$ ")
		switch {
		case continued:
			steps[len(steps)-1].command += " " + strings.TrimSpace(strings.TrimSuffix(line, `\`))
		case starts:
			steps = append(steps, step{line: f.line + i, command: strings.TrimSpace(strings.TrimSuffix(command, `\`))})
		case len(steps) > 0:
			steps[len(steps)-1].output = append(steps[len(steps)-1].output, line)
			continue
		}
		continued = strings.HasSuffix(line, `\`)
	}
	return steps
}

// run runs one command and says what is wrong, or nothing.
func (s *session) run(t *testing.T, p step, checked bool) string {
	t.Helper()
	if p.command == "echo $?" {
		return compare(p.output, strconv.Itoa(s.exit))
	}
	if program, _, _ := strings.Cut(p.command, " "); !slices.Contains(mayRun, program) {
		return "a console block may run only " + strings.Join(mayRun, ", ")
	}
	if strings.HasPrefix(p.command, "gatewright serve ") && strings.HasSuffix(p.command, "&") {
		return s.serve(t, p)
	}
	problem := s.once(t, p, checked)
	// A record of what is no Allow reaches the file moments after its answer.
	for wait := 10 * time.Millisecond; problem != "" && reads(p.command) && wait < 3*time.Second; wait *= 2 {
		time.Sleep(wait)
		problem = s.once(t, p, checked)
	}
	return problem
}

// reads says whether a command only looks at files, so that it may be run again.
func reads(command string) bool {
	return strings.HasPrefix(command, "tail ") || strings.HasPrefix(command, "grep ") || strings.HasPrefix(command, "python3 ")
}

func (s *session) once(t *testing.T, p step, checked bool) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stdout, stderr, err := s.bash(ctx, p.command)
	s.exit = 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		s.exit = exit.ExitCode()
	case err != nil:
		return err.Error()
	}
	if s.exit != 0 && !checked {
		return fmt.Sprintf("exit status %d, and the page does not show it\n%s%s", s.exit, stdout, stderr)
	}
	if s.exit != 0 {
		stdout += stderr
	}
	return compare(p.output, stdout)
}

func (s *session) bash(ctx context.Context, command string) (stdout, stderr string, err error) {
	if s.address != "" {
		command = strings.ReplaceAll(command, documented, s.address)
	}
	c := exec.CommandContext(ctx, "bash", "-c", command)
	c.Dir, c.Env = s.dir, s.env()
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run()
	return s.asDocumented(out.String()), s.asDocumented(errs.String()), err
}

func (s *session) env() []string {
	env := append(os.Environ(), "PATH="+binaries+string(os.PathListSeparator)+os.Getenv("PATH"), "GATEWRIGHT_TOKEN_FILE=", "GATEWRIGHT_URL=")
	if s.address != "" {
		env = append(env, "GATEWRIGHT_URL=http://"+s.address)
	}
	return env
}

func (s *session) asDocumented(text string) string {
	if s.address == "" {
		return text
	}
	return strings.ReplaceAll(text, s.address, documented)
}

// serve starts a gate on a free port and waits until it is ready.
func (s *session) serve(t *testing.T, p step) string {
	t.Helper()
	s.stop(t)
	command := strings.TrimSpace(strings.TrimSuffix(p.command, "&")) + " --listen 127.0.0.1:0"
	s.gate = exec.Command("bash", "-c", "exec "+command)
	s.gate.Dir, s.gate.Env = s.dir, s.env()
	var errs strings.Builder
	s.gate.Stderr = &errs
	out, err := s.gate.StdoutPipe()
	if err != nil {
		return err.Error()
	}
	if err := s.gate.Start(); err != nil {
		return err.Error()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	address := regexp.MustCompile(`http://(\S+)`).FindStringSubmatch(line)
	if err != nil || address == nil {
		_ = s.gate.Wait()
		s.gate = nil
		return "the gate did not start: " + errs.String()
	}
	s.address, s.exit = address[1], 0
	if err := ready(t.Context(), "http://"+s.address+"/readyz"); err != nil {
		return err.Error()
	}
	return compare(p.output, s.asDocumented(line))
}

func ready(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the gate is not ready: HTTP %d", answer.StatusCode)
	}
	return nil
}

// stop ends the gate that this session started, and wants it to end well.
func (s *session) stop(t *testing.T) {
	t.Helper()
	if s.gate == nil {
		return
	}
	if err := errors.Join(s.gate.Process.Signal(syscall.SIGTERM), s.gate.Wait()); err != nil {
		t.Errorf("gate: %v", err)
	}
	s.gate, s.address = nil, ""
}

var blanks = regexp.MustCompile(`[ \t]+`)

// compare holds the output that a page shows against what was printed. Columns may have other widths. A page that shows no
// output promises none.
func compare(shown []string, printed string) string {
	want, got := clean(shown), clean(strings.Split(printed, "\n"))
	if len(want) == 0 || matches(want, got) {
		return ""
	}
	return fmt.Sprintf("prints\n%s\nand the page shows\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
}

func clean(lines []string) []string {
	var out []string
	for _, line := range lines {
		if line = strings.TrimSpace(blanks.ReplaceAllString(line, " ")); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// matches says whether the lines are those that are wanted, where "..." alone stands for any number of lines.
func matches(want, got []string) bool {
	switch {
	case len(want) == 0:
		return len(got) == 0
	case want[0] == "...":
		return matches(want[1:], got) || len(got) > 0 && matches(want, got[1:])
	case len(got) == 0:
		return false
	}
	parts := strings.Split(want[0], "...")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^"+strings.Join(parts, ".*")+"$").MatchString(got[0]) && matches(want[1:], got[1:])
}

func TestCompare(t *testing.T) {
	tests := map[string]struct {
		shown []string
		real  string
		same  bool
	}{
		"the same lines":                         {[]string{"a", "b"}, "a\nb\n", true},
		"other widths of columns":                {[]string{"a   b"}, "a b\n", true},
		"any text within a line":                 {[]string{"took ... ms"}, "took 0.31 ms\n", true},
		"any lines":                              {[]string{"a", "...", "z"}, "a\nb\nc\nz\n", true},
		"no lines where any may be":              {[]string{"a", "...", "z"}, "a\nz\n", true},
		"nothing is shown":                       {nil, "a\n", true},
		"a line is missing":                      {[]string{"a", "b"}, "a\n", false},
		"a line too much":                        {[]string{"a"}, "a\nb\n", false},
		"another line":                           {[]string{"a"}, "b\n", false},
		"dots of a pattern do not match letters": {[]string{"a.b"}, "axb\n", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if problem := compare(tt.shown, tt.real); (problem == "") != tt.same {
				t.Errorf("compare(%q, %q) = %q, want same: %v", tt.shown, tt.real, problem, tt.same)
			}
		})
	}
}
