package v1alpha1

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// Effect is a consequence that a tool always has.
//
// +kubebuilder:validation:Enum=DeletesData;MovesMoney;LeavesTheSystem
type Effect string

// Effects. Each answers the question of the same meaning without asking.
const (
	EffectDeletesData     Effect = "DeletesData"
	EffectMovesMoney      Effect = "MovesMoney"
	EffectLeavesTheSystem Effect = "LeavesTheSystem"
)

// SchemaViolationOutcome is what happens to arguments that do not fit the schema.
//
// +kubebuilder:validation:Enum=Clarify;Block
type SchemaViolationOutcome string

// Outcomes of a schema violation.
const (
	SchemaViolationClarify SchemaViolationOutcome = "Clarify"
	SchemaViolationBlock   SchemaViolationOutcome = "Block"
)

// PermitUse says whether the tool itself checks a permit.
//
// +kubebuilder:validation:Enum=None;Required
type PermitUse string

// Permit uses.
const (
	// PermitNone: the gate is advice for this tool.
	PermitNone PermitUse = "None"
	// PermitRequired: the tool server refuses a call without a fresh permit, so the gate is enforced.
	PermitRequired PermitUse = "Required"
)

// ToolRule says what holds for one tool, or for all tools with a prefix.
//
// +kubebuilder:validation:XValidation:rule="!has(self.permit) || self.permit != 'Required' || has(self.permitAudience)",message="permitAudience is required when permit is Required: name the tool server"
// +kubebuilder:validation:XValidation:rule="!has(self.decider) || self.decider != 'Ask' || (has(self.otherwise) && has(self.questions))",message="questions and otherwise are required when decider is Ask"
// +kubebuilder:validation:XValidation:rule="has(self.decider) && self.decider == 'Ask' || (!has(self.thresholds) && !has(self.questions))",message="thresholds and questions need decider: Ask"
type ToolRule struct {
	// name of the tool, or a prefix that ends in *: db.* matches db.read and not db. Compared byte for byte.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9_][A-Za-z0-9_.:/-]*\*?|\*)$`
	Name string `json:"name"`
	// server that offers the tool. Empty matches every server; a rule with a server is more specific.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9][A-Za-z0-9_.:/-]*)?$`
	Server string `json:"server"`
	// class is the worst that the tool can do.
	// +required
	Class ClassName `json:"class"`
	// lowerTo lowers the class for calls whose parsed arguments are shown to do less. Any error, doubt or part that is
	// not covered leaves the class as it is. Tried in order; the first that holds decides.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	LowerTo []LowerRule `json:"lowerTo,omitempty"`
	// effects that every call has. They answer deletes_data, moves_money and leaves_the_system without asking.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	Effects []Effect `json:"effects,omitempty"`
	// description of the tool, for the decider and the approver.
	// +optional
	// +kubebuilder:validation:MaxLength=2000
	Description string `json:"description,omitempty"`
	// note is one line of policy about this tool, for the decider.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	Note string `json:"note,omitempty"`
	// requiredScopes must all be granted to the caller by this object, or by a ClusterToolPolicy.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	RequiredScopes []Scope `json:"requiredScopes,omitempty"`
	// argumentsSchema is a JSON Schema (2020-12) that the arguments must fit. References to other documents are refused.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	ArgumentsSchema *apiextensionsv1.JSON `json:"argumentsSchema,omitempty"`
	// onSchemaViolation is Block (default) or Clarify.
	// +optional
	// +kubebuilder:default=Block
	OnSchemaViolation SchemaViolationOutcome `json:"onSchemaViolation,omitempty"`
	// clarifyMessage is what the agent is told to ask the user when arguments are missing.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	ClarifyMessage string `json:"clarifyMessage,omitempty"`
	// paths confines arguments that are file paths.
	// +optional
	// +listType=map
	// +listMapKey=argument
	// +kubebuilder:validation:MaxItems=16
	Paths []PathRule `json:"paths,omitempty"`
	// hosts confines arguments that are URLs, hosts or e-mail addresses.
	// +optional
	// +listType=map
	// +listMapKey=argument
	// +kubebuilder:validation:MaxItems=16
	Hosts []HostRule `json:"hosts,omitempty"`
	// argumentSources says where values must come from.
	// +optional
	// +listType=map
	// +listMapKey=argument
	// +kubebuilder:validation:MaxItems=32
	ArgumentSources []ArgumentSourceRule `json:"argumentSources,omitempty"`
	// rules are CEL expressions over the call; the first that is true decides. An expression that fails is Block,
	// RuleFailed.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Rules []CallRule `json:"rules,omitempty"`
	// decider overrides the class: Skip or Ask.
	// +optional
	Decider DeciderUse `json:"decider,omitempty"`
	// questions overrides the class.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Questions []QuestionName `json:"questions,omitempty"`
	// thresholds overrides the class.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Thresholds []Threshold `json:"thresholds,omitempty"`
	// otherwise overrides the class.
	// +optional
	Otherwise *Fallback `json:"otherwise,omitempty"`
	// confirmMessage is a CEL expression of type string: what a person is asked, in plain words.
	// +optional
	ConfirmMessage Expression `json:"confirmMessage,omitempty"`
	// sensitive arguments are shown to approvers as length and digest only.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Sensitive []Pointer `json:"sensitive,omitempty"`
	// permit is None (default) or Required: the tool server checks a permit for exactly these arguments.
	// +optional
	// +kubebuilder:default=None
	Permit PermitUse `json:"permit,omitempty"`
	// permitAudience is the audience of the permit: the tool server.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PermitAudience string `json:"permitAudience,omitempty"`
}

// LowerRule lowers the class of a call.
type LowerRule struct {
	// class to lower to.
	// +required
	Class ClassName `json:"class"`
	// when is a CEL expression over args, tool and caller. It must be true.
	// +required
	When Expression `json:"when"`
}

// PathRule confines an argument to directories.
type PathRule struct {
	// argument that holds a path, or a list of them.
	// +required
	Argument Pointer `json:"argument"`
	// roots are the directories below which the path must stay.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Roots []string `json:"roots"`
}

// HostRule confines an argument to hosts.
type HostRule struct {
	// argument that holds a URL, a host or an e-mail address, or a list of them.
	// +required
	Argument Pointer `json:"argument"`
	// allowed hosts: api.example.com, *.example.com, host:port, https://host, or an address written out.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Allowed []string `json:"allowed"`
}

// ValueSource is where a value was first seen.
//
// +kubebuilder:validation:Enum=User;Facts;Tool;Schema
type ValueSource string

// Value sources. A value of no source is Nowhere, which cannot be allowed.
const (
	SourceUser   ValueSource = "User"
	SourceFacts  ValueSource = "Facts"
	SourceTool   ValueSource = "Tool"
	SourceSchema ValueSource = "Schema"
)

// ArgumentSourceRule says where the value of an argument must come from.
type ArgumentSourceRule struct {
	// argument that the rule is about, with everything below it; /* is every argument that no other rule names.
	// +required
	Argument Pointer `json:"argument"`
	// from lists the accepted sources: User (the user's own words), Facts, Tool (a tool result), Schema (an enum,
	// constant or default of argumentsSchema).
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	From []ValueSource `json:"from"`
	// otherwise is the outcome for a value from elsewhere.
	// +required
	Otherwise StricterOutcome `json:"otherwise"`
}

// CallRule is a CEL rule about a call.
type CallRule struct {
	// name of the rule, in answers and records.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// when is a CEL expression of type bool over args, tool, caller, facts, scopes, sources and user. When it is true
	// the outcome applies.
	// +required
	When Expression `json:"when"`
	// outcome when it is true.
	// +required
	Outcome StricterOutcome `json:"outcome"`
	// message to the caller: what would change the outcome.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=500
	Message string `json:"message"`
	// reason in the answer. Default: Rule.
	// +optional
	Reason ReasonName `json:"reason,omitempty"`
}
