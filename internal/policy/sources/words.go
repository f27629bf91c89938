package sources

import "strings"

// stem takes endings off an English word, so that "meetings", "meeting" and "meet" agree. It is applied to both
// sides, hence it need only be consistent.
func stem(w string) string {
	w = singular(w)
	switch {
	case len(w) > 7 && strings.HasSuffix(w, "ation"):
		w = w[:len(w)-5]
	case len(w) > 5 && strings.HasSuffix(w, "ing"):
		w = undouble(w[:len(w)-3])
	case len(w) > 4 && strings.HasSuffix(w, "ed"):
		w = undouble(w[:len(w)-2])
	case len(w) > 5 && strings.HasSuffix(w, "ly"):
		w = w[:len(w)-2]
	}
	if len(w) > 3 && strings.HasSuffix(w, "e") {
		w = w[:len(w)-1]
	}
	return w
}

func singular(w string) string {
	switch {
	case len(w) > 4 && strings.HasSuffix(w, "ies"):
		return w[:len(w)-3] + "y"
	case len(w) > 4 && strings.HasSuffix(w, "es") && strings.IndexByte("sxzh", w[len(w)-3]) >= 0:
		return w[:len(w)-2]
	case len(w) > 3 && strings.HasSuffix(w, "s") && w[len(w)-2] != 's':
		return w[:len(w)-1]
	}
	return w
}

// undouble turns "plann" into "plan".
func undouble(w string) string {
	if n := len(w); n > 3 && w[n-1] == w[n-2] && strings.IndexByte("bdgmnprt", w[n-1]) >= 0 {
		return w[:n-1]
	}
	return w
}

// allWords is the number of content words from which one in ten may be missing: a long text has a greeting or two.
const allWords = 10

// matchWords covers a text by the words of one source. Every number, id and address in it must stand there as a
// whole; words never make up for one.
func (c *corpus) matchWords(v *value) Match {
	total, covered, least := 0, 0, free
	for _, p := range v.pieces {
		if p.rigid {
			if c.matchPiece(p) == None {
				return None
			}
			covered++
			total++
			continue
		}
		for _, a := range p.content {
			total++
			if how := c.stems[stem(a)]; how != bound {
				covered++
				least = min(least, how)
			}
		}
	}
	switch {
	case total == 0:
		return None
	case total == 1 && covered == 1 && least < free:
		return Partial // a piece of a compound is not all of it
	case covered == total, !v.list && total >= allWords && covered*10 >= total*9:
		return Words
	case covered*2 >= total && total > 1:
		return Partial
	}
	return None
}

// matchPiece finds one number, id or address inside a longer text.
func (c *corpus) matchPiece(p *value) Match {
	if m := c.matchWhole(p); m.whole() {
		return m
	}
	return None
}

// matchName finds a name of several words whose words are joined in another way: rear_left, rear-left, rearLeft.
func (c *corpus) matchName(v *value) Match {
	if len(v.name) < 2 {
		return None
	}
	if joined := strings.Join(v.name, ""); len(joined) >= 5 && c.find(joined, true, v.budget) == whole {
		return Rewritten
	}
	const most = 512
	p, ok := c.posting(v.name[0])
	if !ok {
		return None
	}
	for i, tries := int(p.last), 0; i >= 0 && tries < most && v.budget.take(); i, tries = int(c.before[i]), tries+1 {
		if c.nameAt(i, v.name) {
			return Rewritten
		}
	}
	return None
}

func (c *corpus) nameAt(i int, words []string) bool {
	last := i + len(words) - 1
	if last >= len(c.atoms) {
		return false
	}
	for k, w := range words {
		if c.word(i+k) != w {
			return false
		}
		if k > 0 {
			switch c.gap(i + k - 1) {
			case " ", "-", "_":
			default:
				return false
			}
		}
	}
	return c.placeAt(int(c.atoms[i].start), int(c.atoms[last].end), true) == whole
}

// matchGrouped finds a long number, card, telephone number or IBAN whose characters are grouped in another way.
func (c *corpus) matchGrouped(v *value) Match {
	if v.squeezed == "" {
		return None
	}
	for n := 1; n <= len(v.squeezed); n++ {
		p, ok := c.posting(v.squeezed[:n])
		if !ok {
			continue
		}
		const most = 256
		for i, tries := int(p.last), 0; i >= 0 && tries < most && v.budget.take(); i, tries = int(c.before[i]), tries+1 {
			if c.groupedAt(i, v.squeezed) {
				return Rewritten
			}
		}
	}
	return None
}

func (c *corpus) groupedAt(i int, squeezed string) bool {
	first := i
	for {
		w := c.word(i)
		rest, ok := strings.CutPrefix(squeezed, w)
		if !ok {
			return false
		}
		if rest == "" {
			return !c.groupContinues(first-1) && !c.groupContinues(i)
		}
		if i+1 >= len(c.atoms) || !isGroupGap(c.gap(i)) {
			return false
		}
		squeezed = rest
		i++
	}
}

func isGroupGap(gap string) bool {
	switch gap {
	case " ", "-", ") ", ")", " (", "(":
		return true
	}
	return false
}

// groupContinues reports whether the atoms i and i+1 look like parts of one grouped number, or of a compound.
func (c *corpus) groupContinues(i int) bool {
	if i < 0 || i+1 >= len(c.atoms) {
		return false
	}
	gap := c.gap(i)
	if isGroupGap(gap) && strings.ContainsAny(c.word(i), "0123456789") && strings.ContainsAny(c.word(i+1), "0123456789") {
		return true
	}
	switch gap {
	case "", "-", "_", ".", "/", "@", "+":
		return true
	}
	return false
}
