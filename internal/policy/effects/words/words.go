// Package words turns parsed shell words into the plain text that a program receives, and refuses every word whose
// text depends on anything but the word itself.
package words

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// MaxLength bounds a command line, in bytes.
const MaxLength = 64 << 10

// maxOpenings bounds the characters that can open a nested construct: the parser recurses once for each, and 65536
// brackets of one kind cost it a second and 256 MiB of stack.
const maxOpenings = 1000

// Why a text or a word is refused.
var (
	ErrTooLong    = errors.New("the text is too long")
	ErrNested     = errors.New("the text holds too many brackets")
	ErrCharacters = errors.New("the text holds control, invisible or invalid characters")
	ErrSyntax     = errors.New("the text is not a shell command")
	ErrExpansion  = errors.New("a word depends on an expansion")
	ErrBraces     = errors.New("a word holds a brace expansion")
	ErrTilde      = errors.New("a word leaves a home directory upwards")
	ErrComment    = errors.New("a comment ends in a backslash")
)

// Word is one word as a program receives it.
type Word struct {
	Text string
	// Glob tells that the shell may replace the word by names of files.
	Glob bool
	// GlobFirst tells that such a name may start with any character, a dash included.
	GlobFirst bool
}

// Parse reads a command line as bash does.
func Parse(text string) (*syntax.File, error) {
	if len(text) > MaxLength {
		return nil, ErrTooLong
	}
	if !printable(text) {
		return nil, ErrCharacters
	}
	if strings.Count(text, "(")+strings.Count(text, "{")+strings.Count(text, "[")+strings.Count(text, "`") > maxOpenings {
		return nil, ErrNested
	}
	if continuesComment(text) {
		return nil, ErrComment
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, ErrSyntax // the parser's own message quotes the text, which is private
	}
	return file, nil
}

// continuesComment tells whether a line that may hold a comment ends in a backslash. A shell ends the comment there and
// runs the next line; the parser takes the next line for more of the comment.
func continuesComment(text string) bool {
	for line := range strings.Lines(text) {
		if strings.HasSuffix(line, "\\\n") && mayComment(line) {
			return true
		}
	}
	return false
}

// mayComment tells whether a line has a # that may begin a word, and with it a comment: one behind anything but a character
// that only goes on with a word. Quotes are not followed.
func mayComment(line string) bool {
	for i := range len(line) {
		if line[i] == '#' && (i == 0 || !goesOn(line[i-1])) {
			return true
		}
	}
	return false
}

// goesOn tells a character that is part of a word wherever it stands.
func goesOn(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("/._-:%+@,", c) >= 0
}

// printable refuses what a reader and a shell may see differently: control characters but tab and newline, formatting
// characters, spaces other than the plain one, and bytes that are not UTF-8.
func printable(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if r == '\t' || r == '\n' {
			continue
		}
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// Literal gives the text of a word, or the reason why only a running shell could know it.
func Literal(word *syntax.Word) (Word, error) {
	var l literal
	for _, part := range word.Parts {
		if err := l.add(part); err != nil {
			return Word{}, err
		}
	}
	text := l.text.String()
	if l.brace && (l.comma || strings.Contains(text, "..")) {
		return Word{}, ErrBraces
	}
	if l.tilde && strings.Contains(text, "..") {
		return Word{}, ErrTilde
	}
	if text == "[" { // the program of that name: a pattern needs a closing bracket
		l.glob, l.globFirst = false, false
	}
	return Word{Text: text, Glob: l.glob, GlobFirst: l.globFirst}, nil
}

// literal collects the parts of a word, and which unquoted characters it saw.
type literal struct {
	text            strings.Builder
	started         bool
	brace, comma    bool
	tilde           bool
	glob, globFirst bool
}

func (l *literal) add(part syntax.WordPart) error {
	switch p := part.(type) {
	case *syntax.Lit:
		return l.unquoted(p.Value)
	case *syntax.SglQuoted:
		if p.Dollar {
			return ErrExpansion
		}
		l.started = true
		l.text.WriteString(p.Value)
		return nil
	case *syntax.DblQuoted:
		if p.Dollar {
			return ErrExpansion
		}
		l.started = true
		return l.quoted(p.Parts)
	default:
		return ErrExpansion
	}
}

// unquoted reads text outside quotes, where a backslash makes the next character plain.
func (l *literal) unquoted(text string) error {
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch c {
		case '\\':
			i++
			if i == len(text) {
				return ErrSyntax
			}
			if text[i] == '\n' {
				continue
			}
			c = text[i]
		case '*', '?', '[':
			l.glob = true
			l.globFirst = l.globFirst || l.text.Len() == 0 // empty quotes before it leave it first
		case '{':
			l.brace = true
		case ',':
			l.comma = true
		case '~':
			l.tilde = l.tilde || !l.started
		case '=':
			if !l.started { // zsh replaces =name by the path of a program
				return ErrExpansion
			}
		case '$', '`':
			return ErrExpansion
		}
		l.started = true
		l.text.WriteByte(c)
	}
	return nil
}

// quoted reads text inside double quotes, where a backslash is special before four characters and a newline only.
func (l *literal) quoted(parts []syntax.WordPart) error {
	for _, part := range parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return ErrExpansion
		}
		text := lit.Value
		for i := 0; i < len(text); i++ {
			if text[i] == '\\' && i+1 < len(text) && strings.IndexByte("$`\"\\\n", text[i+1]) >= 0 {
				i++
				if text[i] == '\n' {
					continue
				}
			}
			l.text.WriteByte(text[i])
		}
	}
	return nil
}
