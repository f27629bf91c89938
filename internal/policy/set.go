package policy

import (
	"cmp"
	"slices"
)

// Set is all policies of a snapshot, ready to judge. It is immutable: a change is a new Set.
type Set struct {
	byNamespace map[string][]*Compiled
	// everywhere are cluster policies for namespaces that have no entry.
	everywhere []*Compiled
	all        []*Compiled
}

// NewSet indexes policies by the namespaces that they apply to, so that judging looks only at those of the caller's,
// however many there are.
func NewSet(policies []*Compiled) *Set {
	s := &Set{byNamespace: map[string][]*Compiled{}, all: slices.Clone(policies)}
	slices.SortFunc(s.all, func(a, b *Compiled) int {
		return cmp.Or(cmp.Compare(a.ID.Kind, b.ID.Kind), cmp.Compare(a.ID.Namespace, b.ID.Namespace), cmp.Compare(a.ID.Name, b.ID.Name))
	})
	var cluster []*Compiled
	own, namespaces := map[string][]*Compiled{}, map[string]bool{}
	for _, p := range s.all {
		if !p.cluster {
			own[p.ID.Namespace] = append(own[p.ID.Namespace], p)
			namespaces[p.ID.Namespace] = true
			continue
		}
		cluster = append(cluster, p)
		for ns := range p.namespaces {
			namespaces[ns] = true
		}
		if p.namespaces == nil {
			s.everywhere = append(s.everywhere, p)
		}
	}
	for ns := range namespaces {
		for _, p := range cluster { // before those of the namespace, as their kinds sort
			if p.namespaces == nil || p.namespaces[ns] {
				s.byNamespace[ns] = append(s.byNamespace[ns], p)
			}
		}
		s.byNamespace[ns] = append(s.byNamespace[ns], own[ns]...)
	}
	return s
}

// forNamespace returns the policies that may apply to callers of a namespace, in a fixed order.
func (s *Set) forNamespace(namespace string) []*Compiled {
	if policies, ok := s.byNamespace[namespace]; ok {
		return policies
	}
	return s.everywhere
}

// Policies returns all policies in a fixed order.
func (s *Set) Policies() []*Compiled { return s.all }

// Len returns how many policies there are.
func (s *Set) Len() int { return len(s.all) }
