// Package v1alpha1 is the wire of the gate: a ToolCallReview goes in before a tool runs, and comes back with a response.
// It is shaped like an AdmissionReview. Only HTTP 200 carries a decision; anything else means Block to the caller.
package v1alpha1

import "time"

// APIVersion and Kind stand in every ToolCallReview.
const (
	APIVersion = "review.gatewright.dev/v1alpha1"
	Kind       = "ToolCallReview"
)

// Path is where a gate takes reviews by POST.
const Path = "/v1alpha1/review"

// ToolCallReview asks whether one tool call may run, and answers.
type ToolCallReview struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *Request  `json:"request,omitempty"`
	Response   *Response `json:"response,omitempty"`
}

// Request is one proposed tool call.
type Request struct {
	// UID is a UUIDv7 at most 300 s old, and an idempotency key of its caller: the same uid and body give the same
	// answer, the same uid and another body HTTP 409.
	UID string `json:"uid"`
	// Tool that would run.
	Tool Tool `json:"tool"`
	// Arguments of the call, an object.
	Arguments map[string]any `json:"arguments"`
	// Context in which the model proposed it.
	Context Context `json:"context"`
	// Approval names an approval that was given for this call. A matching one is found without it.
	Approval string `json:"approval,omitempty"`
	// DryRun decides and records, and creates, consumes and permits nothing.
	DryRun bool `json:"dryRun,omitempty"`
}

// Tool names a tool and the server that offers it.
type Tool struct {
	Name   string `json:"name"`
	Server string `json:"server,omitempty"`
}

// Context is what led to the call, on the word of the caller.
type Context struct {
	// UserRequest is the user's latest own words.
	UserRequest string `json:"userRequest,omitempty"`
	// Messages before the call, oldest first.
	Messages []Message `json:"messages,omitempty"`
	// Facts that code has computed.
	Facts map[string]any `json:"facts,omitempty"`
	// Session of the agent.
	Session string `json:"session,omitempty"`
	// OnBehalfOf is the end user.
	OnBehalfOf string `json:"onBehalfOf,omitempty"`
	// Language of the user's words, a BCP 47 tag.
	Language string `json:"language,omitempty"`
	// Attestation is a compact JWS by a front door over user turns, facts and end user.
	Attestation string `json:"attestation,omitempty"`
}

// Role says who wrote a message.
type Role string

// Roles. Text of a tool is untrusted; text of the assistant is the model's own.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one message of the conversation.
type Message struct {
	Role    Role   `json:"role"`
	Content string `json:"content"`
	// Name of the tool, for role tool.
	Name string `json:"name,omitempty"`
}

// Outcome of a review. The zero value is Block to every caller.
type Outcome string

// Outcomes.
const (
	Allow   Outcome = "Allow"
	Clarify Outcome = "Clarify"
	Confirm Outcome = "Confirm"
	Block   Outcome = "Block"
)

// Remedy is the kind of change that would change the outcome.
type Remedy string

// Remedies.
const (
	// RemedyNone: nothing that the agent can do.
	RemedyNone Remedy = "None"
	// RemedyAskUser: ask the user, and call again after the user has answered.
	RemedyAskUser Remedy = "AskUser"
	// RemedyWaitForApproval: a person has to approve this very call; then call again.
	RemedyWaitForApproval Remedy = "WaitForApproval"
	// RemedyChangeArguments: another call may be allowed.
	RemedyChangeArguments Remedy = "ChangeArguments"
	// RemedyAskAdmin: the policy or a grant would have to change.
	RemedyAskAdmin Remedy = "AskAdmin"
	// RemedyRetry: the same call may be answered otherwise a little later.
	RemedyRetry Remedy = "Retry"
)

// Response is the decision about a Request.
type Response struct {
	// UID of the request.
	UID     string  `json:"uid"`
	Outcome Outcome `json:"outcome"`
	// Reason is a constant in PascalCase.
	Reason string `json:"reason"`
	// By says what decided: rule:missing-scope, decider, policy:irreversible, approval:NAME, gate.
	By string `json:"by"`
	// Message says in plain words what would change the outcome.
	Message string `json:"message"`
	// Remedy is the kind of change that would.
	Remedy Remedy `json:"remedy"`
	// Retryable says whether the same call can be answered otherwise without a change by somebody.
	Retryable bool `json:"retryable"`
	// Missing are JSON Pointers of arguments that are missing or came from nowhere.
	Missing []string `json:"missing,omitempty"`
	// Approval that waits for a person.
	Approval *Approval `json:"approval,omitempty"`
	// Permit is a signed token by which the tool knows that this call was allowed.
	Permit string `json:"permit,omitempty"`
	// WouldBe holds what policies in mode Audit would have said.
	WouldBe []WouldBe `json:"wouldBe,omitempty"`
	// Decision is what produced the outcome.
	Decision Decision `json:"decision"`
}

// Approval is a call that waits for a person.
type Approval struct {
	Name      string    `json:"name"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// WouldBe is the verdict of a policy in mode Audit.
type WouldBe struct {
	Policy  string  `json:"policy"`
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason"`
	By      string  `json:"by"`
}

// Obligation is one thing that stands between the call and the tool.
type Obligation struct {
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason"`
	By      string  `json:"by"`
	Policy  string  `json:"policy,omitempty"`
}

// Decision is what produced an outcome.
type Decision struct {
	// ID of the decision, as in the audit record.
	ID string `json:"id"`
	// Class and base of the tool, after its arguments were looked at.
	Class string `json:"class,omitempty"`
	Base  string `json:"base,omitempty"`
	// Policies that applied, as KIND/NAMESPACE/NAME@GENERATION, or KIND/NAME@GENERATION for a cluster policy.
	Policies []string `json:"policies,omitempty"`
	// PolicyDigest of the policies in force for this tool.
	PolicyDigest string `json:"policyDigest,omitempty"`
	// ArgumentsDigest of the canonical arguments (RFC 8785).
	ArgumentsDigest string `json:"argumentsDigest,omitempty"`
	// Obligations of all policies. Disclosed only with disclose: Full.
	Obligations []Obligation `json:"obligations,omitempty"`
	// Answers of the decider. Disclosed only with disclose: Full.
	Answers map[string]Answer `json:"answers,omitempty"`
	// Decider, its fingerprint and the version of the prompt.
	Decider       string `json:"decider,omitempty"`
	Fingerprint   string `json:"fingerprint,omitempty"`
	PromptVersion string `json:"promptVersion,omitempty"`
	// Milliseconds that deciding took.
	Milliseconds float64 `json:"milliseconds"`
	// Repeats counts earlier denials of the same call in the same state.
	Repeats int `json:"repeats,omitempty"`
	// SnapshotAgeSeconds is how long ago the policies were last known to be in force, if that is 15 seconds or more.
	SnapshotAgeSeconds int64 `json:"snapshotAgeSeconds,omitempty"`
}

// Answer of the decider to one question.
type Answer struct {
	// Probability of yes, for a YesNo.
	Probability *float64 `json:"probability,omitempty"`
	// Choice that was made, and the probability of each option.
	Choice        string             `json:"choice,omitempty"`
	Probabilities map[string]float64 `json:"probabilities,omitempty"`
	// Score is the expected level.
	Score *float64 `json:"score,omitempty"`
	// FromCode: answered by the policy's own table of effects, without asking.
	FromCode bool `json:"fromCode,omitempty"`
}

// Error is the body of every answer that is not HTTP 200. It means Block.
type Error struct {
	// Code is a constant in PascalCase.
	Code    string `json:"code"`
	Message string `json:"message"`
	// Field is a JSON Pointer into the body, where one field is at fault.
	Field string `json:"field,omitempty"`
	// ID under which the log has the cause.
	ID string `json:"id,omitempty"`
}
