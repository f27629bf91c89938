package sources

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// value is one leaf of the arguments, prepared for being looked up in each source.
type value struct {
	text     string   // normalised
	number   string   // canonical, when the value is one number
	plain    bool     // the number has no sign, scale or suffix
	amount   string   // canonical number with its unit, when the value is one number and a unit
	mini     *corpus  // the value as a text of its own, for dates and times
	rigid    bool     // identifier, address, number: never covered by words
	address  bool     // e-mail address, URL, host, path
	name     []string // words of a name, when it is nothing but that
	squeezed string   // its letters and digits, when it is a grouped number
	pieces   []*value // parts of a longer text: rigid ones, and one with all the words
	content  []string // content words
	list     bool     // a list of short entries, none of which may be missing
	budget   *budget
}

// newValue prepares a string; whole is false for a part of a longer text.
func newValue(raw string, isWhole bool, b *budget) *value {
	v := &value{text: normalize(raw), budget: b}
	if v.text == "" {
		return v
	}
	v.mini = indexText(v.text)
	v.address = looksLikeAddress(v.text)
	v.readNumber()
	v.name = nameWords(raw)
	v.squeezed = squeeze(v.text)
	v.rigid = v.number != "" || v.amount != "" || v.address || v.squeezed != "" || isIdentifier(raw, v.text)
	if isWhole && (!v.rigid || strings.ContainsAny(v.text, ",;")) {
		v.readPieces(raw)
		v.list = isList(raw)
	}
	return v
}

// newNumber prepares a number in canonical decimal digits.
func newNumber(canonical string, b *budget) *value {
	return &value{text: canonical, number: canonical, plain: true, rigid: true, budget: b}
}

// readNumber takes the value as a number, with a unit or without, when it is nothing else.
func (v *value) readNumber() {
	body, negative := strings.CutPrefix(v.text, "-")
	unit := ""
	for _, sign := range [...]string{"$", "€", "£", "¥"} {
		if rest, ok := strings.CutPrefix(body, sign); ok {
			body, unit = rest, units[sign]
		}
	}
	if body == "" || !isDigit(body[0]) {
		return
	}
	numbers, end := literalAt(body, 0)
	if len(numbers) != 1 || end > maxLiteral || len(numbers[0].whole) > 1 && numbers[0].whole[0] == '0' {
		return // a leading zero makes it a code
	}
	n := numbers[0]
	n.negative = negative
	v.readUnit(n, unit, strings.TrimPrefix(body[end:], " "))
}

// readUnit judges what stands behind the digits of a value.
func (v *value) readUnit(n decimal, unit, rest string) {
	name, known := units[rest]
	shift, scaled := scaleWords[rest]
	switch {
	case rest == "" && unit == "":
		v.number, v.plain = n.canonical(0), true
	case ordinalSuffixes[rest]:
		v.number = n.canonical(0)
	case rest == "":
		v.amount = n.canonical(0) + "|" + unit
	case rest == "%" || percentWords[rest]:
		v.number = n.canonical(-2)
	case known && (unit == "" || unit == name):
		v.amount = n.canonical(0) + "|" + name
	case scaled && unit == "":
		v.number = n.canonical(shift)
	case scaled:
		v.amount = n.canonical(shift) + "|" + unit
	}
}

// isIdentifier reports whether a value without blanks is a name that machines read: it holds a digit, a connector or
// an inner capital, or is too long for a word.
func isIdentifier(raw, text string) bool {
	if strings.ContainsAny(text, " ,;") || !hasWord(text) {
		return false
	}
	const longestWord = 24
	if len(text) > longestWord || strings.ContainsAny(text, "0123456789_") {
		return true
	}
	for i := 1; i+1 < len(text); i++ {
		if strings.IndexByte("-:#=+.&~$", text[i]) >= 0 && wordEnds(text, i) && wordStarts(text, i+1) {
			return true
		}
	}
	return hasInnerCapital(raw)
}

func hasInnerCapital(raw string) bool {
	lower := false
	for _, r := range raw {
		if lower && unicode.IsUpper(r) {
			return true
		}
		lower = unicode.IsLower(r)
	}
	return false
}

// nameWords splits a name at blanks, dashes, underscores and inner capitals. It yields none for anything else, and for
// what is too long to be a name.
func nameWords(raw string) []string {
	const longest = 96
	if len(raw) > longest {
		return nil
	}
	var words []string
	var b strings.Builder
	flush := func() {
		if w := normalize(b.String()); w != "" {
			words = append(words, w)
		}
		b.Reset()
	}
	lower := false
	for _, r := range norm.NFKC.String(raw) {
		switch {
		case r == ' ' || r == '_' || foldRune(r) == '-':
			flush()
		case !isWord(r) || isIdeograph(r):
			return nil
		case lower && unicode.IsUpper(r):
			flush()
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
		lower = unicode.IsLower(r)
	}
	flush()
	return words
}

// squeeze drops the separators of a grouped number: a telephone number, card, account or IBAN. It yields none for
// anything else.
func squeeze(text string) string {
	const longest, fewestDigits = 48, 6
	if len(text) > longest || text[0] == '-' {
		return ""
	}
	var b strings.Builder
	digits, letters := 0, 0
	for _, r := range text {
		switch {
		case '0' <= r && r <= '9':
			digits++
		case 'a' <= r && r <= 'z':
			letters++
		case r == ' ' || r == '-' || r == '(' || r == ')' || r == '+':
			continue
		default:
			return ""
		}
		b.WriteRune(r)
	}
	if digits < fewestDigits || letters > 0 && !isAccount(b.String()) {
		return ""
	}
	return b.String()
}

// isAccount reports the shape of an IBAN: two letters, two check digits, 11 to 30 more characters.
func isAccount(s string) bool {
	return len(s) >= 15 && len(s) <= 34 && !isDigit(s[0]) && !isDigit(s[1]) && isDigit(s[2]) && isDigit(s[3])
}

// readPieces parts a longer text into words and what must stand as a whole.
func (v *value) readPieces(raw string) {
	words := &value{}
	for _, token := range strings.FieldsFunc(splitLists(raw), unicode.IsSpace) {
		token = strings.Trim(token, `.,;:!?"'()[]{}<>*_~|`+"`“”‘’")
		text := normalize(token)
		if isHard(text) {
			v.pieces = append(v.pieces, newValue(token, false, v.budget))
			continue
		}
		for _, a := range appendAtoms(nil, text) {
			w := text[a.start:a.end]
			if _, stop := stopWords[w]; !stop {
				words.content = append(words.content, w)
			}
		}
	}
	v.pieces = append(v.pieces, words)
}

// splitLists puts a blank behind each comma and semicolon that does not stand between two digits.
func splitLists(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(s[i])
		if (s[i] == ',' || s[i] == ';') && (i == 0 || i+1 >= len(s) || !isDigit(s[i-1]) || !isDigit(s[i+1])) {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// isHard reports whether a word of a longer text must be found as a whole.
func isHard(text string) bool {
	if strings.ContainsAny(text, `0123456789@_\`) || strings.Contains(text, "://") {
		return hasWord(text)
	}
	if strings.HasPrefix(text, "/") || strings.Count(text, "/") > 1 || len(text) > 24 && strings.ContainsAny(text, "-:=+/") {
		return hasWord(text)
	}
	for i := 1; i+2 < len(text); i++ { // a host or a file name, but not "e.g."
		if text[i] == '.' && wordEnds(text, i) && wordStarts(text, i+1) && wordEnds(text, i+3) {
			return true
		}
	}
	return false
}

// isList reports whether a text is a list of names or the like rather than sentences: parts of few words each.
func isList(raw string) bool {
	parts := strings.FieldsFunc(raw, func(r rune) bool { return r == ',' || r == ';' || r == '\n' || r == '|' })
	const fewest, mostWords = 3, 3
	if len(parts) < fewest {
		return false
	}
	for _, part := range parts {
		if len(strings.Fields(part)) > mostWords {
			return false
		}
	}
	return true
}

// match finds a value in one source.
func (c *corpus) match(v *value) Match {
	if v.text == "" || len(c.atoms) == 0 && v.number != "" {
		return None
	}
	m := c.matchWhole(v)
	if m.whole() || len(v.pieces) == 0 {
		return m
	}
	return better(m, c.matchWords(v))
}

// matchWhole finds the whole value: as it is spelled, or in another spelling of what it is.
func (c *corpus) matchWhole(v *value) Match {
	if v.number != "" && v.plain {
		if m := c.matchNumber(v.number); m != None {
			return m
		}
		return c.matchGrouped(v)
	}
	floor := None
	switch c.find(v.text, v.rigid, v.budget) {
	case whole:
		return Exact
	case reduced:
		return Rewritten
	case inside:
		floor = Partial
	}
	for _, n := range [...]string{v.number, v.amount} {
		if n != "" && c.matchNumber(n) != None {
			return Rewritten
		}
	}
	if m, ok := c.matchTemporal(v.mini); ok {
		return better(m, floor)
	}
	if v.address && c.matchAddress(v.text, v.budget) != None {
		return Rewritten
	}
	if c.matchGrouped(v) != None || c.matchName(v) != None {
		return Rewritten
	}
	return floor
}
