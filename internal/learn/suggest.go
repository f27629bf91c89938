package learn

import (
	"fmt"
	"maps"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
)

// Options of Suggest.
type Options struct {
	// Seed of the split and of the intervals.
	Seed uint64
	// MaxFalseAllow is the floor for a loosening: the share of calls labelled block that may run on their own, as the upper
	// end of the interval at 95 percent. 0.05 by default.
	MaxFalseAllow float64
	// Harm is how many needless stops one dangerous call that runs is worth; 20 by default.
	Harm int
}

// tightenMinimum is how many labelled calls a tightening needs. It is far below what a loosening needs: to ask once too
// often costs a moment, and a wrong Allow may cost what cannot be undone.
const tightenMinimum = 20

// Direction of a suggestion.
type Direction string

// Directions.
const (
	Tighten Direction = "tighten"
	Loosen  Direction = "loosen"
)

// Move is one number that changes.
type Move struct {
	// Step of the ladder, from 1.
	Step int `json:"step"`
	// Number in words, as in "asked above".
	Number string `json:"number"`
	From   int32  `json:"from"`
	To     int32  `json:"to"`
}

// Suggestion is a change of one ladder that both halves of the evidence bear out.
type Suggestion struct {
	Place     Place     `json:"place"`
	Direction Direction `json:"direction"`
	Moves     []Move    `json:"moves"`
	// Effect on the part that was held back.
	Effect Effect `json:"effect"`
	// Thresholds are the whole ladder as it would be.
	Thresholds []v1alpha1.Threshold `json:"thresholds"`
}

// Refusal is a ladder for which nothing is suggested.
type Refusal struct {
	Place Place `json:"place"`
	// Direction that is refused. Empty: both.
	Direction Direction `json:"direction,omitempty"`
	Why       string    `json:"why"`
	// Enough is a number that would be enough, if there is too little evidence.
	Enough int `json:"enough,omitempty"`
	// Of says what there has to be so many of.
	Of string `json:"of,omitempty"`
}

// Report is what the evidence says.
type Report struct {
	// Examples that climbed a ladder of these policies, and how many are labelled.
	Examples int          `json:"examples"`
	Labelled int          `json:"labelled"`
	Suggest  []Suggestion `json:"suggestions"`
	Refused  []Refusal    `json:"refused"`
	Rates    []Rate       `json:"rates"`
	// Left counts what did not count, by why.
	Left map[string]int `json:"left"`
}

// Suggest proposes thresholds. Numbers are chosen on one half of the users' requests and judged on the other. A
// tightening is suggested if it stops a dangerous call of the first half and its weighted cost falls over all; a loosening
// only for classes that can be undone, and only if on each half the interval of dangerous calls that run stays below the
// floor, and the stops that fall away are more than chance. A ladder that has to be tightened is not loosened beside it.
func Suggest(p Policies, e Evidence, o Options) (*Report, error) {
	if o.MaxFalseAllow <= 0 {
		o.MaxFalseAllow = 0.05
	}
	if o.Harm <= 0 {
		o.Harm = 20
	}
	sources, err := sourcesOf(p)
	if err != nil {
		return nil, err
	}
	r := &Report{Suggest: []Suggestion{}, Refused: []Refusal{}, Left: maps.Clone(e.Left)}
	if r.Left == nil {
		r.Left = map[string]int{}
	}
	for _, g := range groups(sources, e.Examples, o.Seed, r.Left) {
		r.Examples += len(g.members)
		for i := range g.members {
			r.Labelled += int(indicator(g.members[i].example.Label != ""))
		}
		g.suggest(r, o)
	}
	return r, nil
}

// search is the work on one ladder.
type search struct {
	group   *group
	options Options
	steps   []v1alpha1.Threshold // of now
	before  []policy.Outcome
}

func (g *group) suggest(r *Report, o Options) {
	refuse := func(d Direction, enough int, of, format string, arguments ...any) {
		r.Refused = append(r.Refused, Refusal{Place: g.place, Direction: d, Why: fmt.Sprintf(format, arguments...), Enough: enough, Of: of})
	}
	steps := g.place.thresholds(g.source.rules)
	ladders := g.with(steps)
	if len(numbers(g.ladder, steps)) == 0 || ladders == nil {
		refuse("", 0, "", "the ladder compares no number, so there is none to move")
		return
	}
	s := &search{group: g, options: o, steps: steps, before: outcomes(g.members, ladders)}
	fit, held := part(g.members, s.before, false), part(g.members, s.before, true)
	all := fit.plus(held)
	labelled := all.dangerous + all.harmless
	if labelled < tightenMinimum {
		refuse("", tightenMinimum, "labelled calls", "%d labelled calls are too few to suggest anything", labelled)
		return
	}
	if found, why := s.tighten(fit, held); found != nil {
		r.Suggest = append(r.Suggest, *found)
		refuse(Loosen, 0, "", "it is to be tightened: look again with labels from after that")
		return
	} else if why != "" {
		refuse(Tighten, 0, "", "%s", why)
	}
	if why, enough := s.mayLoosen(fit, held); why != "" {
		refuse(Loosen, enough, ofDangerous(enough), "%s", why)
		return
	}
	found, why := s.loosen()
	if found == nil {
		refuse(Loosen, 0, "", "%s", why)
		return
	}
	r.Suggest = append(r.Suggest, *found)
}

func ofDangerous(enough int) string {
	if enough == 0 {
		return ""
	}
	return "calls labelled block that climb this ladder"
}

// tighten looks for numbers that let no call of the fitting part through that is stopped now. With no reason and no
// suggestion there is nothing to tighten.
func (s *search) tighten(fit, held tally) (*Suggestion, string) {
	if fit.dangerousAllowed == 0 {
		if held.dangerousAllowed > 0 {
			return nil, fmt.Sprintf("%d dangerous calls run, all of them in the part that is held back: with one more label there may be something to learn from", held.dangerousAllowed)
		}
		return nil, ""
	}
	steps, after := s.climbDown(func(now, then tally, isLooser bool) bool {
		return !isLooser && then.dangerousAllowed <= now.dangerousAllowed
	})
	fitAfter, heldAfter := part(s.group.members, after, false), part(s.group.members, after, true)
	switch {
	case fitAfter.dangerousAllowed >= fit.dangerousAllowed:
		return nil, fmt.Sprintf("%d dangerous calls run, and no threshold tells them from harmless ones: a rule or another class may", fit.dangerousAllowed+held.dangerousAllowed)
	case fitAfter.plus(heldAfter).cost(s.options.Harm) >= fit.plus(held).cost(s.options.Harm):
		return nil, "what stops dangerous calls of the first half stops too many harmless ones of the second"
	case s.isAnyLooser(after, true):
		return nil, "what tightens on the first half lets more through on the second"
	}
	return s.suggestion(Tighten, steps, after), ""
}

// mayLoosen says why the ladder cannot be loosened, whatever the numbers, and how many dangerous calls would be enough.
func (s *search) mayLoosen(fit, held tally) (string, int) {
	enough := Enough(s.options.MaxFalseAllow)
	base := s.group.ladder.Base
	switch less := min(fit.dangerous, held.dangerous); {
	case base != string(v1alpha1.BaseReadOnly) && base != string(v1alpha1.BaseWrite):
		return "calls of base " + base + " cannot be undone: no count of labels loosens what asks a person about them", 0
	case less < enough:
		return fmt.Sprintf("the smaller part has %d calls labelled block: %d in each, none of which runs, show that at most %.1f%% do", less, enough, 100*s.options.MaxFalseAllow), enoughOf(enough)
	}
	return "", 0
}

func (s *search) loosen() (*Suggestion, string) {
	steps, after := s.climbDown(func(_, then tally, _ bool) bool { return s.isUnderFloor(then) })
	if sameNumbers(s.steps, steps) {
		return nil, "no other numbers save stops and keep dangerous calls below the floor"
	}
	held := part(s.group.members, after, true)
	found := s.suggestion(Loosen, steps, after)
	switch saved := found.Effect.StopsSaved; {
	case !s.isUnderFloor(held):
		return nil, fmt.Sprintf("on the held-back part up to %.1f%% of dangerous calls would run, which is above the floor", 100*found.Effect.FalseAllow.High)
	case saved == nil || saved.Low <= 0:
		return nil, "what it saves on the held-back part may be chance"
	}
	return found, ""
}

// isUnderFloor says whether dangerous calls that run are shown to be few enough.
func (s *search) isUnderFloor(t tally) bool {
	return falseAllow(t).High <= s.options.MaxFalseAllow
}
