package language

import (
	"slices"
	"strings"
	"unicode"
)

// script stands for the languages that are written in it.
type script struct {
	tables []*unicode.RangeTable
	tags   []string
	// worth of a letter against a Latin one: a sign of Chinese is about three letters.
	worth int
	// lacks are letters that a language does not have.
	lacks map[string]string
}

var scripts = []script{
	{tables: []*unicode.RangeTable{unicode.Hiragana, unicode.Katakana}, tags: []string{"ja"}, worth: 2},
	{tables: []*unicode.RangeTable{unicode.Han}, tags: []string{"zh"}, worth: 3},
	{tables: []*unicode.RangeTable{unicode.Hangul}, tags: []string{"ko"}, worth: 2},
	{tables: []*unicode.RangeTable{unicode.Cyrillic}, tags: []string{"be", "bg", "mk", "ru", "sr", "uk"}, worth: 1, lacks: map[string]string{
		"be": "щъиїєґ" + southern, "bg": "ыэёіїєґў" + southern, "ru": "іїєґў" + southern, "uk": "ыэёъў" + southern,
		"mk": northern + "ћђ", "sr": northern + "ѓќѕ",
	}},
	{tables: []*unicode.RangeTable{unicode.Arabic}, tags: []string{"ar", "fa", "ur"}, worth: 1, lacks: map[string]string{
		"ar": "پچژگ" + urdu, "fa": "ةىأإ" + urdu, "ur": "ةأإ",
	}},
	{tables: []*unicode.RangeTable{unicode.Devanagari}, tags: []string{"hi", "mr", "ne"}, worth: 1},
	{tables: []*unicode.RangeTable{unicode.Greek}, tags: []string{"el"}, worth: 1},
	{tables: []*unicode.RangeTable{unicode.Hebrew}, tags: []string{"he"}, worth: 1},
	{tables: []*unicode.RangeTable{unicode.Thai}, tags: []string{"th"}, worth: 1},
	{tables: []*unicode.RangeTable{unicode.Bengali}, tags: []string{"bn"}, worth: 1},
	{tables: []*unicode.RangeTable{unicode.Tamil}, tags: []string{"ta"}, worth: 1},
	{tables: []*unicode.RangeTable{unicode.Telugu}, tags: []string{"te"}, worth: 1},
	{tables: []*unicode.RangeTable{unicode.Georgian}, tags: []string{"ka"}, worth: 1},
	{tables: []*unicode.RangeTable{unicode.Armenian}, tags: []string{"hy"}, worth: 1},
	{tables: []*unicode.RangeTable{unicode.Ethiopic}, tags: []string{"am", "ti"}, worth: 1},
}

const (
	southern = "јљњћђџѓќѕ"
	northern = "ыэёъйщьюяіїєґў"
	urdu     = "ٹڈڑےہں"
)

// scriptShare in percent of all letters makes a text one of that script. Names of services stay in Latin letters in every
// language, so it is less than half; one foreign name in an English sentence is less.
const scriptShare = 30

// scriptOf returns the script that a text is written in, nil for Latin. Letters of a script that is not in the table count
// for one that nobody here reads.
func scriptOf(words []string) *script {
	counts := make([]int, len(scripts)+1)
	total := 0
	for _, word := range words {
		for _, r := range word {
			if !unicode.IsLetter(r) {
				continue
			}
			at, worth := scriptAt(r)
			total += worth
			if at >= 0 {
				counts[at] += worth
			}
		}
	}
	if counts[0] > 0 { // signs of Chinese in a text with Japanese syllables are Japanese
		counts[0] += counts[1]
		counts[1] = 0
	}
	best := slices.Index(counts, slices.Max(counts))
	switch {
	case counts[best] < 2 || counts[best]*100 < total*scriptShare:
		return nil
	case best == len(scripts):
		return &script{tags: []string{Uncoded}}
	default:
		return &scripts[best]
	}
}

func scriptAt(r rune) (at, worth int) {
	if unicode.Is(unicode.Latin, r) {
		return -1, 1
	}
	for i := range scripts {
		if unicode.In(r, scripts[i].tables...) {
			return i, scripts[i].worth
		}
	}
	return len(scripts), 1
}

// among narrows the languages of a script by letters that some of them do not have. Text that has letters of all of them
// is narrowed to none, and then stays with all.
func (s *script) among(words []string) []string {
	text := strings.ToLower(strings.Join(words, " "))
	var out []string
	for _, tag := range s.tags {
		if lacks := s.lacks[tag]; lacks == "" || !strings.ContainsAny(text, lacks) {
			out = append(out, tag)
		}
	}
	if len(out) == 0 {
		return s.tags
	}
	return out
}
