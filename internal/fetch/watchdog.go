package fetch

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// watchdog gives up when nothing has come for a while. A bound on the whole would be wrong for a large file.
type watchdog struct {
	seen chan struct{}
	done chan struct{}
	once sync.Once
}

func newWatchdog(clk clock.WithTicker, idle time.Duration, giveUp context.CancelCauseFunc) *watchdog {
	w := &watchdog{seen: make(chan struct{}, 1), done: make(chan struct{})}
	timer := clk.NewTimer(idle)
	go func() {
		defer timer.Stop()
		for {
			select {
			case <-w.done:
				return
			case <-w.seen:
				if !timer.Stop() {
					select {
					case <-timer.C():
					default:
					}
				}
				timer.Reset(idle)
			case <-timer.C():
				giveUp(fmt.Errorf("the server sent nothing for %s", idle))
				return
			}
		}
	}()
	return w
}

func (w *watchdog) stop() { w.once.Do(func() { close(w.done) }) }

// watched tells the watchdog of everything that comes.
type watched struct {
	io.Reader
	alive *watchdog
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		select {
		case w.alive.seen <- struct{}{}:
		default:
		}
	}
	return n, err
}
