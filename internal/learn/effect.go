package learn

import (
	"gatewright.dev/gatewright/internal/evaluation/stats"
	"gatewright.dev/gatewright/internal/policy"
)

// Effect is what a change of thresholds does to the calls of the held-back part.
type Effect struct {
	Calls    int `json:"calls"`
	Labelled int `json:"labelled"`
	// FalseAllow is the share of calls labelled block that run on their own, before and after.
	FalseAllowBefore stats.Proportion `json:"falseAllowBefore"`
	FalseAllow       stats.Proportion `json:"falseAllow"`
	// FalseBlock is the share of calls labelled allow that are stopped, by a question to a person too.
	FalseBlockBefore stats.Proportion `json:"falseBlockBefore"`
	FalseBlock       stats.Proportion `json:"falseBlock"`
	// FalseDeny is the share of calls labelled allow that are blocked, with nobody asked.
	FalseDenyBefore stats.Proportion `json:"falseDenyBefore"`
	FalseDeny       stats.Proportion `json:"falseDeny"`
	// ConfirmationsSaved are questions to a person that fall away, in 1,000 calls of this ladder, labelled or not. Below 0
	// there are more.
	ConfirmationsSaved *stats.Interval `json:"confirmationsSaved,omitempty"`
	// StopsSaved counts every outcome but Allow in the same way.
	StopsSaved *stats.Interval `json:"stopsSaved,omitempty"`
	// WouldRun are the ids of calls labelled block that are stopped now and would run.
	WouldRun []string `json:"wouldRun,omitempty"`
}

// tally are the counts of one part under one ladder.
type tally struct {
	dangerous, dangerousAllowed int
	harmless, harmlessStopped   int
	harmlessDenied              int // of the stopped ones, those that nobody is asked about
}

func (t *tally) add(l Label, o policy.Outcome) {
	switch l {
	case LabelBlock:
		t.dangerous++
		if o == policy.Allow {
			t.dangerousAllowed++
		}
	case LabelAllow:
		t.harmless++
		if o != policy.Allow {
			t.harmlessStopped++
		}
		if o == policy.Block {
			t.harmlessDenied++
		}
	}
}

// plus adds counts.
func (t tally) plus(o tally) tally {
	return tally{
		t.dangerous + o.dangerous, t.dangerousAllowed + o.dangerousAllowed, t.harmless + o.harmless,
		t.harmlessStopped + o.harmlessStopped, t.harmlessDenied + o.harmlessDenied,
	}
}

// denied is what a harmless call that is blocked costs more than one that is asked about: a question can be answered.
const denied = 2

// cost weighs a dangerous call that runs against harmless ones that are stopped.
func (t tally) cost(harm int) int {
	return harm*t.dangerousAllowed + t.harmlessStopped + denied*t.harmlessDenied
}

// outcomes of all members under ladders by kind: what the ladder says, or the rest where that is stricter.
func outcomes(members []climber, ladders []policy.Ladder) []policy.Outcome {
	out := make([]policy.Outcome, len(members))
	for i := range members {
		c := &members[i]
		out[i] = min(c.rest, ladders[c.kind].Decide(c.answers))
	}
	return out
}

// part tallies one half.
func part(members []climber, decided []policy.Outcome, held bool) tally {
	var t tally
	for i := range members {
		if members[i].held == held {
			t.add(members[i].example.Label, decided[i])
		}
	}
	return t
}

// effectOf compares two lists of outcomes on the held-back part.
func effectOf(members []climber, before, after []policy.Outcome, seed uint64) Effect {
	was, is := part(members, before, true), part(members, after, true)
	e := Effect{
		Labelled:         is.dangerous + is.harmless,
		FalseAllowBefore: stats.Wilson(was.dangerousAllowed, was.dangerous), FalseAllow: stats.Wilson(is.dangerousAllowed, is.dangerous),
		FalseBlockBefore: stats.Wilson(was.harmlessStopped, was.harmless), FalseBlock: stats.Wilson(is.harmlessStopped, is.harmless),
		FalseDenyBefore: stats.Wilson(was.harmlessDenied, was.harmless), FalseDeny: stats.Wilson(is.harmlessDenied, is.harmless),
	}
	var confirmations, stops []float64
	var keys []string
	for i := range members {
		if !members[i].held {
			continue
		}
		e.Calls++
		if members[i].example.Label == LabelBlock && before[i] != policy.Allow && after[i] == policy.Allow {
			e.WouldRun = append(e.WouldRun, members[i].example.ID)
		}
		keys = append(keys, members[i].example.Cluster)
		confirmations = append(confirmations, indicator(before[i] == policy.Confirm)-indicator(after[i] == policy.Confirm))
		stops = append(stops, indicator(before[i] != policy.Allow)-indicator(after[i] != policy.Allow))
	}
	clusters := stats.Clusters(keys)
	e.ConfirmationsSaved, e.StopsSaved = perThousand(clusters, confirmations, seed), perThousand(clusters, stops, seed)
	return e
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func perThousand(clusters [][]int, saved []float64, seed uint64) *stats.Interval {
	if len(clusters) == 0 {
		return nil
	}
	i, ok := stats.Bootstrap{Seed: seed}.Clustered(clusters, func(members []int) (float64, bool) {
		sum := 0.0
		for _, m := range members {
			sum += saved[m]
		}
		return 1000 * sum / float64(len(members)), true
	})
	if !ok {
		return nil
	}
	return &i
}
