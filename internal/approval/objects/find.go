package objects

import (
	"context"
	"slices"
	"time"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
)

// Find implements approval.Store. What the cache has nothing about, nothing stands for: see mayStand.
func (s *Store) Find(ctx context.Context, b approval.Binding) ([]approval.Approval, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := s.now()
	if s.seen.isSynced() && !s.mayStand(b, now) {
		return nil, nil
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	all, err := s.ofCall(ctx, b, now)
	if err != nil {
		return nil, err
	}
	var found []approval.Approval
	key := b.Key()
	for i := range all {
		a := &all[i].Approval
		isRejection := a.State == approval.Rejected && a.Call.IsSameCall(b)
		if stands(a.State) && (a.Call.Key() == key || isRejection) {
			found = append(found, *a)
		}
	}
	return found, nil
}

// mayStand says whether the cache has anything that may stand for a call. The cache may be a moment late. What it misses
// then was raised a moment ago by another gate. If it waits or was approved, this gate raises it, which asks the API server
// and gives that very one. If it was rejected within that moment, this call is decided as if it had come before.
func (s *Store) mayStand(b approval.Binding, now time.Time) bool {
	for _, o := range s.seen.ofCall(b.CallKey) {
		if stands(State(o, s.seen.used(s.options.Namespace, o.Spec.Call.ID), now)) {
			return true
		}
	}
	return len(s.seen.rejections(b.CallKey, now)) > 0
}

// kept is an approval and the object that it stands in, nil for a rejection whose object is gone.
type kept struct {
	approval.Approval
	object *v1alpha1.ToolApproval
}

// ofCall gives all approvals with the key of a call as they stand in the API server now, sorted by name. What a Lease keeps
// as rejected is so, whatever has become of its object.
func (s *Store) ofCall(ctx context.Context, b approval.Binding, now time.Time) ([]kept, error) {
	namespace, ok := b.Namespace()
	if !ok || b.CallKey == "" {
		return nil, nil
	}
	objects, err := s.client.list(ctx, namespace, fieldCallKey, b.CallKey)
	if err != nil {
		return nil, err
	}
	var all []kept
	for _, a := range s.seen.rejections(b.CallKey, now) {
		all = append(all, kept{Approval: a})
	}
	for i := range objects {
		k, err := s.look(ctx, &objects[i], now)
		if err != nil {
			return nil, err
		}
		if k != nil && !slices.ContainsFunc(all, func(a kept) bool { return a.ID == k.ID }) {
			all = append(all, *k)
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return approval.CompareNames(a.Name, b.Name) })
	return all, nil
}

// look gives an approval with what has become of it, nil if its object is not where the gate puts it. Whether an approved
// one was used is asked of the API server.
func (s *Store) look(ctx context.Context, o *v1alpha1.ToolApproval, now time.Time) (*kept, error) {
	a, err := read(o, nil, now)
	if err != nil {
		return nil, nil //nolint:nilerr // what is not the gate's is as if it were not there
	}
	if o.Spec.Decision != nil && a.Decision.Outcome == approval.Approved && a.State != approval.Consumed {
		used, err := s.leases.used(ctx, a.ID)
		if err != nil {
			return nil, err
		}
		a.State, a.EndedAt = State(o, used, now), EndedAt(o, used, now)
	}
	if a.State == approval.Rejected {
		s.noticed(o)
	}
	return &kept{a, o}, nil
}

// Get implements approval.Store.
func (s *Store) Get(ctx context.Context, name string) (approval.Approval, error) {
	k, err := s.one(ctx, fieldName, name)
	if err != nil {
		return approval.Approval{}, err
	}
	return k.Approval, nil
}

// one gives the approval that a field selects, wherever it is. Of several that bear one name the one that is sealed counts.
func (s *Store) one(ctx context.Context, field, value string) (*kept, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := s.now()
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	objects, err := s.client.list(ctx, "", field, value)
	if err != nil {
		return nil, err
	}
	var found *kept
	for i := range objects {
		k, err := s.look(ctx, &objects[i], now)
		if err != nil {
			return nil, err
		}
		if k == nil || k.isForgotten(now) {
			continue
		}
		if found == nil || s.options.Seals.Verify(&found.Approval) != nil {
			found = k
		}
	}
	if found == nil {
		return nil, approval.ErrNotFound
	}
	return found, nil
}

func (k *kept) isForgotten(now time.Time) bool {
	return k.EndedAt != nil && !now.Before(k.EndedAt.Add(approval.Retention))
}

// List implements approval.Store, by the cache where it is filled.
func (s *Store) List(ctx context.Context) ([]approval.Approval, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := s.now()
	objects, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]approval.Approval, 0, len(objects))
	for _, o := range objects {
		used := s.seen.used(s.options.Namespace, o.Spec.Call.ID)
		a, err := read(o.DeepCopy(), used, now)
		if err != nil || IsForgotten(o, used, now) {
			continue
		}
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b approval.Approval) int { return approval.CompareNames(a.Name, b.Name) })
	return out, nil
}

func (s *Store) all(ctx context.Context) ([]*v1alpha1.ToolApproval, error) {
	if !s.seen.isSynced() {
		return nil, unavailable("reading approvals", errNotSynced)
	}
	out := s.seen.unseen()
	for _, o := range s.seen.approvals.GetStore().List() {
		if a, ok := o.(*v1alpha1.ToolApproval); ok {
			out = append(out, a)
		}
	}
	return out, ctx.Err()
}
