package judge

import "slices"

// A tool result is read passage by passage: sentences, lines and fields, at most longestPassage words each. All that is
// kept of it can only grow worse when text is added before or behind it or as a further result, and is never milder than if
// nothing had been said. Text in the middle can part what is judged together, and no more than that:
//
//   - of pleas (passages that tell their reader to act in the way of the tool) the one that covers most of the call;
//   - of the places of a value the worst: whether any stands in prose, in or beside a plea, or in a result that urges a machine,
//     and the least asked-for result.
//
// That a value stands in a result is no reason to trust it: see view.look.

const (
	// longestPassage cuts prose without signs.
	longestPassage = 34
	// shortestPlea: "complete survey" in a field is a title.
	shortestPlea = 4
	// shortField is how many words a field of a record has at most; more is prose.
	shortField = 10
)

// passage is what one passage holds.
type passage struct {
	words wordBits
	// run are the words in order; -1 is a word that the call lacks.
	run    []int16
	acts   acts // kinds of action of any word
	orders acts // of words in the imperative
	cues   cue
}

// passages reads tool results.
type passages struct {
	*view
	// now is being read, before ended last, prior ended before that.
	now, before, prior  passage
	asked               float64
	hasBefore, hasPrior bool
	// result counts results, urgesMachine says that one of its passages urges a machine that reads.
	result       int
	urgesMachine bool
}

func (p *passages) init() {
	n := (len(p.weight) + 63) / 64
	of := [...]*passage{&p.now, &p.before, &p.prior}
	bitsets := make(wordBits, len(of)*n)
	for i, at := range of {
		*at = passage{words: bitsets[i*n : (i+1)*n], run: make([]int16, 0, longestPassage)}
	}
}

// read takes one result. asked is how much of the call that brought it the user's words cover.
func (p *passages) read(text string, asked float64) {
	p.asked, p.hasBefore, p.hasPrior = asked, false, false
	p.result, p.urgesMachine = p.result+1, false
	scan := newScanner(text)
	joins := false
	for t, ok := scan.next(); ok; t, ok = scan.next() {
		if t.breaks || len(p.now.run) == longestPassage {
			p.end()
		}
		m := meaning(t)
		p.now.acts |= m.acts
		p.now.cues |= m.cues
		if (t.opens || joins || len(p.now.run) == 0) && !t.names {
			p.now.orders |= m.acts
		}
		joins = m.cues&cueJoins != 0
		id := p.idOf(t)
		p.now.words.add(id)
		p.now.run = append(p.now.run, id)
	}
	p.end()
	p.finish()
}

// finish judges the last passage, which nothing follows, and then the values of a result as a whole.
func (p *passages) finish() {
	if p.hasBefore {
		p.judge(&p.before, nil)
	}
	p.hasBefore, p.hasPrior = false, false
	if !p.urgesMachine || !p.spend(len(p.leaves)) {
		return
	}
	for i := range p.leaves {
		l := &p.leaves[i]
		l.besideUrge = l.besideUrge || l.result == p.result
	}
}

// end closes a passage. A passage is judged together with the ones around it: an order often names its object there.
func (p *passages) end() {
	if len(p.now.run) == 0 {
		return
	}
	if p.hasBefore {
		p.judge(&p.before, &p.now)
	}
	p.now, p.before, p.prior = p.prior, p.now, p.before
	p.hasPrior, p.hasBefore = p.hasBefore, true
	clear(p.now.words)
	p.now.run, p.now.acts, p.now.orders, p.now.cues = p.now.run[:0], 0, 0, 0
}

// told is what a passage tells whoever reads it.
type told struct {
	plea    bool // to do something
	urges   bool // that it is wanted
	speaks  bool // of what the tool does
	machine bool // that a machine is meant
}

func (p *passages) judge(a, next *passage) {
	t := told{urges: a.cues&cueUrges != 0, speaks: a.acts&p.acts != 0 || p.acts == 0 && slices.ContainsFunc(p.name, a.words.has)}
	t.machine = t.urges && a.cues&cueAgent != 0
	t.plea = a.orders != 0 || t.urges
	p.urgesMachine = p.urgesMachine || t.machine
	p.results.addressed = p.results.addressed || t.machine
	if len(a.run) < shortestPlea {
		t = told{}
	}
	around := [...]*passage{a, next, nil}
	if p.hasPrior {
		around[2] = &p.prior
	}
	p.findValues(a, t)
	for _, b := range around[1:] {
		if b != nil {
			p.findBeside(b, t)
		}
	}
	if t.plea && t.speaks {
		p.judgePlea(around, t.urges)
	}
}

// judgePlea keeps the worst of a plea for what the tool does, together with the passages around it.
func (p *passages) judgePlea(around [3]*passage, urges bool) {
	p.results.anyPlea = true
	var sets [3]wordBits
	for i, b := range around {
		sets[i] = around[0].words
		if b != nil {
			sets[i] = b.words
		}
	}
	plea, strange, all := p.pleaCover(sets)
	r := &p.results
	r.plea = max(r.plea, plea)
	r.strange = max(r.strange, strange)
	if all > 0 {
		r.strangeShare = max(r.strangeShare, strange/all)
	}
	if urges {
		r.urgedPlea = max(r.urgedPlea, strange)
	}
}

// pleaCover is how much of the call a passage covers: of all its words, and of those that the user did not say, both as a
// share of all; last the share that the user did not say.
func (p *passages) pleaCover(sets [3]wordBits) (all, strange, unsaid float64) {
	if !p.spend(len(p.name) + len(p.values)) {
		return 0, 0, 0
	}
	total := 0.0
	for _, list := range [...][]int16{p.name, p.values} {
		for _, id := range list {
			if id < 0 {
				continue
			}
			w := p.weight[id]
			total += w
			said := p.user.words.has(id)
			if !said {
				unsaid += w
			}
			if sets[0].has(id) || sets[1].has(id) || sets[2].has(id) {
				all += w
				if !said {
					strange += w
				}
			}
		}
	}
	if total == 0 {
		return 0, 0, 0
	}
	return all / total, strange / total, unsaid / total
}

// holds reports whether a value stands in a passage.
func (p *passages) holds(a *passage, l *leaf) bool {
	return len(l.words) > 0 && l.words[0] >= 0 && a.words.has(l.words[0]) && p.view.contains(a.run, l.words)
}

// findValues notes where values stand.
func (p *passages) findValues(a *passage, t told) {
	if !p.spend(len(p.leaves)) {
		return
	}
	for i := range p.leaves {
		l := &p.leaves[i]
		if !p.holds(a, l) {
			continue
		}
		l.result = p.result
		l.inProse = l.inProse || len(a.run) > shortField+len(l.words)
		l.inPlea = l.inPlea || t.plea
		l.mark(t)
		if l.asked < 0 || p.asked < l.asked {
			l.asked = p.asked
		}
	}
}

// findBeside notes which values stand in a passage that is beside another, of which told says what it tells.
func (p *passages) findBeside(b *passage, t told) {
	if !t.urges && !t.speaks || !p.spend(len(p.leaves)) {
		return
	}
	for i := range p.leaves {
		if l := &p.leaves[i]; p.holds(b, l) {
			l.mark(t)
		}
	}
}

// mark notes what is told in or beside the place of a value.
func (l *leaf) mark(t told) {
	l.byOrder = l.byOrder || t.plea && t.speaks
	l.bySpeech = l.bySpeech || t.speaks
	l.byUrge = l.byUrge || t.urges
}
