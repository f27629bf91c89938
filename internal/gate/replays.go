package gate

import (
	"crypto/sha256"
	"sync"
	"time"

	"gatewright.dev/gatewright/internal/policy"
)

// replays remembers answers by caller and uid: the same uid and body give the same answer, another body is refused. An
// entry that made room for others is judged anew, which is safe: an approval is used once whoever asks.
type replays struct {
	mu      sync.Mutex
	max     int // bytes
	bytes   int
	entries map[replayKey]*replay
	order   []replaySlot
}

// replaySlot is the place of an entry in the order in which entries end. It counts until its turn comes, also when its
// entry is gone before, so that requests whose answers are not kept cannot make the order grow without bound.
type replaySlot struct {
	key   replayKey
	entry *replay
}

type replayKey struct {
	caller policy.Caller
	uid    string
}

type replay struct {
	body  [sha256.Size]byte
	until time.Time
	// done is closed when the answer stands.
	done   chan struct{}
	answer []byte // nil: the first request came to no answer
	cost   int    // what it counts in replays.bytes
}

// replayCost is what an entry costs beside its answer: about 100 bytes each for itself, its channel, its place in the
// order and its place in the map.
const replayCost = 400

func newReplays(maxBytes int) *replays {
	return &replays{max: maxBytes, entries: map[replayKey]*replay{}}
}

// begin finds the entry of a uid, or makes one that the caller has to finish.
func (r *replays) begin(in *input) (entry *replay, isFirst bool) {
	key := replayKey{in.caller, in.review.UID}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := in.request.Now
	if found, ok := r.entries[key]; ok && now.Before(found.until) {
		return found, false
	}
	r.makeRoom(now)
	entry = &replay{body: in.body, until: now.Add(uidMaxAge + uidMaxAhead), done: make(chan struct{}), cost: replayCost}
	r.entries[key] = entry
	r.order = append(r.order, replaySlot{key, entry})
	r.bytes += entry.cost
	return entry, true
}

func (r *replays) makeRoom(now time.Time) {
	for len(r.order) > 0 {
		oldest := r.order[0]
		isCurrent := r.entries[oldest.key] == oldest.entry
		if r.bytes <= r.max && isCurrent && now.Before(oldest.entry.until) {
			return
		}
		r.bytes -= oldest.entry.cost
		if isCurrent {
			delete(r.entries, oldest.key)
		}
		r.order[0] = replaySlot{}
		r.order = r.order[1:]
	}
}

// finish keeps the answer. Without one, the entry goes: the next request with this uid is judged.
func (r *replays) finish(in *input, entry *replay, answer []byte) {
	key := replayKey{in.caller, in.review.UID}
	r.mu.Lock()
	defer r.mu.Unlock()
	entry.answer = answer
	if r.entries[key] == entry { // else it has made room for others meanwhile
		if answer == nil {
			delete(r.entries, key)
		}
		entry.cost += len(answer)
		r.bytes += len(answer)
	}
	close(entry.done)
}
