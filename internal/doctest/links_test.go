package doctest

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	link       = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)(?:\s+"[^"]*")?\)`)
	definition = regexp.MustCompile(`^\s*\[[^\]]+\]:\s+(\S+)`)
	// outside matches absolute paths of folders in which people keep their work.
	outside = regexp.MustCompile(`(?:^|[^\w./-]|file://)/(?:work|tmp|home|root|Users|mnt|workspace)/`)
)

// TestLinks follows every relative link of every page, to its heading if it names one.
func TestLinks(t *testing.T) {
	followed := 0
	for _, page := range pages(t) {
		prose, _ := split(read(t, page))
		for i, line := range prose {
			for _, target := range targets(line) {
				if problem := follow(t, page, target); problem != "" {
					t.Errorf("%s:%d: link %s: %s", page, i+1, target, problem)
				}
				followed++
			}
		}
	}
	if followed < 50 {
		t.Errorf("%d links were followed: the pattern of links has become blind", followed)
	}
}

func targets(line string) []string {
	line = inlineCode.ReplaceAllStringFunc(line, func(s string) string { return strings.Repeat("x", len(s)) })
	var out []string
	for _, found := range link.FindAllStringSubmatch(line, -1) {
		out = append(out, found[1])
	}
	if found := definition.FindStringSubmatch(line); found != nil {
		out = append(out, found[1])
	}
	return out
}

// follow says what is wrong with a link, or nothing.
func follow(t *testing.T, page, target string) string {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		return err.Error()
	}
	if u.Scheme != "" {
		if u.Scheme != "https" && u.Scheme != "mailto" {
			return "wants https"
		}
		return ""
	}
	file := page
	if u.Path != "" {
		file = path.Join(path.Dir(page), u.Path)
	}
	if !filepath.IsLocal(file) || strings.HasPrefix(u.Path, "/") {
		return "leaves the repository"
	}
	info, err := os.Stat(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return "is not there"
	}
	if u.Fragment != "" && (info.IsDir() || !hasHeading(read(t, file), u.Fragment)) {
		return "has no such heading"
	}
	return ""
}

func hasHeading(text, anchor string) bool {
	prose, _ := split(text)
	for _, line := range prose {
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") && slug(heading) == anchor {
			return true
		}
	}
	return false
}

// slug is the anchor of a heading, as code hosts make it.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}

// TestNoPathOutside keeps paths of somebody's machine out of what all read.
func TestNoPathOutside(t *testing.T) {
	for _, page := range pages(t) {
		for i, line := range strings.Split(read(t, page), "\n") {
			if found := outside.FindString(line); found != "" {
				t.Errorf("%s:%d: names a path outside of the repository: %s", page, i+1, strings.TrimSpace(found))
			}
		}
	}
}

// TestOutside pins what counts as such a path.
func TestOutside(t *testing.T) {
	tests := map[string]struct {
		line string
		want bool
	}{
		"a folder of the machine":           {"see /mnt/disk for it", true},
		"a folder in code":                  {"run `/tmp/x`", true},
		"a home folder in brackets":         {"(/home/somebody/x)", true},
		"a file address":                    {"file:///home/somebody/x", true},
		"a folder of the repository":        {"see docs/tmp/x", false},
		"a relative path":                   {"see ../tmp/x", false},
		"a mounted token of a pod":          {"/var/run/secrets/tokens/gate", false},
		"a workspace of an agent, relative": {"below workspace/", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := outside.MatchString(tt.line); got != tt.want {
				t.Errorf("outside(%q) = %v, want %v", tt.line, got, tt.want)
			}
		})
	}
}
