package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/names"
)

// Consume implements approval.Store. All of it is read from the API server; the use is the creation of a Lease.
func (s *Store) Consume(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.consume(ctx, id); err != nil {
		return fmt.Errorf("consuming approval: %w", err)
	}
	return nil
}

func (s *Store) consume(ctx context.Context, id string) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	k, err := s.one(ctx, fieldID, id)
	if err != nil {
		return err
	}
	if err := s.mayConsume(ctx, k); err != nil {
		return err
	}
	now, expires := s.now(), k.Call.ExpiresAt
	if !now.Before(expires) {
		return approval.ErrExpired
	}
	isFirst, err := s.leases.make(ctx, names.LeaseUse, useName(id), s.options.Identity, now, expires, metav1.ObjectMeta{})
	if err != nil {
		return unavailable("creating lease", err)
	}
	if !isFirst {
		return approval.ErrUsed
	}
	s.later(func(ctx context.Context) { s.mirror(ctx, k.object, &now) })
	if !s.now().Before(expires) {
		return approval.ErrExpired // while the API server took its time; used all the same
	}
	return nil
}

// mayConsume says whether an approval is one that may be used now.
func (s *Store) mayConsume(ctx context.Context, k *kept) error {
	switch k.State {
	case approval.Consumed:
		return approval.ErrUsed
	case approval.Expired:
		return approval.ErrExpired
	case approval.Approved:
	case approval.Pending, approval.Rejected:
		return approval.ErrNotApproved
	}
	if err := s.options.Seals.Verify(&k.Approval); err != nil {
		return err
	}
	if err := k.Call.Approvers.Check(k.ID, &k.Call, k.Decision, s.now()); err != nil {
		return fmt.Errorf("%w: %w", approval.ErrNotApproved, err)
	}
	since, err := s.guard.inForce(ctx)
	if err != nil {
		return err
	}
	if !s.guard.covers(since, &k.object.ObjectMeta) {
		return fmt.Errorf("%w: it was changed after the approval was raised", ErrUnguarded)
	}
	return s.checkRejections(ctx, k)
}

// checkRejections asks the API server for a rejection of the same call. One that is made in the very moment in which the
// approval is used comes after the use.
func (s *Store) checkRejections(ctx context.Context, k *kept) error {
	now := s.now()
	all, err := s.ofCall(ctx, k.Call.Binding, now)
	if err != nil {
		return err
	}
	gone, err := s.leases.rejections(ctx, k.Call.CallKey, now)
	if err != nil {
		return err
	}
	for i := range gone {
		all = append(all, kept{Approval: gone[i]})
	}
	for i := range all {
		a := &all[i].Approval
		if a.State == approval.Rejected && a.Call.IsSameCall(k.Call.Binding) && s.options.Seals.Verify(a) == nil {
			return approval.ErrRejected
		}
	}
	return nil
}

// noticed keeps a rejection in a Lease, so that it holds when its object is gone with its namespace.
func (s *Store) noticed(o *v1alpha1.ToolApproval) {
	if o.Spec.Decision == nil || o.Spec.Decision.Outcome != v1alpha1.Reject {
		return
	}
	now := s.now()
	for _, a := range s.seen.rejections(string(o.Spec.Call.CallKey), now) {
		if a.ID == o.Spec.Call.ID {
			return
		}
	}
	a, err := read(o, nil, now)
	if err != nil || a.State != approval.Rejected || s.options.Seals.Verify(&a) != nil {
		return
	}
	s.later(func(ctx context.Context) { s.keepRejection(ctx, &a) })
}

func (s *Store) keepRejection(ctx context.Context, a *approval.Approval) {
	data, err := json.Marshal(a)
	if err != nil {
		s.options.Log.ErrorContext(ctx, "rejection could not be kept in a lease", "approval", a.Name, "error", err)
		return
	}
	name, now := rejectionName(a.Call.Binding), s.now()
	extra := metav1.ObjectMeta{
		Labels: map[string]string{names.CallLabel: callLabel(a.Call.CallKey)}, Annotations: map[string]string{names.RejectionAnnotation: string(data)},
	}
	for range 2 {
		isFirst, err := s.leases.make(ctx, names.LeaseRejection, name, s.options.Identity, now, a.Call.ExpiresAt, extra)
		if err != nil {
			s.options.Log.ErrorContext(ctx, "rejection could not be kept in a lease", "approval", a.Name, "error", err)
			return
		}
		if isFirst || !s.deleteEnded(ctx, name, now) {
			return
		}
	}
}

// deleteEnded deletes the Lease of a rejection whose time is over, so that a new one can be kept.
func (s *Store) deleteEnded(ctx context.Context, name string, now time.Time) bool {
	old, err := s.leases.find(ctx, name)
	if err != nil || old == nil || rejected(old, now) != nil {
		return err == nil && old == nil
	}
	return s.leases.Delete(ctx, name, onlyThis(old)) == nil
}

// mirror writes into the status what has happened. Nothing goes by it but what people see; the manager does it as well.
func (s *Store) mirror(ctx context.Context, o *v1alpha1.ToolApproval, used *time.Time) {
	now := s.now()
	o = o.DeepCopy()
	o.Status.ObservedGeneration = o.Generation
	for _, c := range Conditions(o, used, now) {
		meta.SetStatusCondition(&o.Status.Conditions, c)
	}
	if err := s.client.update(ctx, o, "status"); err != nil {
		s.options.Log.WarnContext(ctx, "use of an approval could not be mirrored", "approval", o.Name, "error", err)
	}
}

// Decide implements approval.Store for the gate's own user: decisions of users that the API server does not know. One of
// a KubernetesUser has to be made by a Client with that user's credentials.
func (s *Store) Decide(ctx context.Context, name string, d approval.Decision) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	k, err := s.one(ctx, fieldName, name)
	if err != nil {
		return fmt.Errorf("deciding approval: %w", err)
	}
	if k.State == approval.Consumed { // whose time may be over by now
		return fmt.Errorf("deciding approval: %w", approval.ErrDecided)
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if err := s.client.Decide(ctx, k.object.Namespace, name, d, s.now()); err != nil {
		return fmt.Errorf("deciding approval: %w", err)
	}
	return nil
}
