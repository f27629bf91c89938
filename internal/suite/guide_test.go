package suite

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The blocks of the guide that begin with a file name are that file.
var guideFile = regexp.MustCompile("(?ms)^```yaml\n# ([a-z-]+\\.yaml)\n(.*?)^```")

func TestTheGuidesSuiteComesOutAsTheGuideSays(t *testing.T) {
	data, err := os.ReadFile("../../docs/guides/policy-author.md")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	files := guideFile.FindAllSubmatch(data, -1)
	for _, f := range files {
		put(t, filepath.Join(folder, string(f[1])), string(f[2]))
	}
	report, err := Run(t.Context(), Options{Paths: []string{folder}, MinimumCoverage: 90})
	if err != nil {
		t.Fatal(err)
	}
	got := text(t, report)
	if len(files) != 2 || !report.Passed() || !strings.Contains(string(data), got) {
		t.Errorf("the guide has %d files, and does not show what running them gives:\n%s", len(files), got)
	}
}

func TestTheGuidesLinksLeadSomewhere(t *testing.T) {
	const folder = "../../docs/guides"
	data, err := os.ReadFile(filepath.Join(folder, "policy-author.md"))
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllSubmatch(data, -1)
	if len(links) == 0 {
		t.Fatal("found no links")
	}
	for _, link := range links {
		if _, err := os.Stat(filepath.Join(folder, string(link[1]))); err != nil {
			t.Error(err)
		}
	}
}
