package language

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// runningWords is how many words a text has in which common words of its language stand, and commonShare the share of
	// them, one in so many, that it has at the least. In English it is about every second word.
	runningWords = 10
	commonShare  = 4
)

// weigh gathers what words show: their script, common words, and letters and endings that only some languages have.
func weigh(words []string) evidence {
	e := evidence{words: words, scores: map[string]int{}}
	if other := scriptOf(words); other != nil {
		for _, tag := range other.among(words) {
			e.scores[tag] = scriptWeight
		}
		return e
	}
	latin := 0
	for i, word := range words {
		if r, _ := utf8.DecodeRuneInString(word); unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) {
			continue // a name in another script
		}
		latin++
		e.weighWord(strings.ToLower(word), i > 0 && isCapitalised(word))
	}
	best, _ := e.topTwo()
	e.foreign = latin >= runningWords && best*commonShare < latin
	return e
}

// scriptWeight is above what single words can weigh: a script cannot be mistaken.
const scriptWeight = 10

// weighWord counts a common word once, and twice if it has three letters or more or one that English does not have. Any
// other word counts by its letters. One that begins like a name does not: Zürich stands in English text too.
func (e *evidence) weighWord(word string, maybeName bool) {
	weight := 1
	if len(word) >= 3 { // in bytes, so that sí has three
		weight = 2
	}
	found := spoken[word]
	if stem, _, contracted := strings.Cut(strings.ReplaceAll(word, "’", "'"), "'"); contracted && len(found) == 0 {
		found = spoken[stem] // it's, I'll
	}
	for _, tag := range found {
		e.scores[tag] += weight
	}
	if maybeName || len(found) > 0 || slices.Contains(borrowed, word) {
		return
	}
	for tag, ends := range endings {
		if len(word) > longestEnding && slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(word, end) }) {
			e.scores[tag]++
		}
	}
	if isASCII(word) {
		return
	}
	for tag, letters := range marked {
		if strings.ContainsAny(word, letters) {
			e.scores[tag] += 2
		}
	}
}

func isASCII(word string) bool {
	for i := range len(word) {
		if word[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
