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
	order   []replayKey
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
}

// replayCost is what an entry costs beside its answer.
const replayCost = 256

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
	entry = &replay{body: in.body, until: now.Add(uidMaxAge + uidMaxAhead), done: make(chan struct{})}
	r.entries[key] = entry
	r.order = append(r.order, key)
	r.bytes += replayCost
	return entry, true
}

func (r *replays) makeRoom(now time.Time) {
	for len(r.order) > 0 {
		oldest := r.entries[r.order[0]]
		if r.bytes <= r.max && (oldest != nil && now.Before(oldest.until)) {
			return
		}
		if oldest != nil {
			r.bytes -= replayCost + len(oldest.answer)
			delete(r.entries, r.order[0])
		}
		r.order = r.order[1:]
	}
}

// finish keeps the answer. Without one, the entry goes: the next request with this uid is judged.
func (r *replays) finish(in *input, entry *replay, answer []byte) {
	key := replayKey{in.caller, in.review.UID}
	r.mu.Lock()
	defer r.mu.Unlock()
	entry.answer = answer
	if r.entries[key] == entry {
		if answer == nil {
			delete(r.entries, key)
			r.bytes -= replayCost
		} else {
			r.bytes += len(answer)
		}
	}
	close(entry.done)
}
