package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/approval"
)

const (
	// maxStreams and maxStreamsEach bound who listens, in all and of one session. Who finds no place looks now and then.
	maxStreams     = 64
	maxStreamsEach = 8
	// pollEvery is how often approvals and record are looked at while somebody listens.
	pollEvery = 500 * time.Millisecond
	// freshOfOne is how old what one person has seen may be, where each has to be looked at apart.
	freshOfOne = 2 * time.Second
	// heartbeat keeps what lies between from closing the stream, and finds out who has gone.
	heartbeat = 15 * time.Second
	// writeTimeout is how long one event may take to leave.
	writeTimeout = 10 * time.Second
)

// state says where approvals and record stand. Streams carry nothing else: what has changed is asked for as a page. So an
// event can be lost without harm, and nothing from a call is ever in a stream.
type state struct {
	// queue is a digest over the names, ids and states of all approvals.
	queue   string
	pending int
	// seq is the last record.
	seq uint64
}

// id is what a browser sends back to go on from there.
func (s state) id() string { return s.queue + "." + strconv.FormatUint(s.seq, 10) }

// parseState reads what id gave. Anything else differs from every state, so that all of it counts as changed.
func parseState(id string) (state, bool) {
	queue, seq, ok := strings.Cut(id, ".")
	n, err := strconv.ParseUint(seq, 10, 64)
	return state{queue: queue, seq: n}, ok && err == nil
}

// watch looks at approvals and record for all who listen, so that many cost what one does.
type watch struct {
	approvals Approvals
	records   Records
	// mayRead says whether those who listen may see the record; nil: they may.
	mayRead func(ctx context.Context) (bool, error)
	clock   clock.PassiveClock
	// fresh is how old what was seen may be.
	fresh time.Duration

	mu     sync.Mutex
	last   state
	lastAt time.Time

	streams   int
	bySession map[[sha256.Size]byte]int
}

func newWatch(a Approvals, r Records, c clock.PassiveClock) *watch {
	return &watch{approvals: a, records: r, clock: c, fresh: pollEvery / 2, bySession: map[[sha256.Size]byte]int{}}
}

func (w *watch) enter(key [sha256.Size]byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams >= maxStreams || w.bySession[key] >= maxStreamsEach {
		return false
	}
	w.streams++
	w.bySession[key]++
	return true
}

func (w *watch) leave(key [sha256.Size]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams--
	if w.bySession[key]--; w.bySession[key] == 0 {
		delete(w.bySession, key)
	}
}

// state is at most as old as fresh says.
func (w *watch) state(ctx context.Context) (state, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	if !w.lastAt.IsZero() && now.Sub(w.lastAt) < w.fresh {
		return w.last, nil
	}
	all, err := w.approvals.List(ctx)
	if err != nil {
		return state{}, err
	}
	sum := sha256.New()
	next := state{}
	for i := range all {
		_, _ = fmt.Fprintf(sum, "%q %q %q\n", all[i].Name, all[i].ID, all[i].State)
		if all[i].State == approval.Pending {
			next.pending++
		}
	}
	next.queue = hex.EncodeToString(sum.Sum(nil)[:16])
	if next.seq, err = w.seq(ctx); err != nil {
		return state{}, err
	}
	w.last, w.lastAt = next, now
	return next, nil
}

// seq is the last record, 0 for those who see none.
func (w *watch) seq(ctx context.Context) (uint64, error) {
	if w.records == nil {
		return 0, nil
	}
	if w.mayRead != nil {
		if may, err := w.mayRead(ctx); err != nil || !may {
			return 0, err
		}
	}
	return w.records.Head().Seq, nil
}

// events tells a browser that approvals or decisions have changed, until it goes, its session ends or the gate does.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	s, _ := sessionOf(r.Context())
	if !h.watch.enter(s.key) {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many pages listen", http.StatusServiceUnavailable)
		return
	}
	defer h.watch.leave(s.key)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := stream{w: w, control: http.NewResponseController(w), clock: h.Clock}
	_ = out.control.SetReadDeadline(time.Time{}) // nothing more is read; the server's bound would end the stream
	seen, knows := parseState(r.Header.Get("Last-Event-ID"))
	if out.write("retry: 2000\n\n") != nil {
		return
	}
	poll, beat := h.Clock.NewTicker(pollEvery), h.Clock.NewTicker(heartbeat)
	defer poll.Stop()
	defer beat.Stop()
	for {
		now, err := s.watch.state(r.Context())
		if errors.Is(err, ErrSignedOut) {
			h.sessions.end(s.key) // the browser asks again and is told
		}
		if err != nil || out.tell(now, seen, knows) != nil {
			return
		}
		seen, knows = now, true
		select {
		case <-r.Context().Done():
			return
		case <-h.done:
			return
		case <-poll.C():
		case <-beat.C():
			if _, ok := h.sessions.get(s.key, false); !ok || out.write(": still here\n\n") != nil {
				return
			}
		}
	}
}

type stream struct {
	w       io.Writer
	control *http.ResponseController
	clock   clock.PassiveClock
}

func (s *stream) write(text string) error {
	_ = s.control.SetWriteDeadline(s.clock.Now().Add(writeTimeout)) // a writer without deadlines has none to pass
	if _, err := io.WriteString(s.w, text); err != nil {
		return err
	}
	return s.control.Flush()
}

// tell says what differs from what was seen. An id counts only what was told up to there: who loses the stream between two
// events is told the second one anew.
func (s *stream) tell(now, seen state, knows bool) error {
	if !knows || now.queue != seen.queue {
		upTo := state{queue: now.queue, seq: seen.seq}
		if err := s.write(fmt.Sprintf("event: queue\nid: %s\ndata: {\"pending\":%d}\n\n", upTo.id(), now.pending)); err != nil {
			return err
		}
	}
	if !knows || now.seq != seen.seq {
		return s.write(fmt.Sprintf("event: decisions\nid: %s\ndata: {\"seq\":%d}\n\n", now.id(), now.seq))
	}
	return nil
}
