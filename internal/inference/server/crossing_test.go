package server

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"gatewright.dev/gatewright/internal/questions"
)

// TestAnswersNeverCross has 64 clients ask 10,000 questions about states of their own, with some going away and some
// finding the queue full. Every answer must be the one for its state, and nothing may be left behind.
func TestAnswersNeverCross(t *testing.T) {
	const clients, perClient = 64, 157 // 10,048
	e := newScripted()
	r := start(t, e, func(o *Options) { o.Queue = 48 })
	asked := questions.Question{Name: "q", Type: questions.Choice, Options: []questions.Option{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	var answered, refused, left atomic.Int64
	before := heap()
	goroutines := runtime.NumGoroutine()
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for i := range perClient {
				nonce := fmt.Sprintf("client %d request %d", c, i)
				body := asksChoice(nonce)
				ctx, cancel := context.WithCancel(t.Context())
				if i%50 == 49 { // now and then somebody goes away, at any point
					time.AfterFunc(time.Duration(c)*50*time.Microsecond, cancel)
				}
				got, err := r.send(ctx, "POST", PathSystemOne, body)
				cancel()
				switch {
				case err != nil && ctx.Err() != nil:
					left.Add(1)
				case err != nil:
					t.Error(err)
				case got.status == 429:
					refused.Add(1)
				case got.status == 200:
					answered.Add(1)
					if problem := crossed(got.body, nonce, asked); problem != "" {
						t.Error(problem)
					}
				default:
					t.Errorf("%s: %d %s", nonce, got.status, got.body)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d answered, %d refused, %d left", answered.Load(), refused.Load(), left.Load())
	if answered.Load()+refused.Load()+left.Load() != clients*perClient || answered.Load() < clients*perClient/2 {
		t.Errorf("%d answered, %d refused, %d left", answered.Load(), refused.Load(), left.Load())
	}
	r.client.CloseIdleConnections()
	eventually(t, "the queue is empty", func() bool { return r.queue.length() == 0 && r.worker.inFlight() == 0 && r.open.InUse() == 0 })
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines+4 })
	e.mu.Lock()
	e.states = nil
	e.mu.Unlock()
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

func asksChoice(state string) string {
	return `{"state":"` + state + `","questions":{"q":{"type":"choice","instructions":"Which?","criteria":{"a":null,"b":null,"c":null}}}}`
}

// crossed says how an answer differs from the one that belongs to a state.
func crossed(body, state string, q questions.Question) string {
	var got struct {
		Answers map[string]struct {
			Choice        string             `json:"choice"`
			Probabilities map[string]float64 `json:"probabilities"`
		} `json:"answers"`
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		return err.Error()
	}
	want := q.FromDistribution(distribution([]byte(state), q).Probabilities, 1)
	if got.Answers["q"].Choice != want.Choice {
		return state + ": another choice"
	}
	for label, p := range want.Probabilities {
		if math.Float64bits(p) != math.Float64bits(got.Answers["q"].Probabilities[label]) {
			return state + ": another probability"
		}
	}
	return ""
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
