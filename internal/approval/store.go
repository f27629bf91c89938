package approval

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// store is a book with a lock, a clock and a journal; Memory and File differ in
// the journal alone, and so in nothing that a caller sees.
type store struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	book *book
	// journal makes events durable before they happen. Nil keeps none.
	journal func(...event) error
	// unwritten are events of time that happened while the journal failed.
	unwritten []event
}

// Memory is a Store that is gone with its process, and all approvals with it.
type Memory struct{ store }

var _ Store = (*Memory)(nil)

// NewMemory makes an empty one.
func NewMemory(c clock.PassiveClock) *Memory { return &Memory{store{clock: c, book: newBook()}} }

// enter takes the lock and lets time do its work. What expires does so even if
// that cannot be written now: it is written before anything else is. The time
// that it gives is the one time of the call: nothing can expire in its middle.
func (s *store) enter(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	s.mu.Lock()
	now := s.clock.Now()
	due := s.book.due(now)
	for _, e := range due {
		if err := s.book.apply(e); err != nil {
			s.mu.Unlock()
			return time.Time{}, fmt.Errorf("letting approvals expire: %w", err)
		}
	}
	if s.journal != nil && len(due) > 0 {
		s.unwritten = append(s.unwritten, due...)
		_ = s.flush() // kept for the next time; what needs it to be written calls commit
	}
	return now, nil
}

func (s *store) flush() error {
	if len(s.unwritten) == 0 {
		return nil
	}
	if err := s.journal(s.unwritten...); err != nil {
		return err
	}
	s.unwritten = nil
	return nil
}

// commit makes an event durable and then lets it happen.
func (s *store) commit(e event) error {
	if s.journal != nil {
		if err := s.flush(); err != nil {
			return err
		}
		if err := s.journal(e); err != nil {
			return err
		}
	}
	return s.book.apply(e)
}

// Find implements Store.
func (s *store) Find(ctx context.Context, b Binding) ([]Approval, error) {
	key := b.Key()
	if _, err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return clones(s.book.find(key)), nil
}

// Raise implements Store.
func (s *store) Raise(ctx context.Context, c Call) (Approval, error) {
	c, err := normalCall(c)
	if err != nil {
		return Approval{}, err
	}
	id := newID()
	now, err := s.enter(ctx)
	if err != nil {
		return Approval{}, err
	}
	defer s.mu.Unlock()
	k, e, err := s.book.raise(&c, id, now)
	if err != nil {
		return Approval{}, err
	}
	if k == nil {
		if err := s.commit(e); err != nil {
			return Approval{}, fmt.Errorf("raising approval: %w", err)
		}
		k = s.book.byID[id]
	}
	return clone(k), nil
}

// Consume implements Store.
func (s *store) Consume(ctx context.Context, id string) error {
	now, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	e, err := s.book.consume(id, now)
	if err != nil {
		return err
	}
	if err := s.commit(e); err != nil {
		return fmt.Errorf("consuming approval: %w", err)
	}
	if k := s.book.byID[id]; !s.clock.Now().Before(k.Call.ExpiresAt) {
		return ErrExpired // while the disk took its time; used all the same
	}
	return nil
}

// Decide implements Store.
func (s *store) Decide(ctx context.Context, name string, d Decision) error {
	now, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	e, err := s.book.decide(name, d, now)
	if err != nil {
		return err
	}
	if err := s.commit(e); err != nil {
		return fmt.Errorf("deciding approval: %w", err)
	}
	return nil
}

// Get implements Store.
func (s *store) Get(ctx context.Context, name string) (Approval, error) {
	if _, err := s.enter(ctx); err != nil {
		return Approval{}, err
	}
	defer s.mu.Unlock()
	k := s.book.byName[name]
	if k == nil {
		return Approval{}, ErrNotFound
	}
	return clone(k), nil
}

// List implements Store.
func (s *store) List(ctx context.Context) ([]Approval, error) {
	if _, err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	all := slices.Collect(maps.Values(s.book.byName))
	slices.SortFunc(all, func(x, y *kept) int { return compareNames(x.Name, y.Name) })
	return clones(all), nil
}

// normalCall checks a call and gives what a journal would give back for it, so
// that every store keeps the same, and shares nothing with its caller.
func normalCall(c Call) (Call, error) {
	if _, ok := c.namespace(); !ok {
		return Call{}, fmt.Errorf("%w: caller is not namespace/name", ErrBadCall)
	}
	if len(c.Arguments) > 0 && !json.Valid(c.Arguments) {
		return Call{}, fmt.Errorf("%w: arguments are not JSON", ErrBadCall)
	}
	c.ConfirmReasons = normalReasons(c.ConfirmReasons)
	data, err := encode(c)
	if err != nil {
		return Call{}, fmt.Errorf("%w: %w", ErrBadCall, err)
	}
	if len(data) > MaxCall {
		return Call{}, fmt.Errorf("%w: the call has %d bytes of at most %d", ErrTooLarge, len(data), MaxCall)
	}
	var normal Call
	if err := json.Unmarshal(data, &normal); err != nil {
		return Call{}, fmt.Errorf("%w: %w", ErrBadCall, err)
	}
	if normal.Digest() != c.Digest() {
		return Call{}, fmt.Errorf("%w: its binding is not UTF-8", ErrBadCall)
	}
	return normal, nil
}

// encode is json.Marshal without escapes for HTML, so that arguments keep their bytes.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails: it ends the process instead
	return hex.EncodeToString(id[:])
}

func clones(all []*kept) []Approval {
	out := make([]Approval, 0, len(all))
	for _, k := range all {
		out = append(out, clone(k))
	}
	return out
}

func clone(k *kept) Approval {
	a := k.Approval
	a.Call = cloneCall(a.Call)
	if a.Decision != nil {
		d := *a.Decision
		a.Decision = &d
	}
	return a
}

func cloneCall(c Call) Call {
	c.ConfirmReasons = slices.Clone(c.ConfirmReasons)
	c.Arguments = bytes.Clone(c.Arguments)
	c.Sources = maps.Clone(c.Sources)
	c.Answers = maps.Clone(c.Answers)
	c.Policies = slices.Clone(c.Policies)
	return c
}
