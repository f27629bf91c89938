package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/audit"
)

// listener is a browser that listens: every write comes through its channel.
type listener struct {
	header http.Header
	status int
	writes chan string
	ended  chan struct{}
}

func (l *listener) Header() http.Header    { return l.header }
func (l *listener) WriteHeader(status int) { l.status = status }
func (l *listener) Flush()                 {}
func (l *listener) Write(p []byte) (int, error) {
	l.writes <- string(p)
	return len(p), nil
}

// listen opens a stream. It ends with the context or the test.
func (b *browser) listen(t *testing.T, ctx context.Context, lastID string) *listener { //nolint:revive // the test comes first in this package
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	l := &listener{header: http.Header{}, writes: make(chan string, 100), ended: make(chan struct{})}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, Path+"events", nil)
	r.Host = "127.0.0.1:8470"
	r.Header.Set("Accept", "text/event-stream")
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	for name, v := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: v})
	}
	go func() {
		defer close(l.ended)
		b.desk.ServeHTTP(l, r)
	}()
	t.Cleanup(func() { cancel(); <-l.ended })
	return l
}

// next gives the next write.
func (l *listener) next(t *testing.T) string {
	t.Helper()
	select {
	case s := <-l.writes:
		return s
	case <-time.After(5 * time.Second):
		t.Fatal("nothing was written")
		return ""
	}
}

// quiet says that nothing more was written. The stream has done all that it does by now if its ticker is waited for.
func (l *listener) quiet(t *testing.T) {
	t.Helper()
	select {
	case s := <-l.writes:
		t.Errorf("%q was written", s)
	case <-time.After(50 * time.Millisecond):
	}
}

// pass lets time go on until the stream has looked again.
func (d *desk) pass(t *testing.T, by time.Duration) {
	t.Helper()
	for !d.clock.HasWaiters() {
		select {
		case <-t.Context().Done():
			t.Fatal("nobody waits")
		case <-time.After(time.Millisecond):
		}
	}
	d.clock.Step(by)
}

func eventID(t *testing.T, event string) string {
	t.Helper()
	_, rest, ok := strings.Cut(event, "\nid: ")
	if !ok {
		t.Fatalf("no id in %q", event)
	}
	id, _, _ := strings.Cut(rest, "\n")
	return id
}

// heads is a record of which only the end is looked at.
type heads struct {
	Records
	seq atomic.Uint64
}

func (h *heads) Head() audit.Head { return audit.Head{Seq: h.seq.Load()} }

func TestAStreamTellsWhatHasChangedAndGoesOnWhereItWas(t *testing.T) {
	records := &heads{}
	records.seq.Store(7)
	d := newTestDesk(t, records)
	b := d.signIn(t)
	ctx, cancel := context.WithCancel(t.Context())
	l := b.listen(t, ctx, "")
	for _, want := range []string{"retry: ", `event: queue`, `event: decisions`} {
		if got := l.next(t); !strings.HasPrefix(got, want) {
			t.Fatalf("%q, want %s", got, want)
		}
	}
	a := d.raise(t, `{"path":"<script>"}`, nil)
	d.pass(t, pollEvery)
	event := l.next(t)
	if !strings.Contains(event, `data: {"pending":1}`) || strings.Contains(event, "script") || strings.Contains(event, a.Name) {
		t.Errorf("got %q", event)
	}
	d.pass(t, pollEvery)
	l.quiet(t)
	records.seq.Store(9)
	d.pass(t, pollEvery)
	last := l.next(t)
	if !strings.Contains(last, "event: decisions") || !strings.Contains(last, `"seq":9`) {
		t.Errorf("got %q", last)
	}
	cancel()
	<-l.ended

	again := b.listen(t, t.Context(), eventID(t, last))
	again.next(t) // retry
	again.quiet(t)
	err := d.store.Decide(t.Context(), a.Name, approval.Decision{Outcome: approval.Approved, By: approval.Approver{Type: approval.LocalSecret, Name: "kim"}})
	if err != nil {
		t.Fatal(err)
	}
	missed := b.listen(t, t.Context(), eventID(t, event)) // it has missed the decision and two records
	missed.next(t)
	if got := missed.next(t); !strings.Contains(got, "event: decisions") { // the look that the other one had
		t.Errorf("first %q", got)
	}
	d.pass(t, pollEvery)
	if got := missed.next(t); !strings.Contains(got, `data: {"pending":0}`) {
		t.Errorf("then %q", got)
	}
	if got := again.next(t); !strings.Contains(got, `data: {"pending":0}`) {
		t.Errorf("the other one %q", got)
	}
}

// A stream that breaks between two events of one look is told the second one anew.
func TestAnIDCountsOnlyWhatWasTold(t *testing.T) {
	var out strings.Builder
	w := httptest.NewRecorder()
	s := stream{w: &out, control: http.NewResponseController(w), clock: newTestDesk(t, nil).clock}
	if err := s.tell(state{queue: "new", seq: 9}, state{queue: "old", seq: 7}, true); err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(out.String(), "\n\n")
	if eventID(t, first+"\n") != "new.7" || eventID(t, second) != "new.9" {
		t.Errorf("got %q", out.String())
	}
}

func TestAStreamEnds(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, d *desk, b *browser, cancel func()){
		"when the browser goes":   func(_ *testing.T, _ *desk, _ *browser, cancel func()) { cancel() },
		"when the gate ends":      func(_ *testing.T, d *desk, _ *browser, _ func()) { d.Close() },
		"when its session is out": func(t *testing.T, d *desk, _ *browser, _ func()) { d.pass(t, sessionLength) },
		"when its person signs out": func(t *testing.T, d *desk, b *browser, _ func()) {
			signOut(t, d, b)
			d.pass(t, heartbeat)
		},
		"when approvals cannot be read": func(t *testing.T, d *desk, _ *browser, _ func()) {
			d.watch.mu.Lock()
			d.watch.approvals = failing{}
			d.watch.mu.Unlock()
			d.pass(t, pollEvery)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestDesk(t, nil)
			b := d.signIn(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l := b.listen(t, ctx, "")
			l.next(t)
			end(t, d, b, cancel)
			select {
			case <-l.ended:
			case <-time.After(5 * time.Second):
				t.Error("it goes on")
			}
			d.watch.mu.Lock()
			defer d.watch.mu.Unlock()
			if d.watch.streams != 0 || len(d.watch.bySession) != 0 {
				t.Errorf("%d streams of %d sessions are counted", d.watch.streams, len(d.watch.bySession))
			}
		})
	}
}

func TestStreamsAreBounded(t *testing.T) {
	d := newTestDesk(t, nil)
	b := d.signIn(t)
	for range maxStreamsEach {
		b.listen(t, t.Context(), "").next(t)
	}
	full := b.listen(t, t.Context(), "")
	<-full.ended
	if full.status != http.StatusServiceUnavailable {
		t.Errorf("HTTP %d for one more of a session", full.status)
	}
	for i := maxStreamsEach; i < maxStreams; i += maxStreamsEach {
		other := d.signIn(t)
		for range maxStreamsEach {
			other.listen(t, t.Context(), "").next(t)
		}
	}
	full = d.signIn(t).listen(t, t.Context(), "")
	<-full.ended
	if full.status != http.StatusServiceUnavailable {
		t.Errorf("HTTP %d for one more of all", full.status)
	}
}
