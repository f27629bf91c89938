// Package keywatch reads files of keys and certificates again when they change, so that a key is rotated without a restart,
// and all processes that have it know a new key before it signs.
package keywatch

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/keyring"
	"gatewright.dev/gatewright/internal/periodic"
)

// lookEvery is how often the files are looked at. A mounted Secret changes by links, which no watch on a file sees.
const lookEvery = 2 * time.Second

// File is what may change while a process runs. Several paths are one thing, such as a certificate and its key.
type File struct {
	// Name in logs and metrics: that of the flag, without dashes.
	Name  string
	Paths []string
	// Reload reads it again. After an error what was read before stays in force.
	Reload func() error
	// IDs name the keys that are held, that which signs or is encrypted for among them.
	IDs  func() []string
	seen string // stamp when it was last read
}

// Ring is the file of a ring.
func Ring(name string, r *keyring.Ring) *File {
	return &File{Name: name, Paths: []string{r.Path()}, Reload: r.Reload, IDs: r.KeyIDs}
}

// Watch looks at files in turn.
type Watch struct {
	files    []*File
	log      *slog.Logger
	failures *prometheus.CounterVec
}

// New returns a watch that has not begun.
func New(files []*File, log *slog.Logger) *Watch {
	w := &Watch{files: files, log: log, failures: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatewright_key_reload_failures_total", Help: "Times that a changed file of keys could not be read, so that the keys before it stay in force.",
	}, []string{"key"})}
	for _, f := range files {
		w.failures.WithLabelValues(f.Name)
	}
	return w
}

// Register publishes what could not be read.
func (w *Watch) Register(r prometheus.Registerer) error { return r.Register(w.failures) }

// Start looks at the files in turn. The function that it returns ends that, and waits for it.
func (w *Watch) Start(ctx context.Context, c clock.WithTicker) (stop func()) {
	return periodic.Start(ctx, c, lookEvery, w.look)
}

// look reads what has another stamp than when it was last read. The first time that is every file: one may have changed
// between its opening and now.
func (w *Watch) look(ctx context.Context) {
	for _, f := range w.files {
		stamp := stampOf(f.Paths)
		if stamp == f.seen {
			continue
		}
		f.seen = stamp // before reading: a change while it is read is seen the next time
		before := f.IDs()
		if err := f.Reload(); err != nil {
			w.failures.WithLabelValues(f.Name).Inc()
			w.log.ErrorContext(ctx, "keys could not be read again, those in force stay", "key", f.Name, "error", err)
			continue
		}
		if now := f.IDs(); !slices.Equal(before, now) {
			w.log.InfoContext(ctx, "keys were read again", "key", f.Name, "kids", now)
		}
	}
}

// stampOf changes when one of the files does, and when it becomes readable or no longer is.
func stampOf(paths []string) string {
	var b strings.Builder
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			b.WriteString("none\n")
			continue
		}
		_, _ = fmt.Fprintln(&b, info.Size(), info.ModTime().UnixNano(), info.Mode())
	}
	return b.String()
}
