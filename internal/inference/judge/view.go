package judge

import (
	"math/bits"
	"slices"
	"strings"

	"gatewright.dev/gatewright/internal/questions"
)

// wordBits is a set of words of the call.
type wordBits []uint64

func (b wordBits) add(id int16) {
	if id >= 0 {
		b[id>>6] |= 1 << (id & 63)
	}
}

func (b wordBits) has(id int16) bool { return id >= 0 && b[id>>6]&(1<<(id&63)) != 0 }

func (b wordBits) hasAny(ids []int16) bool { return slices.ContainsFunc(ids, b.has) }

// said is what one kind of speaker said, as far as it bears on the call.
type said struct {
	words wordBits
	acts  acts
	// opening are acts of words that begin a sentence or follow a word such as "please".
	opening acts
	// total counts words that carry meaning, hits those of them that the call holds too.
	total, hits int
	question    bool
}

// view is everything that facts are computed from.
type view struct {
	*keys
	steps                int // of comparing; see maxSteps
	latest, user, system said
	// isYes says that the latest turn only agrees; hands over, that it refers to a task that stands elsewhere; refers, that
	// it refers to anything that does.
	isYes, handsOver, refuses, refers bool
	class                             float64
	// asking says that an earlier call reads, hasRead that such a call has returned. asked are the names of such calls, read
	// of those that have returned; acted and done are the same of calls that do not read.
	asking, hasRead          bool
	asked, read, acted, done names
	// heard says that any tool result has come back.
	heard   bool
	results resultView
	// conditions counts sentences of the agent's instructions that restrict what the tool does.
	conditions int
	// stems holds every word of the user and of the agent's instructions, those included that the call lacks.
	stems map[string]struct{}
}

// names is what the names of some earlier calls have in common with the call: words, and the kinds of thing they are about.
type names struct {
	words wordBits
	about topics
}

func (n *names) add(o names) {
	n.about |= o.about
	for i, w := range o.words {
		n.words[i] |= w
	}
}

// speakOf says that the names speak of what the argument of a value is named after.
func (n *names) speakOf(l *leaf) bool { return n.words.hasAny(l.named) || n.about&l.topics != 0 }

// resultView is the worst that tool results hold.
type resultView struct {
	// plea: how much of the call the best passage covers that tells its reader to act in the tool's way. strange
	// counts only words that the user did not say, named those of the tool's object.
	plea, strange, strangeShare, urgedPlea float64
	anyPlea, addressed                     bool
}

// newView reads the conversation once.
func newView(s *questions.State) *view {
	v := &view{keys: newKeys(s)}
	v.class = classOf(s.Tool.Class)
	n := (len(v.weight) + 63) / 64
	sets := [...]*wordBits{
		&v.latest.words, &v.user.words, &v.system.words, &v.asked.words, &v.read.words, &v.acted.words, &v.done.words,
	}
	bitsets := make(wordBits, len(sets)*n)
	for i, set := range sets {
		*set = bitsets[i*n : (i+1)*n]
	}
	v.stems = map[string]struct{}{}
	v.readUser(s.UserTurns)
	for _, text := range s.System {
		v.hear(&v.system, text)
		v.know(text)
		v.readConditions(text)
	}
	v.readOthers(s.Messages)
	return v
}

// hear adds a text to what somebody said.
func (v *view) hear(to *said, text string) {
	scan := newScanner(text)
	joins := false
	var before [2]string
	for t, ok := scan.next(); ok; t, ok = scan.next() {
		m := meaning(t)
		to.acts |= m.acts
		if t.opens || joins {
			to.opening |= m.acts
		}
		joins = m.cues&cueJoins != 0
		if particles[t.text] {
			v.hearJoined(to, before, t.text)
		}
		before = [2]string{before[1], t.text}
		stop := m.cues&cueStop != 0
		if !stop {
			to.total++
		}
		if id, ok := v.id[t.stem]; ok {
			to.words.add(id)
			if !stop {
				to.hits++
			}
		}
	}
	to.question = strings.ContainsRune(text, '?')
}

// hearJoined adds a verb of two words that the call writes as one. Its parts are next to each other or around one word.
func (v *view) hearJoined(to *said, before [2]string, particle string) {
	for _, first := range before {
		joined := stem(first + particle)
		if id, ok := v.id[joined]; ok && first != "" {
			to.words.add(id)
			to.acts |= lexicon[joined].acts
			to.opening |= lexicon[joined].acts
		}
	}
}

func (v *view) readUser(turns []string) {
	for i, text := range turns {
		v.know(text)
		if i == len(turns)-1 {
			v.hear(&v.latest, text)
			v.readWish(text)
		} else {
			v.hear(&v.user, text)
		}
	}
	// The user's words are all of them.
	for i, w := range v.latest.words {
		v.user.words[i] |= w
	}
	v.user.acts |= v.latest.acts
	v.user.opening |= v.latest.opening
}

// know notes every word of the user or of the agent's instructions.
func (v *view) know(text string) {
	scan := newScanner(text)
	for t, ok := scan.next(); ok; t, ok = scan.next() {
		v.stems[t.stem] = struct{}{}
	}
}

// readConditions counts the sentences that hold a word of restriction, the tool's kind of action and its object. A tool
// that only reads is not meant by them.
func (v *view) readConditions(text string) {
	act := v.acts &^ (actRead | actLogin)
	if act == 0 {
		return
	}
	var sentence acts
	var cues cue
	object := len(v.object) == 0
	end := func() {
		if sentence&act != 0 && cues&cueRestricts != 0 && object {
			v.conditions++
		}
		sentence, cues, object = 0, 0, len(v.object) == 0
	}
	scan := newScanner(text)
	for t, ok := scan.next(); ok; t, ok = scan.next() {
		if t.breaks {
			end()
		}
		m := meaning(t)
		sentence |= m.acts
		cues |= m.cues
		object = object || slices.Contains(v.object, v.idOf(t))
	}
	end()
}

// readWish looks at the form of the latest turn.
func (v *view) readWish(text string) {
	scan := newScanner(text)
	const reach = 12 // words from "follow" to "instructions"
	n, lastDoes := 0, -reach-1
	for t, ok := scan.next(); ok; t, ok = scan.next() {
		cues := meaning(t).cues
		if n == 0 && cues&cueYes != 0 {
			v.isYes = true
		}
		if cues&cueTask != 0 && n-lastDoes <= reach && n != lastDoes {
			v.handsOver = true
		}
		if cues&cueDoes != 0 {
			lastDoes = n
		}
		v.refuses = v.refuses || cues&cueNot != 0
		v.refers = v.refers || cues&cueRefers != 0
		n++
	}
	const longestYes = 12
	v.isYes = v.isYes && n <= longestYes
}

// classOf orders the classes by how bad a mistake is; -1 is not known. A named class is not known.
func classOf(class string) float64 {
	switch strings.ToLower(strings.ReplaceAll(class, "-", "")) {
	case "readonly":
		return 0
	case "write":
		return 1
	case "external":
		return 2
	case "destructive":
		return 3
	}
	return -1
}

// cover is the weight of the given words that stand in any of the sets, as a share of the weight of all of them; -1 if
// there are none.
func (v *view) cover(words []int16, sets ...wordBits) float64 {
	total, found := 0.0, 0.0
	for _, id := range words {
		if id < 0 {
			total++
			continue
		}
		total += v.weight[id]
		for _, set := range sets {
			if set.has(id) {
				found += v.weight[id]
				break
			}
		}
	}
	if total == 0 {
		return -1
	}
	return found / total
}

// overlap is the share of the kinds of action in a that b has too.
func overlap(a, b acts) float64 {
	if a == 0 {
		return 0
	}
	return float64(bits.OnesCount16(uint16(a&b))) / float64(bits.OnesCount16(uint16(a)))
}

// look decides which origin of each value counts, and works out what follows from it. A tool result is no origin for any
// head: whoever writes into one would choose what the judge takes for traced. To a strict head neither are the agent's own
// calls.
func (v *view) look(strict bool) {
	ofObject, doneToObject := v.read.words.hasAny(v.object), v.done.words.hasAny(v.object)
	for i := range v.leaves {
		l := &v.leaves[i]
		l.origin = l.stated
		if l.origin >= fromTool {
			l.origin = fromNowhere
			if !strict {
				l.origin = v.byCalls(l, ofObject, doneToObject)
			}
		}
		if !l.solid() || l.shape&shapeDate != 0 && l.origin < fromTool {
			l.covered = 1
			continue
		}
		l.covered = max(0, v.cover(l.words, v.user.words))
	}
}

// byCalls is the origin of a value that neither the user, facts nor the schema have. ofObject says that an earlier call read
// what the tool's name speaks of, doneToObject that one did something to it: what was made has an id from then on.
func (v *view) byCalls(l *leaf, ofObject, doneToObject bool) origin {
	switch {
	case l.reused:
		return fromEarlier
	case v.hasRead && (ofObject || v.read.speakOf(l)):
		return fromRelated
	case l.shape&shapeHandle != 0 && (doneToObject || v.done.speakOf(l)):
		return fromRelated
	case v.hasRead:
		return fromRead
	}
	return fromNowhere
}
