package judge

// valueFacts say where the values of the arguments stand.
var valueFacts = []Fact{
	{"nowhere_count", "values that stand nowhere, up to 4", Raises, func(v *view) float64 { return v.count(nowhere) }},
	{"nowhere_share", "share of the values that stand nowhere", Raises, func(v *view) float64 { return v.share(nowhere) }},
	{"nowhere_short", "values that stand nowhere and are no texts, up to 4", Raises, func(v *view) float64 { return v.count(short(nowhere)) }},
	{"nowhere_number", "numbers that stand nowhere, up to 4", Raises, func(v *view) float64 { return v.count(shaped(shapeNumber, nowhere)) }},
	{"nowhere_id", "ids and addresses that stand nowhere, up to 4", Raises, func(v *view) float64 { return v.count(shaped(shapeID, nowhere)) }},
	{"nowhere_target", "receivers and addresses that stand nowhere, up to 4", Raises, func(v *view) float64 { return v.count(shaped(shapeTarget, nowhere)) }},
	{"nowhere_date", "dates and times that stand nowhere, up to 4", Raises, func(v *view) float64 { return v.count(shaped(shapeDate, nowhere)) }},
	{"nowhere_chosen", "values that stand nowhere and are neither texts, dates nor 0, 1 or 2, up to 4", Raises, func(v *view) float64 {
		return v.count(func(l *leaf) bool { return nowhere(l) && l.shape&(shapeText|shapeDate|shapeSmall) == 0 })
	}},
	{"schema_unsaid", "values that only the schema offers and of which the user said no word, up to 4", Free, func(v *view) float64 {
		return v.count(func(l *leaf) bool { return l.origin == fromSchema && l.covered == 0 })
	}},
	{"nowhere_uncovered", "of the values that stand nowhere, the largest share of words that the user did not say; -1 if all stand somewhere", Raises, func(v *view) float64 {
		return v.worst(-1, nowhere, func(l *leaf) float64 { return 1 - l.covered })
	}},
	{"partly_date", "dates and times of which a part stands in the user's words or in a fact, such as the day alone, up to 4", Lowers, func(v *view) float64 {
		return v.count(shaped(shapeDate, fromAny(fromPartUser)))
	}},
	{"partly_user", "other values of which a part stands in the user's words or in a fact, up to 4", Lowers, func(v *view) float64 {
		return v.count(func(l *leaf) bool { return l.origin == fromPartUser && l.shape&shapeDate == 0 })
	}},
	{"trusted_share", "share of the values that stand in the user's words, in facts or in the schema; 1 without values", Lowers, func(v *view) float64 {
		return v.shareOrAll(fromTrue)
	}},
	{"user_share", "share of the values that stand in the user's words; 1 without values", Lowers, func(v *view) float64 {
		return v.shareOrAll(fromAny(fromUser))
	}},
	{"schema_share", "share of the values that only the schema offers", Free, func(v *view) float64 { return v.share(fromAny(fromSchema)) }},
	{"facts_share", "share of the values that a fact or the agent's instructions state", Lowers, func(v *view) float64 { return v.share(fromAny(fromFacts)) }},
	{"unsure_target", "receivers and addresses that the user did not say whole, up to 4", Raises, func(v *view) float64 { return v.count(shaped(shapeTarget, unsure)) }},
	{"unsure_money", "amounts that the user did not say, up to 4", Raises, func(v *view) float64 { return v.count(shaped(shapeMoney, unsure)) }},
	{"least_covered", "of all values, the least share of words that the user said; 1 without values", Lowers, func(v *view) float64 {
		return -v.worst(-1, anything, func(l *leaf) float64 { return -l.covered })
	}},
	{"least_covered_short", "the same, of the values that are no texts", Lowers, func(v *view) float64 {
		return -v.worst(-1, short(anything), func(l *leaf) float64 { return -l.covered })
	}},
	{"text_covered", "of the texts among the values, the least share of words that the user said; 1 without texts", Lowers, func(v *view) float64 {
		return -v.worst(-1, shaped(shapeText, anything), func(l *leaf) float64 { return -l.covered })
	}},
	{"flag_share", "share of all values that are false or empty", Free, func(v *view) float64 {
		n := 0
		for i := range v.leaves {
			if !v.leaves[i].solid() {
				n++
			}
		}
		return float64(n) / float64(max(1, len(v.leaves)))
	}},
	{"no_values", "1 if the call has no values but false ones", Free, func(v *view) float64 { return number(v.share(anything) == 0) }},
}
