package objects

import "slices"

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
