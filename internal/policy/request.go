package policy

import (
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/questions"
)

// Caller is the service account that asks.
type Caller struct {
	Namespace      string
	ServiceAccount string
}

// String returns namespace/name.
func (c Caller) String() string { return c.Namespace + "/" + c.ServiceAccount }

// Request is one proposed call with all that is known about it. It is not changed by judging.
type Request struct {
	Caller Caller
	Tool   string
	Server string
	// Arguments is a tree of map[string]any, []any, string, int64, float64, bool and nil.
	Arguments map[string]any
	// UserTurns are the user's own words, the latest last, as the caller states them.
	UserTurns []string
	// System, ToolResults and Assistant are the other messages by who wrote them.
	System      []string
	ToolResults []string
	Assistant   []string
	// Messages are what assistant and tools said, in order, once more: an embedded decider computes from the order.
	Messages []questions.Message
	// Facts that the caller states.
	Facts      map[string]any
	OnBehalfOf string
	Session    string
	Language   string
	// Attestation is a compact JWS by a front door, empty if there is none.
	Attestation string
	// Now is the time of the request.
	Now time.Time
}

// Heard adds a message of the conversation, the oldest first, by who wrote it. A role that is none adds nothing.
func (r *Request) Heard(role review.Role, text string) {
	switch role {
	case review.RoleUser:
		r.UserTurns = append(r.UserTurns, text)
	case review.RoleSystem:
		r.System = append(r.System, text)
	case review.RoleTool:
		r.ToolResults = append(r.ToolResults, text)
		r.Messages = append(r.Messages, questions.Message{Role: questions.RoleTool, Text: text})
	case review.RoleAssistant:
		r.Assistant = append(r.Assistant, text)
		r.Messages = append(r.Messages, questions.Message{Role: questions.RoleAssistant, Text: text})
	}
}

// Asked adds the user's latest words, unless they are the last turn already.
func (r *Request) Asked(words string) {
	if words != "" && (len(r.UserTurns) == 0 || r.UserTurns[len(r.UserTurns)-1] != words) {
		r.UserTurns = append(r.UserTurns, words)
	}
}

// PolicyID names a policy.
type PolicyID struct {
	Kind      string
	Namespace string
	Name      string
}

// String returns ToolPolicy/NAMESPACE/NAME or ClusterToolPolicy/NAME.
func (p PolicyID) String() string {
	if p.Namespace == "" {
		return p.Kind + "/" + p.Name
	}
	return p.Kind + "/" + p.Namespace + "/" + p.Name
}

// isIrreversible says whether a base stands for calls that cannot be undone.
func isIrreversible(b v1alpha1.Base) bool {
	return b == v1alpha1.BaseDestructive || b == v1alpha1.BaseExternal
}

// rank orders bases; the two worst have the same rank and are not ordered.
func rank(b v1alpha1.Base) int {
	switch b {
	case v1alpha1.BaseReadOnly:
		return 0
	case v1alpha1.BaseWrite:
		return 1
	case v1alpha1.BaseExternal, v1alpha1.BaseDestructive:
		return 2
	}
	return 3
}
