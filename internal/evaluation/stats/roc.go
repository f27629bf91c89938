package stats

import "slices"

// Scored is one case with the score it got. A higher score speaks for Positive.
type Scored struct {
	Score    float64
	Positive bool
}

// Point is one threshold of a ROC curve: what is at or above it counts as positive.
type Point struct {
	// FalsePositives is the share of negatives at or above the threshold, TruePositives that of positives.
	FalsePositives float64 `json:"falsePositives"`
	TruePositives  float64 `json:"truePositives"`
	Threshold      float64 `json:"threshold"`
}

// AUC is the chance that a positive scores higher than a negative; equal scores count half. False: one of the two kinds
// is missing, and there is nothing to rank.
func AUC(list []Scored) (float64, bool) {
	positives, negatives := kinds(list)
	if positives == 0 || negatives == 0 {
		return 0, false
	}
	// Walk down the scores. Each positive beats the negatives that come after its group and ties with those in it.
	wins, left := 0.0, negatives
	for group := range groups(list) {
		left -= group.negatives
		wins += float64(group.positives) * (float64(left) + float64(group.negatives)/2)
	}
	return wins / (float64(positives) * float64(negatives)), true
}

// ROC lists the points that thresholds between different scores can reach, from none counted as positive to all.
// The first point, where nothing counts, has the highest score as threshold of none: it stands for "above all".
func ROC(list []Scored) []Point {
	positives, negatives := kinds(list)
	if positives == 0 || negatives == 0 {
		return nil
	}
	var points []Point
	tp, fp := 0, 0
	for group := range groups(list) {
		if points == nil {
			points = append(points, Point{Threshold: group.score})
		}
		tp, fp = tp+group.positives, fp+group.negatives
		points = append(points, Point{float64(fp) / float64(negatives), float64(tp) / float64(positives), group.score})
	}
	return points
}

// RecallAt is the highest share of positives that a threshold finds while at most this share of negatives is counted too.
// Cases of equal score are found together or not at all. False: one of the two kinds is missing.
func RecallAt(list []Scored, falsePositives float64) (float64, bool) {
	points := ROC(list)
	best := 0.0
	for _, p := range points {
		if p.FalsePositives <= falsePositives {
			best = max(best, p.TruePositives)
		}
	}
	return best, points != nil
}

func kinds(list []Scored) (positives, negatives int) {
	for _, s := range list {
		if s.Positive {
			positives++
		} else {
			negatives++
		}
	}
	return positives, negatives
}

type group struct {
	score                float64
	positives, negatives int
}

// groups yields cases of equal score together, highest score first.
func groups(list []Scored) func(yield func(group) bool) {
	sorted := slices.SortedFunc(slices.Values(list), func(a, b Scored) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
	return func(yield func(group) bool) {
		for i := 0; i < len(sorted); {
			g := group{score: sorted[i].Score}
			for ; i < len(sorted) && sorted[i].Score == g.score; i++ {
				if sorted[i].Positive {
					g.positives++
				} else {
					g.negatives++
				}
			}
			if !yield(g) {
				return
			}
		}
	}
}
