package questions

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Neutralise returns text in which nothing can be taken for a control token or for the end of a block of the prompt.
//
// Control tokens of language models are written in angle brackets (<|im_end|>, <end_of_turn>, </s>) or in square ones
// ([MASK], [/INST]), and tokenizers match them as whole words. A space after each opening bracket breaks every one of
// them without a list that would have to be complete:
//
//	<|im_end|>  becomes  < |im_end|>        [MASK]  becomes  [ MASK]        </state>  becomes  < /state>
//
// Brackets that Unicode normalisation turns into these are treated alike. A bracket followed by space, or a square one
// followed by a digit or its own end, as in a[0] or [], opens no token and stays. The result is readable, neutralising
// it again changes nothing, and it cannot be turned back; nobody needs that.
func Neutralise(text string) string {
	if !strings.ContainsAny(text, angles+squares) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + 16)
	for rest := text; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		b.WriteString(rest[:size])
		rest = rest[size:]
		if next, _ := utf8.DecodeRuneInString(rest); opensToken(r, next) {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

const (
	// Plain, small, full width, the one that decomposes to "<" and a stroke, and the triangle that one model family uses.
	angles  = "<\uFE64\uFF1C\u226E\u25C1"
	squares = "[\uFF3B"
)

// opensToken treats a bracket at the end of the text as open, since the server decides what follows it.
func opensToken(r, next rune) bool {
	switch {
	case strings.ContainsRune(angles, r):
		return !unicode.IsSpace(next)
	case strings.ContainsRune(squares, r):
		return !unicode.IsSpace(next) && next != ']' && (next < '0' || next > '9')
	default:
		return false
	}
}
