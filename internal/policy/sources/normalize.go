package sources

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// boundary separates the texts of one source in a corpus. No normalised value contains it.
const boundary = '\n'

// normalize gives text and values one spelling: compatibility form, folded case, plain quotes and dashes, single
// blanks, none at the ends. Hidden characters stay, so that a value that holds one matches nothing that does not.
func normalize(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	appendNormalized(&b, s)
	return strings.TrimSuffix(b.String(), " ")
}

func appendNormalized(b *strings.Builder, s string) {
	ascii := true
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if !ascii {
		s = compatible(s)
	}
	blank := true // leading white space is dropped
	for _, r := range s {
		if r == ' ' || '\t' <= r && r <= '\r' || r >= utf8.RuneSelf && unicode.IsSpace(r) {
			if !blank {
				b.WriteByte(' ')
			}
			blank = true
			continue
		}
		blank = false
		switch {
		case 'A' <= r && r <= 'Z':
			b.WriteByte(byte(r) + 'a' - 'A')
		case r < utf8.RuneSelf:
			b.WriteByte(byte(r))
		case r == 'ß' || r == 'ẞ':
			b.WriteString("ss")
		default:
			b.WriteRune(foldRune(r))
		}
	}
}

// compatible is the compatibility form of a text, or the text itself where that is much longer: one rune can become
// eighteen. Values of such a text are then not found in it, which trusts them less.
func compatible(s string) string {
	const most, short = 2, 4 << 10
	if len(s) <= short {
		return norm.NFKC.String(s)
	}
	if norm.NFKC.IsNormalString(s) {
		return s
	}
	var iter norm.Iter
	iter.InitString(norm.NFKC, s)
	var b strings.Builder
	b.Grow(len(s))
	for !iter.Done() {
		b.Write(iter.Next())
		if b.Len() > most*len(s) {
			return s
		}
	}
	return b.String()
}

func foldRune(r rune) rune {
	switch r {
	case '‘', '’', '‚', '‛', '′', 'ʼ':
		return '\''
	case '“', '”', '„', '‟', '″', '«', '»':
		return '"'
	case '‐', '‑', '‒', '–', '—', '―', '−':
		return '-'
	case 'ς':
		return 'σ'
	}
	return unicode.ToLower(r)
}

var escapes = strings.NewReplacer(`\n`, " ", `\r`, " ", `\t`, " ", `\"`, `"`, `\/`, `/`)

// unescape makes words inside the JSON strings of a tool result stand on their own. It may break a path that holds
// a backslash; such a value is then found nowhere, which is trusted even less.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return escapes.Replace(s)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isWord reports whether r belongs to a word. Marks and invisible format characters do, so that none can fake a
// word boundary.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || unicode.Is(unicode.Cf, r)
}

// isIdeograph reports whether r is of a script that writes without blanks; each such rune is a word of its own.
func isIdeograph(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

// atom is one run of letters and digits.
type atom struct{ start, end int32 }

// appendAtoms splits normalised text into atoms.
func appendAtoms(out []atom, text string) []atom {
	start := -1
	flush := func(end int) {
		if start >= 0 {
			out = append(out, atom{int32(start), int32(end)})
			start = -1
		}
	}
	for i := 0; i < len(text); {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(text[i:])
		}
		switch {
		case !isWord(r):
			flush(i)
		case isIdeograph(r):
			flush(i)
			out = append(out, atom{int32(i), int32(i + n)})
		case start < 0:
			start = i
		}
		i += n
	}
	flush(len(text))
	return out
}
