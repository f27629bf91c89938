package objects

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
)

var (
	errNotSynced = errors.New("approvals are not read yet")
	errNameTaken = errors.New("its name is taken again and again")
)

// recounts is how often in a row what waits may be counted by asking the API server; once a second more.
const recounts = 5

// Raise implements approval.Store. Several gates that raise one call at once make one object: its name is that of the call.
func (s *Store) Raise(ctx context.Context, c approval.Call) (approval.Approval, error) {
	if err := ctx.Err(); err != nil {
		return approval.Approval{}, err
	}
	c, err := normal(c)
	if err != nil {
		return approval.Approval{}, fmt.Errorf("raising approval: %w", err)
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	taken := 0
	for range attempts {
		a, n, err := s.raise(ctx, &c, taken)
		switch {
		case apierrors.IsAlreadyExists(err):
			taken = n
		case err != nil:
			return approval.Approval{}, fmt.Errorf("raising approval: %w", err)
		default:
			return a, nil
		}
	}
	return approval.Approval{}, unavailable("raising approval", errNameTaken)
}

// raise tries once, with a number above taken, and says which.
func (s *Store) raise(ctx context.Context, c *approval.Call, taken int) (approval.Approval, int, error) {
	now := s.now()
	all, err := s.ofCall(ctx, c.Binding, now)
	if err != nil {
		return approval.Approval{}, 0, err
	}
	if a := s.standing(all, c); a != nil {
		return *a, 0, nil
	}
	if !now.Before(c.ExpiresAt) {
		return approval.Approval{}, 0, fmt.Errorf("%w: before it was raised", approval.ErrExpired)
	}
	if err := s.checkLimits(ctx, c, now); err != nil {
		return approval.Approval{}, 0, err
	}
	n := max(taken, lastNumber(all, c.NamePrefix())) + 1
	a := approval.Approval{Name: c.NamePrefix() + strconv.Itoa(n), ID: approval.NewID(), Call: *c, State: approval.Pending}
	if a.Seal, err = s.options.Seals.Seal(&a); err != nil {
		return approval.Approval{}, 0, err
	}
	made, err := s.client.create(ctx, write(&a))
	switch {
	case apierrors.IsAlreadyExists(err):
		return approval.Approval{}, n, err
	case badCall(err) != nil:
		return approval.Approval{}, 0, badCall(err)
	case err != nil:
		return approval.Approval{}, 0, unavailable("creating approval", err)
	}
	s.seen.add(made)
	got, err := read(made, nil, now)
	if err == nil {
		err = s.options.Seals.Verify(&got)
	}
	if err != nil { // a definition of another version drops fields
		return approval.Approval{}, 0, unavailable("reading what the API server has kept of what the person has to see", err)
	}
	return got, 0, nil
}

// standing gives the rejection that holds for a call, or else what stands for this very binding. What the gate has not
// sealed does not count.
func (s *Store) standing(all []kept, c *approval.Call) *approval.Approval {
	var same *approval.Approval
	digest := c.Digest()
	for i := range all {
		a := &all[i].Approval
		if !stands(a.State) || s.options.Seals.Verify(a) != nil {
			continue
		}
		if a.State == approval.Rejected && a.Call.IsSameCall(c.Binding) {
			return a
		}
		if same == nil && a.Call.Digest() == digest {
			same = a
		}
	}
	return same
}

func lastNumber(all []kept, prefix string) int {
	last := 0
	for i := range all {
		if text, ok := strings.CutPrefix(all[i].Name, prefix); ok {
			if n, err := strconv.Atoi(text); err == nil {
				last = max(last, n)
			}
		}
	}
	return last
}

// checkLimits counts what waits by the cache, which may be a moment late: what several gates raise within that moment is
// not counted. It refuses nothing before the API server has said the same.
func (s *Store) checkLimits(ctx context.Context, c *approval.Call, now time.Time) error {
	namespace, _ := c.Namespace()
	if s.seen.isSynced() && !isFull(s.seen.ofNamespace(namespace), c.Caller, now) {
		return nil
	}
	select {
	case <-s.recount:
	default:
		return approval.ErrTooManyPending
	}
	objects, err := s.client.list(ctx, namespace, "", "")
	if err != nil {
		return err
	}
	all := make([]*v1alpha1.ToolApproval, len(objects))
	for i := range objects {
		all[i] = &objects[i]
	}
	if isFull(all, c.Caller, now) {
		return approval.ErrTooManyPending
	}
	return nil
}

func isFull(all []*v1alpha1.ToolApproval, caller string, now time.Time) bool {
	ofNamespace, ofCaller := 0, 0
	for _, o := range all {
		if State(o, nil, now) != approval.Pending {
			continue
		}
		ofNamespace++
		if o.Spec.Call.Caller == caller {
			ofCaller++
		}
	}
	return ofCaller >= approval.MaxPendingPerCaller || ofNamespace >= approval.MaxPendingPerNamespace
}
