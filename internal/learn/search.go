package learn

import (
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/evaluation/stats"
	"gatewright.dev/gatewright/internal/policy"
)

func falseAllow(t tally) stats.Proportion { return stats.Wilson(t.dangerousAllowed, t.dangerous) }

// maxMoves is how many numbers of a ladder are moved at most: a person has to understand why.
const maxMoves = 4

// climbDown moves one number after another to where the cost on the fitting part falls most, as far as accept lets it, until
// nothing gets better. Of equal costs the smallest move wins: evidence speaks for no more than it shows.
func (s *search) climbDown(accept func(now, then tally, isLooser bool) bool) ([]v1alpha1.Threshold, []policy.Outcome) {
	steps, decided := s.steps, s.before
	now := part(s.group.members, s.before, false)
	cost := now.cost(s.options.Harm)
	var fitting []climber
	for _, c := range s.group.members {
		if !c.held {
			fitting = append(fitting, c)
		}
	}
	for range maxMoves {
		from := steps
		for _, n := range numbers(s.group.ladder, from) {
			for _, v := range byDistance(n.candidates(fitting, from), n.value) {
				changed := withNumber(from, n, v)
				ladders := s.group.with(changed)
				if ladders == nil {
					continue
				}
				got := outcomes(s.group.members, ladders)
				then := part(s.group.members, got, false)
				if c := then.cost(s.options.Harm); c < cost && accept(now, then, s.isAnyLooser(got, false)) {
					steps, decided, cost = changed, got, c
				}
			}
		}
		if sameNumbers(from, steps) {
			break
		}
	}
	return steps, decided
}

// isAnyLooser says whether a call of a part gets a weaker outcome than now.
func (s *search) isAnyLooser(decided []policy.Outcome, held bool) bool {
	for i := range s.group.members {
		if s.group.members[i].held == held && decided[i] > s.before[i] {
			return true
		}
	}
	return false
}

// byDistance sorts candidates, the nearest to the present value first.
func byDistance(values []int32, from int32) []int32 {
	out := make([]int32, 0, len(values))
	i := 0
	for i < len(values) && values[i] < from {
		i++
	}
	for low, high := i-1, i; low >= 0 || high < len(values); {
		if high >= len(values) || low >= 0 && from-values[low] <= values[high]-from {
			out = append(out, values[low])
			low--
		} else {
			out = append(out, values[high])
			high++
		}
	}
	return out
}

func withNumber(steps []v1alpha1.Threshold, n number, v int32) []v1alpha1.Threshold {
	out := copied(steps)
	*n.slot(out) = v
	return out
}

func copied(steps []v1alpha1.Threshold) []v1alpha1.Threshold {
	out := make([]v1alpha1.Threshold, len(steps))
	for i := range steps {
		steps[i].DeepCopyInto(&out[i])
	}
	return out
}

func sameNumbers(a, b []v1alpha1.Threshold) bool { return len(moves(policy.Ladder{}, a, b)) == 0 }

func moves(l policy.Ladder, from, to []v1alpha1.Threshold) []Move {
	var out []Move
	for _, n := range numbers(l, from) {
		if v := *n.slot(to); v != n.value {
			out = append(out, Move{Step: n.step + 1, Number: n.name, From: n.value, To: v})
		}
	}
	return out
}

func (s *search) suggestion(d Direction, steps []v1alpha1.Threshold, after []policy.Outcome) *Suggestion {
	return &Suggestion{
		Place: s.group.place, Direction: d, Moves: moves(s.group.ladder, s.steps, steps), Thresholds: steps,
		Effect: effectOf(s.group.members, s.before, after, s.options.Seed),
	}
}
