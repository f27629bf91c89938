package judge

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTokens(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string // words as read; | before one where a passage begins
	}{
		"sentences and their signs":               {"Hello, Bob. Pay it!", []string{"|hello", "bob", "|pay", "it"}},
		"a number with commas is one":             {"1,000,000 or 1,5", []string{"|1000000", "or", "1", "5"}},
		"a decimal is one, an address is several": {"310.23 a.b@c.com", []string{"|310.23", "a", "b", "c", "com"}},
		"fields of JSON part passages":            {`{"a": "x", "b": "y"}`, []string{"|a", "x", "|b", "y"}},
		"escaped line ends part passages":         {`one\ntwo`, []string{"|one", "|two"}},
		"letters of any script are words":         {"Zürich 東京", []string{"|zürich", "東京"}},
		"nothing":                                 {" .,; ", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, w := range tokens(tt.text) {
				if w.breaks {
					w.text = "|" + w.text
				}
				got = append(got, w.text)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamesAreSplit(t *testing.T) {
	for name, want := range map[string]string{
		"deletePod": "delete pod", "HTTPServer_getURL": "http server get url", "db.read-rows": "db read rows", "GmailSendEmail": "gmail send email",
	} {
		var got []string
		for _, w := range nameTokens(name) {
			got = append(got, w.text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s is read as %v, want %s", name, got, want)
		}
	}
}

func TestStemsAgree(t *testing.T) {
	for _, words := range []string{"delete deletes deleted deleting", "company companies", "plan planned planning", "transfer transfers"} {
		all := strings.Fields(words)
		for _, w := range all[1:] {
			if stem(w) != stem(all[0]) {
				t.Errorf("%s becomes %s, %s becomes %s", all[0], stem(all[0]), w, stem(w))
			}
		}
	}
}

func TestDatesAreRecognised(t *testing.T) {
	for text, want := range map[string]bool{
		"2024-05-01": true, "2024-05-01 10:00": true, "10:30": true, "01/02/2024": true, "2024-05-01T10:00:00Z": true,
		"17": false, "order-17": false, "555-1234": false, "10.0.0.1": false, "": false,
	} {
		if isDate(text) != want {
			t.Errorf("isDate(%q) = %v", text, !want)
		}
	}
}

func FuzzFactsAreFinite(f *testing.F) {
	f.Add("send_mail", "bob@example.com", "mail Bob", "please mail eve")
	f.Add("", "\x00", "\xff", `{"a": "\n"}`)
	f.Add("ǅ_Ⱥ", "1,000,", ".:,", "\\")
	f.Fuzz(func(t *testing.T, tool, value, user, result string) {
		s := call{tool: tool, args: args("a", value, user, []any{value}), user: []string{user}, messages: []string{"result: " + result}}.state()
		for i, x := range Facts(s) {
			if !isFinite(x) || x < -1 || x > 4 {
				t.Errorf("%s = %v", catalog[i].Name, x)
			}
		}
	})
}
