package objects

import (
	"context"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/names"
)

var _ approval.Ledger = (*Store)(nil)

// Raised implements approval.Ledger by the cache, which may be a moment late: what several gates raise within that moment
// is not counted. Objects count that a gate has sealed, and beyond their time the Leases of KeepRaise.
func (s *Store) Raised(ctx context.Context, caller string, since time.Time) ([]approval.Raise, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !s.seen.isSynced() {
		return nil, unavailable("counting approvals", errNotSynced)
	}
	now := s.now()
	var out []approval.Raise
	known := map[string]bool{}
	add := func(r approval.Raise) {
		if r.At.After(since) && !known[r.ID] {
			known[r.ID] = true
			out = append(out, r)
		}
	}
	for _, r := range s.seen.kept(caller) {
		add(r)
	}
	namespace, _ := approval.Binding{Caller: caller}.Namespace()
	for _, o := range s.seen.ofNamespace(namespace) {
		if o.Spec.Call.Caller != caller || known[o.Spec.Call.ID] || !o.Spec.Call.RaisedAt.After(since) {
			continue
		}
		if a, err := read(o.DeepCopy(), nil, now); err == nil && s.options.Seals.Verify(&a) == nil {
			add(approval.Raise{ID: a.ID, At: a.Call.RaisedAt})
		}
	}
	return out, nil
}

// KeepRaise implements approval.Ledger: it makes a Lease that nothing goes by but Raised.
func (s *Store) KeepRaise(ctx context.Context, caller string, r approval.Raise, until time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if _, err := s.leases.make(ctx, names.LeaseRaise, names.RaiseLeasePrefix+r.ID, caller, r.At, until, metav1.ObjectMeta{}); err != nil {
		return unavailable("keeping that an approval was raised", err)
	}
	return nil
}

// indexRaise finds the Leases of KeepRaise by caller.
func indexRaise(o any) ([]string, error) {
	if l, ok := o.(*coordinationv1.Lease); ok && l.Labels[names.LeaseLabel] == names.LeaseRaise && l.Spec.HolderIdentity != nil {
		return []string{*l.Spec.HolderIdentity}, nil
	}
	return nil, nil
}

// kept are the raises of a caller that Leases keep, as far as watching has shown.
func (s *seen) kept(caller string) []approval.Raise {
	indexed, err := s.leases.GetIndexer().ByIndex(byCaller, caller)
	if err != nil {
		panic(err) // an index that was never made
	}
	var out []approval.Raise
	for _, o := range indexed {
		l, _ := o.(*coordinationv1.Lease)
		if at := madeAt(l); at != nil {
			out = append(out, approval.Raise{ID: strings.TrimPrefix(l.Name, names.RaiseLeasePrefix), At: *at})
		}
	}
	return out
}
