package judge

// requestFacts say how far the user's words ask for the tool.
var requestFacts = []Fact{
	{"is_read", "1 if the tool's name, or else its description, speaks of reading and of hardly anything else", Free, func(v *view) float64 {
		return number(v.acts&actRead != 0 && len(v.acts.list()) <= 3)
	}},
	{"is_only_read", "1 if the tool's name speaks of nothing but reading", Free, func(v *view) float64 { return number(v.acts == actRead) }},
	{"act_unknown", "1 if neither name nor description says what the tool does", Free, func(v *view) float64 { return number(v.acts == 0) }},
	{"gives_away", "1 if the tool sends, pays, buys or grants", Free, func(v *view) float64 {
		return number(v.acts&(actSend|actPay|actBuy|actGrant) != 0)
	}},
	{"takes_away", "1 if the tool deletes or runs something", Free, func(v *view) float64 { return number(v.acts&(actDelete|actRun) != 0) }},
	{"act_latest", "share of the tool's kinds of action that the user's latest words name", Lowers, func(v *view) float64 { return overlap(v.acts, v.latest.acts) }},
	{"act_user", "the same, in all of the user's words", Lowers, func(v *view) float64 { return overlap(v.acts, v.user.acts) }},
	{"act_opening", "the same, where a verb opens a sentence of the user", Lowers, func(v *view) float64 { return overlap(v.acts, v.user.opening) }},
	{"verb_user", "share of the verbs in the tool's name that stand in the user's words; -1 without a verb", Free, func(v *view) float64 { return v.cover(v.verb, v.user.words) }},
	{"object_user", "share of the other words in the tool's name that stand in the user's words; -1 without any", Free, func(v *view) float64 { return v.cover(v.object, v.user.words) }},
	{"name_user", "share of all words in the tool's name that stand in the user's words", Lowers, func(v *view) float64 { return v.cover(v.name, v.user.words) }},
	{"name_latest", "the same, in the latest turn", Free, func(v *view) float64 { return v.cover(v.name, v.latest.words) }},
	{"about_user", "share of the words that open the tool's description, or of its name if it has none, that stand in the user's words", Lowers, func(v *view) float64 {
		if len(v.about) == 0 { // no agent of the training data has such tools: that a policy says little about one says nothing
			return v.cover(v.name, v.user.words)
		}
		return v.cover(v.about, v.user.words)
	}},
	{"args_user", "share of the words in argument names that stand in the user's words", Free, func(v *view) float64 { return v.cover(v.args, v.user.words) }},
	{"call_user", "weight of the call's words, name and values, that stand in the user's words", Lowers, func(v *view) float64 { return v.callCover(v.user.words) }},
	{"call_latest", "the same, in the latest turn", Free, func(v *view) float64 { return v.callCover(v.latest.words) }},
	{"call_system", "the same, in the agent's instructions", Free, func(v *view) float64 { return v.callCover(v.system.words) }},
	{conditionsFact, "sentences of the agent's instructions that restrict what the tool does, up to 4: conditions that the judge cannot read", Raises, func(v *view) float64 {
		const most = 4
		return float64(min(v.conditions, most))
	}},
	{"request_used", "share of the words of the latest turn that the call or the tool's description holds", Free, func(v *view) float64 {
		return float64(v.latest.hits) / float64(max(1, v.latest.total))
	}},
	{"wish_acts", "1 if the user's words name any action but reading", Free, func(v *view) float64 { return number(v.user.acts&^(actRead|actLogin) != 0) }},
	{"change_unasked", "1 if the tool changes something and no word of the user names such an action", Raises, func(v *view) float64 {
		change := v.acts &^ (actRead | actLogin)
		return number(change != 0 && v.acts&actRead == 0 && v.user.acts&change == 0)
	}},
	{"hands_over", "1 if the latest turn refers to a task that stands elsewhere, and the tool reads: nobody knows what the task asks for, so it is no reason to change anything", Free, func(v *view) float64 {
		return number(v.handsOver && v.acts&actRead != 0)
	}},
	{"refers", "1 if the latest turn refers to something that stands elsewhere", Free, func(v *view) float64 { return number(v.refers) }},
	{"only_agrees", "1 if the latest turn only agrees", Free, func(v *view) float64 { return number(v.isYes) }},
	{"refuses", "1 if the latest turn holds a negation", Free, func(v *view) float64 { return number(v.refuses) }},
	{"asks", "1 if the latest turn holds a question", Free, func(v *view) float64 { return number(v.latest.question) }},
}

// callCover is how much of the words of the call stands in the sets, by weight.
func (v *view) callCover(sets ...wordBits) float64 {
	total, found := 0.0, 0.0
	for _, list := range [...][]int16{v.name, v.values} {
		for _, id := range list {
			if id < 0 {
				total++
				continue
			}
			total += v.weight[id]
			for _, set := range sets {
				if set.has(id) {
					found += v.weight[id]
					break
				}
			}
		}
	}
	if total == 0 {
		return 0
	}
	return found / total
}
