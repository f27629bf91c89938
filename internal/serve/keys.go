package serve

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/keyring"
	"gatewright.dev/gatewright/internal/permit"
)

// keyFile is a file of keys that may be rotated while the gate runs.
type keyFile struct {
	// flag names the file, without dashes.
	flag, path string
	reload     func() error
	// ids name the keys that are held, that which signs or is encrypted for among them.
	ids  func() []string
	seen string // stamp of the file when it was read
}

// ringFile is the file of a ring.
func ringFile(flag string, r *keyring.Ring) *keyFile {
	return &keyFile{flag: flag, path: r.Path(), reload: r.Reload, ids: r.KeyIDs}
}

// keyFiles are all files of keys that this gate has.
func keyFiles(seals *approval.Seals, permits *permit.Keys, r *records, tokens *tokenVerifier) []*keyFile {
	out := []*keyFile{ringFile("seal-key", seals.Keys()), ringFile("permit-key", permits.Ring())}
	if k := r.keys; k != nil {
		out = append(out, &keyFile{flag: "audit-key", path: k.Path(), reload: k.Reload, ids: func() []string { return []string{k.KID()} }})
	}
	if s := r.capture; s != nil && s.Recipient() != "" {
		out = append(out, &keyFile{flag: "capture-key", path: r.captureKey, reload: s.Reload, ids: func() []string { return []string{s.Recipient()} }})
	}
	if tokens != nil {
		out = append(out, &keyFile{flag: "approver-jwks", path: tokens.config.KeyFile, reload: tokens.reload, ids: tokens.ids})
	}
	return out
}

// keyWatch reads files of keys again when they change, so that all gates that have them know a new key before it signs.
type keyWatch struct {
	files    []*keyFile
	log      *slog.Logger
	failures *prometheus.CounterVec
}

func newKeyWatch(files []*keyFile, log *slog.Logger) *keyWatch {
	w := &keyWatch{files: files, log: log, failures: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatewright_key_reload_failures_total", Help: "Times that a changed file of keys could not be read, so that the keys before it stay in force.",
	}, []string{"key"})}
	for _, f := range files {
		w.failures.WithLabelValues(f.flag)
	}
	return w
}

// start looks at the files in turn. The function that it returns ends that, and waits for it.
func (w *keyWatch) start(ctx context.Context, c clock.WithTicker) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		ticker := c.NewTicker(lookEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C():
				w.look(ctx)
			}
		}
	})
	return func() { cancel(); wait.Wait() }
}

// look reads what has another stamp than when it was last read. The first time that is every file: one may have changed
// between its opening and now.
func (w *keyWatch) look(ctx context.Context) {
	for _, f := range w.files {
		stamp := stampOf(f.path)
		if stamp == f.seen {
			continue
		}
		f.seen = stamp // before reading: a change while it is read is seen the next time
		before := f.ids()
		if err := f.reload(); err != nil {
			w.failures.WithLabelValues(f.flag).Inc()
			w.log.ErrorContext(ctx, "keys could not be read again, those in force stay", "key", f.flag, "error", err)
			continue
		}
		if now := f.ids(); !slices.Equal(before, now) {
			w.log.InfoContext(ctx, "keys were read again", "key", f.flag, "kids", now)
		}
	}
}

// stampOf changes when a file does, and when it becomes readable or no longer is.
func stampOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "none"
	}
	return fmt.Sprintln(info.Size(), info.ModTime().UnixNano(), info.Mode())
}
