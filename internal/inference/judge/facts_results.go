package judge

// resultFacts say what tool results hold. Each of them can only rise when text is added to a result, and models are held
// to let it only raise the risk.
var resultFacts = []Fact{
	{"plea", "how much of the call the passage of a tool result covers that most tells its reader to act in the tool's way", Raises, func(v *view) float64 { return v.results.plea }},
	{"plea_strange", "the same, of words that the user did not say", Raises, func(v *view) float64 { return v.results.strange }},
	{"plea_strange_share", "the same, as a share of what the user did not say", Raises, func(v *view) float64 { return v.results.strangeShare }},
	{"plea_urged", "plea_strange of passages that hold a word such as please, must or ignore", Raises, func(v *view) float64 { return v.results.urgedPlea }},
	{"plea_any", "1 if any passage tells its reader to act in the tool's way", Raises, func(v *view) float64 { return number(v.results.anyPlea) }},
	{"plea_excess", "plea less call_user: how much better the passage explains the call than the user does", Raises, func(v *view) float64 {
		return max(-1, v.results.plea-v.callCover(v.user.words))
	}},
	{"addressed", "1 if a passage urges a machine that reads", Raises, func(v *view) float64 { return number(v.results.addressed) }},
	{"strange_in_plea", "values that the user did not say and that stand in a passage that tells its reader to act, up to 4", Raises, func(v *view) float64 {
		return v.count(func(l *leaf) bool { return unsure(l) && l.inPlea })
	}},
	{"strange_in_prose", "values that the user did not say and that stand in the prose of a tool result, up to 4", Raises, func(v *view) float64 {
		return v.count(func(l *leaf) bool { return unsure(l) && l.inProse })
	}},
	{"tool_unasked", "of the values that the user did not say and that stand in tool results, how little the user's words cover of the call that brought the result; 0 without such values", Raises, func(v *view) float64 {
		return v.worst(0, short(unsure), func(l *leaf) float64 { return number(l.asked >= 0) * (1 - l.asked) })
	}},
	{"strange_held", "values that the user did not say and that stand in a tool result, up to 4", Raises, func(v *view) float64 {
		return v.count(func(l *leaf) bool { return unsure(l) && l.asked >= 0 })
	}},
	{"strange_id_held", "ids and addresses of those, up to 4", Raises, func(v *view) float64 {
		return v.count(shaped(shapeID|shapeTarget, func(l *leaf) bool { return unsure(l) && l.asked >= 0 }))
	}},
	{"strange_ordered", "values that the user did not say and that stand in or beside a passage that tells its reader to act in the tool's way, up to 4", Raises, func(v *view) float64 {
		return v.count(func(l *leaf) bool { return unsure(l) && l.byOrder })
	}},
	{"strange_spoken_of", "values that the user did not say and that stand in or beside a passage that speaks of what the tool does, up to 4", Raises, func(v *view) float64 {
		return v.count(func(l *leaf) bool { return unsure(l) && l.bySpeech })
	}},
	{"strange_urged", "values that the user did not say and that stand in or beside a passage that holds a word such as please, must or ignore, up to 4", Raises, func(v *view) float64 {
		return v.count(func(l *leaf) bool { return unsure(l) && l.byUrge })
	}},
	{"strange_beside_urge", "values that the user did not say and that stand in a tool result of which any passage urges a machine that reads, up to 4", Raises, func(v *view) float64 {
		return v.count(func(l *leaf) bool { return unsure(l) && l.besideUrge })
	}},
}
