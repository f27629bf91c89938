package policy

// Reason is the machine-readable cause of an obligation or a verdict. Policies may add reasons of their own.
type Reason string

// Reasons of this package.
const (
	// ReasonNoPolicy: no ToolPolicy selects the caller.
	ReasonNoPolicy Reason = "NoPolicy"
	// ReasonPolicyInvalid: a policy that applies to the caller does not compile.
	ReasonPolicyInvalid Reason = "PolicyInvalid"
	// ReasonUnknownTool: a policy does not list the tool.
	ReasonUnknownTool Reason = "UnknownTool"
	// ReasonClassForbidden: the class is forbidden; nobody can approve it.
	ReasonClassForbidden Reason = "ClassForbidden"
	// ReasonNotAttested: the policy trusts attested context only and the attestation is missing or not valid.
	ReasonNotAttested Reason = "NotAttested"
	// ReasonFactMissing: a fact that the policy requires was not stated.
	ReasonFactMissing Reason = "FactMissing"
	// ReasonMissingScope: the caller does not hold a scope that the tool requires.
	ReasonMissingScope Reason = "MissingScope"
	// ReasonArgumentsInvalid: the arguments do not fit the schema.
	ReasonArgumentsInvalid Reason = "ArgumentsInvalid"
	// ReasonPathNotAllowed: a path leaves its roots.
	ReasonPathNotAllowed Reason = "PathNotAllowed"
	// ReasonHostNotAllowed: a host is not on the list.
	ReasonHostNotAllowed Reason = "HostNotAllowed"
	// ReasonSourceNotAccepted: a value does not come from where it must.
	ReasonSourceNotAccepted Reason = "SourceNotAccepted"
	// ReasonPermitConflict: policies want permits for different tool servers, and a call has one permit.
	ReasonPermitConflict Reason = "PermitConflict"
	// ReasonRule: a rule of the policy objects.
	ReasonRule Reason = "Rule"
	// ReasonRuleFailed: a rule of the policy could not be evaluated.
	ReasonRuleFailed Reason = "RuleFailed"
	// ReasonCanceled: the caller went away or its deadline passed while the rules ran.
	ReasonCanceled Reason = "Canceled"
	// ReasonThreshold: a step of the ladder matched.
	ReasonThreshold Reason = "Threshold"
	// ReasonNoThresholdMatched: no step of the ladder matched.
	ReasonNoThresholdMatched Reason = "NoThresholdMatched"
	// ReasonIrreversible: the call cannot be undone, so a person confirms it.
	ReasonIrreversible Reason = "Irreversible"
	// ReasonApprovalRequired: the class always needs a person.
	ReasonApprovalRequired Reason = "ApprovalRequired"
	// ReasonClassDefault: nothing objects, and the class asks a person by default.
	ReasonClassDefault Reason = "ClassDefault"

	// ReasonRulesPassed: no rule objects and the class needs no decider.
	ReasonRulesPassed Reason = "RulesPassed"
	// ReasonAuditOnly: only policies in mode Audit apply.
	ReasonAuditOnly Reason = "AuditOnly"
	// ReasonApproved: a person approved this very call.
	ReasonApproved Reason = "Approved"
)

// Reasons why a decider gave no usable answer.
const (
	ReasonDeciderTimeout       Reason = "DeciderTimeout"
	ReasonDeciderUnreachable   Reason = "DeciderUnreachable"
	ReasonDeciderBadReply      Reason = "DeciderBadReply"
	ReasonDeciderRefused       Reason = "DeciderRefused"
	ReasonDeciderOverloaded    Reason = "DeciderOverloaded"
	ReasonDeciderBreakerOpen   Reason = "DeciderBreakerOpen"
	ReasonDeciderMismatch      Reason = "DeciderMismatch"
	ReasonDeciderNotFound      Reason = "DeciderNotFound"
	ReasonDeciderNotAllowed    Reason = "DeciderNotAllowed"
	ReasonDeciderNotVerified   Reason = "DeciderNotVerified"
	ReasonFingerprintRequired  Reason = "FingerprintRequired"
	ReasonQuestionNotSupported Reason = "QuestionNotSupported"
	ReasonInputTooLong         Reason = "InputTooLong"
	ReasonLanguageNotSupported Reason = "LanguageNotSupported"
	ReasonLowCoverage          Reason = "LowCoverage"
	ReasonDeciderCanceled      Reason = "DeciderCanceled"
	ReasonDeciderUnavailable   Reason = "DeciderUnavailable"
	reasonNotUnavailable       Reason = ""
	byDecider                         = "decider"
	byIrreversible                    = "policy:irreversible"
	byApprovalAlways                  = "policy:approval-always"
	byClassDefault                    = "policy:class-default"
	byOtherwise                       = "policy:otherwise"
	byNoPolicy                        = "policy:none"
	byPolicyInvalid                   = "policy:invalid"
	byPermitConflict                  = "policy:permit"
	byAudit                           = "policy:audit"
	byRules                           = "rules"
	ruleUnknownTool                   = "unknown-tool"
	ruleClassForbidden                = "class-forbidden"
	ruleNotAttested                   = "not-attested"
	ruleFactMissing                   = "fact-missing"
	ruleMissingScope                  = "missing-scope"
	ruleArgumentsSchema               = "arguments-schema"
	rulePathEscape                    = "path-escape"
	ruleHostNotAllowed                = "host-not-allowed"
	ruleArgumentSource                = "argument-source"
	ruleDeadline                      = "deadline"
)

// reservedRules are the names of built-in rules, which a policy's own rules may not take.
var reservedRules = map[string]bool{
	ruleUnknownTool: true, ruleClassForbidden: true, ruleNotAttested: true, ruleFactMissing: true, ruleMissingScope: true,
	ruleArgumentsSchema: true, rulePathEscape: true, ruleHostNotAllowed: true, ruleArgumentSource: true, ruleDeadline: true,
}
