package paths_test

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/policy/paths"
)

var testRoots = []string{"/srv/data", "/home/agent/été", "workspace/", "a/./b//c"}

func compile(t testing.TB, roots ...string) *paths.Roots {
	t.Helper()
	r, err := paths.Compile(roots)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCheckAllows(t *testing.T) {
	tests := map[string]string{
		"the root itself":                               "/srv/data",
		"the root with a slash":                         "/srv/data/",
		"a file below the root":                         "/srv/data/a/b.txt",
		"doubled slashes inside":                        "/srv//data///a",
		"current directory elements":                    "/srv/./data/./a/.",
		"a relative root":                               "workspace",
		"a file below a relative root":                  "workspace/a.txt",
		"a leading current directory element":           "./workspace/a.txt",
		"a root that was written untidily":              "a/b/c/d",
		"a hidden file":                                 "/srv/data/.profile",
		"dots inside a name":                            "/srv/data/a..b/v1..2",
		"names that begin with two dots":                "/srv/data/..a/...b",
		"a space inside a name":                         "/srv/data/my file.txt",
		"an encoded space":                              "/srv/data/my%20file.txt",
		"an encoded letter of another script":           "/srv/data/%C3%A9t%C3%A9",
		"a lone percent sign":                           "/srv/data/100%.txt",
		"two percent signs that name no variable":       "/srv/data/5% to 10%.txt",
		"an encoded slash that stays inside":            "/srv/data/a%2fb",
		"letters of other scripts":                      "/srv/data/資料/データ.txt",
		"a root in another script":                      "/home/agent/été/x",
		"a full-width colon in a name":                  "/srv/data/第一章：開始.txt",
		"an ellipsis inside a name":                     "/srv/data/wait… what.txt",
		"an emoji with a variation selector":            "/srv/data/❤️.txt",
		"a version with a plus":                         "/srv/data/c++/1.0+build",
		"brackets as web frameworks use them":           "/srv/data/app/[id]/[[...slug]]/page.tsx",
		"parentheses":                                   "/srv/data/report (1).pdf",
		"a tilde at the end or below the root":          "/srv/data/~cache/notes.txt~",
		"a dash below the root":                         "workspace/-n",
		"a name that only begins like a device":         "/srv/data/console.log",
		"a name that only ends like a device":           "/srv/data/icon",
		"a long name below the limit":                   "/srv/data/" + strings.Repeat("a", 4000),
		"eight layers of encoding around a plain space": "/srv/data/a%" + strings.Repeat("25", 7) + "20b",
	}
	r := compile(t, testRoots...)
	for name, value := range tests {
		t.Run(name, func(t *testing.T) {
			if v := r.Check(value); v != nil {
				t.Errorf("Check(%q) = %+v, want nil", value, *v)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	r := compile(t, testRoots...)
	for code, values := range refused {
		t.Run(string(code), func(t *testing.T) {
			for name, value := range values {
				t.Run(name, func(t *testing.T) {
					v := r.Check(value)
					if v == nil {
						t.Fatalf("Check(%q) = nil, want %s", value, code)
					}
					if v.Code != code {
						t.Errorf("Check(%q) = %+v, want %s", value, *v, code)
					}
					if v.Detail == "" || len(v.Detail) > 80 {
						t.Errorf("detail %q has %d bytes, want 1 to 80", v.Detail, len(v.Detail))
					}
				})
			}
		})
	}
}

// With "." as a root nothing but the form of the value stands between a relative path and the file system.
func TestCheckBelowTheWorkingDirectory(t *testing.T) {
	r := compile(t, ".")
	tests := map[string]struct {
		value string
		want  paths.Code
	}{
		"the directory itself":         {".", ""},
		"a file":                       {"a/b.txt", ""},
		"a colonless name":             {"README.md", ""},
		"an absolute path":             {"/etc/passwd", paths.OutsideRoots},
		"an encoded absolute path":     {"%2fetc/passwd", paths.Escape},
		"a parent":                     {"a/../../b", paths.Escape},
		"a home directory":             {"~/x", paths.HomeOrVariable},
		"an option":                    {"-x", paths.Option},
		"an encoded URL":               {"http%3a//example.com", paths.URLForm},
		"a full-width absolute path":   {"／etc", paths.Escape},
		"a vulgar fraction in a name":  {"½ cup.txt", ""},
		"a leading space and absolute": {" /etc", paths.WindowsPath},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got paths.Code
			if v := r.Check(tt.value); v != nil {
				got = v.Code
			}
			if got != tt.want {
				t.Errorf("Check(%q) = %q, want %q", tt.value, got, tt.want)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	tests := map[string]struct {
		roots []string
		want  string
	}{
		"no roots": {nil, "no allowed directory: name at least one"},
		"an empty root": {[]string{"/srv", ""},
			`allowed directory "": the path is empty: write a plain directory such as /srv/data or workspace/`},
		"everything":       {[]string{"/"}, `allowed directory "/": allows every path: name a directory below /`},
		"everything twice": {[]string{"/./"}, `allowed directory "/./": allows every path: name a directory below /`},
		"a parent": {[]string{"/srv/../etc"},
			`allowed directory "/srv/../etc": the path holds a parent directory element (..): write a plain directory such as /srv/data or workspace/`},
		"percent-encoding": {[]string{"/srv/a%20b"},
			`allowed directory "/srv/a%20b": holds %: write the directory without percent-encoding`},
		"a ligature": {[]string{"/srv/ﬁles"},
			`allowed directory "/srv/ﬁles": holds characters that have a plainer form: write it in Unicode normal form NFKC`},
		"a pattern": {[]string{"/srv/*"},
			`allowed directory "/srv/*": the path holds a pattern character (* ? { }): write a plain directory such as /srv/data or workspace/`},
		"a home directory": {[]string{"~/data"},
			`allowed directory "~/data": the path begins with a home directory (~): write a plain directory such as /srv/data or workspace/`},
		"a drive": {[]string{`C:\data`},
			`allowed directory "C:\\data": the path begins with a drive letter: write a plain directory such as /srv/data or workspace/`},
		"a URL": {[]string{"file:///srv"},
			`allowed directory "file:///srv": the value is a URL, not a path: write a plain directory such as /srv/data or workspace/`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := paths.Compile(tt.roots)
			if err == nil {
				t.Fatalf("Compile(%q) = %v, want an error", tt.roots, r)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingCompiledAllowsNothing(t *testing.T) {
	var none *paths.Roots
	want := &paths.Violation{Code: paths.OutsideRoots, Detail: "the path is not in an allowed directory"}
	for name, r := range map[string]*paths.Roots{"nil": none, "zero": {}} {
		if diff := cmp.Diff(want, r.Check("/srv/data/a")); diff != "" {
			t.Errorf("%s roots (-want +got):\n%s", name, diff)
		}
	}
}

// An allowed value must not become forbidden, or the reverse, because another root was added: roots only add up.
func TestRootsOnlyAddUp(t *testing.T) {
	one, both := compile(t, "/srv/data"), compile(t, "/srv/data", "workspace")
	for code, values := range refused {
		for name, value := range values {
			if one.Check(value) == nil && both.Check(value) != nil {
				t.Errorf("%s, %s: allowed by one root and refused by two", code, name)
			}
		}
	}
}

func TestAllowedPathsDoNotAllocate(t *testing.T) {
	r := compile(t, testRoots...)
	for _, value := range []string{"/srv/data/a/b.txt", "workspace/reports/2024/q1.csv", "/srv/data/100%.txt"} {
		if got := testing.AllocsPerRun(100, func() { r.Check(value) }); got != 0 {
			t.Errorf("Check(%q) allocates %v times, want 0", value, got)
		}
	}
}

// inside is the property in its plainest form, by the standard library alone.
func inside(value string, roots []string) bool {
	cleaned := path.Clean(value)
	for _, root := range roots {
		root = path.Clean(root)
		if root == "." && !path.IsAbs(cleaned) && cleaned != ".." && !strings.HasPrefix(cleaned, "../") {
			return true
		}
		if cleaned == root || strings.HasPrefix(cleaned, root+"/") {
			return true
		}
	}
	return false
}
