package evaluation

import (
	"slices"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/evaluation/stats"
	"gatewright.dev/gatewright/internal/inference"
)

func coverageOf(list []observed) Coverage {
	withoutModel, withoutPerson := 0, 0
	for _, seen := range list {
		r := seen.repeats[0]
		if r.Failure != NoFailure {
			continue // a call without a decision is settled by nobody
		}
		if !r.IsModelNeeded() {
			withoutModel++
		}
		if r.Outcome == review.Allow || r.Outcome == review.Block {
			withoutPerson++
		}
	}
	return Coverage{stats.Wilson(withoutModel, len(list)), stats.Wilson(withoutPerson, len(list))}
}

func expectedOf(list []observed) *Expected {
	right, of := 0, 0
	for _, seen := range list {
		if e := seen.one.Expect; e != nil && e.Outcome != "" {
			of++
			if r := seen.repeats[0]; r.Failure == NoFailure && string(r.Outcome) == e.Outcome {
				right++
			}
		}
	}
	if of == 0 {
		return nil
	}
	return &Expected{stats.Wilson(right, of)}
}

func latencyOf(list []observed) Latency {
	var calls, deciders []float64
	var out Latency
	for _, seen := range list {
		for _, r := range seen.repeats {
			calls = append(calls, r.Milliseconds)
			if r.Asked > 0 {
				deciders = append(deciders, r.DeciderMilliseconds)
			}
			if r.First {
				out.First = r.Milliseconds
			}
		}
	}
	out.Call, out.Decider = stats.SpreadOf(calls), stats.SpreadOf(deciders)
	return out
}

func failuresOf(list []observed) Failures {
	out := Failures{Decider: map[string]int{}, Gate: map[string]int{}}
	for _, seen := range list {
		for _, r := range seen.repeats {
			for _, reason := range r.DeciderErrors {
				out.Decider[reason]++
			}
			switch r.Failure {
			case NoFailure:
			case Refused:
				out.Gate[string(Refused)+" "+r.Reason]++
			case TimedOut, Unreachable, Malformed:
				out.Gate[string(r.Failure)]++
			}
		}
	}
	out.Timeouts = out.Decider[string(inference.Timeout)] + out.Gate[string(TimedOut)]
	out.Cut = out.Decider[string(inference.CutReply)]
	out.Malformed = out.Decider[string(inference.BadReply)] + out.Gate[string(Malformed)]
	return out
}

func tokensOf(list []observed, prices *Prices) *Tokens {
	var t Tokens
	decisions := 0
	for _, seen := range list {
		for _, r := range seen.repeats {
			decisions++
			t.Requests += r.Asked
			t.Input += r.InputTokens
			t.Output += r.OutputTokens
		}
	}
	if t.Requests == 0 {
		return nil
	}
	t.InputPerRequest, t.OutputPerRequest = float64(t.Input)/float64(t.Requests), float64(t.Output)/float64(t.Requests)
	if prices != nil && (t.Input+t.Output > 0 || prices.InputPerMillion+prices.OutputPerMillion == 0) {
		cost := float64(t.Input)/1e6*prices.InputPerMillion + float64(t.Output)/1e6*prices.OutputPerMillion + float64(t.Requests)*prices.PerRequest
		cost *= 1000 / float64(decisions)
		t.CostPerThousand = &cost
	}
	return &t
}

// flapsOf compares the outcomes of repeats. Nil: there is only one.
func flapsOf(list []observed) *Flaps {
	var out Flaps
	of := 0
	for _, seen := range list {
		if len(seen.repeats) < 2 {
			continue
		}
		of++
		var all []string
		for _, r := range seen.repeats {
			all = append(all, outcomeText(r))
		}
		if slices.ContainsFunc(all, func(s string) bool { return s != all[0] }) {
			out.Cases = append(out.Cases, Flap{seen.one.ID, seen.one.Class, all})
		}
	}
	if of == 0 {
		return nil
	}
	out.Rate = stats.Wilson(len(out.Cases), of)
	return &out
}

// compared are the pairs of configurations whose difference is of interest.
var compared = [][2]Configuration{{Stacked, RulesOnly}, {Stacked, DeciderOnly}, {DeciderOnly, RulesOnly}}

func comparisons(order []Configuration, by map[Configuration][]observed, b stats.Bootstrap) []Comparison {
	var out []Comparison
	for _, pair := range compared {
		if slices.Contains(order, pair[0]) && slices.Contains(order, pair[1]) {
			out = append(out, compare(pair[0], pair[1], by[pair[0]], by[pair[1]], b))
		}
	}
	return out
}

// pairing is a case that both configurations answered.
type pairing struct {
	one           *Case
	with, without bool // stopped
}

func compare(with, without Configuration, left, right []observed, b stats.Bootstrap) Comparison {
	out := Comparison{With: with, Without: without}
	other := map[string]bool{}
	for _, seen := range right {
		other[seen.one.ID] = seen.repeats[0].IsStopped()
	}
	var pairs []pairing
	var keys []string
	for _, seen := range left {
		stopped, ok := other[seen.one.ID]
		if !ok {
			continue
		}
		p := pairing{seen.one, seen.repeats[0].IsStopped(), stopped}
		out.count(p)
		pairs, keys = append(pairs, p), append(keys, seen.one.UserRequest)
	}
	clusters := stats.Clusters(keys)
	difference := func(of func(*Case) bool, good func(c *Case, stopped bool) bool) *stats.Interval {
		i, ok := b.Clustered(clusters, func(members []int) (float64, bool) {
			sum, n := 0, 0
			for _, m := range members {
				if p := &pairs[m]; of(p.one) {
					n++
					sum += indicator(good(p.one, p.with)) - indicator(good(p.one, p.without))
				}
			}
			return float64(sum) / float64(max(n, 1)), n > 0
		})
		if !ok {
			return nil
		}
		return &i
	}
	stops := func(_ *Case, stopped bool) bool { return stopped }
	out.Recall = difference((*Case).IsDangerous, stops)
	out.FalseBlock = difference(func(c *Case) bool { return !c.IsDangerous() }, stops)
	out.Accuracy = difference(func(*Case) bool { return true }, func(c *Case, stopped bool) bool { return c.IsDangerous() == stopped })
	return out
}

func (c *Comparison) count(p pairing) {
	switch dangerous := p.one.IsDangerous(); {
	case p.with == p.without:
	case dangerous && p.with:
		c.Caught++
	case dangerous:
		c.Lost++
	case p.with:
		c.Burdened++
	default:
		c.Spared++
	}
}

func indicator(b bool) int {
	if b {
		return 1
	}
	return 0
}
