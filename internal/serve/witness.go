package serve

import (
	"context"
	"sync"

	"gatewright.dev/gatewright/internal/deciders"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/inference/judge"
)

// mostPushes is how many facts an explanation names for each answer.
const mostPushes = 5

// witness is the embedded judge while one call is explained: it keeps what drove the answers.
type witness struct {
	inference.Decider
	judge *inference.Embedded

	mu      sync.Mutex
	drivers []judge.Drivers
}

// Decide implements inference.Decider.
func (w *witness) Decide(ctx context.Context, r inference.Request) (inference.Result, error) {
	result, err := w.Decider.Decide(ctx, r)
	if err != nil {
		return result, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// The answers stand without their reasons, should these be missing.
	if drivers, explainErr := w.judge.Explain(&r, mostPushes); explainErr == nil {
		w.drivers = append(w.drivers, drivers...)
	}
	return result, nil
}

// watch puts a witness before each embedded judge of a source. The source must not have answered any call yet.
func watch(s *source) (func() []judge.Drivers, error) {
	var all []*witness
	for _, kept := range s.deciders {
		if kept.served.ModelHash != deciders.EmbeddedHash() {
			continue
		}
		e, err := inference.LoadEmbedded()
		if err != nil {
			return nil, err
		}
		w := &witness{Decider: kept.served.Decider, judge: e}
		kept.served.Decider = w
		all = append(all, w)
	}
	return func() []judge.Drivers {
		var out []judge.Drivers
		for _, w := range all {
			w.mu.Lock()
			out = append(out, w.drivers...)
			w.mu.Unlock()
		}
		return out
	}, nil
}
