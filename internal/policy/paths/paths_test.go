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

var refused = map[paths.Code]map[string]string{
	paths.Empty: {"nothing": ""},
	paths.TooLong: {
		"one byte over the limit": "/srv/data/" + strings.Repeat("a", 4087),
	},
	paths.NotText: {
		"NUL":                            "/srv/data/a\x00.txt",
		"encoded NUL":                    "/srv/data/a%00.txt",
		"twice encoded NUL":              "/srv/data/a%2500.txt",
		"a newline":                      "/srv/data/a\nb",
		"an encoded newline":             "/srv/data/a%0a",
		"a tab inside dots":              "/srv/data/.\t./x",
		"delete":                         "/srv/data/a\x7f",
		"a zero-width joiner in dots":    "/srv/data/.\u200d./x",
		"a right-to-left override":       "/srv/data/txt.\u202eexe",
		"a byte that is no UTF-8":        "/srv/data/\xff",
		"an encoded byte that is no UTF": "/srv/data/%ff",
		"a surrogate":                    "/srv/data/\xed\xa0\x80",
		"a cut sequence":                 "/srv/data/a%e2%82",
	},
	paths.Escape: {
		"a parent element":                           "/srv/data/../etc/passwd",
		"a parent element that stays inside":         "/srv/data/a/../b",
		"a parent element at the end":                "/srv/data/..",
		"a parent element in front":                  "../etc/passwd",
		"a parent element before the root":           "/tmp/../srv/data",
		"an encoded parent":                          "/srv/data/%2e%2e/etc",
		"an encoded parent in upper case":            "/srv/data/%2E%2E/etc",
		"a half encoded parent":                      "/srv/data/.%2e/etc",
		"an encoded slash after the parent":          "/srv/data/..%2fetc",
		"all encoded":                                "/srv/data/%2e%2e%2fetc",
		"twice encoded":                              "/srv/data/%252e%252e/etc",
		"three times encoded":                        "/srv/data/%25252e%25252e%25252fetc",
		"eight times encoded":                        "/srv/data/%" + strings.Repeat("25", 7) + "2e./etc",
		"nine times encoded, whatever it is":         "/srv/data/%" + strings.Repeat("25", 8) + "41",
		"an escape made of escapes":                  "/srv/data/%%32%65%%32%65/etc",
		"an escape behind a broken one":              "/srv/data/100%/%2e%2e/etc",
		"an overlong dot":                            "/srv/data/\xc0\xae\xc0\xae/etc",
		"an encoded overlong dot":                    "/srv/data/%c0%ae%c0%ae/etc",
		"an encoded overlong slash":                  "/srv/data/..%c0%afetc",
		"a three byte overlong slash":                "/srv/data/..%e0%80%afetc",
		"a four byte overlong dot":                   "/srv/data/%f0%80%80%ae./etc",
		"a five byte overlong dot":                   "/srv/data/%f8%80%80%80%ae./etc",
		"an overlong backslash":                      "/srv/data/..%c1%9cetc",
		"a wide escape":                              "/srv/data/%u002e%u002e/etc",
		"a wide escape of a full-width dot":          "/srv/data/%uff0e%uff0e/etc",
		"an encoded wide escape":                     "/srv/data/%25u002e./etc",
		"full-width dots":                            "/srv/data/．．/etc",
		"encoded full-width dots":                    "/srv/data/%ef%bc%8e%ef%bc%8e/etc",
		"a full-width slash":                         "/srv/data/..／etc",
		"a full-width percent sign":                  "/srv/data/％２ｅ％２ｅ/etc",
		"an encoded full-width percent sign":         "/srv/data/%ef%bc%852e./etc",
		"a one dot leader":                           "/srv/data/․․/etc",
		"a two dot leader":                           "/srv/data/‥/etc",
		"an ellipsis as an element":                  "/srv/data/…/etc",
		"small full stops":                           "/srv/data/﹒﹒/etc",
		"ideographic full stops":                     "/srv/data/。。/etc",
		"half-width ideographic full stops":          "/srv/data/｡｡/etc",
		"a fraction slash after a parent":            "/srv/data/..⁄etc",
		"a division slash after a parent":            "/srv/data/..∕etc",
		"a backslash":                                `/srv/data/..\etc`,
		"a backslash that stays inside":              `/srv/data/a\b`,
		"an encoded backslash":                       "/srv/data/..%5cetc",
		"a twice encoded backslash":                  "/srv/data/..%255cetc",
		"a full-width backslash":                     "/srv/data/..＼etc",
		"a small backslash":                          "/srv/data/a﹨b",
		"a set minus as a backslash":                 "/srv/data/..∖etc",
		"a parent with a trailing space":             "/srv/data/.. /etc",
		"a parent with a leading space":              "/srv/data/ ../etc",
		"a parent with a space between":              "/srv/data/. ./etc",
		"a parent with an encoded space":             "/srv/data/..%20/etc",
		"a parent with a plus for a space":           "/srv/data/..+/etc",
		"a parent with a no-break space":             "/srv/data/..\u00a0/etc",
		"a parent with a variation selector":         "/srv/data/.\ufe0f./etc",
		"a parent with a combining mark":             "/srv/data/..\u0301/etc",
		"three dots":                                 "/srv/data/.../etc",
		"a relative value that decodes to absolute":  "%2fetc/passwd",
		"a relative value that folds to absolute":    "／etc/passwd",
		"a parent inside braces":                     "/srv/data/{x,../../etc}",
		"a parent behind a semicolon path parameter": "/srv/data/..%3b/../etc",
	},
	paths.OutsideRoots: {
		"another directory":                  "/etc/passwd",
		"the file system's root":             "/",
		"the parent of a root":               "/srv",
		"a name that a root is a prefix of":  "/srv/database",
		"a name that a root is a suffix of":  "/mnt/srv/data",
		"another case":                       "/srv/Data/x",
		"another Unicode form of a root":     "/home/agent/e\u0301te\u0301/x",
		"an encoded form of a root":          "/srv/d%61ta/x",
		"a look-alike letter":                "/srv/dаta/x",
		"the relative form of an absolute":   "srv/data/x",
		"the absolute form of a relative":    "/workspace/x",
		"another relative directory":         "work/x",
		"the working directory":              ".",
		"part of a relative root":            "a/b",
		"a relative root behind another":     "x/workspace",
		"an encoded slash between the roots": "/srv%2fdata/x",
	},
	paths.WindowsPath: {
		"a drive":                               `C:\Windows`,
		"a drive with a slash":                  "c:/srv/data",
		"a drive-relative path":                 "C:x",
		"an encoded drive":                      "C%3a/x",
		"a drive behind a space":                " C:/x",
		"a full-width drive":                    "Ｃ：/x",
		"a share":                               `\\server\share`,
		"a share with slashes":                  "//server/share",
		"a share that spells a root":            "//srv/data/x",
		"a device path":                         `\\.\PhysicalDrive0`,
		"a long path prefix":                    `\\?\C:\x`,
		"an encoded share":                      "%2f%2fserver/share",
		"a device":                              "/srv/data/NUL",
		"a device in lower case":                "/srv/data/con",
		"a device with an extension":            "/srv/data/aux.txt",
		"a device with two extensions":          "/srv/data/prn.tar.gz",
		"a device with a space":                 "/srv/data/con .txt",
		"a numbered device":                     "/srv/data/COM1",
		"a device with a superscript":           "/srv/data/lpt².log",
		"a device as a directory":               "/srv/data/nul/x",
		"a console device":                      "/srv/data/CONIN$",
		"an encoded device":                     "/srv/data/%4eUL",
		"a full-width device":                   "/srv/data/ＮＵＬ",
		"a stream":                              "/srv/data/a.txt:hidden",
		"a stream of a relative file":           "notes.txt:hidden",
		"the default stream":                    "/srv/data/a.txt::$DATA",
		"a directory's index stream":            "/srv/data::$INDEX_ALLOCATION/x",
		"a stream in front":                     ":hidden",
		"an encoded stream":                     "/srv/data/a%3ab",
		"a trailing dot":                        "/srv/data/a.txt.",
		"a trailing dot of a directory":         "/srv/data/a./b",
		"a trailing space":                      "/srv/data/a.txt ",
		"an encoded trailing space":             "/srv/data/a.txt%20",
		"a leading space":                       " workspace/a",
		"an ideographic space at the end":       "/srv/data/a\u3000",
		"an element of one space":               "/srv/data/ /a",
		"wildcards that only Windows knows":     `/srv/data/<.txt`,
		"a quotation mark as a Windows pattern": `/srv/data/a"`,
		"a pipe":                                "/srv/data/a|b",
	},
	paths.URLForm: {
		"a file URL":                "file:///srv/data/a",
		"a file URL with one slash": "file:/srv/data/a",
		"a file URL in upper case":  "FILE:///srv/data/a",
		"an encoded file URL":       "file%3a%2f%2f/srv/data",
		"a web URL":                 "https://example.com/srv/data",
		"a scheme of another kind":  "s3://bucket/key",
		"a nested scheme":           "git+ssh://example.com/x",
		"a data URL":                "data:text/plain,x",
		"a scheme behind a space":   " file:///srv/data",
		"a full-width scheme":       "ｆｉｌｅ：///srv/data",
		"a jar URL":                 "jar:file:/srv/data/a.jar",
	},
	paths.HomeOrVariable: {
		"a home directory":                    "~",
		"a file in the home directory":        "~/x",
		"another's home directory":            "~root/x",
		"a home behind a current element":     "./~/x",
		"an encoded home":                     "%7e/x",
		"a full-width home":                   "～/x",
		"a variable":                          "$HOME/x",
		"a variable below a root":             "/srv/data/$X",
		"a variable in braces":                "/srv/data/$%7bX%7d",
		"an encoded variable":                 "/srv/data/%24HOME",
		"a command":                           "/srv/data/$(id)",
		"a command in backticks":              "/srv/data/`id`",
		"a Windows variable":                  "%USERPROFILE%/x",
		"a Windows variable below a root":     "/srv/data/%TEMP%/x",
		"a Windows variable with parens":      "/srv/data/%ProgramFiles(x86)%/x",
		"a Windows variable in encoded signs": "/srv/data/%25TEMP%25/x",
		"a second variable after a number":    "/srv/data/5%/%TEMP%",
	},
	paths.Pattern: {
		"a star":                      "/srv/data/*",
		"a hidden star":               "/srv/data/.*/x",
		"a question mark":             "/srv/data/.?/x",
		"an encoded star":             "/srv/data/%2a",
		"braces":                      "/srv/data/{a,b}",
		"braces that make a parent":   "/srv/data/{.,x}./etc",
		"a class that makes a parent": "/srv/data/[.]./etc",
		"a class behind a dot":        "/srv/data/.[.]/etc",
		"two classes":                 "/srv/data/[.][.]/etc",
		"two negated classes":         "/srv/data/[!a][!b]/etc",
		"an encoded class":            "/srv/data/%5b.%5d./etc",
		"an extended pattern":         "/srv/data/@(.|x)./etc",
		"a negated extended pattern":  "/srv/data/!(x)",
	},
	paths.Option: {
		"a short option":                 "-rf",
		"a long option":                  "--output=/etc/passwd",
		"an option behind a dot":         "./-rf",
		"an encoded dash":                "%2drf",
		"an option with a leading space": " -rf",
	},
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
