package evaluation

import (
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"
)

// progressEvery is how often progress is told.
const progressEvery = 2 * time.Second

// Progress tells on a stream how far a run has come, and when it will be done if it goes on like this.
type Progress struct {
	out   io.Writer
	clock clock.PassiveClock

	began, last time.Time
	// resumed is how much was done before this run.
	resumed int
	started bool
}

// NewProgress returns a progress that writes to a stream, one line at most every other second.
func NewProgress(out io.Writer, c clock.PassiveClock) *Progress { return &Progress{out: out, clock: c} }

// Update is for RunOptions.Progress.
func (p *Progress) Update(done, total int) {
	now := p.clock.Now()
	if !p.started {
		p.started, p.began, p.last, p.resumed = true, now, now, done
		if done > 0 {
			_, _ = fmt.Fprintf(p.out, "going on: %d of %d calls are there\n", done, total)
		}
		return
	}
	took := now.Sub(p.began)
	switch {
	case done == total && took >= progressEvery:
		_, _ = fmt.Fprintf(p.out, "%d of %d calls, in %s\n", done, total, took.Round(time.Second))
		return
	case done == total || now.Sub(p.last) < progressEvery:
		return
	}
	p.last = now
	left := time.Duration(float64(took) / float64(done-p.resumed) * float64(total-done))
	_, _ = fmt.Fprintf(p.out, "%d of %d calls, about %s left\n", done, total, left.Round(time.Second))
}
