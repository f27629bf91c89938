package doctest

import (
	"fmt"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// linked gives the files that a page links to, by their path below root.
func linked(t *testing.T, page string) []string {
	t.Helper()
	prose, _ := split(read(t, page))
	var found []string
	for _, line := range prose {
		for _, target := range targets(line) {
			file, _, _ := strings.Cut(target, "#")
			if !strings.Contains(file, ":") {
				found = append(found, path.Join(path.Dir(page), file))
			}
		}
	}
	return found
}

// indexedBelow gives the pages and schemas below a folder, without the indexes of folders.
func indexedBelow(t *testing.T, folder string) []string {
	t.Helper()
	return slices.DeleteFunc(filesBelow(t, folder, ".md", ".json"), func(file string) bool { return path.Base(file) == "README.md" })
}

// TestEachPageIsInItsIndex looks for pages that nobody finds who begins at an index.
func TestEachPageIsInItsIndex(t *testing.T) {
	tests := map[string]struct {
		folder string
		least  int
	}{
		"docs/README.md":           {"docs", 50},
		"docs/reference/README.md": {"docs/reference", 10},
	}
	for index, tt := range tests {
		t.Run(index, func(t *testing.T) {
			files, named := indexedBelow(t, tt.folder), linked(t, index)
			if len(files) < tt.least {
				t.Fatalf("only %d files are found below %s", len(files), tt.folder)
			}
			for _, file := range files {
				if !slices.Contains(named, file) {
					t.Errorf("%s has no link to %s", index, file)
				}
			}
		})
	}
}

var decisionInList = regexp.MustCompile(`(?m)^(\d+)\. \[([^\]]+)\]\(adr/(\d+)-`)

// TestDecisionsAreListedInTurn: the list has each number once and in turn, and it is that of the page.
func TestDecisionsAreListedInTurn(t *testing.T) {
	found := decisionInList.FindAllStringSubmatch(read(t, "docs/README.md"), -1)
	if len(found) < 29 {
		t.Fatalf("only %d decisions are listed", len(found))
	}
	for i, m := range found {
		if m[1] != strconv.Itoa(i+1) || m[3] != fmt.Sprintf("%04d", i+1) {
			t.Fatalf("in place %d stands %s. %s, the page with number %s", i+1, m[1], m[2], m[3])
		}
	}
}

var requirement = regexp.MustCompile(`(?m)^(?:require )?\t?(\S+) v\S+$`)

// TestEachDirectModuleIsInADecision compares go.mod with the modules that the pages on dependencies give a reason for.
func TestEachDirectModuleIsInADecision(t *testing.T) {
	var text strings.Builder
	for _, file := range indexedBelow(t, "docs/adr") {
		text.WriteString(read(t, file))
	}
	direct := requirement.FindAllStringSubmatch(read(t, "go.mod"), -1)
	if len(direct) < 30 {
		t.Fatalf("only %d direct modules are found in go.mod", len(direct))
	}
	for _, m := range direct {
		if !strings.Contains(text.String(), "`"+m[1]+"`") {
			t.Errorf("no page in docs/adr says why go.mod requires %s", m[1])
		}
	}
}

var packageInTable = regexp.MustCompile("`([^`]+)`")

// TestEachPackageIsInTheArchitecture compares the packages with the first column of the table: a row stands for what lies
// below it only if it says so.
func TestEachPackageIsInTheArchitecture(t *testing.T) {
	rows, below := map[string]bool{}, map[string]bool{}
	for line := range strings.SplitSeq(read(t, "docs/architecture.md"), "\n") {
		first, _, ok := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		if !ok || !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, m := range packageInTable.FindAllStringSubmatch(first, -1) {
			if rows[m[1]] {
				t.Errorf("%s has two rows", m[1])
			}
			rows[m[1]], below[m[1]] = true, strings.Contains(first, "and below")
		}
	}
	packages := productPackages(t)
	for _, p := range packages {
		if !rows[p] && !coveredFromAbove(p, below) {
			t.Errorf("docs/architecture.md has no row for %s", p)
		}
	}
	if len(rows) < 40 || len(packages) < 60 {
		t.Errorf("%d rows and %d packages are found: one of the patterns has become blind", len(rows), len(packages))
	}
}

func coveredFromAbove(p string, below map[string]bool) bool {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if below[dir] {
			return true
		}
	}
	return false
}

// productPackages gives the folders of packages, but for those of tools, measurements and manifests, which say themselves
// what they are for.
func productPackages(t *testing.T) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "./api/...", "./charts/...", "./cmd/...", "./controllers/...", "./internal/...", "./permit/...")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		found = append(found, strings.TrimPrefix(strings.TrimSpace(line), "gatewright.dev/gatewright/"))
	}
	return found
}
