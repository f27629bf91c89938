// Package child runs a decider server as a child process and asks it. A fault in native code ends the process that it
// happens in: here that is the child, and its end is a decider that is away, never a gate that is gone.
package child

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/inference"
)

// ExitMismatch is the exit code by which a program says that what it loaded is not what it was told to serve: another way of
// reading answers, or another fingerprint than its temperatures were fitted for. While a start ends so, Decide gives
// ModelMismatch and not Unreachable, and the program is started again all the same.
const ExitMismatch = 26

// Options says what to run and how to ask it. Zero values are the defaults in brackets.
type Options struct {
	// Command gives the program with its arguments. It must listen on the Unix socket of that path, answer GET /readyz
	// there with 200 once it may be asked, and end when its standard input is closed. The socket lies in a folder that
	// nobody else can look into, so that no other program can be asked, or answer, in the decider's place.
	Command func(socket string) []string
	// Env is the environment of the program; nil gives it none of this process's, which may hold secrets.
	Env []string
	// Client makes the client of the program. Whatever host it names, the transport leads to the program.
	Client func(transport http.RoundTripper) (inference.Decider, error)
	// MinBackoff and MaxBackoff bound the wait before the program is started again [250 ms, 30 s]. The wait doubles with
	// each start that did not become ready, and begins anew after one that did. A program that served for at least as long
	// as its start took is started again at once, so that at most half of the time goes into starts, unless another has ended
	// within the minute before.
	MinBackoff, MaxBackoff time.Duration
	// ReadyWithin is how long a start may take [2 min]: a large file is hashed and loaded.
	ReadyWithin time.Duration
	// Grace is how long the program may take to end when it is told to [5 s].
	Grace time.Duration
	// Log takes starts, ends and what the program said last. Required.
	Log *slog.Logger
	// Clock measures the waits [the real one].
	Clock clock.Clock
}

func (o *Options) setDefaults() error {
	if o.Command == nil || o.Client == nil || o.Log == nil {
		return errors.New("command, client and log are required")
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.MinBackoff, 250 * time.Millisecond}, {&o.MaxBackoff, 30 * time.Second},
		{&o.ReadyWithin, 2 * time.Minute}, {&o.Grace, 5 * time.Second},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Env == nil {
		o.Env = []string{}
	}
	return nil
}

// Child is a decider that runs in a process of its own, which is started again when it ends.
type Child struct {
	options Options
	stop    context.CancelFunc
	done    chan struct{}
	current atomic.Pointer[running]
	starts  atomic.Int64
	lives   atomic.Int64
	mu      sync.Mutex
	why     string // it is not ready, in one line
	reason  inference.Reason
	folder  string // of the socket
}

// running is one process that is ready to be asked.
type running struct {
	decider inference.Decider
	pid     int
}

// Start starts the program and returns at once. Until the program is ready, Decide says that it is away.
func Start(o Options) (*Child, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "gatewright-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the socket: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &Child{options: o, stop: stop, done: make(chan struct{}), why: "it is starting", reason: inference.Unreachable, folder: folder}
	go c.supervise(ctx)
	return c, nil
}

// Decide asks the program, or says at once that it is away.
func (c *Child) Decide(ctx context.Context, r inference.Request) (inference.Result, error) {
	now := c.current.Load()
	if now == nil {
		reason, why := c.away()
		return inference.Result{}, &inference.Error{Reason: reason, Detail: "the decider process is not ready: " + why}
	}
	return now.decider.Decide(ctx, r)
}

// Ready says whether the program may be asked, and why not.
func (c *Child) Ready() (bool, string) {
	if c.current.Load() != nil {
		return true, ""
	}
	_, why := c.away()
	return false, why
}

// PID is the process that is asked, 0 while there is none.
func (c *Child) PID() int {
	if now := c.current.Load(); now != nil {
		return now.pid
	}
	return 0
}

// Starts counts how often the program was started.
func (c *Child) Starts() int64 { return c.starts.Load() }

// Lives counts how often the program became ready. Whoever sees it grow can ask the program.
func (c *Child) Lives() int64 { return c.lives.Load() }

// Close ends the program and waits until it is gone.
func (c *Child) Close() {
	c.stop()
	<-c.done
}

// away says why the program cannot be asked.
func (c *Child) away() (inference.Reason, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason, c.why
}

func (c *Child) setAway(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why, c.reason = err.Error(), inference.Unreachable
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == ExitMismatch {
		c.reason = inference.ModelMismatch
	}
}

// hurry is within what time of one end of the program the next is waited after, whatever came between.
const hurry = time.Minute

func (c *Child) supervise(ctx context.Context) {
	defer close(c.done)
	defer os.RemoveAll(c.folder) //nolint:errcheck // an empty folder that stays harms nobody
	wait := c.options.MinBackoff
	var ended time.Time // the one before, zero if there was none
	for {
		r, err := c.runOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if r.wasReady {
			wait = c.options.MinBackoff
		}
		c.setAway(err)
		now := c.options.Clock.Now()
		isSecond := !ended.IsZero() && now.Sub(ended) < hurry
		ended = now
		if r.wasReady && r.served >= r.starting && !isSecond {
			c.options.Log.Error("decider process ended and is started again at once", "error", err)
			continue
		}
		c.options.Log.Error("decider process ended and is started again", "error", err, "in", wait)
		select {
		case <-ctx.Done():
			return
		case <-c.options.Clock.After(wait):
		}
		wait = min(2*wait, c.options.MaxBackoff)
	}
}

// life is how one run of the program went.
type life struct {
	wasReady         bool
	starting, served time.Duration
}

// runOnce runs the program until it ends. The error says why it did.
func (c *Child) runOnce(ctx context.Context) (r life, err error) {
	began := c.options.Clock.Now()
	p, err := start(ctx, &c.options, filepath.Join(c.folder, "decider.sock"))
	if err != nil {
		return r, err
	}
	c.starts.Add(1)
	defer c.current.Store(nil)
	defer p.transport.CloseIdleConnections()
	decider, err := p.awaitReady(ctx)
	if err != nil {
		_ = p.end()
		return r, err
	}
	ready := c.options.Clock.Now()
	c.current.Store(&running{decider: decider, pid: p.command.Process.Pid})
	c.lives.Add(1)
	c.options.Log.Info("decider process is ready", "pid", p.command.Process.Pid, "starting", ready.Sub(began))
	err = p.wait(ctx)
	return life{wasReady: true, starting: ready.Sub(began), served: c.options.Clock.Since(ready)}, err
}

// isExit says whether err is how a program ended, and not that it could not be run.
func isExit(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit)
}
