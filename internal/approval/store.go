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

// store is a book with a clock and a journal; Memory and File differ in the
// journal alone, and so in nothing that a caller sees.
//
// Changes are made one at a time, each durable before it happens. Who only
// looks does not wait for that: the book is locked while it is read or written,
// and never while the journal is.
type store struct {
	clock clock.PassiveClock
	seals *Seals

	change sync.Mutex // held by the one change that is being made
	// journal makes events durable before they happen. Nil keeps none.
	journal func(...event) error
	// tidy is called after a change, while no other is made. Nil does nothing.
	tidy func()

	mu   sync.RWMutex // of what follows
	book *book
	// unwritten are events of time that have happened and are written before the next change.
	unwritten []event
}

// Memory is a Store that is gone with its process, and all approvals with it.
type Memory struct{ store }

var _ Store = (*Memory)(nil)

// NewMemory makes an empty one with sealing keys of its own.
func NewMemory(c clock.PassiveClock) *Memory {
	seals, err := OpenSeals("", c)
	if err != nil {
		panic(err) // a key without a file fails only with the system's source of random bits
	}
	return &Memory{store{clock: c, seals: seals, book: newBook()}}
}

// Verify says whether this store has sealed an approval.
func (s *store) Verify(a *Approval) error { return s.seals.Verify(a) }

// IsEmpty says that there is nothing to find, whatever is looked for.
func (s *store) IsEmpty() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.book.byID) == 0
}

// look lets time do its work and then reads the book.
func (s *store) look(ctx context.Context, read func(b *book, now time.Time)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := s.clock.Now()
	s.mu.RLock()
	if !s.book.isDue(now) {
		defer s.mu.RUnlock()
		read(s.book, now)
		return nil
	}
	s.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.pass(now); err != nil {
		return err
	}
	read(s.book, now)
	return nil
}

// pass makes happen what time has done. It does so even if that cannot be written now: it is written before anything
// else is.
func (s *store) pass(now time.Time) error {
	due := s.book.due(now)
	for _, e := range due {
		if err := s.book.apply(e); err != nil {
			return fmt.Errorf("letting approvals expire: %w", err)
		}
	}
	s.book.forgetRaises(now)
	if s.journal != nil {
		s.unwritten = append(s.unwritten, due...)
	}
	return nil
}

// make lets one event happen, if plan finds one. The time that plan is given is the one time of the change.
func (s *store) make(ctx context.Context, plan func(b *book, now time.Time) (event, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.change.Lock()
	defer s.change.Unlock()
	e, waiting, err := s.plan(plan)
	if err != nil || e.Op == "" {
		return err
	}
	if e.Op == opRaise {
		if e.Seal, err = s.seals.Seal(&Approval{Name: e.Name, ID: e.ID, Call: *e.Call}); err != nil {
			return err
		}
	}
	if s.journal != nil {
		err = s.journal(append(waiting, e)...)
	}
	if err := s.settle(e, len(waiting), err); err != nil {
		return err
	}
	if s.tidy != nil {
		s.tidy()
	}
	return nil
}

// plan finds the event, and holds back the time of its approval until it has happened: an approval that is being used
// does not expire in the middle of it.
func (s *store) plan(plan func(b *book, now time.Time) (event, error)) (e event, waiting []event, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if err := s.pass(now); err != nil {
		return event{}, nil, err
	}
	if e, err = plan(s.book, now); err != nil {
		return event{}, nil, err
	}
	if k := s.book.byID[e.ID]; k != nil {
		k.isBusy = true
	}
	return e, slices.Clone(s.unwritten), nil
}

// settle lets a planned event happen unless it could not be written.
func (s *store) settle(e event, written int, failed error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.book.byID[e.ID]; k != nil {
		k.isBusy = false
		s.book.lookAt(k.deadline())
	}
	if failed != nil {
		return failed
	}
	s.unwritten = s.unwritten[written:]
	return s.book.apply(e)
}

// flush writes what time has done. Its caller holds change.
func (s *store) flush() error {
	s.mu.RLock()
	waiting := slices.Clone(s.unwritten)
	s.mu.RUnlock()
	if len(waiting) == 0 {
		return nil
	}
	if err := s.journal(waiting...); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwritten = s.unwritten[len(waiting):]
	return nil
}

// Find implements Store.
func (s *store) Find(ctx context.Context, b Binding) (found []Approval, err error) {
	err = s.look(ctx, func(book *book, now time.Time) {
		if len(book.byID) > 0 {
			found = clones(book.find(b, now))
		}
	})
	return found, err
}

// Raise implements Store.
func (s *store) Raise(ctx context.Context, c Call) (raised Approval, err error) {
	c, err = normalCall(c)
	if err != nil {
		return Approval{}, err
	}
	id := newID()
	err = s.make(ctx, func(b *book, now time.Time) (event, error) {
		k, e, err := b.raise(&c, id, now)
		if k != nil {
			raised = clone(k)
		}
		return e, err
	})
	if err != nil {
		return Approval{}, fmt.Errorf("raising approval: %w", err)
	}
	if raised.ID != "" {
		return raised, nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if k := s.book.byID[id]; k != nil {
		return clone(k), nil
	}
	return Approval{}, fmt.Errorf("raising approval: %w", ErrExpired) // and was forgotten meanwhile
}

// Consume implements Store.
func (s *store) Consume(ctx context.Context, id string) error {
	var expires time.Time
	err := s.make(ctx, func(b *book, now time.Time) (event, error) {
		e, err := b.consume(id, now)
		if err == nil {
			expires = b.byID[id].Call.ExpiresAt
		}
		return e, err
	})
	if err != nil {
		return fmt.Errorf("consuming approval: %w", err)
	}
	if !s.clock.Now().Before(expires) {
		return ErrExpired // while the disk took its time; used all the same
	}
	return nil
}

// Decide implements Store.
func (s *store) Decide(ctx context.Context, name string, d Decision) error {
	err := s.make(ctx, func(b *book, now time.Time) (event, error) { return b.decide(name, d, now) })
	if err != nil {
		return fmt.Errorf("deciding approval: %w", err)
	}
	return nil
}

// Get implements Store.
func (s *store) Get(ctx context.Context, name string) (a Approval, err error) {
	found := false
	err = s.look(ctx, func(b *book, _ time.Time) {
		if k := b.byName[name]; k != nil {
			a, found = clone(k), true
		}
	})
	if err == nil && !found {
		err = ErrNotFound
	}
	return a, err
}

// List implements Store.
func (s *store) List(ctx context.Context) (list []Approval, err error) {
	err = s.look(ctx, func(b *book, _ time.Time) { list = clones(b.all()) })
	return list, err
}

// normalCall checks a call and gives what a journal would give back for it, so
// that every store keeps the same, and shares nothing with its caller.
func normalCall(c Call) (Call, error) {
	if _, ok := c.Namespace(); !ok {
		return Call{}, fmt.Errorf("%w: caller is not namespace/name", ErrBadCall)
	}
	if len(c.Arguments) > 0 && !json.Valid(c.Arguments) {
		return Call{}, fmt.Errorf("%w: arguments are not JSON", ErrBadCall)
	}
	if c.ExpiresAt.Sub(c.RaisedAt) > MaxLifetime {
		return Call{}, fmt.Errorf("%w: it would wait for more than %s", ErrBadCall, MaxLifetime)
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
	if a.EndedAt != nil {
		t := *a.EndedAt
		a.EndedAt = &t
	}
	return a
}

func cloneCall(c Call) Call {
	c.ConfirmReasons = slices.Clone(c.ConfirmReasons)
	c.EarlierTurns = slices.Clone(c.EarlierTurns)
	c.Arguments = bytes.Clone(c.Arguments)
	c.Sensitive = slices.Clone(c.Sensitive)
	c.Sources = maps.Clone(c.Sources)
	c.Answers = maps.Clone(c.Answers)
	c.Probabilities = maps.Clone(c.Probabilities)
	c.Reasons = slices.Clone(c.Reasons)
	c.InbandClaims = slices.Clone(c.InbandClaims)
	c.Policies = slices.Clone(c.Policies)
	c.Approvers.Channels = slices.Clone(c.Approvers.Channels)
	c.Approvers.Attestors = slices.Clone(c.Approvers.Attestors)
	for i := range c.Approvers.Attestors {
		c.Approvers.Attestors[i].Key = bytes.Clone(c.Approvers.Attestors[i].Key)
	}
	return c
}
