package v1alpha1

import "slices"

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
