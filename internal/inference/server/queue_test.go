package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/questions"
)

func newJob(caller, name string) *job {
	return &job{ctx: context.Background(), caller: caller, state: []byte(name), done: make(chan struct{})}
}

// drained pops everything and returns the names in order.
func drained(q *queue) []string {
	var names []string
	for j := q.pop(); j != nil; j = q.pop() {
		names = append(names, string(j.state))
	}
	return names
}

func TestQueueOrder(t *testing.T) {
	tests := map[string]struct {
		limit   int
		push    string // caller and number of each job, in order
		remove  string
		want    string
		refused string
	}{
		"one caller, in order":                            {limit: 9, push: "a1 a2 a3", want: "a1 a2 a3"},
		"callers take turns":                              {limit: 9, push: "a1 a2 a3 b1 c1 b2", want: "a1 b1 c1 a2 b2 a3"},
		"a removed job keeps nobody waiting":              {limit: 9, push: "a1 a2 b1", remove: "a1", want: "a2 b1"},
		"a caller whose last job left has no turn":        {limit: 9, push: "a1 b1 c1", remove: "b1", want: "a1 c1"},
		"a full queue refuses the caller that fills it":   {limit: 2, push: "a1 a2 a3", want: "a1 a2", refused: "a3"},
		"a newcomer takes the place of the longest line":  {limit: 3, push: "a1 a2 a3 b1", want: "a1 b1 a2", refused: "a3"},
		"a second one too, if it is no better off":        {limit: 4, push: "a1 a2 a3 a4 b1 b2", want: "a1 b1 a2 b2", refused: "a4 a3"},
		"lines of the same length stay":                   {limit: 2, push: "a1 b1 c1", want: "a1 b1", refused: "c1"},
		"a line that is one longer stays":                 {limit: 3, push: "a1 a2 b1 b2", want: "a1 b1 a2", refused: "b2"},
		"what was refused or removed leaves room for one": {limit: 2, push: "a1 a2", remove: "a2", want: "a1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			q := newQueue(tt.limit)
			jobs := map[string]*job{}
			var order, refused []string
			for id := range strings.FieldsSeq(tt.push) {
				j := newJob(id[:1], id)
				jobs[id] = j
				order = append(order, id)
				if !q.push(j) {
					refused = append(refused, id)
				}
			}
			for _, id := range order {
				select {
				case <-jobs[id].done:
					if !errors.Is(jobs[id].err, errPushedOut) {
						t.Errorf("%s ended with %v", id, jobs[id].err)
					}
					refused = append(refused, id)
				default:
				}
			}
			if tt.remove != "" {
				q.remove(jobs[tt.remove])
				q.remove(jobs[tt.remove]) // a second time changes nothing
			}
			if want := len(strings.Fields(tt.want)); q.length() != want {
				t.Errorf("%d wait, want %d", q.length(), want)
			}
			if diff := cmp.Diff(tt.want, strings.Join(drained(q), " ")); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
			if want := strings.Fields(tt.refused); len(want) != len(refused) {
				t.Errorf("refused %v, want %v", refused, want)
			}
			if len(q.lines) != 0 || len(q.turn) != 0 || q.length() != 0 {
				t.Errorf("an empty queue holds %v, %v, %d", q.lines, q.turn, q.length())
			}
		})
	}
}

// gated is an engine that holds each request until the test lets it go.
func gated(e *scripted) (entered chan string, proceed chan struct{}) {
	entered, proceed = make(chan string, 1024), make(chan struct{})
	e.does(func(ctx context.Context, state []byte, asked []questions.Question) (engine.Reply, error) {
		entered <- string(state)
		select {
		case <-proceed:
			return honest(state, asked), nil
		case <-ctx.Done():
			return engine.Reply{}, ctx.Err()
		}
	})
	return entered, proceed
}

// TestWhoGoesAwayCostsNothing cancels requests in the queue: the engine never hears of them, and the queue is empty.
func TestWhoGoesAwayCostsNothing(t *testing.T) {
	e := newScripted()
	entered, proceed := gated(e)
	r := start(t, e)
	first := make(chan response, 1)
	go func() { first <- r.post(t, asks(`"first"`)) }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	var gone sync.WaitGroup
	for i := range 20 {
		gone.Go(func() {
			if got, err := r.send(ctx, "POST", PathSystemOne, asks(fmt.Sprintf(`"gone %d"`, i))); err == nil {
				t.Errorf("an answer for who went away: %+v", got)
			}
		})
	}
	eventually(t, "20 wait", func() bool { return r.queue.length() == 20 })
	cancel()
	gone.Wait()
	eventually(t, "none waits", func() bool { return r.queue.length() == 0 })
	close(proceed)
	if got := <-first; got.status != 200 {
		t.Errorf("the first got %+v", got)
	}
	if got := r.post(t, asks(`"last"`)); got.status != 200 {
		t.Errorf("the last got %+v", got)
	}
	if diff := cmp.Diff([]string{"first", "last"}, e.asked()); diff != "" {
		t.Errorf("what the engine was asked (-want +got):\n%s", diff)
	}
	eventually(t, "those who left are counted", func() bool {
		return strings.Contains(r.get(t, "/metrics").body, `requests_total{code="499"} 20`)
	})
}

// TestWhoGoesAwayInterruptsTheEngine cancels a request that is being answered.
func TestWhoGoesAwayInterruptsTheEngine(t *testing.T) {
	e := newScripted()
	entered, _ := gated(e)
	r := start(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := r.send(ctx, "POST", PathSystemOne, asks(`"s"`))
		done <- err
	}()
	<-entered
	cancel()
	if err := <-done; err == nil {
		t.Error("an answer for who went away")
	}
	eventually(t, "the engine is free", func() bool { return r.worker.inFlight() == 0 })
	if !r.Ready() {
		t.Error("an interrupted engine is no failed one")
	}
}

// TestDeadlineInTheQueue lets the time of a request pass while another is being answered.
func TestDeadlineInTheQueue(t *testing.T) {
	e := newScripted()
	entered, proceed := gated(e)
	r := start(t, e)
	first := make(chan response, 1)
	go func() { first <- r.post(t, asks(`"first"`)) }()
	<-entered
	got := r.post(t, asks(`"late"`), HeaderRequestTimeout, "0.05")
	if got.status != 504 || codeIn(t, got) != CodeDeadlineExceeded {
		t.Errorf("late: %+v", got)
	}
	close(proceed)
	if got := <-first; got.status != 200 {
		t.Errorf("first: %+v", got)
	}
	if diff := cmp.Diff([]string{"first"}, e.asked()); diff != "" {
		t.Errorf("what the engine was asked (-want +got):\n%s", diff)
	}
}

// TestAnAnswerThatComesTooLateIsNone uses an engine that does not look at its context.
func TestAnAnswerThatComesTooLateIsNone(t *testing.T) {
	e := newScripted()
	proceed := make(chan struct{})
	e.does(func(_ context.Context, state []byte, asked []questions.Question) (engine.Reply, error) {
		<-proceed
		return honest(state, asked), nil
	})
	r := start(t, e)
	got := r.post(t, asks(`"slow"`), HeaderRequestTimeout, "0.05")
	close(proceed)
	if got.status != 504 || codeIn(t, got) != CodeDeadlineExceeded {
		t.Errorf("got %+v", got)
	}
	if got := r.post(t, asks(`"next"`)); got.status != 200 {
		t.Errorf("next: %+v", got)
	}
}

// TestAFullQueueSaysWhenToComeBack fills the queue from one address.
func TestAFullQueueSaysWhenToComeBack(t *testing.T) {
	e := newScripted()
	entered, proceed := gated(e)
	r := start(t, e, func(o *Options) { o.Queue = 2 })
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			if got := r.post(t, asks(fmt.Sprintf(`"s%d"`, i))); got.status != 200 {
				t.Errorf("got %+v", got)
			}
		})
		if i == 0 {
			<-entered
		}
	}
	eventually(t, "two wait", func() bool { return r.queue.length() == 2 })
	got := r.post(t, asks(`"too many"`))
	if got.status != 429 || codeIn(t, got) != CodeQueueFull || got.header.Get("Retry-After") == "" {
		t.Errorf("got %+v", got)
	}
	close(proceed)
	all.Wait()
}

func TestRetryAfterGrowsWithTheQueue(t *testing.T) {
	w := &worker{}
	if got := w.expectedWait(5); got != time.Second {
		t.Errorf("before anything is known: %v", got)
	}
	w.learn(2 * time.Second)
	if got := w.expectedWait(4); got != 10*time.Second {
		t.Errorf("for five requests of 2s: %v", got)
	}
	w.learn(6 * time.Second)
	if got := w.expectedWait(0); got != 3*time.Second {
		t.Errorf("after one of 6s: %v", got)
	}
}

// TestTheWorkerHoldsToTheContext gives jobs to a worker directly, without a handler that looks at their context too.
func TestTheWorkerHoldsToTheContext(t *testing.T) {
	tests := map[string]struct {
		cancelFirst bool
		wantAsked   int
	}{
		"a request that is over before its turn": {cancelFirst: true},
		"one that is over when its answer comes": {wantAsked: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			e := newScripted()
			e.does(func(_ context.Context, state []byte, asked []questions.Question) (engine.Reply, error) {
				cancel()
				return honest(state, asked), nil
			})
			w := newWorker(e, newQueue(1), clock.RealClock{})
			w.failed = func(err error) { t.Errorf("the engine is said to have failed: %v", err) }
			j := newJob("a", "s")
			j.ctx, j.asked = ctx, []questions.Question{{Name: "q", Type: questions.YesNo}}
			if tt.cancelFirst {
				cancel()
			}
			w.do(j)
			if !errors.Is(j.err, context.Canceled) || len(e.asked()) != tt.wantAsked {
				t.Errorf("error %v after %d calls of the engine", j.err, len(e.asked()))
			}
		})
	}
}

// TestBodiesThatDoNotComeTakeNoMoreThanTheirShare has a caller open requests whose bodies do not come. It gets half of the
// places, and another caller is answered meanwhile.
func TestBodiesThatDoNotComeTakeNoMoreThanTheirShare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, "slow "+gateToken+"\nbrisk "+otherToken+"\n")
	tokens, err := OpenTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, newScripted(), func(o *Options) { o.Queue, o.Callers = 1, tokens })
	const share = (2*1 + 16) / 2
	var open []net.Conn
	for range share {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		open = append(open, c)
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", PathSystemOne, gateToken)
	}
	eventually(t, "all are being read", func() bool { return r.open.InUse() == share })
	slow, brisk := "Bearer "+gateToken, "Bearer "+otherToken
	if got := r.post(t, asks(`"s"`), "Authorization", slow); got.status != 429 || codeIn(t, got) != CodeQueueFull {
		t.Errorf("one more of the same caller: %+v", got)
	}
	if got := r.post(t, asks(`"s"`), "Authorization", brisk); got.status != 200 {
		t.Errorf("one of another caller: %+v", got)
	}
	for _, c := range open {
		c.Close()
	}
	eventually(t, "none is being read", func() bool { return r.open.InUse() == 0 })
	if got := r.post(t, asks(`"s"`), "Authorization", slow); got.status != 200 {
		t.Errorf("afterwards: %+v", got)
	}
}
