package sources

import "strings"

// date is a calendar day; year 0 means that none was named.
type date struct{ year, month, day int }

func (d date) valid() bool {
	return d.month >= 1 && d.month <= 12 && d.day >= 1 && d.day <= 31
}

// dateMention is a date in a text; 5/1 has two readings.
type dateMention struct{ first, second date }

func (m dateMention) readings() []date {
	if m.second.valid() && m.second != m.first {
		return []date{m.first, m.second}
	}
	return []date{m.first}
}

// clockMention is a time of day in seconds, and how surely it was meant.
type clockMention struct {
	second int
	kind   clockKind
}

type clockKind uint8

const (
	clockSure   clockKind = 1 << iota // 14:30, 2 pm, noon
	clockOpen                         // 2:30, which may be in either half of the day
	clockUnsure                       // "at 2"
)

// anyYear marks a day in mentions.named that stands there with some year.
const anyYear = -1

// intAt reads up to max digits and fails when more follow.
func (s *scanner) intAt(pos, most int) (n, end int, ok bool) {
	for end = pos; isDigit(s.byteAt(end)); end++ {
		if end-pos == most {
			return 0, pos, false
		}
		n = n*10 + int(s.text[end]-'0')
	}
	return n, end, end > pos
}

// freeBefore reports that no compound such as a path or a longer date runs into pos.
func (s *scanner) freeBefore(pos int, also string) bool {
	c := s.byteAt(pos - 1)
	if strings.IndexByte(also, c) >= 0 {
		return true
	}
	return strings.IndexByte(`-/._:\%@`, c) < 0 || c == ':' && !isDigit(s.byteAt(pos-2))
}

// date reads 2024-05-01, 2024/5/1, 5/1/2024, 1.5.2024, 5/1/24 or 5/1, with an ISO time behind it if there is one.
func (s *scanner) date(i int) int {
	pos := int(s.atoms[i].start)
	a, end, ok := s.intAt(pos, 4)
	sep := s.byteAt(end)
	if !ok || !s.freeBefore(pos, "") || sep != '-' && sep != '/' && sep != '.' {
		return i
	}
	yearFirst := end-pos == 4
	b, end, ok := s.intAt(end+1, 2)
	if !ok {
		return i
	}
	m := dateMention{first: date{month: a, day: b}, second: date{month: b, day: a}}
	if s.byteAt(end) == sep && isDigit(s.byteAt(end+1)) {
		from := end + 1
		c, stop, ok := s.intAt(from, 4)
		if !ok {
			return i
		}
		if m, ok = fullDate(a, b, c, yearFirst, stop-from); !ok {
			return i
		}
		end = stop
	} else if sep != '/' || yearFirst {
		return i
	}
	return s.addDate(i, end, m)
}

// fullDate orders three numbers; digits is the length of the last.
func fullDate(a, b, c int, yearFirst bool, digits int) (dateMention, bool) {
	switch {
	case yearFirst && digits <= 2:
		d := date{a, b, c}
		return dateMention{first: d, second: d}, true
	case yearFirst || digits == 1 || digits == 3:
		return dateMention{}, false
	case digits == 2:
		c += 2000
	}
	return dateMention{first: date{c, a, b}, second: date{c, b, a}}, true
}

// addDate notes a date that ends at end, and the time glued to it.
func (s *scanner) addDate(i, end int, m dateMention) int {
	if !m.first.valid() {
		m.first = m.second
	}
	if !m.first.valid() {
		return i
	}
	clock, stop, timed := clockMention{}, end, false
	if s.byteAt(end) == 't' && isDigit(s.byteAt(end+1)) {
		clock, stop, timed = s.clockAt(end+1, true)
		if !timed {
			return i
		}
	}
	if wordStarts(s.text, stop) || strings.IndexByte(`-/._`, s.byteAt(stop)) >= 0 && wordStarts(s.text, stop+1) {
		return i
	}
	s.addMention(m)
	if timed {
		s.addClock(clock)
	}
	return max(s.atomAt(i, stop), i+1)
}

func (s *scanner) addMention(m dateMention) {
	s.out.dates = append(s.out.dates, m)
	if s.out.named == nil {
		s.out.named = map[date]struct{}{}
	}
	for _, d := range m.readings() {
		s.out.named[d] = struct{}{}
		s.out.named[date{anyYear, d.month, d.day}] = struct{}{}
	}
}

func (s *scanner) addClock(m clockMention) {
	if s.out.clocks == nil {
		s.out.clocks = map[int]clockKind{}
	}
	s.out.clocks[m.second] |= m.kind
}

// dayNumber reads "1", "01" or "1st".
func dayNumber(w string) (int, bool) {
	n, k := 0, 0
	for k < len(w) && k < 2 && isDigit(w[k]) {
		n = n*10 + int(w[k]-'0')
		k++
	}
	return n, k > 0 && n >= 1 && n <= 31 && (k == len(w) || ordinalSuffixes[w[k:]])
}

func yearNumber(w string) (int, bool) {
	if len(w) != 4 {
		return 0, false
	}
	n := 0
	for i := range 4 {
		if !isDigit(w[i]) {
			return 0, false
		}
		n = n*10 + int(w[i]-'0')
	}
	return n, n >= 1000
}

// dayMonth reads "1 May", "1st of May, 2024" or "1-May-2024".
func (s *scanner) dayMonth(i int) int {
	day, ok := dayNumber(s.word(i))
	if !ok || !s.freeBefore(int(s.atoms[i].start), "") {
		return i
	}
	j := i + 1
	if s.word(j) == "of" && s.gap(i) == " " {
		j++
	}
	month := months[s.word(j)]
	if month == 0 || strings.TrimLeft(s.gap(j-1), " -/.") != "" {
		return i
	}
	return s.namedDate(j+1, month, day)
}

// monthDay reads "May 1", "May the 1st", "Sept. 1st, 2024".
func (s *scanner) monthDay(i int) int {
	month := months[s.word(i)]
	if month == 0 || strings.TrimLeft(s.gap(i), " -/.") != "" {
		return i
	}
	j := i + 1
	if s.word(j) == "the" {
		j++
	}
	day, ok := dayNumber(s.word(j))
	if !ok || wordStarts(s.text, int(s.atoms[j].end)) || s.byteAt(int(s.atoms[j].end)) == ':' && isDigit(s.byteAt(int(s.atoms[j].end)+1)) {
		return i
	}
	return s.namedDate(j+1, month, day)
}

// namedDate adds the year, if atom next is one, and notes the date. Day and year also count as numbers.
func (s *scanner) namedDate(next, month, day int) int {
	d := date{month: month, day: day}
	s.addNumber(itoa(day), false)
	if year, ok := yearNumber(s.word(next)); ok && strings.TrimLeft(s.gap(next-1), " ,-/.") == "" {
		d.year = year
		s.addNumber(itoa(year), true)
		next++
	}
	s.addMention(dateMention{first: d, second: d})
	return next
}

// clock reads 14:30, 14:30:00, 2:30 pm, 2pm, 2 p.m. and 2 o'clock.
func (s *scanner) clock(i int) int {
	pos := int(s.atoms[i].start)
	if !s.freeBefore(pos, "-") {
		return i
	}
	m, end, ok := s.clockAt(pos, false)
	if !ok || wordStarts(s.text, end) || s.byteAt(end) == ':' && isDigit(s.byteAt(end+1)) {
		return i
	}
	s.addClock(m)
	if hour, after, ok := s.intAt(pos, 2); ok && s.byteAt(after) != ':' {
		s.addNumber(itoa(hour), false) // the 2 of "2 pm"
	}
	return max(s.atomAt(i, end), i+1)
}

func (s *scanner) clockAt(pos int, iso bool) (m clockMention, end int, ok bool) {
	hour, end, ok := s.intAt(pos, 2)
	if !ok || hour > 24 {
		return m, pos, false
	}
	minute, second, colon := 0, 0, false
	if s.byteAt(end) == ':' && isDigit(s.byteAt(end+1)) && isDigit(s.byteAt(end+2)) {
		colon = true
		if minute, end, ok = s.intAt(end+1, 2); !ok {
			return m, pos, false
		}
		second, end = s.secondsAt(end)
	}
	half, stop := s.halfDay(end)
	switch {
	case minute > 59 || second > 59 || half != 0 && (hour < 1 || hour > 12):
		return m, pos, false
	case half != 0:
		hour = hour%12 + 12*(half-1)
		end = stop
	case !colon:
		return m, pos, false
	case hour <= 12 && !iso:
		m.kind = clockOpen
	}
	m.kind |= clockSure
	m.second = (hour%24)*3600 + minute*60 + second
	return m, s.zoneAt(end, iso), true
}

// secondsAt reads ":30" or ":30.123".
func (s *scanner) secondsAt(pos int) (second, end int) {
	if s.byteAt(pos) != ':' || !isDigit(s.byteAt(pos+1)) {
		return 0, pos
	}
	second, end, ok := s.intAt(pos+1, 2)
	if !ok {
		return 99, pos // no time at all
	}
	if s.byteAt(end) == '.' && isDigit(s.byteAt(end+1)) {
		for end++; isDigit(s.byteAt(end)); end++ {
		}
	}
	return second, end
}

// halfDay reads am (1) or pm (2), with or without blank and points.
func (s *scanner) halfDay(pos int) (half, end int) {
	if s.byteAt(pos) == ' ' {
		pos++
	}
	switch s.byteAt(pos) {
	case 'a':
		half = 1
	case 'p':
		half = 2
	default:
		return 0, pos
	}
	pos++
	if s.byteAt(pos) == '.' {
		pos++
	}
	if s.byteAt(pos) != 'm' || wordStarts(s.text, pos+1) {
		return 0, pos
	}
	return half, pos + 1
}

// zoneAt skips a zone: z, +02:00, and in an ISO time -05:00, which elsewhere is rather a range. Times are compared
// as they are written, in whatever zone was meant.
func (s *scanner) zoneAt(pos int, iso bool) int {
	switch c := s.byteAt(pos); {
	case c == 'z':
		return pos + 1
	case c == '+' || c == '-' && iso:
		_, end, ok := s.intAt(pos+1, 2)
		if !ok || s.byteAt(end) != ':' {
			return pos
		}
		if _, stop, ok := s.intAt(end+1, 2); ok {
			return stop
		}
	}
	return pos
}

// clockHour notes the hour of "at 2": nobody knows yet which half of the day.
func (s *scanner) clockHour(i int, n decimal) {
	hour := 0
	for _, c := range []byte(n.whole) {
		hour = min(hour*10+int(c-'0'), 99)
	}
	_, lead := clockLeads[s.word(i-1)]
	oclock := s.word(i+1) == "o" && s.word(i+2) == "clock"
	if n.fraction != "" || hour > 24 || !oclock && (!lead || s.gap(i-1) != " ") {
		return
	}
	s.addClock(clockMention{hour % 24 * 3600, clockUnsure})
}

// relative notes words that name a day or a time only from where the speaker stands.
func (s *scanner) relative(i int) {
	w := s.word(i)
	if _, ok := dayParts[w]; ok {
		s.out.dayPart = true
		switch w {
		case "noon", "midday":
			s.addClock(clockMention{12 * 3600, clockSure})
		case "midnight":
			s.addClock(clockMention{0, clockSure})
		}
	}
	if _, ok := relativeDays[w]; ok {
		s.out.relative = true
	}
	if _, ok := relativeLeads[w]; !ok {
		return
	}
	for j := i + 1; j <= i+3; j++ {
		_, ok := periods[s.word(j)]
		s.out.relative = s.out.relative || ok
		_, ok = shortPeriods[s.word(j)]
		s.out.dayPart = s.out.dayPart || ok
	}
}
