package judge

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// token is one word or number of a text, lower case, with what stands around it.
type token struct {
	text string // as written, but in lower case and without the commas of a number
	stem string
	// opens says that the word begins a sentence, a line, a quoted text or a field.
	opens bool
	// breaks says that a sentence, a line or a field ends before the word.
	breaks bool
	// names says that the word is the name of a field, or a part of a longer name.
	names bool
}

// scanner reads tokens one by one without keeping them.
type scanner struct {
	text   string
	at     int
	breaks bool
	opens  bool
}

func newScanner(text string) *scanner {
	return &scanner{text: lower(text), breaks: true, opens: true}
}

// lower folds case and gives text one spelling; an ASCII text without capitals is not copied.
func lower(text string) string { return strings.ToLower(visible(text)) }

// visible gives text the compatibility form that people read it in, without the characters that they do not see. A word
// that was cut by such characters, or was written in wide or styled letters, is that word.
func visible(text string) string {
	if isASCII(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u2028' || r == '\u2029' || r == '\u0085':
			return '\n'
		case isHidden(r):
			return -1
		}
		return r
	}, norm.NFKC.String(strings.Map(dropHidden, text)))
}

func dropHidden(r rune) rune {
	if isHidden(r) {
		return -1
	}
	return r
}

// isHidden reports characters that show nothing: of format, selectors of a variant, and others that fonts ignore.
func isHidden(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// next returns the next token, or false at the end.
func (s *scanner) next() (token, bool) {
	s.skip()
	if s.at >= len(s.text) {
		return token{}, false
	}
	t := token{breaks: s.breaks, opens: s.opens}
	start := s.at
	commas := s.word()
	t.text = s.text[start:s.at]
	if commas {
		t.text = strings.ReplaceAll(t.text, ",", "")
	}
	t.stem = stem(t.text)
	t.names = s.names()
	s.breaks, s.opens = false, false
	return t, true
}

// skip passes what is no word, and notes which borders it holds.
func (s *scanner) skip() {
	for s.at < len(s.text) {
		c := s.text[s.at]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s.text[s.at:])
			if isLetter(r) {
				return
			}
			s.at += n
			continue
		}
		if isAlnum(c) {
			return
		}
		s.border(c)
		s.at++
	}
}

// border notes what a sign between words means.
func (s *scanner) border(c byte) {
	switch c {
	case '\n', '\r', '{', '}', '[', ']', ';', '|':
		s.breaks, s.opens = true, true
	case '.', '!', '?':
		if s.at+1 >= len(s.text) || !isAlnum(s.text[s.at+1]) {
			s.breaks, s.opens = true, true
		}
	case ':', '"', '\'', '(', '>', '*', '-', '#':
		s.opens = true
	case ',':
		if rest := strings.TrimLeft(s.text[s.at+1:min(len(s.text), s.at+8)], " \n"); rest != "" && (rest[0] == '"' || rest[0] == '\'') {
			s.breaks, s.opens = true, true
		}
	case '\\':
		// An escape of JSON is a border and no letter.
		if s.at+1 < len(s.text) && (s.text[s.at+1] == 'n' || s.text[s.at+1] == 'r' || s.text[s.at+1] == 't') {
			s.at++
			s.breaks, s.opens = true, true
		}
	}
}

// word moves behind the word that begins here, and tells whether it is a number with commas.
func (s *scanner) word() (commas bool) {
	for s.at < len(s.text) {
		c := s.text[s.at]
		switch {
		case isAlnum(c):
			s.at++
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s.text[s.at:])
			if !isLetter(r) {
				return commas
			}
			s.at += n
		case (c == '.' || c == ',') && s.digitAt(s.at-1) && s.digitAt(s.at+1):
			if c == ',' {
				if !s.thousands() {
					return commas
				}
				commas = true
			}
			s.at++
		default:
			return commas
		}
	}
	return commas
}

// names reports whether what follows the word makes it the name of a field: "name": or name_of_it.
func (s *scanner) names() bool {
	rest := s.text[s.at:]
	if rest == "" {
		return false
	}
	if rest[0] == '_' || rest[0] == '=' || rest[0] == '@' {
		return true
	}
	if rest[0] == '"' || rest[0] == '\'' {
		rest = rest[1:]
	}
	return rest != "" && rest[0] == ':'
}

// thousands reports whether exactly three digits follow the comma.
func (s *scanner) thousands() bool {
	return s.digitAt(s.at+1) && s.digitAt(s.at+2) && s.digitAt(s.at+3) && !s.digitAt(s.at+4)
}

func (s *scanner) digitAt(i int) bool {
	return i >= 0 && i < len(s.text) && s.text[i] >= '0' && s.text[i] <= '9'
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z'
}

func isLetter(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) }

// endings that English words lose, the longest first.
var endings = [...]string{"ations", "ation", "ments", "ment", "ings", "ing", "ers", "ies", "ed", "es", "er", "or", "s", "e", "y"}

// stem cuts an ending off, so that forms of one word agree. Both sides are cut alike, so it need only be consistent.
func stem(w string) string {
	if len(w) < 4 || w[len(w)-1] >= '0' && w[len(w)-1] <= '9' {
		return w
	}
	for _, end := range endings {
		if len(w)-len(end) >= 3 && strings.HasSuffix(w, end) {
			w = w[:len(w)-len(end)]
			break
		}
	}
	if n := len(w); n > 3 && w[n-1] == w[n-2] && strings.IndexByte("bdgmnprt", w[n-1]) >= 0 {
		w = w[:n-1]
	}
	return w
}

// nameTokens splits the name of a tool or an argument: at signs, and where capitals begin a word.
func nameTokens(name string) []token {
	var b strings.Builder
	b.Grow(len(name) + 8)
	runes := []rune(visible(name))
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) {
			afterLower := unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1])
			endsRun := unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterLower || endsRun {
				b.WriteByte(' ')
			}
		}
		if r == '_' || r == '.' || r == '-' || r == '/' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return tokens(b.String())
}

// tokens lists all tokens of a short text.
func tokens(text string) []token {
	var all []token
	s := newScanner(text)
	for t, ok := s.next(); ok; t, ok = s.next() {
		all = append(all, t)
	}
	return all
}
