package llama

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// firstCells returns what stands in backquotes in the first column of the table that has this heading.
func firstCells(page, heading string) []string {
	var cells []string
	_, table, _ := strings.Cut(page, "| "+heading+" |")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		if cell, ok := strings.CutPrefix(line, "| `"); ok {
			cell, _, _ = strings.Cut(cell, "`")
			cells = append(cells, cell)
		}
	}
	return cells
}

func TestThePageOfModelFilesIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/models.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := firstCells(string(page), "architecture")
	slices.Sort(listed)
	if diff := cmp.Diff(Architectures(), listed); diff != "" {
		t.Error(diff)
	}
	var reasons []string
	for _, r := range Reasons() {
		reasons = append(reasons, string(r))
	}
	if diff := cmp.Diff(reasons, firstCells(string(page), "reason")); diff != "" {
		t.Error(diff)
	}
}
