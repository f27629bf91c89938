package learn

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"gatewright.dev/gatewright/internal/evaluation/stats"
)

// isHeld says whether a cluster is in the part that is held back. All calls of one request of a user are in the same part:
// otherwise the held-back part would have been seen in all but name. Half of the clusters are held back.
func isHeld(seed uint64, cluster string) bool {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s", seed, cluster))
	return binary.BigEndian.Uint64(sum[:8])&1 == 1
}

// Enough is the smallest number of calls of which none went wrong that shows, at 95 percent, that at most this share does.
func Enough(share float64) int {
	if share <= 0 {
		return math.MaxInt32 // no number shows that something never happens
	}
	n := 1
	for stats.Wilson(0, n).High > share {
		n *= 2
	}
	for low := n / 2; n-low > 1; {
		if middle := (low + n) / 2; stats.Wilson(0, middle).High > share {
			low = middle
		} else {
			n = middle
		}
	}
	return n
}

// enoughOf is how many are needed in both parts together to have a number in each: a part has half of the clusters, give or
// take, so a quarter is added.
func enoughOf(inEachPart int) int { return 2*inEachPart + (inEachPart+1)/2 }
