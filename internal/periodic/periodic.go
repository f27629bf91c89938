// Package periodic does something in turn, by a clock that tests can set.
package periodic

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Start calls do each time that the interval has passed, never twice at once, until the context ends. The function that it
// returns ends that, and waits for it.
func Start(ctx context.Context, c clock.WithTicker, interval time.Duration, do func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		ticker := c.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C():
				do(ctx)
			}
		}
	})
	return func() { cancel(); wait.Wait() }
}
