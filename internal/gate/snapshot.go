package gate

import (
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
	// Allowed says whether policies of a namespace may refer to it; nil: none may.
	Allowed func(namespace string) bool
}

// usable says why a decider may not be asked, or nothing.
func (s *Snapshot) usable(name, namespace string) (*ServedDecider, policy.Reason) {
	d := s.Deciders[name]
	switch {
	case d == nil:
		return nil, policy.ReasonDeciderNotFound
	case d.Allowed == nil, !d.Allowed(namespace):
		return nil, policy.ReasonDeciderNotAllowed
	case d.RequireVerified && !d.Verified:
		return nil, policy.ReasonDeciderNotVerified
	}
	return d, ""
}
