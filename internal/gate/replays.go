package gate

import (
	"container/list"
	"crypto/sha256"
	"sync"
	"time"

	"gatewright.dev/gatewright/internal/policy"
)

// replays remembers answers by caller and uid: the same uid and body give the same answer, another body is refused. An
// entry that made room for others is judged anew, which is safe: an approval is used once whoever asks. Room is made by who
// takes most of it, as in expiring, so that a tenant who sends much makes the gate forget no answer of another.
type replays struct {
	mu      sync.Mutex
	max     int // bytes
	bytes   int
	entries map[replayKey]*replay
	// order are all places, those that end first in front, and owners those of each caller.
	order  *list.List
	owners owners
}

// replaySlot is the place of an entry in the order in which entries end. It counts until its turn comes, also when its
// entry is gone before, so that requests whose answers are not kept cannot make the order grow without bound.
type replaySlot struct {
	key          replayKey
	entry        *replay
	inAll, inOwn *list.Element
	of           *share
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
	slot   replaySlot
}

// replayCost is what an entry costs beside its answer: about 100 bytes each for itself, its channel, its slot, its place in
// the map and its two places in orders.
const replayCost = 600

func newReplays(maxBytes int) *replays {
	return &replays{max: maxBytes, entries: map[replayKey]*replay{}, order: list.New()}
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
	s := &entry.slot
	s.key, s.entry, s.of = key, entry, r.owners.of(in.caller.String())
	s.inAll, s.inOwn = r.order.PushBack(s), s.of.keys.PushBack(s)
	r.count(s, entry.cost)
	return entry, true
}

// count counts bytes of a place.
func (r *replays) count(s *replaySlot, bytes int) {
	r.bytes += bytes
	r.owners.add(s.of, bytes)
}

func (r *replays) makeRoom(now time.Time) {
	for first := r.order.Front(); first != nil; first = r.order.Front() {
		oldest, _ := first.Value.(*replaySlot)
		if r.entries[oldest.key] == oldest.entry && now.Before(oldest.entry.until) {
			break
		}
		r.drop(oldest)
	}
	for r.bytes > r.max {
		oldest, _ := r.owners.most().keys.Front().Value.(*replaySlot)
		r.drop(oldest)
	}
}

func (r *replays) drop(s *replaySlot) {
	r.order.Remove(s.inAll)
	s.of.keys.Remove(s.inOwn)
	r.count(s, -s.entry.cost)
	if r.entries[s.key] == s.entry {
		delete(r.entries, s.key)
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
		r.count(&entry.slot, len(answer))
	}
	close(entry.done)
}
