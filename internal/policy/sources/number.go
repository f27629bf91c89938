package sources

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxLiteral bounds the digits of a number; a longer run is found as text only.
const maxLiteral = 64

// mentions holds the numbers, dates and times that a text states.
type mentions struct {
	numbers  map[string]bool // canonical number, also with "|unit"; true when written in plain digits
	dates    []dateMention
	named    map[date]struct{}
	clocks   map[int]clockKind // by second of the day
	days     uint32            // bit n: "the n-th" without a month
	relative bool              // tomorrow, next week, Friday, in two hours
	dayPart  bool              // morning, night
	temporal int               // atoms that belong to dates and times
}

// scanner walks over the atoms of a text once and notes what they state.
type scanner struct {
	text  string
	atoms []atom
	out   mentions
}

func scan(text string, atoms []atom) mentions {
	s := scanner{text: text, atoms: atoms, out: mentions{numbers: map[string]bool{}}}
	for i := 0; i < len(atoms); {
		i = s.step(i)
	}
	return s.out
}

// step reads what starts at atom i and returns the atom to go on with.
func (s *scanner) step(i int) int {
	if isDigit(s.text[s.atoms[i].start]) {
		for _, read := range [...]func(int) int{s.date, s.dayMonth, s.clock} {
			if next := read(i); next > i {
				s.out.temporal += next - i
				return next
			}
		}
		return s.number(i)
	}
	if _, ok := scannedWords[s.word(i)]; !ok {
		return i + 1
	}
	if next := s.monthDay(i); next > i {
		s.out.temporal += next - i
		return next
	}
	s.relative(i)
	return s.wordNumber(i)
}

func (s *scanner) word(i int) string {
	if i < 0 || i >= len(s.atoms) {
		return ""
	}
	return s.text[s.atoms[i].start:s.atoms[i].end]
}

// gap is the text between atoms i and i+1. Behind the last atom it is a boundary, which joins nothing.
func (s *scanner) gap(i int) string {
	if i < 0 || i+1 >= len(s.atoms) {
		return "\n"
	}
	return s.text[s.atoms[i].end:s.atoms[i+1].start]
}

// atomAt returns the first atom from i on that starts at or behind pos.
func (s *scanner) atomAt(i, pos int) int {
	for i < len(s.atoms) && int(s.atoms[i].start) < pos {
		i++
	}
	return i
}

func (s *scanner) byteAt(i int) byte {
	if i < 0 || i >= len(s.text) {
		return boundary
	}
	return s.text[i]
}

func (s *scanner) addNumber(canonical string, plain bool) {
	s.out.numbers[canonical] = s.out.numbers[canonical] || plain
}

// number reads digits: a literal, its suffix, a range, and the unit or scale behind it.
func (s *scanner) number(i int) int {
	pos := int(s.atoms[i].start)
	numbers, end := literalAt(s.text, pos)
	next := max(s.atomAt(i, end), i+1)
	negative, unit, ok := s.numberStart(pos)
	if !ok || len(numbers) == 0 || end-pos > maxLiteral {
		return next
	}
	if end < int(s.atoms[next-1].end) {
		return s.suffixed(numbers, end, next, unit)
	}
	if second, stop, isRange := s.rangeEnd(pos, end); isRange {
		s.addNumber(numbers[0].canonical(0), true)
		s.addNumber(second.canonical(0), true)
		return max(s.atomAt(i, stop), i+1)
	}
	if !s.numberEnd(end) {
		return next
	}
	for k := range numbers {
		numbers[k].negative = negative
	}
	s.clockHour(i, numbers[0])
	return s.tail(numbers, next, unit, true)
}

// numberStart judges what stands before a literal: a sign, a currency, a label; or a compound it belongs to.
func (s *scanner) numberStart(pos int) (negative bool, unit string, ok bool) {
	r, n := utf8.DecodeLastRuneInString(s.text[:pos])
	if pos == 0 || isDelimiter(s.text, pos-1) {
		return false, "", true
	}
	glued := wordEnds(s.text, pos-n)
	switch r {
	case '$', '€', '£', '¥':
		if s.byteAt(pos-n-1) == '-' && !wordEnds(s.text, pos-n-1) {
			negative = true
		}
		return negative, units[string(r)], true
	case '-':
		return true, "", !glued && s.byteAt(pos-2) != '-'
	case ':', '=':
		left := pos
		for left > 0 && pos-left < 64 && !isDelimiter(s.text, left-1) {
			left--
		}
		return false, "", labelPlace(s.text[left:pos]) == whole
	case '#', '*', '~', '+', '\'', '!', '^', '?':
		return false, "", !glued || r == '#'
	}
	return false, "", !isWord(r) && r >= utf8.RuneSelf
}

// numberEnd judges what stands behind a literal or its suffix.
func (s *scanner) numberEnd(end int) bool {
	switch s.byteAt(end) {
	case '_', '@', '\\', '+', '.', '%':
		return !wordStarts(s.text, end+1)
	case ':', '/':
		return !isDigit(s.byteAt(end + 1))
	case '-': // "5-star", but not a part of "5-7f9c"
		for k := end + 1; wordStarts(s.text, k); k++ {
			if isDigit(s.text[k]) {
				return false
			}
		}
	}
	return true
}

// rangeEnd reads the second half of "10-20". Longer halves are rather a telephone number or an id.
func (s *scanner) rangeEnd(pos, end int) (decimal, int, bool) {
	if s.byteAt(end) != '-' || !isDigit(s.byteAt(end+1)) || s.byteAt(pos-1) == '-' {
		return decimal{}, 0, false
	}
	numbers, stop := literalAt(s.text, end+1)
	a, b := end-pos, stop-end-1
	if len(numbers) != 1 || a > 4 || b > 4 || (a == 4) != (b == 4) || wordStarts(s.text, stop) || !s.numberEnd(stop) || s.byteAt(stop) == '-' {
		return decimal{}, 0, false
	}
	return numbers[0], stop, true
}

// suffixed reads a literal with letters behind it: "5k", "5th", "5gb". Any other letters make it an id.
func (s *scanner) suffixed(numbers []decimal, end, next int, unit string) int {
	suffix := s.text[end:s.atoms[next-1].end]
	if len(numbers) != 1 || !s.numberEnd(int(s.atoms[next-1].end)) {
		return next
	}
	shift, scaled := scaleSuffixes[suffix]
	if scaled {
		s.addNumber(numbers[0].canonical(shift), false)
		if unit != "" {
			s.addNumber(numbers[0].canonical(shift)+"|"+unit, false)
		}
	}
	switch name, known := units[suffix]; {
	case known:
		s.addNumber(numbers[0].canonical(0), false)
		s.addNumber(numbers[0].canonical(0)+"|"+name, false)
	case ordinalSuffixes[suffix]:
		s.addNumber(numbers[0].canonical(0), false)
		if n, err := strconv.Atoi(numbers[0].whole); err == nil && n <= 31 && numbers[0].fraction == "" {
			s.out.days |= 1 << n
		}
	}
	return next
}

// tail notes numbers with the percent sign, scale and unit that follow them; next is the atom behind the literal.
func (s *scanner) tail(numbers []decimal, next int, unit string, plain bool) int {
	last := numbers[len(numbers)-1]
	for _, n := range numbers[:len(numbers)-1] {
		s.addNumber(n.canonical(0), plain)
	}
	percent := s.byteAt(int(s.atoms[next-1].end)) == '%'
	shift := 0
	for s.gap(next-1) == " " || s.gap(next-1) == "-" {
		w := s.word(next)
		if n, ok := scaleWords[w]; ok && shift+n <= 15 && s.gap(next-1) == " " {
			shift += n
			plain = false
		} else if percentWords[w] {
			percent = true
		} else {
			if u := units[w]; u != "" {
				s.addNumber(last.canonical(shift)+"|"+u, false)
			}
			break
		}
		next++
	}
	s.addNumber(last.canonical(shift), plain)
	if unit != "" {
		s.addNumber(last.canonical(shift)+"|"+unit, false)
	}
	if percent {
		s.addNumber(last.canonical(-2), false)
		s.addNumber(last.canonical(0)+"|%", false)
	}
	return next
}

// wordNumber reads a number in words, such as "two thousand five hundred", and returns the atom behind it.
func (s *scanner) wordNumber(i int) int {
	if n, ok := loneNumbers[s.word(i)]; ok {
		s.addNumber(n, false)
		return i + 1
	}
	var total, current int64
	next, read := i, false
	for next < len(s.atoms) {
		w := s.word(next)
		if read && w == "and" && s.gap(next) == " " && smallNumbers[s.word(next+1)] > 0 && current >= 100 {
			next++
			continue
		}
		if !s.addWord(w, &total, &current, read) {
			break
		}
		read = true
		next++
		if gap := s.gap(next - 1); gap != " " && gap != "-" {
			break
		}
	}
	if !read {
		return i + 1
	}
	return s.tail([]decimal{{whole: strconv.FormatInt(total+current, 10)}}, next, "", false)
}

// addWord adds one number word to a running number. A scale word alone counts as one of it: "a hundred".
func (s *scanner) addWord(w string, total, current *int64, read bool) bool {
	const limit int64 = 1e15 // nobody writes more in words, and int64 holds its sums
	if n, ok := smallNumbers[w]; ok {
		ones, tens := *current%10, *current%100
		if read && (n >= 10 && tens != 0 || n < 10 && (ones != 0 || tens == 10)) {
			return false // "one two" are two numbers
		}
		*current += n
		return true
	}
	shift, ok := scaleWords[w]
	if !ok || len(w) < 3 {
		return false
	}
	factor, _ := strconv.ParseInt("1"+strings.Repeat("0", shift), 10, 64)
	if *current == 0 {
		*current = 1
	}
	if *total > limit || *current > limit/factor {
		return false
	}
	if shift == 2 {
		*current *= factor
	} else {
		*total += *current * factor
		*current = 0
	}
	return true
}

// matchNumber finds a canonical number.
func (c *corpus) matchNumber(canonical string) Match {
	plain, ok := c.facts.numbers[canonical]
	switch {
	case !ok:
		return None
	case plain:
		return Exact
	}
	return Rewritten
}
