package plain_test

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/policy/paths/plain"
)

func TestUnescape(t *testing.T) {
	type result struct {
		Decoded string
		Changed bool
	}
	tests := map[string]struct {
		value string
		want  result
	}{
		"a string without escapes stays":                 {value: "a/b", want: result{"a/b", false}},
		"one layer is undone":                            {value: "%2e%2E", want: result{"..", true}},
		"only one layer is undone":                       {value: "%252e", want: result{"%2e", true}},
		"a lone percent sign stays":                      {value: "100% of 5%", want: result{"100% of 5%", false}},
		"a broken escape does not stop the decoding":     {value: "%zz%41%", want: result{"%zzA%", true}},
		"an escape made by decoding is left to the next": {value: "%%32e", want: result{"%2e", true}},
		"bytes that are no text are kept":                {value: "%ff", want: result{"\xff", true}},
		"a cut escape at the end stays":                  {value: "%4", want: result{"%4", false}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			decoded, changed := plain.Unescape(tt.value)
			if diff := cmp.Diff(tt.want, result{decoded, changed}); diff != "" {
				t.Errorf("Unescape(%q) (-want +got):\n%s", tt.value, diff)
			}
		})
	}
}

func TestText(t *testing.T) {
	tests := map[string]struct {
		value string
		want  bool
	}{
		"plain words":                   {"report 7.txt", true},
		"letters of other scripts":      {"Übersicht/資料", true},
		"an emoji":                      {"🙂", true},
		"NUL":                           {"a\x00b", false},
		"a tab":                         {"a\tb", false},
		"delete":                        {"a\x7f", false},
		"a C1 control":                  {"a\u0085b", false},
		"a zero-width space":            {"a\u200bb", false},
		"a right-to-left override":      {"a\u202eb", false},
		"a byte order mark":             {"\ufeffa", false},
		"a line separator":              {"a\u2028b", false},
		"a soft hyphen":                 {"a\u00adb", false},
		"a tag character":               {"a\U000e0041", false},
		"a byte that is no UTF-8":       {"a\xffb", false},
		"a cut UTF-8 sequence":          {"a\xe2\x82", false},
		"the replacement character":     {"a\ufffdb", true},
		"a surrogate written as UTF-8":  {"\xed\xa0\x80", false},
		"an overlong encoding of a dot": {"\xc0\xae", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := plain.Text(tt.value); got != tt.want {
				t.Errorf("Text(%q) = %v, want %v", tt.value, got, tt.want)
			}
		})
	}
}

func FuzzUnescape(f *testing.F) {
	for _, seed := range []string{"", "%", "%2", "%2e", "%%32%65", "a%zz", "%25252e", "\xff%41"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, changed := plain.Unescape(s)
		if changed == (got == s) {
			t.Fatalf("Unescape(%q) = %q, changed = %v", s, got, changed)
		}
		want, err := url.PathUnescape(s)
		if plain.WellFormed(s) != (err == nil) {
			t.Fatalf("WellFormed(%q) = %v, but the standard decoder says %v", s, plain.WellFormed(s), err)
		}
		if err == nil && got != want {
			t.Fatalf("Unescape(%q) = %q, want %q", s, got, want)
		}
	})
}
