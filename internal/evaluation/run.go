package evaluation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Gate answers cases.
type Gate interface {
	// Review answers one case. It does not fail: what goes wrong is a result.
	Review(ctx context.Context, c *Case) Result
}

// NamedGate is a gate with what it stands for.
type NamedGate struct {
	Configuration Configuration
	Gate          Gate
}

// RunOptions say what to run.
type RunOptions struct {
	Cases []*Case
	Gates []NamedGate
	// Repeats of each case, 1 by default.
	Repeats int
	// Concurrency is how many calls are in flight, 1 by default, which is how latency is measured best.
	Concurrency int
	// Done are results of an interrupted run. They are not asked for again.
	Done []Result
	// Keep, if set, is given each result as it arrives. Calls do not overlap. An error ends the run.
	Keep func(Result) error
	// Progress, if set, is told how far the run has come, Done included. Calls do not overlap.
	Progress func(done, total int)
}

type job struct {
	gate   NamedGate
	one    *Case
	repeat int
	first  bool
}

// Run asks every gate about every case and returns the results in a fixed order: by repeat, gate and case as given. An
// interrupted run returns the context's error; what was kept stays.
func Run(ctx context.Context, o RunOptions) ([]Result, error) {
	o.Repeats, o.Concurrency = max(o.Repeats, 1), max(o.Concurrency, 1)
	r := &runner{options: o, results: make(map[resultKey]Result, len(o.Done))}
	for _, done := range o.Done {
		r.results[keyOf(&done)] = done
	}
	jobs := o.jobs()
	r.total = len(jobs)
	var left []job
	for _, j := range jobs {
		if _, ok := r.results[j.key()]; !ok {
			left = append(left, j)
		}
	}
	r.report()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.stop = cancel
	r.work(ctx, left)
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("after %d of %d calls: %w", len(r.results), r.total, err)
	}
	out := make([]Result, len(jobs))
	for i, j := range jobs {
		out[i] = r.results[j.key()]
	}
	return out, nil
}

func (o *RunOptions) jobs() []job {
	var out []job
	for repeat := 1; repeat <= o.Repeats; repeat++ {
		for _, g := range o.Gates {
			for i, c := range o.Cases {
				out = append(out, job{g, c, repeat, repeat == 1 && i == 0})
			}
		}
	}
	return out
}

type resultKey struct {
	configuration Configuration
	id            string
	repeat        int
}

func keyOf(r *Result) resultKey { return resultKey{r.Configuration, r.Case, r.Repeat} }

func (j *job) key() resultKey { return resultKey{j.gate.Configuration, j.one.ID, j.repeat} }

type runner struct {
	options RunOptions
	total   int
	stop    context.CancelCauseFunc

	mu      sync.Mutex
	results map[resultKey]Result
}

func (r *runner) work(ctx context.Context, jobs []job) {
	queue := make(chan job)
	var wait sync.WaitGroup
	for range r.options.Concurrency {
		wait.Go(func() {
			for j := range queue {
				r.one(ctx, &j)
			}
		})
	}
	for _, j := range jobs {
		select {
		case queue <- j:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(queue)
	wait.Wait()
}

// one asks once. A call that was cut off by the end of the run has no result: it says nothing about the gate.
func (r *runner) one(ctx context.Context, j *job) {
	result := j.gate.Gate.Review(ctx, j.one)
	if ctx.Err() != nil {
		return
	}
	result.Configuration, result.Repeat, result.First = j.gate.Configuration, j.repeat, j.first
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results[j.key()] = result
	if r.options.Keep != nil {
		if err := r.options.Keep(result); err != nil {
			r.stop(fmt.Errorf("keeping a result: %w", err))
			return
		}
	}
	r.report()
}

func (r *runner) report() {
	if r.options.Progress != nil {
		r.options.Progress(len(r.results), r.total)
	}
}

// errOtherRun says that kept results belong to another run.
var errOtherRun = errors.New("the file holds results of another run")

// checkDone refuses kept results that this run would not have made.
func checkDone(results []Result, cases []*Case, configurations []Configuration, repeats int) error {
	ids := make(map[string]bool, len(cases))
	for _, c := range cases {
		ids[c.ID] = true
	}
	for i := range results {
		r := &results[i]
		if !ids[r.Case] || !slices.Contains(configurations, r.Configuration) || r.Repeat < 1 || r.Repeat > repeats {
			return fmt.Errorf("%w: case %q, %s, repeat %d", errOtherRun, r.Case, r.Configuration, r.Repeat)
		}
	}
	return nil
}
