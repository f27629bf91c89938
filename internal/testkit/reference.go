package testkit

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var code = regexp.MustCompile("^`([^`]+)`$")

// ReferenceTable gives the cells of a table below a heading of a page in Markdown, by what its first cell has as code.
func ReferenceTable(t *testing.T, page, heading string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, below, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("no heading %s", heading)
	}
	below, _, _ = strings.Cut(below, "\n## ")
	found := map[string][]string{}
	for line := range strings.SplitSeq(below, "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if name := code.FindStringSubmatch(cells[0]); name != nil {
			found[name[1]] = cells[1:]
		}
	}
	return found
}
