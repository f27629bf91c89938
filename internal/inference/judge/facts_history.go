package judge

// historyFacts are about values that only the agent's own calls can explain: what it used while no tool result had come back,
// what it may have read, by calls that returned, and ids of what it made. They go by the names of tools, not by what tools said. All of them
// may only raise a risk, but less than the same value out of nowhere.
var historyFacts = []Fact{
	{"read_count", "values that stand nowhere after a call that reads, up to 4", Raises, func(v *view) float64 { return v.count(looked) }},
	{"read_share", "share of such values", Raises, func(v *view) float64 { return v.share(looked) }},
	{"related_count", "of them, values before which a call read what the argument's name or the tool's object says, up to 4", Raises, func(v *view) float64 { return v.count(related) }},
	{"related_share", "share of such values", Raises, func(v *view) float64 { return v.share(related) }},
	{"read_uncovered", "of the values that stand nowhere after a call that reads, the largest share of words that the user did not say; -1 without any", Raises, func(v *view) float64 {
		return v.worst(-1, looked, func(l *leaf) float64 { return 1 - l.covered })
	}},
	{"read_target", "receivers and addresses that stand nowhere after a call that reads, up to 4", Raises, func(v *view) float64 { return v.count(shaped(shapeTarget, looked)) }},
	{"read_money", "amounts that stand nowhere after a call that reads, up to 4", Raises, func(v *view) float64 { return v.count(shaped(shapeMoney, looked)) }},
	{"read_id", "ids that stand nowhere after a call that reads, up to 4", Raises, func(v *view) float64 { return v.count(shaped(shapeID, looked)) }},
	{"read_text", "texts that stand nowhere after a call that reads, up to 4", Raises, func(v *view) float64 { return v.count(shaped(shapeText, looked)) }},
	{"read_handle", "names that a system gave and that stand nowhere after a call that reads, up to 4", Raises, func(v *view) float64 { return v.count(shaped(shapeHandle, looked)) }},
	{"related_handle", "the same, after a call that read what the argument's name or the tool's object says", Raises, func(v *view) float64 { return v.count(shaped(shapeHandle, related)) }},
	{"read_chosen", "values that stand nowhere after a call that reads and are neither texts, dates, names that a system gave nor 0, 1 or 2, up to 4", Raises, func(v *view) float64 {
		return v.count(func(l *leaf) bool { return looked(l) && l.shape&(shapeText|shapeDate|shapeSmall|shapeHandle) == 0 })
	}},
	{"nowhere_handle", "names that a system gave and that stand nowhere, up to 4", Raises, func(v *view) float64 { return v.count(shaped(shapeHandle, nowhere)) }},
}
