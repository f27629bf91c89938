package v1alpha1

import (
	"slices"
	"strings"
)

// AllowsNamespace says whether policies of a namespace may refer to the decider: all by default, but none for one at a
// URL, to which the words of users would go.
func (s *DeciderModelSpec) AllowsNamespace(namespace string) bool {
	a := s.AllowedNamespaces
	switch {
	case s.AllowsEveryNamespace():
		return true
	case a == nil || a.From != NamespacesListed:
		return false
	}
	return slices.Contains(a.Namespaces, Namespace(namespace))
}

// AllowsEveryNamespace says whether policies of any namespace may refer to the decider.
func (s *DeciderModelSpec) AllowsEveryNamespace() bool {
	if s.AllowedNamespaces == nil {
		return s.Runtime != RuntimeExternal
	}
	return s.AllowedNamespaces.From == NamespacesAll
}

// IsCompared says whether gates are to compare this candidate with the active revision on live calls: the manager has
// asked for it, and enough have not been compared yet.
func (r *DeciderRevision) IsCompared() bool {
	return r != nil && r.Shadow != nil && r.Shadow.Compared+r.Shadow.Failed == 0
}

// HasSystemPriority says whether the pods would have a priority that is for the parts of the cluster itself, before which
// everything else on a node has to go.
func (d *DeciderPod) HasSystemPriority() bool {
	return d != nil && strings.HasPrefix(d.PriorityClassName, "system-")
}
