package judge

// A tool result is read passage by passage: sentences, lines and fields, at most longestPassage words each. All that is
// kept of it can only grow worse when text is added, so that nobody who writes into a result can make the judge milder:
//
//   - of pleas (passages that tell their reader to act in the way of the tool) the one that covers most of the call;
//   - of the places of a value the worst: whether any stands in prose or in a plea, and the least asked-for result.
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
	now, before passage
	asked       float64
	hasBefore   bool
}

func (p *passages) init() {
	n := (len(p.weight) + 63) / 64
	bitsets := make(wordBits, 2*n)
	p.now = passage{words: bitsets[:n], run: make([]int16, 0, longestPassage)}
	p.before = passage{words: bitsets[n:], run: make([]int16, 0, longestPassage)}
}

// read takes one result. asked is how much of the call that brought it the user's words cover.
func (p *passages) read(text string, asked float64) {
	p.asked, p.hasBefore = asked, false
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

// finish judges the last passage, which nothing follows.
func (p *passages) finish() {
	if p.hasBefore {
		p.judge(&p.before, nil)
	}
	p.hasBefore = false
}

// end closes a passage. A passage is judged together with the one that follows: an order often names its object there.
func (p *passages) end() {
	if len(p.now.run) == 0 {
		return
	}
	if p.hasBefore {
		p.judge(&p.before, &p.now)
	}
	p.now, p.before = p.before, p.now
	p.hasBefore = true
	clear(p.now.words)
	p.now.run, p.now.acts, p.now.orders, p.now.cues = p.now.run[:0], 0, 0, 0
}

func (p *passages) judge(a, next *passage) {
	urges := a.cues&cueUrges != 0
	isPlea := (a.orders != 0 || urges) && len(a.run) >= shortestPlea
	p.results.addressed = p.results.addressed || urges && a.cues&cueAgent != 0
	p.findValues(a, isPlea)
	if !isPlea || a.acts&p.acts == 0 {
		return
	}
	p.results.anyPlea = true
	sets := [2]wordBits{a.words, a.words}
	if next != nil {
		sets[1] = next.words
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
func (p *passages) pleaCover(sets [2]wordBits) (all, strange, unsaid float64) {
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
			if sets[0].has(id) || sets[1].has(id) {
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

// findValues notes where values stand.
func (p *passages) findValues(a *passage, isPlea bool) {
	if !p.spend(len(p.leaves)) {
		return
	}
	for i := range p.leaves {
		l := &p.leaves[i]
		if len(l.words) == 0 || l.words[0] < 0 || !a.words.has(l.words[0]) || !p.view.contains(a.run, l.words) {
			continue
		}
		l.inProse = l.inProse || len(a.run) > shortField+len(l.words)
		l.inPlea = l.inPlea || isPlea
		if l.asked < 0 || p.asked < l.asked {
			l.asked = p.asked
		}
	}
}
