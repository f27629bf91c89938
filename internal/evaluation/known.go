package evaluation

import (
	"maps"
	"slices"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

// Known is a decider's answer with what it should have been.
type Known struct {
	Case     *Case
	Question string
	Answer   review.Answer
	// Want is true or false for a YesNo, the option for a Choice, the level for a Score.
	Want any
}

// KnownAnswers lists the answers of the first configuration and repeat for which it is known what they should have been,
// by question and then in the order of the cases. More says which label a yes to a question of one's own speaks for. What
// code answered is left out.
func KnownAnswers(cases []*Case, results []Result, more map[string]Label) []Known {
	order, by := observe(cases, results)
	if len(order) == 0 {
		return nil
	}
	replies := map[string][]reply{}
	for _, seen := range by[order[0]] {
		for name, answer := range seen.repeats[0].Answers {
			if !answer.FromCode {
				replies[name] = append(replies[name], reply{seen.one, answer})
			}
		}
	}
	polarity := maps.Clone(speaks)
	maps.Copy(polarity, more)
	var out []Known
	for _, name := range slices.Sorted(maps.Keys(replies)) {
		truth := truthOf(name, replies[name], polarity[name])
		for _, r := range replies[name] {
			if want, ok := truth.of(r.one); ok && fits(typeOf(r.answer), want) {
				out = append(out, Known{Case: r.one, Question: name, Answer: r.answer, Want: want})
			}
		}
	}
	return out
}
