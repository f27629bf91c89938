// Package labeling takes what people say of decisions: what each should have been. A label is a record of its own in the
// audit log and changes no decision.
package labeling

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/capture"
)

const (
	// MaxMessage bounds in bytes what a person writes beside a label.
	MaxMessage = 16 << 10
	// timeout is how long a decision is looked for, and the disk waited for.
	timeout = 20 * time.Second
	// maxCounted is how many labels are remembered as counted.
	maxCounted = 16384
)

// Label is a person's word about a decision.
type Label struct {
	// Decision is its id.
	Decision string
	// Outcome that was right: Allow or Block.
	Outcome review.Outcome
	// By is who says so, as records name people.
	By string
	// Message says why; empty: nothing. The log has its digest; it is kept where the call is, or not at all.
	Message string
}

// Validate says what is wrong with a label, to whoever gave it.
func (l *Label) Validate() error {
	if _, err := uuid.Parse(l.Decision); err != nil || len(l.Decision) != 36 {
		return errors.New("decision is the id of a decision, as in its answer and its record")
	}
	if l.Outcome != review.Allow && l.Outcome != review.Block {
		return errors.New("outcome is Allow or Block")
	}
	if len(l.Message) > MaxMessage {
		return fmt.Errorf("the message is longer than %d KiB", MaxMessage>>10)
	}
	return nil
}

var (
	// ErrNotFound says that the log has no decision of this id.
	ErrNotFound = errors.New("the log has no decision with this id")
	// ErrUnsearched says that the log could not be searched for the decision. Nothing was written.
	ErrUnsearched = errors.New("the log could not be searched for the decision")
	// ErrNotDurable says that the label may be lost: it is to be given again.
	ErrNotDurable = errors.New("the label could not be made durable")
)

// Log takes records. What it has taken without an error is durable.
type Log interface {
	Append(ctx context.Context, r *audit.Record) error
}

// Options of New.
type Options struct {
	Log Log
	// Path of the log, in which decisions are looked for. Empty: it is in no file, cannot be searched, and any id is taken.
	Path string
	// Store keeps what people write, as the call itself is kept. Nil: none is kept.
	Store    *capture.Store
	Clock    clock.PassiveClock
	Logger   *slog.Logger
	Registry prometheus.Registerer
}

// Labeler puts labels into the log. Its methods may be called concurrently.
type Labeler struct {
	options Options
	given   *prometheus.CounterVec
	// counted are labels that were counted, so that saying the same of a decision again weighs no more. Counting is held while
	// one is looked up and added.
	counting sync.Mutex
	counted  *lru.Cache
	// looking keeps several searches from reading the log at once: each may read all of it.
	looking chan struct{}
}

// New makes a Labeler and registers its metric.
func New(o Options) (*Labeler, error) {
	l := &Labeler{
		options: o, counted: lru.New(maxCounted), looking: make(chan struct{}, 1),
		given: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_labels_total", Help: "Labels given to decisions, each once, by the class and outcome of the decision and what would have been right.",
		}, []string{"class", "outcome", "label"}),
	}
	if err := o.Registry.Register(l.given); err != nil {
		return nil, fmt.Errorf("registering the metric of labels: %w", err)
	}
	return l, nil
}

// Give writes a label into the log and returns when it is durable. It gives what Validate does, ErrNotFound, ErrUnsearched
// or ErrNotDurable.
func (l *Labeler) Give(ctx context.Context, label Label) error {
	if err := label.Validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	decision, ok, err := l.find(ctx, label.Decision)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnsearched, err)
	case !ok:
		return ErrNotFound
	}
	record := &audit.Record{
		Kind: audit.KindLabel, Time: l.options.Clock.Now(), Label: &audit.Label{Decision: label.Decision, Outcome: label.Outcome, By: label.By},
	}
	if label.Message != "" {
		record.Label.MessageDigest, record.Captured = l.keep(ctx, &decision, label.Message)
	}
	if err := l.options.Log.Append(ctx, record); err != nil {
		return fmt.Errorf("%w: %w", ErrNotDurable, err)
	}
	l.count(&label, &decision)
	return nil
}

func (l *Labeler) find(ctx context.Context, id string) (audit.Entry, bool, error) {
	if l.options.Path == "" {
		return audit.Entry{}, true, nil
	}
	select {
	case l.looking <- struct{}{}:
		defer func() { <-l.looking }()
	case <-ctx.Done():
		return audit.Entry{}, false, ctx.Err()
	}
	return audit.FindDecision(ctx, l.options.Path, id)
}

// keep keeps what the person wrote as the call itself is kept, and returns its digest.
func (l *Labeler) keep(ctx context.Context, decision *audit.Entry, message string) (digest, captured string) {
	text, err := json.Marshal(map[string]string{"message": message})
	if err != nil {
		return "", ""
	}
	sum := sha256.Sum256(text)
	digest = "sha256:" + hex.EncodeToString(sum[:])
	mode := capture.Mode(decision.Captured)
	if l.options.Store == nil || !l.options.Store.Keeps(mode) {
		return digest, ""
	}
	if err := l.options.Store.Put(mode, digest, text); err != nil {
		l.options.Logger.WarnContext(ctx, "message could not be kept", "error", fmt.Errorf("keeping a message: %w", err))
		return digest, ""
	}
	return digest, string(mode)
}

// names are the values of the metric's label.
var names = map[review.Outcome]string{review.Allow: "allow", review.Block: "block"}

// said is one word about one decision.
type said struct {
	decision string
	right    review.Outcome
}

// count counts a label that is durable, once however often it is given. A decision that could not be looked up has no class
// and no outcome.
func (l *Labeler) count(label *Label, of *audit.Entry) {
	key := said{label.Decision, label.Outcome}
	l.counting.Lock()
	defer l.counting.Unlock()
	if _, isCounted := l.counted.Get(key); isCounted {
		return
	}
	l.counted.Add(key, nil)
	l.given.WithLabelValues(of.Class, string(of.Outcome), names[label.Outcome]).Inc()
}
