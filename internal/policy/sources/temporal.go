package sources

// matchTemporal compares the one date and the one time of a value with a text. It reports false when the value is
// not just that.
func (c *corpus) matchTemporal(v *corpus) (Match, bool) {
	d, t := v.facts.dates, v.facts.clocks
	if len(d) > 1 || len(t) > 1 || len(d)+len(t) == 0 || v.facts.temporal != len(v.atoms) {
		return None, false
	}
	if len(t) == 0 {
		return c.matchDate(d[0]), true
	}
	second, clock := 0, None
	for second = range t {
		clock = c.matchClock(second)
	}
	if len(d) == 0 {
		return clock, true
	}
	day := c.matchDate(d[0])
	// The first and the last moment of a day say no more than the day.
	if clock == None && isDayEdge(second) || clock == day {
		return day, true
	}
	return Partial, true // one of both is worse than the other, so the whole is there in part
}

func isDayEdge(second int) bool {
	const day = 24 * 3600
	return second == 0 || second == day-60 || second == day-1
}

func (c *corpus) matchDate(m dateMention) Match {
	match := None
	if c.facts.relative {
		match = Partial
	}
	for _, want := range m.readings() {
		if c.names(want) || c.names(date{0, want.month, want.day}) || want.year == 0 && c.names(date{anyYear, want.month, want.day}) {
			return Rewritten
		}
		if c.facts.days&(1<<want.day) != 0 {
			match = Partial
		}
	}
	return match
}

func (c *corpus) names(d date) bool {
	_, ok := c.facts.named[d]
	return ok
}

func (c *corpus) matchClock(second int) Match {
	const halfDay = 12 * 3600
	kind := c.facts.clocks[second]
	if kind&clockSure != 0 {
		return Rewritten
	}
	// "2:30" and "at 2" may mean the afternoon.
	if second >= halfDay {
		kind |= c.facts.clocks[second-halfDay] &^ clockSure
	}
	if kind != 0 || c.facts.dayPart {
		return Partial
	}
	return None
}
