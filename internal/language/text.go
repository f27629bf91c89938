package language

import (
	"regexp"
	"strings"
	"unicode"
)

var (
	// fenced and quoted text is material: code, a file's content, a message to send. It says nothing about who asks.
	fenced = regexp.MustCompile("(?s)```.*?(```|$)|`[^`\n]*`")
	quoted = regexp.MustCompile(`"[^"\n]*"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|「[^」\n]*」|(^|[\s(:,])'[^'\n]*'([\s.,;:!?)]|$)`)
	// ends of sentences and of lines.
	ends = regexp.MustCompile(`[.!?;…]+(\s|$)|[。！？；]|\n+`)
)

// sentencesOf returns the words of each sentence of a turn: no code, no quotations, no names.
func sentencesOf(turn string) [][]string {
	if strings.Contains(turn, "`") {
		turn = fenced.ReplaceAllString(turn, " ")
	}
	if strings.ContainsAny(turn, `"'“„«「`) {
		turn = quoted.ReplaceAllString(turn, " ")
	}
	var out [][]string
	for _, sentence := range ends.Split(turn, -1) {
		if words := wordsOf(sentence); len(words) > 0 {
			out = append(out, words)
		}
	}
	return out
}

// wordsOf keeps words that a person writes. Tokens with digits, dots, slashes and the like are addresses, paths and
// identifiers; so are tokens with a capital letter inside. A capital letter in front stays, for German nouns and for the
// first word.
func wordsOf(sentence string) []string {
	var out []string
	for token := range strings.FieldsSeq(sentence) {
		token = strings.TrimFunc(token, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && r != '_' && r != '/' && r != '@'
		})
		if token == "" {
			continue
		}
		out = append(out, runsOf(token)...)
	}
	return out
}

// runsOf cuts a token where Latin letters meet another script, as in text without spaces.
func runsOf(token string) []string {
	var out []string
	var run []rune
	latin := false
	flush := func() {
		if word := string(run); len(run) > 0 {
			if stem, _, joined := strings.Cut(word, "-"); joined && latin && len(spoken[strings.ToLower(stem)]) > 0 {
				word = stem // as in supprime-le; other words with a hyphen may be identifiers
			}
			if !latin || isWord(word) {
				out = append(out, word)
			}
		}
		run = run[:0]
	}
	for _, r := range token {
		isOther := unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) || unicode.IsMark(r) && !latin
		if len(run) > 0 && isOther == latin {
			flush()
		}
		latin = !isOther
		run = append(run, r)
	}
	flush()
	return out
}

// isWord says whether a token of Latin letters is a word and no identifier. An apostrophe is part of a word.
func isWord(token string) bool {
	for i, r := range []rune(token) {
		switch {
		case r == '\'' || r == '’' || unicode.IsMark(r):
		case !unicode.IsLetter(r), i > 0 && unicode.IsUpper(r):
			return false
		}
	}
	return true
}

// isCapitalised says whether a word begins like a name.
func isCapitalised(word string) bool {
	for _, r := range word {
		return unicode.IsUpper(r)
	}
	return false
}
