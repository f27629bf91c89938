package gate

import (
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/policy"
)

// Snapshot is everything that calls are judged by. It is immutable: a change is a new snapshot, put in force at once.
type Snapshot struct {
	Policies *policy.Set
	// Deciders by name of their DeciderModel.
	Deciders map[string]*ServedDecider
}

// ServedDecider is a decider that policies may refer to.
type ServedDecider struct {
	Decider inference.Decider
	// ModelHash is the SHA-256 of the model file, empty if it has none.
	ModelHash string
	// Verified says that the hash was checked over the bytes that were loaded, by Gatewright itself.
	Verified bool
	// RequireVerified refuses answers of a decider that is not Verified.
	RequireVerified bool
	// Candidate is compared with it on live calls; nil: none is.
	Candidate *Candidate
	// Allowed are the namespaces whose policies may refer to it.
	Allowed NamespaceRule
}

// NamespaceRule says which namespaces are meant.
type NamespaceRule struct {
	All        bool
	Namespaces map[string]bool
}

// Includes says whether a namespace is meant.
func (r NamespaceRule) Includes(namespace string) bool { return r.All || r.Namespaces[namespace] }

// AllowedNamespaces reads which namespaces may refer to a decider: all by default, but none for an external one, to
// which the words of users would go.
func AllowedNamespaces(m *v1alpha1.DeciderModel) NamespaceRule {
	a := m.Spec.AllowedNamespaces
	if a == nil {
		return NamespaceRule{All: m.Spec.Runtime != v1alpha1.RuntimeExternal}
	}
	out := NamespaceRule{All: a.From == v1alpha1.NamespacesAll, Namespaces: map[string]bool{}}
	if a.From == v1alpha1.NamespacesListed {
		for _, ns := range a.Namespaces {
			out.Namespaces[string(ns)] = true
		}
	}
	return out
}

// usable says why a decider may not be asked, or nothing.
func (s *Snapshot) usable(name, namespace string) (*ServedDecider, policy.Reason) {
	d := s.Deciders[name]
	switch {
	case d == nil:
		return nil, policy.ReasonDeciderNotFound
	case !d.Allowed.Includes(namespace):
		return nil, policy.ReasonDeciderNotAllowed
	case d.RequireVerified && !d.Verified:
		return nil, policy.ReasonDeciderNotVerified
	}
	return d, ""
}
