package shell_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/policy/effects/effect"
	"gatewright.dev/gatewright/internal/policy/effects/shell"
)

func FuzzShell(f *testing.F) {
	for _, line := range []string{"ls -la", "ls $(rm x)", "cat < f | sort -o g", `r\m x`, "git log --output=x", "sh -c 'ls'", "find . -delete",
		"cat <<E\nx\nE", "cd a && ls b", "sed 's/a/b/' f", "a=b ls", "ls # x", "ls \\", "{ ls; }", "kubectl get po", "ls 2>&1", "[ -f a ]"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		r := shell.Parse(line)
		if diff := cmp.Diff(r, shell.Parse(line)); diff != "" {
			t.Errorf("judging twice differs:\n%s", diff)
		}
		if !r.Parsed && r.Effects != effect.Worst {
			t.Errorf("not parsed, yet %b", r.Effects)
		}
		if r.Effects.IsRead() != (r.Why == "") {
			t.Errorf("read = %v, but why = %q", r.Effects.IsRead(), r.Why)
		}
		if !r.Parsed {
			return
		}
		if got := shell.Parse(line + "\nrm -rf /"); got.Effects.IsRead() && !goesOn(line) {
			t.Error("a deletion on the next line is still a read")
		}
		if got := shell.Parse("rm -rf /; " + line); got.Effects.IsRead() {
			t.Error("a deletion before it is still a read")
		}
		if got := shell.Parse("(" + line + "\n); rm -rf /"); got.Effects.IsRead() && !goesOn(line) {
			t.Error("a deletion behind brackets is still a read")
		}
	})
}

// goesOn tells that the next line may belong to this one: behind a backslash, or in a here-document.
func goesOn(line string) bool { return strings.HasSuffix(line, "\\") || strings.Contains(line, "<<") }
