package server

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/inference/engine"
)

// worker asks the engine, one request after another.
type worker struct {
	engine engine.Engine
	queue  *queue
	clock  clock.PassiveClock
	failed func(error) // told of an engine that should be replaced

	running atomic.Pointer[job]
	perAsk  atomic.Int64 // nanoseconds, moving average
}

func newWorker(e engine.Engine, q *queue, c clock.PassiveClock) *worker {
	return &worker{engine: e, queue: q, clock: c}
}

// run works until the context ends. It keeps to one thread of the system: native engines hold things by thread.
func (w *worker) run(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		j := w.queue.next(ctx)
		if j == nil {
			return
		}
		w.do(j)
	}
}

// do answers one job. Whoever gave up meanwhile costs nothing.
func (w *worker) do(j *job) {
	j.started = w.clock.Now()
	if err := j.ctx.Err(); err != nil {
		j.ended = j.started
		j.finish(engine.Reply{}, err)
		return
	}
	w.running.Store(j)
	reply, err := w.ask(j)
	w.running.Store(nil)
	j.ended = w.clock.Now()
	w.learn(j.ended.Sub(j.started))
	if err == nil {
		err = j.ctx.Err() // an answer that comes too late is none
	}
	j.finish(reply, err)
	if isFailure(j.ctx, err) {
		w.failed(err)
	}
}

// ask turns everything that is no whole reply into an error.
func (w *worker) ask(j *job) (reply engine.Reply, err error) {
	defer func() {
		if v := recover(); v != nil {
			reply, err = engine.Reply{}, errPanicked(v)
		}
	}()
	reply, err = w.engine.Ask(j.ctx, j.state, j.asked)
	if err == nil {
		if fault := checkReply(j.asked, reply); fault != nil {
			err = &engine.Error{Reason: engine.Failed, Detail: fault.Error()}
		}
	}
	if err != nil {
		return engine.Reply{}, err
	}
	return reply, nil
}

// isFailure says whether the engine should be replaced: it says so itself, or it returned an error that it must not.
func isFailure(ctx context.Context, err error) bool {
	if err == nil {
		return false
	}
	if e, ok := errors.AsType[*engine.Error](err); ok {
		switch e.Reason {
		case engine.TooLong, engine.LowCoverage, engine.NotSupported, engine.Unreadable:
			return false
		default:
			return true
		}
	}
	return ctx.Err() == nil
}

// learn keeps how long a request takes: three quarters of what was known, one quarter of what was just seen.
func (w *worker) learn(took time.Duration) {
	if known := w.perAsk.Load(); known > 0 {
		took = time.Duration(known)*3/4 + took/4
	}
	w.perAsk.Store(int64(took))
}

// overdue is for how long the engine has gone on after the deadline of its request.
func (w *worker) overdue() time.Duration {
	j := w.running.Load()
	if j == nil {
		return 0
	}
	deadline, ok := j.ctx.Deadline()
	if !ok {
		return 0
	}
	return max(w.clock.Now().Sub(deadline), 0)
}

// inFlight is 1 while the engine works.
func (w *worker) inFlight() int {
	if w.running.Load() != nil {
		return 1
	}
	return 0
}

// expectedWait is how long n waiting requests will take, at least a second.
func (w *worker) expectedWait(n int) time.Duration {
	return max(time.Duration(w.perAsk.Load())*time.Duration(n+1), time.Second)
}
