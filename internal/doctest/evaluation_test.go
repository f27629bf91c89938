package doctest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	goTest   = regexp.MustCompile(`go test ([^;` + "`" + `]*)`)
	runFlag  = regexp.MustCompile(`-(run|bench) (?:'([^']*)'|(\S+))`)
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w*)\(`)
)

// A page that says by which test something is checked names tests that are there: `go test` itself is content with none.
func TestPagesNameTestsThatAreThere(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, path := range pages {
		page, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(page, "adr") { // a decision is not edited when a test gets another name
			continue
		}
		text := strings.ReplaceAll(read(t, filepath.ToSlash(page)), `\|`, "|") // as in a table
		for _, m := range goTest.FindAllStringSubmatch(text, -1) {
			commands++
			checkTestCommand(t, filepath.ToSlash(page), m[1])
		}
	}
	if commands < 40 {
		t.Errorf("%d commands were found: the pages have more", commands)
	}
}

// checkTestCommand takes what stands behind go test.
func checkTestCommand(t *testing.T, page, arguments string) {
	t.Helper()
	names := ""
	for field := range strings.FieldsSeq(arguments) {
		if strings.HasPrefix(field, "./") {
			names += testsOf(t, page, field)
		}
	}
	if names == "" {
		t.Errorf("%s: go test %s: no package with tests is named", page, arguments)
	}
	for _, flag := range runFlag.FindAllStringSubmatch(arguments, -1) {
		for pattern := range strings.SplitSeq(flag[2]+flag[3], "|") {
			top, _, _ := strings.Cut(pattern, "/")
			if top == "^$" || top == "none" { // on purpose
				continue
			}
			kind := map[string]string{"run": "(?:Test|Fuzz)", "bench": "Benchmark"}[flag[1]]
			if !isNamed(names, kind, top) {
				t.Errorf("%s: go test %s: %q matches nothing", page, arguments, top)
			}
		}
	}
}

// isNamed says whether a pattern matches one of the names, which stand one a line.
func isNamed(names, kind, pattern string) bool {
	ofKind := regexp.MustCompile("^" + kind)
	matches := regexp.MustCompile(pattern)
	for name := range strings.SplitSeq(names, "\n") {
		if ofKind.MatchString(name) && matches.MatchString(name) {
			return true
		}
	}
	return false
}

// testsOf gives the names of the tests of a package, or of a folder and all below it, one a line.
func testsOf(t *testing.T, page, pkg string) string {
	t.Helper()
	dir, isAll := strings.CutSuffix(pkg, "/...")
	dir = filepath.Join(root, dir)
	var names strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && !isAll:
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllSubmatch(data, -1) {
			names.Write(append(m[1], '\n'))
		}
		return err
	})
	if err != nil {
		t.Errorf("%s: go test %s: %v", page, pkg, err)
	}
	return names.String()
}
