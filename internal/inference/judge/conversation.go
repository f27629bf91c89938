package judge

import (
	"slices"
	"strings"

	"gatewright.dev/gatewright/internal/questions"
)

// readOthers reads the agent's calls and what tools returned, in order. Other words of the assistant are not read: nothing
// that an agent says about its call is a reason to let it run. A result belongs to the calls that wait for one; which of
// several it is only its text could say, and that is not taken for true: then it is as little asked for as the least of
// them.
func (v *view) readOthers(messages []questions.Message) {
	reader := passages{view: v}
	reader.init()
	var waiting []float64
	answered := false
	v.heard = slices.ContainsFunc(messages, func(m questions.Message) bool { return m.Role == questions.RoleTool })
	for i := range messages {
		m := &messages[i]
		switch m.Role {
		case questions.RoleAssistant:
			call, ok := strings.CutPrefix(m.Text, questions.CallPrefix)
			if !ok {
				continue
			}
			if answered {
				waiting, answered = waiting[:0], false
			}
			waiting = append(waiting, v.earlierCall(call, m.Refused))
		case questions.RoleTool:
			asked := 0.0
			if len(waiting) > 0 {
				asked = slices.Min(waiting)
			}
			answered = true
			v.returned()
			reader.read(m.Text, asked)
		}
	}
	reader.finish()
}

// earlierCall notes what a call before this one has in common with it, and returns how much of that call the user's
// words cover. A refused call explains nothing; still what came back for it belongs to it, and not to a call before that
// the user may have asked for.
func (v *view) earlierCall(call string, refused bool) float64 {
	name, arguments, _ := strings.Cut(call, " ")
	total, found := 0, 0
	count := func(t token, weight int) {
		total += weight
		if _, ok := v.stems[t.stem]; ok {
			found += weight
		}
	}
	names := nameTokens(name)
	for _, t := range names {
		if isStop(t) || meaning(t).acts != 0 {
			continue
		}
		const namesCount = 2 // an object of a tool says more than one word of its arguments
		count(t, namesCount)
	}
	scan := newScanner(arguments)
	ids := make([]int16, 0, 32)
	for t, ok := scan.next(); ok; t, ok = scan.next() {
		ids = append(ids, v.idOf(t))
		if !isStop(t) && (len(t.text) > 4 || t.text[0] > '9') { // parts of dates are neither here nor there
			count(t, 1)
		}
	}
	if !refused {
		v.noteName(names)
		v.reuse(ids)
	}
	if total == 0 {
		return 1
	}
	return float64(found) / float64(total)
}

// reuse notes which values an earlier call had. Where any result has come back the agent may have been misled, and results
// show what calls bring: then a call of its own is no reason for a value of the next.
func (v *view) reuse(ids []int16) {
	if v.heard || !v.spend(len(v.leaves)) {
		return
	}
	for i := range v.leaves {
		l := &v.leaves[i]
		l.reused = l.reused || l.solid() && v.contains(ids, l.words)
	}
}

// noteName keeps the words of an earlier call's name that the present call has too.
func (v *view) noteName(name []token) {
	to := &v.acted
	if slices.ContainsFunc(name, func(t token) bool { return meaning(t).acts&actRead != 0 }) {
		v.asking, to = true, &v.asked
	}
	for _, t := range name {
		to.about |= meaning(t).topics
		if !isStop(t) {
			to.words.add(v.idOf(t))
		}
	}
}

// returned notes that the calls which wait for a result have one. A value of the call may come from those that read, and
// the id of a thing from those that did something to it; what the result says makes no difference.
func (v *view) returned() {
	v.hasRead = v.hasRead || v.asking
	v.read.add(v.asked)
	v.done.add(v.acted)
}

// idOf is the number of a word of the call, -1 for any other word.
func (v *view) idOf(t token) int16 {
	if id, ok := v.id[t.stem]; ok {
		return id
	}
	return -1
}

// maxSteps bounds what is compared for one call: many values in long texts. It is far above what a call needs that people
// would read, and some tenths of a second of work.
const maxSteps = 20_000_000

// spend counts steps, and reports whether the call has any left. A call that has none is not judged by half: it is too long.
func (v *view) spend(steps int) bool {
	v.steps += steps
	return v.steps <= maxSteps
}

// contains looks for words in a text, as long as the call has steps left; then the call counts as too long.
func (v *view) contains(text, words []int16) bool {
	return v.spend(len(text)*min(len(words), fewWords)) && contains(text, words)
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
