package objects

import (
	"slices"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
)

// Where gives the namespaces in which there are approvals of a name or, if that is empty, any, as far as the cache knows.
// They are sorted.
func (s *Store) Where(name string) ([]string, error) {
	if !s.seen.isSynced() {
		return nil, unavailable("reading approvals", errNotSynced)
	}
	var out []string
	index := s.seen.approvals.GetIndexer()
	for _, namespace := range index.ListIndexFuncValues(byNamespace) {
		isThere := name == ""
		if !isThere {
			var err error
			if _, isThere, err = index.GetByKey(namespace + "/" + name); err != nil {
				return nil, unavailable("reading approvals", err)
			}
		}
		if isThere {
			out = append(out, namespace)
		}
	}
	for _, o := range s.seen.unseen() {
		if name == "" || o.Name == name {
			out = append(out, o.Namespace)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Known gives the approval of a name as the cache has it, a moment late, and asks the API server nothing. It is one that is
// sealed, or ErrNotFound.
func (s *Store) Known(name string) (approval.Approval, error) {
	namespaces, err := s.Where(name)
	if err != nil {
		return approval.Approval{}, err
	}
	now := s.now()
	for _, namespace := range namespaces {
		o := s.seen.get(namespace, name)
		if o == nil {
			continue
		}
		used := s.seen.used(s.options.Namespace, o.Spec.Call.ID)
		a, err := read(o.DeepCopy(), used, now)
		if err == nil && !IsForgotten(o, used, now) && s.options.Seals.Verify(&a) == nil {
			return a, nil
		}
	}
	return approval.Approval{}, approval.ErrNotFound
}

// get gives an object as watching has shown it, or as this store has made it; nil if neither.
func (s *seen) get(namespace, name string) *v1alpha1.ToolApproval {
	key := namespace + "/" + name
	s.mu.Lock()
	own := s.own[key] // before the index: it leaves own once it is there
	s.mu.Unlock()
	if o, isThere, err := s.approvals.GetIndexer().GetByKey(key); isThere && err == nil {
		own, _ = o.(*v1alpha1.ToolApproval)
	}
	return own
}
