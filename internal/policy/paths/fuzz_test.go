package paths_test

import (
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"

	"gatewright.dev/gatewright/internal/policy/paths"
)

// FuzzPaths: what is accepted stays below a root, whether a tool decodes it never, or up to three times, with or without
// Unicode normalisation, and whether or not it takes a backslash for a separator.
func FuzzPaths(f *testing.F) {
	for _, values := range refused {
		for _, value := range values {
			f.Add(value)
		}
	}
	for _, value := range []string{"/srv/data/a%20b", "workspace/a/b", "./a/b/c/%2561", "½", "/srv/data/［.］."} {
		f.Add(value)
	}
	sets := [][]string{testRoots, {"."}}
	f.Fuzz(func(t *testing.T, value string) {
		for _, roots := range sets {
			checkStaysInside(t, roots, value)
		}
	})
}

func checkStaysInside(t *testing.T, roots []string, value string) {
	t.Helper()
	r := compile(t, roots...)
	v := r.Check(value)
	if diff := cmp.Diff(v, r.Check(value)); diff != "" {
		t.Fatalf("Check(%q) differs the second time:\n%s", value, diff)
	}
	if v != nil {
		return
	}
	for _, normalise := range []func(string) string{func(s string) string { return s }, norm.NFKC.String} {
		reading := value
		for layer := range 4 {
			plain := normalise(reading)
			if !inside(plain, roots) || strings.ContainsAny(plain, "\\\x00") || hasParent(plain) {
				t.Fatalf("Check(%q) accepts what becomes %q after %d decodings", value, plain, layer)
			}
			decoded, err := url.PathUnescape(plain)
			if err != nil {
				break
			}
			reading = decoded
		}
	}
}

func hasParent(value string) bool {
	for element := range strings.SplitSeq(value, "/") {
		if strings.TrimSpace(element) == ".." {
			return true
		}
	}
	return false
}

// TestSprayedFragments joins hostile fragments at random: whatever is accepted must stay inside.
func TestSprayedFragments(t *testing.T) {
	fragments := []string{
		"/srv/data", "workspace", "/", "//", ".", "..", "%2e", "%252e", "%2f", "%5c", "%", "%%", "25", "2e", "2f", "．", "／", "＼",
		"％", "‥", "…", " ", "+", "~", "$", "[", "]", "{", "}", ",", "*", "?", ":", "a", "con", "\\", "\x00", "\xc0\xae", "%c0%ae",
		"%u002e", "é", "\u0301", "\ufe0f", "½", "-", "。",
	}
	random := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	r := compile(t, testRoots...)
	for range 20_000 {
		var b strings.Builder
		if random.IntN(2) == 0 {
			b.WriteString("/srv/data/")
		}
		for range 1 + random.IntN(7) {
			b.WriteString(fragments[random.IntN(len(fragments))])
		}
		checkStaysInside(t, testRoots, b.String())
		if r.Check(b.String()) == nil {
			accepted++
		}
	}
	if accepted < 100 {
		t.Errorf("only %d values were accepted: the property was hardly tested", accepted)
	}
}

func BenchmarkCheck(b *testing.B) {
	r := compile(b, testRoots...)
	values := map[string]string{
		"plain":   "/srv/data/reports/2024/q1.csv",
		"encoded": "/srv/data/my%20report.csv",
		"unicode": "/srv/data/資料/データ.txt",
		"refused": "/srv/data/%252e%252e/etc/passwd",
	}
	for name, value := range values {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var v *paths.Violation
			for b.Loop() {
				v = r.Check(value)
			}
			_ = v
		})
	}
}
