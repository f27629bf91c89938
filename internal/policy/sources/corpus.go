package sources

import (
	"strings"
	"unicode/utf8"
)

// corpus is all text of one source, normalised and indexed. Values are looked up by their rarest atom.
type corpus struct {
	text    string
	atoms   []atom
	last    map[string]posting // by atom: how often it stands, and where last
	before  []int32            // by atom number: the previous atom of the same spelling, or -1
	stems   map[string]struct{}
	decoded map[string]struct{} // addresses that the text writes with percent escapes, in canonical form
	facts   mentions
}

type posting struct{ count, last int32 }

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
	c.last = make(map[string]posting, len(c.atoms)/2)
	c.before = make([]int32, len(c.atoms))
	c.stems = make(map[string]struct{}, len(c.atoms)/2)
	for i := range c.atoms {
		word := c.word(i)
		p, seen := c.last[word]
		if !seen {
			p.last = -1
			c.stems[stem(word)] = struct{}{}
		}
		c.before[i] = p.last
		c.last[word] = posting{count: p.count + 1, last: int32(i)}
	}
	c.decoded = decodedAddresses(text)
	c.facts = scan(text, c.atoms)
	return c
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
func (c *corpus) find(v string, rigid bool) place {
	var buf [16]atom
	atoms := appendAtoms(buf[:0], v)
	if len(atoms) == 0 {
		return c.findPlain(v)
	}
	anchor, p := atoms[0], posting{count: -1}
	for _, a := range atoms {
		q, ok := c.last[v[a.start:a.end]]
		if !ok {
			return absent
		}
		if p.count < 0 || q.count < p.count {
			anchor, p = a, q
		}
	}
	best := absent
	for i := p.last; i >= 0 && best < whole; i = c.before[i] {
		start := int(c.atoms[i].start - anchor.start)
		if start >= 0 && strings.HasPrefix(c.text[start:], v) {
			best = max(best, c.placeAt(start, start+len(v), rigid))
		}
	}
	return best
}

// findPlain looks for a value without any letter or digit, such as "*".
func (c *corpus) findPlain(v string) place {
	for from := 0; v != ""; {
		i := strings.Index(c.text[from:], v)
		if i < 0 {
			return absent
		}
		start := from + i
		if isDelimiter(c.text, start-1) && isDelimiter(c.text, start+len(v)) {
			return whole
		}
		_, n := utf8.DecodeRuneInString(c.text[start:])
		from = start + n
	}
	return absent
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
		return i == 0 || i == len(text)-1 || !wordByte(text[i-1]) || !wordByte(text[i+1])
	}
	return false
}

func wordByte(b byte) bool { return b >= utf8.RuneSelf || isWord(rune(b)) }

func hasWord(s string) bool {
	for i := range len(s) {
		if wordByte(s[i]) {
			return true
		}
	}
	return false
}

// placeAt judges what surrounds text[start:end] up to the next delimiters:
//
//	... (mailto:bob@example.com/) ...
//	     prefix~ value~~~~~~~~~ suffix
func (c *corpus) placeAt(start, end int, rigid bool) place {
	left, right := start, end
	// A chunk longer than this is no compound that anyone reads; what is cut off makes it look like one.
	const reach = 256
	for !isDelimiter(c.text, left-1) && start-left < reach {
		left--
	}
	for !isDelimiter(c.text, right) && right-end < reach {
		right++
	}
	prefix, value, suffix := c.text[left:start], c.text[start:end], c.text[end:right]
	if rigid && gluedBehind(c.text, value, right) {
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

// gluedBehind reports a bracket, or for a URL with a path any separator, that a word follows without a blank.
func gluedBehind(text, value string, i int) bool {
	if i+1 >= len(text) || !wordByte(text[i+1]) {
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
