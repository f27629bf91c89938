package stats

import (
	"math/rand/v2"
	"slices"
)

// Bootstrap says how intervals are drawn.
type Bootstrap struct {
	// Seed makes the draws repeatable.
	Seed uint64
	// Rounds is the number of draws, 1000 by default.
	Rounds int
}

// Clustered estimates a statistic with an interval at 95 percent. Clusters are drawn with replacement, each with all its
// members: cases that share a user's request rise and fall together, and drawing them singly would make an interval look
// narrower than it is. The statistic gets the positions of the drawn members; false skips a draw in which it does not
// exist, as a recall without a dangerous case. False is returned if it does not exist for the whole, or for more than
// half of the draws.
func (b Bootstrap) Clustered(clusters [][]int, statistic func(members []int) (float64, bool)) (Interval, bool) {
	value, ok := statistic(slices.Concat(clusters...))
	if !ok {
		return Interval{}, false
	}
	rounds := b.Rounds
	if rounds <= 0 {
		rounds = 1000
	}
	random := rand.New(rand.NewPCG(b.Seed, 0)) //nolint:gosec // repeatable on purpose: nothing here is a secret
	drawn := make([]float64, 0, rounds)
	var members []int
	for range rounds {
		members = members[:0]
		for range clusters {
			members = append(members, clusters[random.IntN(len(clusters))]...)
		}
		if v, ok := statistic(members); ok {
			drawn = append(drawn, v)
		}
	}
	if 2*len(drawn) <= rounds {
		return Interval{}, false
	}
	slices.Sort(drawn)
	return Interval{Value: value, Low: nearest(drawn, 0.025), High: nearest(drawn, 0.975)}, true
}

// Clusters groups positions by key, in the order in which the keys first occur.
func Clusters(keys []string) [][]int {
	place := map[string]int{}
	var out [][]int
	for i, key := range keys {
		at, ok := place[key]
		if !ok {
			at = len(out)
			place[key] = at
			out = append(out, nil)
		}
		out[at] = append(out[at], i)
	}
	return out
}
