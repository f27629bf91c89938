package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/questions"
)

// job is one request on its way through the queue and the engine. Its answer goes to nobody but who waits on done.
type job struct {
	ctx    context.Context // of the request: what waits is given up when it ends
	caller string
	state  []byte
	asked  []questions.Question

	queued, started, ended time.Time

	done  chan struct{} // closed once reply and err are set
	reply engine.Reply
	err   error
}

func (j *job) finish(reply engine.Reply, err error) {
	j.reply, j.err = reply, err
	close(j.done)
}

// queue holds what waits for the engine. Callers are served in turn, each first come first served, so that a caller with
// many waiting requests delays its own and not those of others.
type queue struct {
	limit int
	wake  chan struct{} // has one element when the worker should look

	mu      sync.Mutex
	waiting int
	lines   map[string][]*job
	turn    []string // callers with waiting jobs, next first
}

func newQueue(limit int) *queue {
	return &queue{limit: limit, wake: make(chan struct{}, 1), lines: map[string][]*job{}}
}

// push gives a job a place, or none. When the queue is full, the newest job of the caller with the most makes room for
// one of a caller that is no worse off by it.
func (q *queue) push(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting >= q.limit && !q.makeRoom(j.caller) {
		return false
	}
	if len(q.lines[j.caller]) == 0 {
		q.turn = append(q.turn, j.caller)
	}
	q.lines[j.caller] = append(q.lines[j.caller], j)
	q.waiting++
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

func (q *queue) makeRoom(newcomer string) bool {
	longest := ""
	for i, caller := range q.turn {
		if i == 0 || len(q.lines[caller]) > len(q.lines[longest]) {
			longest = caller
		}
	}
	line := q.lines[longest]
	if len(line) < len(q.lines[newcomer])+2 {
		return false
	}
	last := line[len(line)-1]
	line[len(line)-1] = nil
	q.lines[longest] = line[:len(line)-1]
	q.waiting--
	last.finish(engine.Reply{}, errPushedOut)
	return true
}

// pop takes the next job, or nil if none waits.
func (q *queue) pop() *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.turn) == 0 {
		return nil
	}
	caller := q.turn[0]
	q.turn = q.turn[1:]
	j := q.lines[caller][0]
	q.keep(caller, q.lines[caller][1:])
	if len(q.lines[caller]) > 0 {
		q.turn = append(q.turn, caller)
	}
	q.waiting--
	return j
}

// remove gives up a place, if the job still has one.
func (q *queue) remove(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.lines[j.caller] {
		if other != j {
			continue
		}
		line := append(q.lines[j.caller][:i:i], q.lines[j.caller][i+1:]...)
		q.keep(j.caller, line)
		if len(line) == 0 {
			q.leave(j.caller)
		}
		q.waiting--
		return
	}
}

func (q *queue) keep(caller string, line []*job) {
	if len(line) == 0 {
		delete(q.lines, caller)
		return
	}
	q.lines[caller] = line
}

func (q *queue) leave(caller string) {
	for i, other := range q.turn {
		if other == caller {
			q.turn = append(q.turn[:i:i], q.turn[i+1:]...)
			return
		}
	}
}

// length is how many jobs wait.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// next waits for a job until the context ends.
func (q *queue) next(ctx context.Context) *job {
	for {
		if j := q.pop(); j != nil {
			return j
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// errPanicked is an engine that did not return.
func errPanicked(v any) error {
	return &engine.Error{Reason: engine.Failed, Detail: fmt.Sprintf("panic of type %T", v)}
}
