package proxy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheReferenceIsComplete compares codes, reasons and metrics with their tables, both ways.
func TestTheReferenceIsComplete(t *testing.T) {
	for name, tc := range map[string]struct {
		source, pattern, page, heading string
	}{
		"codes of the proxy":           {"denial.go", `(?m)^\tCode\w+ Code = "(\w+)"`, "http-errors.md", "## Codes of the proxy"},
		"reasons of a refused permit":  {"../../permit/errors.go", `(?m)^\tReason\w+ Reason = "(\w+)"`, "http-errors.md", "## Reasons of a refused permit"},
		"metrics of the proxy":         {"metrics.go", `Name: "(\w+)"`, "metrics.md", "## Metrics of the proxy"},
		"names in the _meta of a call": {"mcp.go", `(?m)^\tMeta\w+ = "([^"]+)"`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var want, got []string
			for _, found := range regexp.MustCompile(tc.pattern).FindAllStringSubmatch(read(t, tc.source), -1) {
				want = append(want, found[1])
			}
			if len(want) == 0 {
				t.Fatal("the source has none")
			}
			if tc.page == "" {
				guide := read(t, "../../docs/guides/enforce-at-the-tool.md")
				for _, name := range want {
					if !strings.Contains(guide, name) {
						t.Errorf("the guide does not tell of %s", name)
					}
				}
				return
			}
			_, section, found := strings.Cut(read(t, filepath.Join("../../docs/reference", tc.page)), tc.heading+"\n")
			if !found {
				t.Fatalf("%s has no %s", tc.page, tc.heading)
			}
			section, _, _ = strings.Cut(section, "\n## ")
			for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(section, -1) {
				got = append(got, row[1])
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the source (-) and the page (+) differ:\n%s", diff)
			}
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	return string(must(os.ReadFile(path))(t))
}
