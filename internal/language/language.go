// Package language finds out in which languages a user's turns are written, as far as they show it. Requests to agents are
// short and full of names, so most detectors guess: this one says that it does not know unless there is evidence. It is
// pure, and the same turns give the same result.
package language

import (
	"maps"
	"slices"
	"strings"
)

const (
	// Undetermined is the tag of text that shows no language, such as "4 PM" or the name of a pod (BCP 47: und).
	Undetermined = "und"
	// Uncoded is the tag of running text in a language that is not known here (BCP 47: mis).
	Uncoded = "mis"
)

// Result is what the turns show.
type Result struct {
	// Tag is the likeliest language of all turns, a BCP 47 primary tag; Undetermined if nothing shows one.
	Tag string
	// Confidence is the share of the evidence that speaks for Tag rather than for the next language, 0 to 1. It is no
	// probability.
	Confidence float64
	// Known says that the evidence singles Tag out.
	Known bool
	// Passages are the turns and sentences that show a language.
	Passages []Passage
}

// Passage is a turn or a sentence with evidence for a language.
type Passage struct {
	// Tags are the languages that the evidence cannot tell apart, sorted.
	Tags []string
	// Words it has, code and names left out.
	Words int
}

// Detect looks at all turns. A turn counts as a whole, and each of its sentences by itself, so that a sentence in another
// language does not go under in a long turn.
func Detect(turns []string) Result {
	r := Result{Tag: Undetermined}
	total := evidence{}
	for _, turn := range turns {
		sentences := sentencesOf(turn)
		var all []string
		for _, s := range sentences {
			all = append(all, s...)
		}
		whole := weigh(all)
		total.add(whole)
		r.note(whole)
		if len(sentences) > 1 {
			for _, s := range sentences {
				r.note(weigh(s))
			}
		}
	}
	tags := total.tags()
	if len(tags) == 0 {
		return r
	}
	r.Tag, r.Confidence, r.Known = total.likeliest(tags), total.confidence(), len(tags) == 1
	return r
}

// note keeps a passage that shows a language.
func (r *Result) note(e evidence) {
	if tags := e.tags(); len(tags) > 0 {
		r.Passages = append(r.Passages, Passage{Tags: tags, Words: len(e.words)})
	}
}

// ReadableBy says whether somebody who reads the given languages can read every passage that shows one. Text that shows no
// language is taken for readable: there is nothing in it by which anybody could be misled about the language.
func (r Result) ReadableBy(languages []string) bool {
	reads := map[string]bool{}
	for _, l := range languages {
		reads[Primary(l)] = true
	}
	for _, p := range r.Passages {
		if !slices.ContainsFunc(p.Tags, func(tag string) bool { return reads[tag] }) {
			return false
		}
	}
	return true
}

// Primary is the primary tag in lower case: "en" of "en-GB". Norwegian has one tag here for both of its written forms.
func Primary(tag string) string {
	primary, _, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(tag), "_", "-"), "-")
	if primary == "nb" || primary == "nn" {
		return "no"
	}
	return primary
}

// evidence is what speaks for each language in some words.
type evidence struct {
	words  []string
	scores map[string]int
	// foreign is running text without one word of a language that is known here.
	foreign bool
}

// add sums evidence up.
func (e *evidence) add(o evidence) {
	e.words = append(e.words, o.words...)
	if e.scores == nil {
		e.scores = map[string]int{}
	}
	for tag, n := range o.scores {
		e.scores[tag] += n
	}
	best, _ := e.topTwo()
	e.foreign = (e.foreign || o.foreign) && best*commonShare < len(e.words)
}

// leastEvidence: one word of two letters says nothing ("es" is a word in two languages and the name of a cluster).
const leastEvidence = 2

// tags are the languages with the most evidence, sorted; none if there is too little.
func (e evidence) tags() []string {
	best, _ := e.topTwo()
	switch {
	case e.foreign:
		return []string{Uncoded}
	case best < leastEvidence:
		return nil
	}
	var out []string
	for tag, n := range e.scores {
		if n == best {
			out = append(out, tag)
		}
	}
	slices.Sort(out)
	return out
}

func (e evidence) topTwo() (best, second int) {
	for _, n := range e.scores {
		if n > best {
			best, second = n, best
		} else if n > second {
			second = n
		}
	}
	return best, second
}

// likeliest is for people: where the evidence leaves a choice, the language with more speakers is named.
func (e evidence) likeliest(tags []string) string {
	for _, tag := range bySpeakers {
		if slices.Contains(tags, tag) {
			return tag
		}
	}
	return tags[0]
}

var bySpeakers = []string{"en", "zh", "hi", "es", "ar", "fr", "pt", "ru", "de", "it"}

func (e evidence) confidence() float64 {
	best, second := e.topTwo()
	if best == 0 {
		return 0
	}
	return float64(best) / float64(best+second)
}

// Languages lists the tags for which there are words or a script, sorted.
func Languages() []string {
	known := map[string]bool{}
	for tag := range vocabulary {
		known[tag] = true
	}
	for _, s := range scripts {
		for _, tag := range s.tags {
			known[tag] = true
		}
	}
	return slices.Sorted(maps.Keys(known))
}
