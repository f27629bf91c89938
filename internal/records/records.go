// Package records opens where a gate's decision records go, as the flags of its binary say: a file, a stream, and copies.
package records

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/audit/natssink"
	"gatewright.dev/gatewright/internal/audit/otlpsink"
	"gatewright.dev/gatewright/internal/capture"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/keywatch"
)

// NoFile as Options.File keeps no file.
const NoFile = "none"

// Config is where records go beside or instead of the file, and what is kept of them.
type Config struct {
	// Sinks are stdout, otlp+http://HOST:PORT, otlp+https://HOST, or nats://HOST:PORT/STREAM. The last one takes the place
	// of the file; the others get copies, and stdout alone makes nothing durable.
	Sinks []string
	// Key is a file with the key that checkpoints are signed with. It is made if it is not there. Empty: nothing is signed.
	Key string
	// Checkpoints is the file that checkpoints are kept in beside the log: empty is the log's name and .checkpoints.
	Checkpoints string
	// LogCheckpoints writes checkpoints to the process's log too.
	LogCheckpoints bool
	// Adopt is the head, as SEQ:DIGEST, of a log that is taken over although nothing signed vouches for it. The log says so.
	Adopt string
	// RotateMiB and RotateAge say when a file is full; 0 is never.
	RotateMiB int64
	RotateAge time.Duration
	// KeepFiles, KeepMiB and KeepAge say how long full files are kept; 0 is for ever.
	KeepFiles int
	KeepMiB   int64
	KeepAge   time.Duration
	// Capture is the folder that calls are kept in where a policy says so. Empty: none is.
	Capture string
	// CaptureKey is a file with the public key that calls are encrypted for.
	CaptureKey string
	// CaptureKeep is how long calls are kept.
	CaptureKeep time.Duration
	// Stdout is what the sink stdout writes to; the process's standard output by default.
	Stdout io.Writer
}

// BindFlags binds the configuration to flags. A Key that is set is the default of its flag.
func (c *Config) BindFlags(f *flag.FlagSet) {
	f.Func("audit-sink", "where else records go: stdout, otlp+http://HOST:PORT, otlp+https://HOST, or nats://HOST:PORT/STREAM instead of the file; may be repeated", func(s string) error {
		c.Sinks = append(c.Sinks, s)
		return nil
	})
	f.StringVar(&c.Key, "audit-key", cmp.Or(c.Key, "gatewright-audit-key.json"), "file with the key that the log is signed with; gatewright serve makes it, readable by its owner only, if it is not there; empty to sign nothing")
	f.StringVar(&c.Checkpoints, "audit-checkpoints", "", "file to keep signed checkpoints in, better on another volume; beside the log by default")
	f.BoolVar(&c.LogCheckpoints, "audit-log-checkpoints", false, "write signed checkpoints to standard error too, for a collector to keep")
	f.StringVar(&c.Adopt, "audit-adopt", "", "SEQ:DIGEST of the last line of a log to take over as it is, although no checkpoint vouches for it; the log says so")
	f.Int64Var(&c.RotateMiB, "audit-rotate-mib", 1024, "begin a new file when the log has so many MiB; 0 for never")
	f.DurationVar(&c.RotateAge, "audit-rotate-age", 0, "begin a new file when the first record is so old, as in 24h; 0 for never")
	f.IntVar(&c.KeepFiles, "audit-keep-files", 0, "keep so many full files; 0 for all")
	f.Int64Var(&c.KeepMiB, "audit-keep-mib", 0, "keep so many MiB of full files; 0 for all")
	f.DurationVar(&c.KeepAge, "audit-keep-age", 0, "keep full files until their last record is so old, as in 8760h; 0 for ever")
	f.StringVar(&c.Capture, "capture-dir", "", "folder to keep calls in where a policy says captureState; without it digests only")
	f.StringVar(&c.CaptureKey, "capture-key", "", "file with the public key that kept calls are encrypted for, as gatewright audit keypair makes it")
	f.DurationVar(&c.CaptureKeep, "capture-keep", 30*24*time.Hour, "how long calls are kept")
}

// sinks are the flags in order.
type sinks struct {
	nats   *natssink.Options
	otlp   []string
	stdout bool
}

func (c *Config) parse() (sinks, error) {
	var out sinks
	var errs []error
	for _, s := range c.Sinks {
		switch {
		case s == "stdout":
			out.stdout = true
		case strings.HasPrefix(s, "otlp+http://"), strings.HasPrefix(s, "otlp+https://"):
			out.otlp = append(out.otlp, strings.TrimPrefix(s, "otlp+"))
		case strings.HasPrefix(s, "nats://"), strings.HasPrefix(s, "tls://"):
			o, err := natssink.Parse(s)
			if err != nil {
				errs = append(errs, fmt.Errorf("--audit-sink: %w", err))
			}
			if out.nats != nil {
				errs = append(errs, errors.New("--audit-sink: a log is in one stream, and two are given"))
			}
			out.nats = &o
		default:
			errs = append(errs, fmt.Errorf("--audit-sink %q: want stdout, otlp+http://HOST:PORT, otlp+https://HOST or nats://HOST:PORT/STREAM", redactURL(s)))
		}
	}
	if c.RotateMiB < 0 || c.RotateAge < 0 || c.KeepFiles < 0 || c.KeepMiB < 0 || c.KeepAge < 0 || c.CaptureKeep < 0 {
		errs = append(errs, errors.New("--audit-rotate, --audit-keep and --capture-keep take numbers and durations from 0"))
	}
	return out, errors.Join(errs...)
}

// redactURL leaves out what may be a password.
func redactURL(s string) string {
	if u, err := url.Parse(s); err == nil {
		return u.Redacted()
	}
	return "(not shown)"
}

// Validate says what is wrong with where records go; file is the flag --audit-log.
func (c *Config) Validate(file string) error {
	s, err := c.parse()
	if err != nil {
		return err
	}
	if file == NoFile && s.nats == nil && !s.stdout {
		return errors.New("--audit-log none: records have to go somewhere, so give --audit-sink nats:// or stdout")
	}
	if c.Adopt != "" {
		if _, err := audit.ParseHead(c.Adopt); err != nil {
			return fmt.Errorf("--audit-adopt: %w", err)
		}
	}
	if c.CaptureKey != "" && c.Capture == "" {
		return errors.New("--capture-key is for --capture-dir: give it too, or neither")
	}
	return nil
}

// Options say where records go and who is told.
type Options struct {
	Config
	// File is the log, or NoFile.
	File string
	// ExistingKey refuses to make Config.Key if it is not there: several replicas share it, and it was made for them.
	ExistingKey bool
	// Version of the binary, for sinks that state it.
	Version  string
	Log      *slog.Logger
	Registry prometheus.Registerer
}

// Records is where a gate's records go.
type Records struct {
	*audit.File
	// Path of the log, empty if it is in no file.
	Path string
	// Keys that checkpoints are signed with, nil if none are.
	Keys *audit.Keys
	// Store keeps calls, nil if none are kept.
	Store *capture.Store

	options Options
	closers []io.Closer
	log     *slog.Logger
}

// Open opens everything that records go to.
func Open(ctx context.Context, o Options) (*Records, error) {
	s, err := o.parse()
	if err != nil {
		return nil, err
	}
	r := &Records{options: o, log: o.Log}
	if err := r.open(ctx, s); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Records) open(ctx context.Context, s sinks) error {
	if err := r.openCapture(); err != nil {
		return err
	}
	a := &r.options.Config
	o := audit.Options{
		Rotation:  audit.Rotation{MaxBytes: a.RotateMiB << 20, MaxAge: a.RotateAge},
		Retention: audit.Retention{MaxFiles: a.KeepFiles, MaxBytes: a.KeepMiB << 20, MaxAge: a.KeepAge},
		Warn:      func(err error) { r.log.Warn("audit log", "error", err) },
	}
	mirrors, err := r.openMirrors(ctx, s)
	if err != nil {
		return err
	}
	if err := r.sign(ctx, s, &o); err != nil {
		return err
	}
	if len(mirrors) > 0 {
		o.Mirror = func(lines []byte) {
			for _, m := range mirrors {
				m.Offer(lines)
			}
		}
	}
	if err := r.openLog(ctx, s, o); err != nil {
		return err
	}
	r.closers = append(r.closers, r.File)
	return r.register(r.options.Registry, mirrors)
}

func (r *Records) openLog(ctx context.Context, s sinks, o audit.Options) (err error) {
	switch {
	case s.nats != nil:
		sink, head, err := natssink.Open(ctx, *s.nats)
		if err != nil {
			return fmt.Errorf("--audit-sink: %w", err)
		}
		o.MaxBatch = min(sink.MaxBatch(), 1<<20)
		r.File = audit.New(sink, head, o)
	case r.options.File == NoFile:
		r.log.Warn("records go to standard output only, which makes none durable: every call that is no read is blocked")
		r.File = audit.NewFleeting(audit.NewPipe(r.options.stdout()), o)
	default:
		r.Path = r.options.File
		if r.File, err = audit.Open(r.options.File, o); err != nil {
			return fmt.Errorf("--audit-log %s: %w", r.options.File, err)
		}
	}
	return nil
}

func (c *Config) stdout() io.Writer {
	if c.Stdout == nil {
		return os.Stdout
	}
	return c.Stdout
}

func (r *Records) openCapture() error {
	a := &r.options.Config
	if a.Capture == "" {
		return nil
	}
	store, err := capture.Open(a.Capture, capture.Options{
		Write: true, Recipient: a.CaptureKey, MaxAge: a.CaptureKeep,
		Failed: func(err error) { r.log.Warn("calls cannot be kept", "error", err) },
	})
	if err != nil {
		return fmt.Errorf("--capture-dir %s: %w", a.Capture, err)
	}
	r.Store = store
	r.closers = append(r.closers, store)
	return nil
}

// openMirrors starts what gets copies of records that are durable.
func (r *Records) openMirrors(ctx context.Context, s sinks) (map[string]*audit.Mirror, error) {
	out := map[string]*audit.Mirror{}
	for i, address := range s.otlp {
		m, err := otlpsink.New(ctx, otlpsink.Options{URL: address, Version: r.options.Version, Warn: func(err error) { r.log.Warn("audit sink otlp", "error", err) }})
		if err != nil {
			return nil, fmt.Errorf("--audit-sink: %w", err)
		}
		name := "otlp"
		if i > 0 {
			name = fmt.Sprintf("otlp%d", i+1)
		}
		out[name] = m
		r.closers = append(r.closers, m)
	}
	if s.stdout && (r.options.File != NoFile || s.nats != nil) {
		pipe := audit.NewPipe(r.options.stdout())
		m := audit.NewMirror(audit.MirrorOptions{ //nolint:contextcheck // what is sent outlives the start
			Send: func(_ context.Context, lines []byte) error { return pipe.Append(lines) },
			Warn: func(err error) { r.log.Warn("audit sink stdout", "error", err) },
		})
		out["stdout"] = m
		r.closers = append(r.closers, m)
	}
	return out, nil
}

// sign loads the key and finds out whether the log is still what the last checkpoint says.
func (r *Records) sign(ctx context.Context, s sinks, o *audit.Options) error {
	if r.options.Key == "" {
		return nil
	}
	isNew := isMissing(r.options.Key)
	keys, err := r.openKeys()
	if err != nil {
		return fmt.Errorf("--audit-key %s: %w", r.options.Key, err)
	}
	o.Signer, o.SignAtOnce, r.Keys = keys, true, keys
	var last audit.Checkpoint
	var outside *audit.Outside
	path := r.options.Checkpoints
	if path == "" && s.nats == nil && r.options.File != NoFile {
		path = r.options.File + audit.CheckpointSuffix
	}
	if path != "" {
		if outside, err = audit.OpenOutside(path, clock.RealClock{}, o.Warn); err != nil {
			return fmt.Errorf("--audit-checkpoints %s: %w", path, err)
		}
		r.closers = append(r.closers, outside)
		last = outside.Last()
	}
	if s.nats == nil && r.options.File != NoFile {
		k := known{keys: keys.Public(), isNew: isNew, last: last, path: path}
		if o.Adopted, err = r.knowAgain(ctx, k); err != nil {
			return err
		}
	}
	o.Signed = func(k audit.Checkpoint) {
		if outside != nil {
			outside.Keep(k)
		}
		if r.options.LogCheckpoints {
			r.log.Info("audit checkpoint", "checkpoint", k)
		}
	}
	return nil
}

func (r *Records) openKeys() (*audit.Keys, error) {
	if r.options.ExistingKey {
		return audit.LoadKeys(r.options.Key)
	}
	return audit.LoadOrCreateKeys(r.options.Key, clock.RealClock{})
}

// Close closes everything in the order in which it was not opened.
func (r *Records) Close() error {
	var errs []error
	for _, c := range slices.Backward(r.closers) {
		errs = append(errs, c.Close())
	}
	r.closers = nil
	return errors.Join(errs...)
}

// Capturer is the store for calls; a nil interface if there is none.
func (r *Records) Capturer() gate.Capturer {
	if r.Store == nil {
		return nil
	}
	return r.Store
}

// KeyFiles are the files of keys that may be rotated while the gate runs, named by their flags.
func (r *Records) KeyFiles() []*keywatch.File {
	var out []*keywatch.File
	if k := r.Keys; k != nil {
		out = append(out, &keywatch.File{Name: "audit-key", Paths: []string{k.Path()}, Reload: k.Reload, IDs: func() []string { return []string{k.KID()} }})
	}
	if s := r.Store; s != nil && s.Recipient() != "" {
		out = append(out, &keywatch.File{Name: "capture-key", Paths: []string{r.options.CaptureKey}, Reload: s.Reload, IDs: func() []string { return []string{s.Recipient()} }})
	}
	return out
}
