package testkit

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// ToolOption changes one thing of a tool rule.
type ToolOption func(*v1alpha1.ToolRule)

// WithTool lists a tool.
func WithTool(name string, class v1alpha1.ClassName, options ...ToolOption) Option {
	t := v1alpha1.ToolRule{Name: name, Class: class, OnSchemaViolation: v1alpha1.SchemaViolationBlock, Permit: v1alpha1.PermitNone}
	for _, o := range options {
		o(&t)
	}
	return func(p *Policy) { p.Tools = append(p.Tools, *t.DeepCopy()) }
}

// OnServer limits the rule to one server.
func OnServer(server string) ToolOption { return func(t *v1alpha1.ToolRule) { t.Server = server } }

// LowerTo lowers the class of a call.
func LowerTo(class v1alpha1.ClassName, when v1alpha1.Expression) ToolOption {
	return func(t *v1alpha1.ToolRule) {
		t.LowerTo = append(t.LowerTo, v1alpha1.LowerRule{Class: class, When: when})
	}
}

// Effects that the tool always has.
func Effects(effects ...v1alpha1.Effect) ToolOption {
	return func(t *v1alpha1.ToolRule) { t.Effects = effects }
}

// Scopes that a caller needs.
func Scopes(scopes ...v1alpha1.Scope) ToolOption {
	return func(t *v1alpha1.ToolRule) { t.RequiredScopes = scopes }
}

// Schema of the arguments, as JSON.
func Schema(json string) ToolOption {
	return func(t *v1alpha1.ToolRule) { t.ArgumentsSchema = &apiextensionsv1.JSON{Raw: []byte(json)} }
}

// ClarifyOnViolation asks the user when the arguments do not fit the schema.
func ClarifyOnViolation(message string) ToolOption {
	return func(t *v1alpha1.ToolRule) {
		t.OnSchemaViolation, t.ClarifyMessage = v1alpha1.SchemaViolationClarify, message
	}
}

// Path confines an argument to directories.
func Path(argument v1alpha1.Pointer, roots ...string) ToolOption {
	return func(t *v1alpha1.ToolRule) {
		t.Paths = append(t.Paths, v1alpha1.PathRule{Argument: argument, Roots: roots})
	}
}

// Host confines an argument to hosts.
func Host(argument v1alpha1.Pointer, allowed ...string) ToolOption {
	return func(t *v1alpha1.ToolRule) {
		t.Hosts = append(t.Hosts, v1alpha1.HostRule{Argument: argument, Allowed: allowed})
	}
}

// Source says where the value of an argument must come from.
func Source(argument v1alpha1.Pointer, otherwise v1alpha1.StricterOutcome, from ...v1alpha1.ValueSource) ToolOption {
	return func(t *v1alpha1.ToolRule) {
		t.ArgumentSources = append(t.ArgumentSources, v1alpha1.ArgumentSourceRule{Argument: argument, From: from, Otherwise: otherwise})
	}
}

// Rule adds a CEL rule.
func Rule(name string, when v1alpha1.Expression, outcome v1alpha1.StricterOutcome) ToolOption {
	return func(t *v1alpha1.ToolRule) {
		t.Rules = append(t.Rules, v1alpha1.CallRule{Name: name, When: when, Outcome: outcome, Message: "rule " + name + " objects"})
	}
}

// Permit requires a permit for an audience.
func Permit(audience string) ToolOption {
	return func(t *v1alpha1.ToolRule) { t.Permit, t.PermitAudience = v1alpha1.PermitRequired, audience }
}

// ToolAsks gives the tool a ladder of its own.
func ToolAsks(otherwise v1alpha1.Outcome, questions []v1alpha1.QuestionName, steps ...v1alpha1.Threshold) ToolOption {
	return func(t *v1alpha1.ToolRule) {
		t.Decider, t.Questions, t.Thresholds = v1alpha1.DeciderAsk, questions, steps
		t.Otherwise = &v1alpha1.Fallback{Outcome: otherwise}
	}
}

// ToolSkips asks no decider about the tool, whatever its class does.
func ToolSkips() ToolOption { return func(t *v1alpha1.ToolRule) { t.Decider = v1alpha1.DeciderSkip } }

// ToolOtherwise gives the tool an end of its own.
func ToolOtherwise(o v1alpha1.Outcome) ToolOption {
	return func(t *v1alpha1.ToolRule) { t.Otherwise = &v1alpha1.Fallback{Outcome: o} }
}
