package sources

import (
	"strings"
	"unicode/utf8"
)

// corpus is all text of one source, normalised and indexed. Values are looked up by their rarest atom.
type corpus struct {
	text    string
	atoms   []atom
	words   map[string]int32 // by spelling of an atom: its place in posts
	posts   []posting
	before  []int32 // by atom number: the previous atom of the same spelling, or -1
	stems   map[string]standing
	decoded map[string]struct{} // addresses that the text writes with percent escapes, in canonical form
	signs   map[string]struct{} // what stands between delimiters without any letter or digit
	facts   mentions
}

// posting is where the atoms of one spelling stand: how often, where last, and how freely at best.
type posting struct {
	count, last int32
	best        standing
}

// standing says how far a word stands for itself.
type standing uint8

const (
	bound  standing = iota // a part of an address, an id or the like
	linked                 // one of several words with a dash or a slash between them: "rear-left"
	free
)

// standing judges the connectors at both sides of an atom.
func (c *corpus) standing(i int) standing {
	return min(c.link(i, -1), c.link(i, 1))
}

// link judges one side of an atom; step leads outwards.
func (c *corpus) link(i, step int) standing {
	// A chain with more links than this is no compound that people write.
	const most = 8
	best := free
	for range most {
		switch c.connector(i, step) {
		case 0:
			return best
		case '-', '/':
			best = linked
		default:
			return bound
		}
		i += step
		if strings.ContainsAny(c.word(i), "0123456789") {
			return bound
		}
	}
	return bound
}

// connector returns the one sign that glues atom i to its neighbour, or 0 when they stand apart.
func (c *corpus) connector(i, step int) byte {
	if step < 0 {
		i--
	}
	if i < 0 || i+1 >= len(c.atoms) {
		return 0
	}
	if gap := c.gap(i); len(gap) == 1 && strings.Contains(`-/@._\:=&%+#~$`, gap) {
		return gap[0]
	}
	return 0
}

func newCorpus(texts []string) *corpus {
	size := 0
	for _, t := range texts {
		size += len(t) + 1
	}
	var b strings.Builder
	b.Grow(size)
	for _, t := range texts {
		appendNormalized(&b, t)
		b.WriteByte(boundary)
	}
	return indexText(b.String())
}

func indexText(text string) *corpus {
	// Six bytes an atom and half of the atoms distinct are typical of English; both only save growing.
	c := &corpus{text: text, atoms: appendAtoms(make([]atom, 0, len(text)/6+1), text)}
	c.words = make(map[string]int32, len(c.atoms)/2)
	c.before = make([]int32, len(c.atoms))
	c.stems = make(map[string]standing, len(c.atoms)/2)
	for i := range c.atoms {
		word := c.word(i)
		id, seen := c.words[word]
		if !seen {
			id = int32(len(c.posts))
			c.words[word] = id
			c.posts = append(c.posts, posting{last: -1})
		}
		p := &c.posts[id]
		if p.best < free {
			if how := c.standing(i); how > p.best {
				p.best = how
				s := stem(word)
				c.stems[s] = max(c.stems[s], how)
			}
		}
		c.before[i] = p.last
		p.count++
		p.last = int32(i)
	}
	c.decoded = decodedAddresses(text)
	c.signs = signsOf(text)
	c.facts = scan(text, c.atoms)
	return c
}

// posting returns where a word stands.
func (c *corpus) posting(word string) (posting, bool) {
	id, ok := c.words[word]
	if !ok {
		return posting{}, false
	}
	return c.posts[id], true
}

func (c *corpus) word(i int) string { return c.text[c.atoms[i].start:c.atoms[i].end] }

// gap is the text between atom i and the next one.
func (c *corpus) gap(i int) string { return c.text[c.atoms[i].end:c.atoms[i+1].start] }

// place says how a value stands in a text.
type place int

const (
	absent  place = iota
	inside        // a part of a longer compound of words: "rear" in "rear-left"
	reduced       // whole but for a URL scheme before it or a slash behind it
	whole
)

// find looks for the value between boundaries. A rigid value must not be part of any compound.
func (c *corpus) find(v string, rigid bool, b *budget) place {
	var buf [16]atom
	atoms := appendAtoms(buf[:0], v)
	if len(atoms) == 0 {
		if _, ok := c.signs[v]; ok {
			return whole
		}
		return absent
	}
	anchor, p := atoms[0], posting{count: -1}
	for _, a := range atoms {
		q, ok := c.posting(v[a.start:a.end])
		if !ok {
			return absent
		}
		if p.count < 0 || q.count < p.count {
			anchor, p = a, q
		}
	}
	// A value that is not whole at any of so many places is taken to be absent, which trusts it less.
	const most = 512
	best := absent
	for i, tries := p.last, 0; i >= 0 && best < whole && tries < most && b.take(); i, tries = c.before[i], tries+1 {
		start := int(c.atoms[i].start - anchor.start)
		if start >= 0 && strings.HasPrefix(c.text[start:], v) {
			best = max(best, c.placeAt(start, start+len(v), rigid))
		}
	}
	return best
}

// signsOf collects what stands between delimiters, or between blanks, and holds no letter or digit: "*", "[]".
func signsOf(text string) map[string]struct{} {
	var out map[string]struct{}
	add := func(s string) {
		if out == nil {
			out = map[string]struct{}{}
		}
		out[s] = struct{}{}
	}
	for chunk := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == boundary }) {
		if !hasWord(chunk) {
			add(chunk)
		}
		start := 0
		for i := 0; i <= len(chunk); i++ {
			if !isDelimiter(chunk, i) {
				continue
			}
			if part := chunk[start:i]; part != "" && !hasWord(part) {
				add(part)
			}
			start = i + 1
		}
	}
	return out
}

// isDelimiter reports whether the byte at i parts words in any text: white space, brackets, quotes, list separators
// and both ends. An apostrophe between word characters does not.
func isDelimiter(text string, i int) bool {
	if i < 0 || i >= len(text) {
		return true
	}
	switch text[i] {
	case ' ', boundary, '(', ')', '[', ']', '{', '}', '<', '>', '"', '`', ',', ';', '|':
		return true
	case '\'':
		return !wordEnds(text, i) || !wordStarts(text, i+1)
	}
	return text[i] >= utf8.RuneSelf && isForeignSign(text, i)
}

// isForeignSign reports whether the byte at i is of a sign beyond ASCII that is no part of words, such as an arrow.
func isForeignSign(text string, i int) bool {
	for i > 0 && !utf8.RuneStart(text[i]) {
		i--
	}
	r, _ := utf8.DecodeRuneInString(text[i:])
	return !isWord(r)
}

// wordEnds reports whether a word character stands right before i.
func wordEnds(text string, i int) bool {
	r, _ := utf8.DecodeLastRuneInString(text[:max(i, 0)])
	return isWord(r)
}

// wordStarts reports whether a word character stands at i.
func wordStarts(text string, i int) bool {
	r, _ := utf8.DecodeRuneInString(text[min(max(i, 0), len(text)):])
	return isWord(r)
}

func hasWord(s string) bool { return strings.ContainsFunc(s, isWord) }

// placeAt judges what surrounds text[start:end] up to the next delimiters:
//
//	... (mailto:bob@example.com/) ...
//	     prefix~ value~~~~~~~~~ suffix
func (c *corpus) placeAt(start, end int, rigid bool) place {
	if rigid && (gluedAt(c.text, start, -1) || gluedAt(c.text, end, 1)) {
		return absent
	}
	left, right := start, end
	// A chunk longer than this is no compound that anyone reads; what is cut off makes it look like one.
	const reach = 64
	for !isDelimiter(c.text, left-1) && start-left < reach {
		left--
	}
	for !isDelimiter(c.text, right) && right-end < reach {
		right++
	}
	prefix, value, suffix := c.text[left:start], c.text[start:end], c.text[end:right]
	if rigid && gluedBehind(c.text, value, right) || insideGroups(c.text, start, end) {
		return absent
	}
	p, s := prefixPlace(prefix, value), suffixPlace(suffix, value)
	if p != absent && s != absent {
		return min(p, s)
	}
	if rigid || splitsWord(prefix, value, suffix) {
		return absent
	}
	for _, x := range [...]string{prefix, suffix} {
		if strings.ContainsAny(x, "@0123456789") || strings.Contains(x, "://") {
			return absent
		}
	}
	return inside
}

// gluedAt reports a connector at an edge of a value that another word follows outwards: the common reason to refuse a
// place, so it is looked for before all that surrounds the value is.
func gluedAt(text string, edge, step int) bool {
	at := edge
	if step < 0 {
		at--
	}
	if at < 0 || at >= len(text) || strings.IndexByte(`-_.@/\+&%`, text[at]) < 0 {
		return false
	}
	if step < 0 {
		return wordEnds(text, at)
	}
	return wordStarts(text, at+1)
}

// insideGroups reports a value that starts or ends between the digits of "1,000".
func insideGroups(text string, start, end int) bool {
	if start >= 2 && text[start-1] == ',' && isDigit(text[start-2]) && isDigit(text[start]) {
		return true
	}
	return end+1 < len(text) && text[end] == ',' && isDigit(text[end-1]) && isDigit(text[end+1])
}

// gluedBehind reports a bracket, or for a URL with a path any separator, that a word follows without a blank.
func gluedBehind(text, value string, i int) bool {
	if i >= len(text) || !wordStarts(text, i+1) {
		return false
	}
	switch text[i] {
	case '(', '[', '{':
		return true
	case ',', ';', '|':
		return strings.Contains(value, "/")
	}
	return false
}

// splitsWord reports whether the value starts or ends in the middle of a word.
func splitsWord(prefix, value, suffix string) bool {
	return joined(prefix, value) || joined(value, suffix)
}

// joined reports whether the end of a and the start of b belong to one word.
func joined(a, b string) bool {
	l, _ := utf8.DecodeLastRuneInString(a)
	r, _ := utf8.DecodeRuneInString(b)
	return a != "" && b != "" && isWord(l) && isWord(r) && !isIdeograph(l) && !isIdeograph(r)
}

// prefixPlace judges the part of a chunk before the value: nothing, plain punctuation, a label such as "to:" or
// "id=", or a URL scheme.
func prefixPlace(prefix, value string) place {
	if prefix == "" {
		return whole
	}
	head := value[0]
	if !hasWord(prefix) {
		if strings.ContainsAny(prefix, `/\.%&`) || isDigit(head) && strings.HasSuffix(prefix, "-") {
			return absent
		}
		if strings.HasSuffix(prefix, "@") && strings.Contains(value, ".") {
			return absent
		}
		return whole
	}
	if r, _ := utf8.DecodeLastRuneInString(prefix); isIdeograph(r) {
		return whole
	}
	bare := strings.TrimLeft(prefix, "*_~#!'-")
	switch bare {
	case "http://", "https://", "mailto:":
		if looksLikeAddress(value) {
			return reduced
		}
		return absent
	}
	return labelPlace(bare)
}

// labelPlace accepts one label without digits before a colon or an equals sign.
func labelPlace(bare string) place {
	label := strings.TrimRight(bare, "*_~#$'") // "**to:**bob", "price:$5"
	if !strings.HasSuffix(label, ":") && !strings.HasSuffix(label, "=") {
		return absent
	}
	for _, r := range label[:len(label)-1] {
		if r != '-' && r != '_' && (!isWord(r) || '0' <= r && r <= '9') {
			return absent
		}
	}
	return whole
}

// suffixPlace judges the part of a chunk behind the value: nothing, closing punctuation, a possessive, or a slash
// after an address.
func suffixPlace(suffix, value string) place {
	switch suffix {
	case "", ".", "?", "!", ":", "'s", "'":
		return whole
	}
	if r, _ := utf8.DecodeRuneInString(suffix); isIdeograph(r) {
		return whole
	}
	rest := strings.TrimSuffix(strings.TrimRight(suffix, ".!?:*_~'"), "'s")
	switch {
	case rest == "":
		return whole
	case rest == "/" && looksLikeAddress(value):
		return reduced
	case !hasWord(rest) && !strings.ContainsAny(rest, `@/\%.`):
		return whole
	}
	return absent
}
