package objects

import (
	"context"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gatewright.dev/gatewright/api/v1alpha1"
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
	return s.raisedBy(caller, since), nil
}

func (s *Store) raisedBy(caller string, since time.Time) (out []approval.Raise) {
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
	now := s.now()
	for _, o := range s.seen.ofCaller(caller) {
		if c := &o.Spec.Call; !known[c.ID] && c.RaisedAt.After(since) && s.isGenuine(o, now) {
			add(approval.Raise{ID: c.ID, At: c.RaisedAt.UTC()})
		}
	}
	return out
}

// sealedAs names an object as it was once written. What it says cannot differ from one look to the next.
type sealedAs struct {
	uid     types.UID
	version string
}

// maxGenuine is how many objects are known to be sealed: ten callers with the largest budget that there is.
const maxGenuine = 10_000

// isGenuine says whether a gate has sealed an object. A yes is remembered: it takes reading the object in full and checking
// a signature, and each confirmation asks it about all that its caller has caused.
func (s *Store) isGenuine(o *v1alpha1.ToolApproval, now time.Time) bool {
	key := sealedAs{o.UID, o.ResourceVersion}
	isNamed := key.uid != "" && key.version != ""
	if _, isKnown := s.genuine.Get(key); isKnown && isNamed {
		return true
	}
	a, err := read(o.DeepCopy(), nil, now)
	if err != nil || s.options.Seals.Verify(&a) != nil {
		return false
	}
	s.genuine.Add(key, nil)
	return true
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

// indexCaller finds approvals by caller.
func indexCaller(o any) ([]string, error) {
	if a, ok := o.(*v1alpha1.ToolApproval); ok {
		return []string{a.Spec.Call.Caller}, nil
	}
	return nil, nil
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
