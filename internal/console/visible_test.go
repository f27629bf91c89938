package console

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// marked writes spans as text in which what is marked stands in brackets.
func marked(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		if s.Kind == "" {
			b.WriteString(s.Text)
			continue
		}
		b.WriteString("[" + s.Kind + " " + s.Text + "]")
	}
	return b.String()
}

func TestWhatHidesOrDeceivesIsMarked(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"plain text stays":                              {"Delete /tmp/a-b_c.txt? (yes) 100 %", "Delete /tmp/a-b_c.txt? (yes) 100 %"},
		"umlauts and accents stay":                      {"Grüße, café, naïve, Łódź", "Grüße, café, naïve, Łódź"},
		"a word in another alphabet stays":              {"Москва Ελλάδα 北京 שלום", "Москва Ελλάδα 北京 שלום"},
		"quotes and dashes of prose stay":               {"“so” – it… is", "“so” – it… is"},
		"an override of direction is named":             {"a\u202Efdp.exe", "a[hidden ‹U+202E›]fdp.exe"},
		"isolates are named":                            {"\u2066x\u2069", "[hidden ‹U+2066›]x[hidden ‹U+2069›]"},
		"zero width is named, and so is a run of it":    {"a\u200B\u200C\u2060b", "a[hidden ‹U+200B›‹U+200C›‹U+2060›]b"},
		"a byte order mark is named":                    {"\uFEFFa", "[hidden ‹U+FEFF›]a"},
		"an escape of a terminal is named":              {"\x1b[2J\a", "[hidden ‹U+001B›][2J[hidden ‹U+0007›]"},
		"a carriage return is named":                    {"safe\rrm", "safe[hidden ‹U+000D›]rm"},
		"tags that nobody sees are named":               {"a\U000E0041", "a[hidden ‹U+E0041›]"},
		"a variation selector is named":                 {"a\uFE0F", "a[hidden ‹U+FE0F›]"},
		"a space that is none of the keyboard":          {"a\u00A0b\u3000c", "a[hidden ‹U+00A0›]b[hidden ‹U+3000›]c"},
		"a filler that is a letter to Unicode":          {"a\u3164b", "a[hidden ‹U+3164›]b"},
		"a line separator is named":                     {"a\u2028b", "a[hidden ‹U+2028›]b"},
		"private use is named":                          {"\uE000", "[hidden ‹U+E000›]"},
		"what is no UTF-8 is given in bytes":            {"a\xff", `a[hidden \xFF]`},
		"one Cyrillic letter in a Latin word":           {"p\u0430ypal.com", "p[alike а‹U+0430›]ypal.com"},
		"a word of nothing but doubles":                 {"\u0430\u0440\u0440\u04CF\u0435", "[alike а‹U+0430›р‹U+0440›р‹U+0440›ӏ‹U+04CF›е‹U+0435›]"},
		"one Greek letter in a Latin word":              {"g\u03BFv", "g[alike ο‹U+03BF›]v"},
		"letters of double width":                       {"\uFF41b", "[alike ａ‹U+FF41›]b"},
		"letters of mathematics":                        {"\U0001D41Aa", "[alike 𝐚‹U+1D41A›]a"},
		"a slash that is none":                          {"https:\u2044\u2044a", "https:[alike ⁄‹U+2044›⁄‹U+2044›]a"},
		"a dot that is none":                            {"evil\u3002com", "evil[alike 。‹U+3002›]com"},
		"a dotless i":                                   {"\u0131nfo", "[alike ı‹U+0131›]nfo"},
		"marks that paint over other lines are counted": {"a\u0300\u0301\u0302\u0303", "a\u0300\u0301\u0302[hidden ‹U+0303›]"},
		"text that looks like a mark is not marked":     {"‹U+202E›", "‹U+202E›"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, marked(prose(test.in))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestLineFeeds(t *testing.T) {
	if got, want := marked(prose("a\n\tb")), "a\n\tb"; got != want {
		t.Errorf("prose gives %q, want %q", got, want)
	}
	if got, want := marked(value("a\n\n\tb")), "a[feed \\n]\n[feed \\n]\n[hidden ‹U+0009›]b"; got != want {
		t.Errorf("a value gives %q, want %q", got, want)
	}
}

// Whatever the text is, nothing that hides is left in what is shown, and all that is not marked is there in order.
func FuzzNothingHides(f *testing.F) {
	for _, s := range []string{"", "a\u202E\xff\n", "\u0430\u0300\u0300\u0300\u0300\u0300", strings.Repeat("\u200B", 300), "p\u0430y\U000E0041"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, all := range [][]span{prose(s), value(s)} {
			rest := s
			for _, part := range all {
				for _, r := range part.Text {
					if r != '\n' && r != '\t' && r != ' ' && (!unicode.IsGraphic(r) || unicode.Is(unicode.Zs, r)) {
						t.Fatalf("U+%04X is left of %q", r, s)
					}
				}
				if part.Kind != "" {
					if part.Note == "" {
						t.Fatalf("%q is marked without saying why", part.Text)
					}
					continue
				}
				i := strings.Index(rest, part.Text)
				if i < 0 {
					t.Fatalf("%q is not of %q", part.Text, s)
				}
				rest = rest[i+len(part.Text):]
			}
		}
	})
}

// A call may be 32 KiB long: what is made of it must not cost the square of that.
func TestALongTextIsNotCopiedForEveryCharacter(t *testing.T) {
	long := strings.Repeat("some plain words, ", 2000)
	if got := testing.AllocsPerRun(3, func() { prose(long) }); got > 50 {
		t.Errorf("%.0f allocations for %d bytes", got, len(long))
	}
}

func TestOneLineHidesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		in, want string
		beware   []string
	}{
		"plain text":               {"Delete a.txt?", "Delete a.txt?", nil},
		"nothing":                  {"", "", nil},
		"letters of any script":    {"запрос 请", "запрос 请", nil},
		"an escape":                {"a\x1b[31mb", "a‹U+001B›[31mb", []string{"U+001B ESCAPE"}},
		"several lines":            {"a\n\tb", "a‹U+000A›‹U+0009›b", nil},
		"a carriage return":        {"safe\rrm", "safe‹U+000D›rm", []string{"U+000D CARRIAGE RETURN"}},
		"another direction, twice": {"a\u202eb\u202ec", "a‹U+202E›b‹U+202E›c", []string{"U+202E RIGHT-TO-LEFT OVERRIDE"}},
		"a letter that is none":    {"p\u0430y", "pа‹U+0430›y", []string{"U+0430 is not the character a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OneLine(c.in); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if diff := cmp.Diff(c.beware, Beware(c.in)); diff != "" {
				t.Errorf("beware (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEscapedJSONMeansTheSame(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":                   {`{"a":"<b> & é"}`, `{"a":"<b> & é"}`},
		"another direction":       {"{\"a\":\"x\u202ey\"}", `{"a":"x\u202ey"}`},
		"tags that nobody sees":   {"[\"a\U000E0041\"]", `["a\udb40\udc41"]`},
		"an eight-bit escape":     {"[\"\u009b31m\"]", `["\u009b31m"]`},
		"in the name of a member": {"{\"a\u200b\":1}", `{"a\u200b":1}`},
		"laid out in lines":       {"{\n\t\"a\": 1\n}", "{\n\t\"a\": 1\n}"},
	} {
		t.Run(name, func(t *testing.T) {
			got := EscapeJSON(c.in)
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			var was, is any
			if err := errors.Join(json.Unmarshal([]byte(c.in), &was), json.Unmarshal([]byte(got), &is)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(was, is); diff != "" {
				t.Errorf("it means something else (-was +is):\n%s", diff)
			}
		})
	}
}
