package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// watchedLog passes a gate's log on and keeps its errors: what a gate only logs and goes on without, such as a decider that
// it cannot use, makes a measurement worthless.
type watchedLog struct {
	slog.Handler

	mu     sync.Mutex
	errors []error
}

// Enabled implements slog.Handler: errors are always of interest.
func (w *watchedLog) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelError || w.Handler.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (w *watchedLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		parts := []string{r.Message}
		r.Attrs(func(a slog.Attr) bool {
			parts = append(parts, fmt.Sprintf("%s=%s", a.Key, a.Value))
			return true
		})
		w.mu.Lock()
		w.errors = append(w.errors, errors.New(strings.Join(parts, " ")))
		w.mu.Unlock()
	}
	if !w.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return w.Handler.Handle(ctx, r)
}

// WithAttrs and WithGroup implement slog.Handler. A gate logs to the logger that it was given; what a part of it adds to
// that goes on to the handler below.
func (w *watchedLog) WithAttrs(attrs []slog.Attr) slog.Handler { return w.Handler.WithAttrs(attrs) }

// WithGroup implements slog.Handler.
func (w *watchedLog) WithGroup(name string) slog.Handler { return w.Handler.WithGroup(name) }

func (w *watchedLog) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.errors...)
}
