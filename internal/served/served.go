// Package served holds what a gate says that it serves, as the manager reads it from every gate at names.ServedPath.
package served

import (
	"time"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// Report is what one gate serves at one moment.
type Report struct {
	// Policies has the generation that is in force of each policy, by PolicyKey or ClusterPolicyKey. A policy that does not
	// compile is there too: what is in force then is that its scope is blocked.
	Policies map[string]int64 `json:"policies"`
	// Deciders has the active revision of each DeciderModel, by name of the DeciderModel: the one that calls are judged with.
	Deciders map[string]Decider `json:"deciders"`
	// Candidates has the candidate revision of each DeciderModel that has one, by name of the DeciderModel. It is loaded or
	// connected to like the active one, and its answers decide nothing.
	Candidates map[string]Decider `json:"candidates,omitempty"`
	// SnapshotAt is when what the gate serves was last known to be what the API server has.
	SnapshotAt time.Time `json:"snapshotAt"`
	// Shadow is how candidates compare with the active revisions on live calls, by name of the candidate's revision. It
	// counts from the start of the gate, or from when the revision became a candidate.
	Shadow map[string]Shadow `json:"shadow,omitempty"`
}

// Decider is what a gate knows of one revision of a DeciderModel.
type Decider struct {
	// Revision is the name of its ControllerRevision.
	Revision string `json:"revision,omitempty"`
	// Fingerprint is that of its answers, empty as long as none was seen.
	Fingerprint string `json:"fingerprint,omitempty"`
	// SHA256 is that of the bytes that are loaded, in hex; empty if there are none or they are not known.
	SHA256 string `json:"sha256,omitempty"`
	// Verified says that Gatewright itself checked SHA256 over the bytes that are loaded.
	Verified bool `json:"verified"`
	// Available says whether it would be asked now.
	Available bool `json:"available"`
	// Error is why it is not available, or cannot be used.
	Error string `json:"error,omitempty"`
}

// Shadow is how often a candidate was compared with the active revision, and how often the outcome would have been another.
type Shadow struct {
	Compared  int64 `json:"compared"`
	Disagreed int64 `json:"disagreed"`
	// Failed is how often the candidate gave no answer, which counts as neither.
	Failed int64 `json:"failed,omitempty"`
	// ByClass has the same by name of the call's class.
	ByClass map[string]ShadowClass `json:"byClass,omitempty"`
}

// ShadowClass is a Shadow of one class of calls.
type ShadowClass struct {
	Compared  int64 `json:"compared"`
	Disagreed int64 `json:"disagreed"`
}

// PolicyKey is the key of a ToolPolicy in Report.Policies.
func PolicyKey(namespace, name string) string {
	return v1alpha1.KindToolPolicy + "/" + namespace + "/" + name
}

// ClusterPolicyKey is the key of a ClusterToolPolicy in Report.Policies.
func ClusterPolicyKey(name string) string { return v1alpha1.KindClusterToolPolicy + "/" + name }
