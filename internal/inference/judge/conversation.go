package judge

import (
	"slices"
	"strings"

	"gatewright.dev/gatewright/internal/questions"
)

// readOthers reads what assistant and tools said, in order. A result belongs to the calls that wait for one; which of
// several it is only its text could say, and that is not taken for true: then it is as little asked for as the least of
// them.
func (v *view) readOthers(tool string, messages []questions.Message) {
	reader := passages{view: v}
	reader.init()
	var waiting []float64
	answered := false
	for i := range messages {
		m := &messages[i]
		switch m.Role {
		case questions.RoleAssistant:
			if call, ok := strings.CutPrefix(m.Text, questions.CallPrefix); ok {
				if answered {
					waiting, answered = waiting[:0], false
				}
				waiting = append(waiting, v.earlierCall(tool, call))
				continue
			}
			v.lastIsQuestion = strings.ContainsRune(m.Text, '?')
			clear(v.assistant.words)
			v.assistant = said{words: v.assistant.words}
			v.hear(&v.assistant, m.Text)
			v.offer(m.Text)
		case questions.RoleTool:
			asked := 0.0
			if len(waiting) > 0 {
				asked = minOf(waiting)
			}
			answered = true
			reader.read(m.Text, asked)
		}
	}
	reader.finish()
}

func minOf(list []float64) float64 {
	least := list[0]
	for _, x := range list[1:] {
		least = min(least, x)
	}
	return least
}

// earlierCall notes what a call before this one has in common with it, and returns how much of that call the user's
// words cover.
func (v *view) earlierCall(tool, call string) float64 {
	v.calls++
	name, arguments, _ := strings.Cut(call, " ")
	total, found := 0, 0
	count := func(t token, weight int) {
		total += weight
		if _, ok := v.stems[t.stem]; ok {
			found += weight
		}
	}
	for _, t := range nameTokens(name) {
		if isStop(t) || meaning(t).acts != 0 {
			continue
		}
		const namesCount = 2 // an object of a tool says more than one word of its arguments
		count(t, namesCount)
		if id, ok := v.id[t.stem]; ok && slices.Contains(v.object, id) {
			v.sameObject = true
		}
	}
	scan := newScanner(arguments)
	ids := make([]int16, 0, 32)
	for t, ok := scan.next(); ok; t, ok = scan.next() {
		ids = append(ids, v.idOf(t))
		if !isStop(t) && (len(t.text) > 4 || t.text[0] > '9') { // parts of dates are neither here nor there
			count(t, 1)
		}
	}
	v.reuse(ids, name == tool)
	if total == 0 {
		return 1
	}
	return float64(found) / float64(total)
}

// reuse notes which values an earlier call had.
func (v *view) reuse(ids []int16, sameTool bool) {
	all := true
	for i := range v.leaves {
		l := &v.leaves[i]
		if l.shape&(shapeFlag|shapeNothing) != 0 {
			continue
		}
		if v.contains(ids, l.words) {
			l.reused = true
		} else {
			all = false
		}
	}
	v.sameTool = v.sameTool || sameTool
	v.sameCall = v.sameCall || sameTool && all
}

// idOf is the number of a word of the call, -1 for any other word.
func (v *view) idOf(t token) int16 {
	if id, ok := v.id[t.stem]; ok {
		return id
	}
	return -1
}

// offer notes which values the assistant's latest text holds.
func (v *view) offer(text string) {
	var ids []int16
	scan := newScanner(text)
	for t, ok := scan.next(); ok; t, ok = scan.next() {
		ids = append(ids, v.idOf(t))
	}
	for i := range v.leaves {
		v.leaves[i].offered = v.contains(ids, v.leaves[i].words)
	}
}

// maxSteps bounds what is compared for one call: many values in long texts. It is far above what a call needs that people
// would read, and some tens of milliseconds of work.
const maxSteps = 50_000_000

// contains looks for words in a text, as long as the call has steps left; then the call counts as too long.
func (v *view) contains(text, words []int16) bool {
	v.steps += len(text) * min(len(words), fewWords)
	return v.steps <= maxSteps && contains(text, words)
}

// fewWords is how many words are looked for at every place of a text, which needs no memory.
const fewWords = 8

func containsFew(text, words []int16) bool {
	for i := 0; i+len(words) <= len(text); i++ {
		if text[i] == words[0] && slices.Equal(text[i:i+len(words)], words) {
			return true
		}
	}
	return false
}

// contains reports whether the words stand in the text one after another. It looks at each word of the text a bounded
// number of times (Knuth, Morris and Pratt), because both are as long as an attacker makes them.
func contains(text, words []int16) bool {
	if len(words) == 0 || len(words) > len(text) || slices.Min(words) < 0 {
		return false
	}
	if len(words) <= fewWords {
		return containsFew(text, words)
	}
	back := borders(words)
	matched := 0
	for _, w := range text {
		for matched > 0 && words[matched] != w {
			matched = back[matched-1]
		}
		if words[matched] == w {
			matched++
		}
		if matched == len(words) {
			return true
		}
	}
	return false
}

// borders gives, for each beginning of the words, how long the longest shorter beginning is that it ends with.
func borders(words []int16) []int {
	back := make([]int, len(words))
	for i, n := 1, 0; i < len(words); i++ {
		for n > 0 && words[n] != words[i] {
			n = back[n-1]
		}
		if words[n] == words[i] {
			n++
		}
		back[i] = n
	}
	return back
}
