package console

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// span is a piece of text that came from outside. Kind is empty where the text is what it looks like.
type span struct {
	Text string
	// Kind is hidden for what has no shape of its own or moves other text, alike for what passes for another character,
	// and feed for a line feed that stands in a value.
	Kind string
	// Note says what it is.
	Note string
}

const (
	kindHidden = "hidden"
	kindAlike  = "alike"
	kindFeed   = "feed"
)

// names of what is used to deceive; all other characters are named by number alone.
var names = map[rune]string{
	0x00: "NUL", 0x07: "BELL", 0x08: "BACKSPACE", 0x09: "TAB", 0x0a: "LINE FEED", 0x0d: "CARRIAGE RETURN", 0x1b: "ESCAPE", 0x7f: "DELETE",
	0x85: "NEXT LINE", 0x9b: "CONTROL SEQUENCE INTRODUCER", 0xa0: "NO-BREAK SPACE", 0xad: "SOFT HYPHEN", 0x34f: "COMBINING GRAPHEME JOINER",
	0x61c: "ARABIC LETTER MARK", 0x115f: "HANGUL FILLER", 0x1160: "HANGUL FILLER", 0x180e: "MONGOLIAN VOWEL SEPARATOR",
	0x200b: "ZERO WIDTH SPACE", 0x200c: "ZERO WIDTH NON-JOINER", 0x200d: "ZERO WIDTH JOINER", 0x200e: "LEFT-TO-RIGHT MARK",
	0x200f: "RIGHT-TO-LEFT MARK", 0x2028: "LINE SEPARATOR", 0x2029: "PARAGRAPH SEPARATOR", 0x202a: "LEFT-TO-RIGHT EMBEDDING",
	0x202b: "RIGHT-TO-LEFT EMBEDDING", 0x202c: "POP DIRECTIONAL FORMATTING", 0x202d: "LEFT-TO-RIGHT OVERRIDE",
	0x202e: "RIGHT-TO-LEFT OVERRIDE", 0x2060: "WORD JOINER", 0x2066: "LEFT-TO-RIGHT ISOLATE", 0x2067: "RIGHT-TO-LEFT ISOLATE",
	0x2068: "FIRST STRONG ISOLATE", 0x2069: "POP DIRECTIONAL ISOLATE", 0x2800: "BRAILLE BLANK", 0x3000: "IDEOGRAPHIC SPACE",
	0x3164: "HANGUL FILLER", 0xfeff: "BYTE ORDER MARK", 0xffa0: "HANGUL FILLER",
}

// prose splits text so that nothing in it can hide: line feeds and tabs stay as they are.
func prose(s string) []span {
	var w spanWriter
	w.write(s, func(r rune) bool { return r == '\n' || r == '\t' })
	return w.finish()
}

// value splits a value of an argument. A line feed is shown as such and then breaks the line.
func value(s string) []span {
	var w spanWriter
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			w.add(kindFeed, `\n`, "LINE FEED")
			w.add("", "\n", "")
		}
		w.write(line, func(rune) bool { return false })
	}
	return w.finish()
}

// spanWriter collects pieces. The one that is not finished is in bytes, so that a long text costs what it is long.
type spanWriter struct {
	out  []span
	last span
	text []byte
}

// add appends a piece, to the one before if that is of the same kind.
func (w *spanWriter) add(kind, text, note string) {
	if len(w.text) == 0 || w.last.Kind != kind || kind == kindFeed {
		w.finish()
		w.last = span{Kind: kind, Note: note}
	} else if note != "" && len(w.last.Note) < maxNote && !strings.Contains(w.last.Note, note) {
		w.last.Note += ", " + note
	}
	w.text = append(w.text, text...)
}

// finish gives all pieces.
func (w *spanWriter) finish() []span {
	if len(w.text) > 0 {
		w.last.Text = string(w.text)
		w.out = append(w.out, w.last)
		w.text = w.text[:0]
	}
	return w.out
}

// maxNote bounds the explanation of a run; the run itself is shown whole.
const maxNote = 200

// maxMarks is how many combining marks a letter may carry: more are there to paint over other lines.
const maxMarks = 3

func (w *spanWriter) write(s string, isPlain func(rune) bool) {
	marks := 0
	for len(s) > 0 {
		if n := wordLength(s); n > 0 {
			marks = w.word(s[:n])
			s = s[n:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && size == 1:
			w.add(kindHidden, fmt.Sprintf(`\x%02X`, s[0]), "no UTF-8")
		case isPlain(r):
			w.add("", s[:size], "")
		case isHidden(r) || marks > maxMarks:
			w.hidden(r)
		case passesFor(r) != 0:
			w.add(kindAlike, alikeText(r), alikeNote(r))
		default:
			w.add("", s[:size], "")
		}
		s = s[size:]
	}
}

func (w *spanWriter) hidden(r rune) {
	code := fmt.Sprintf("U+%04X", r)
	note := code
	if name := names[r]; name != "" {
		note += " " + name
	}
	w.add(kindHidden, "‹"+code+"›", note)
}

// isHidden says that a character has no shape of its own: controls, formats, spaces that are none of the keyboard, what
// is not assigned, and fillers.
func isHidden(r rune) bool {
	switch {
	case r == ' ':
		return false
	case !unicode.IsGraphic(r), unicode.Is(unicode.Zs, r), unicode.Is(unicode.Variation_Selector, r),
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	}
	return names[r] != ""
}

// wordLength is how many bytes of letters and digits s begins with. Marks are looked at one by one.
func wordLength(s string) int {
	for i, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) || isHidden(r) {
			return i
		}
	}
	return len(s)
}

// word marks in one word what passes for a Latin letter: letters of another script beside Latin ones, a word of which
// every letter has a Latin double, and what is an ASCII character in another dress. It returns how many marks end it: none.
func (w *spanWriter) word(s string) (marks int) {
	var hasLatin, hasOther bool
	onlyDoubles := true
	for _, r := range s {
		switch {
		case unicode.Is(unicode.Latin, r):
			hasLatin = true
		case unicode.IsLetter(r):
			hasOther = true
			onlyDoubles = onlyDoubles && doubles[r] != 0
		}
	}
	isMixed := hasLatin && hasOther || hasOther && onlyDoubles
	for _, r := range s {
		isForeign := unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) && isMixed
		if isForeign && isOfAlphabet(r) || passesFor(r) != 0 && (r > unicode.MaxLatin1 && doubles[r] == 0 || unicode.Is(unicode.Latin, r)) {
			w.add(kindAlike, alikeText(r), alikeNote(r))
			continue
		}
		w.add("", string(r), "")
	}
	return 0
}

// isOfAlphabet says that a letter is of a script whose letters can be taken for Latin ones.
func isOfAlphabet(r rune) bool {
	return unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu, unicode.Georgian) || doubles[r] != 0
}

// doubles are letters and signs that look like an ASCII character in most fonts.
var doubles = doublesOf(
	"аa", "еe", "оo", "рp", "сc", "уy", "хx", "іi", "јj", "ѕs", "ԁd", "ԛq", "ԝw", "һh", "ӏl", "ѵv", "ԍg",
	"АA", "ВB", "ЕE", "КK", "МM", "НH", "ОO", "РP", "СC", "ТT", "УY", "ХX", "ІI", "ЈJ", "ЅS", "ԌG", "ҮY", "З3", "Ӏl",
	"αa", "οo", "ρp", "νv", "υu", "ιi", "κk", "τt", "γy", "ϲc", "ϳj", "ΑA", "ΒB", "ΕE", "ΖZ", "ΗH", "ΙI", "ΚK", "ΜM", "ΝN", "ΟO", "ΡP", "ΤT", "ΥY", "ΧX",
	"օo", "ոn", "սu", "հh", "ցg", "զq", "ɡg", "ɑa", "ıi", "ɩi", "ȷj", "ǀl", "ⵏl",
	"⁄/", "∕/", "⧸/", "╱/", "։:", "∶:", "꞉:", "ː:", "。.", "․.", "⋅.", "∗*", "‐-", "‑-", "−-", "﹣-", "‗_", "ǃ!", "＠@", "⩵=",
)

func doublesOf(pairs ...string) map[rune]rune {
	out := make(map[rune]rune, len(pairs))
	for _, p := range pairs {
		r, size := utf8.DecodeRuneInString(p)
		out[r] = rune(p[size])
	}
	return out
}

// passesFor is the ASCII character that a character can be taken for, 0 for none.
func passesFor(r rune) rune {
	if r < utf8.RuneSelf {
		return 0
	}
	if d := doubles[r]; d != 0 {
		return d
	}
	plain := norm.NFKC.String(string(r))
	if len(plain) == 1 {
		return rune(plain[0])
	}
	return 0
}

func alikeText(r rune) string { return fmt.Sprintf("%c‹U+%04X›", r, r) }

func alikeNote(r rune) string {
	if p := passesFor(r); p != 0 {
		return fmt.Sprintf("U+%04X is not the character %c", r, p)
	}
	return fmt.Sprintf("U+%04X is of another script than the letters beside it", r)
}

// OneLine gives text that came from outside as one line in which nothing hides, moves other text or passes for something
// else: what would is named by its number, as on the page.
func OneLine(s string) string {
	var w spanWriter
	w.write(s, func(rune) bool { return false })
	var out strings.Builder
	for _, part := range w.finish() {
		out.WriteString(part.Text)
	}
	return out.String()
}

// Beware says what in a text hides or passes for something else, each once and in order. Nil: nothing does.
func Beware(s string) (notes []string) {
	for _, part := range prose(s) {
		if part.Note != "" && !slices.Contains(notes, part.Note) {
			notes = append(notes, part.Note)
		}
	}
	return notes
}

// EscapeJSON gives JSON text with what hides in it as escapes, which mean the same.
func EscapeJSON(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case !isHidden(r) || r == '\n' || r == '\t': // outside of strings; within they are escapes already
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}
