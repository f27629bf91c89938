package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// MirrorOptions of NewMirror.
type MirrorOptions struct {
	// Send gives lines on: whole, durable, in order, each with its line feed. It must not hold on to them.
	Send func(ctx context.Context, lines []byte) error
	// QueueBytes is how many bytes may wait, 16 MiB by default.
	QueueBytes int
	// Timeout of one Send, 10 s by default, and of Close.
	Timeout time.Duration
	// Warn is told, once until it works again, that lines are lost.
	Warn func(error)
}

// Mirror gives the lines of a log on to somewhere that may be slow or away, without holding up the log. What finds no
// place, or could not be sent, is dropped and counted: the log itself has it.
type Mirror struct {
	options MirrorOptions
	work    chan []byte
	ended   chan struct{}
	waiting atomic.Int64
	dropped atomic.Uint64
	sent    atomic.Uint64

	mu     sync.Mutex
	closed bool
}

// NewMirror starts a mirror.
func NewMirror(o MirrorOptions) *Mirror {
	if o.QueueBytes <= 0 {
		o.QueueBytes = 16 << 20
	}
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Warn == nil {
		o.Warn = func(error) {}
	}
	m := &Mirror{options: o, work: make(chan []byte, 1024), ended: make(chan struct{})}
	go m.run()
	return m
}

// Offer takes lines without waiting.
func (m *Mirror) Offer(lines []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := uint64(bytes.Count(lines, []byte{'\n'}))
	if m.closed || m.waiting.Load()+int64(len(lines)) > int64(m.options.QueueBytes) {
		m.dropped.Add(n)
		return
	}
	select {
	case m.work <- bytes.Clone(lines):
		m.waiting.Add(int64(len(lines)))
	default:
		m.dropped.Add(n)
	}
}

func (m *Mirror) run() {
	defer close(m.ended)
	isFailing := false
	for lines := range m.work {
		err := m.send(lines)
		m.waiting.Add(-int64(len(lines)))
		n := uint64(bytes.Count(lines, []byte{'\n'}))
		if err == nil {
			isFailing = false
			m.sent.Add(n)
			continue
		}
		m.dropped.Add(n)
		if !isFailing {
			isFailing = true
			m.options.Warn(fmt.Errorf("records are not given on, and are dropped until that works again: %w", err))
		}
	}
}

func (m *Mirror) send(lines []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), m.options.Timeout)
	defer cancel()
	return m.options.Send(ctx, lines)
}

// Sent is how many lines were given on.
func (m *Mirror) Sent() uint64 { return m.sent.Load() }

// Dropped is how many lines were not.
func (m *Mirror) Dropped() uint64 { return m.dropped.Load() }

// Close gives on what waits, and gives up after the time-out.
func (m *Mirror) Close() error {
	m.mu.Lock()
	if !m.closed {
		m.closed = true
		close(m.work)
	}
	m.mu.Unlock()
	timer := time.NewTimer(m.options.Timeout)
	defer timer.Stop()
	select {
	case <-m.ended:
		return nil
	case <-timer.C:
		return errors.New("records were waiting to be given on, and nobody took them")
	}
}
