package policy

import (
	"fmt"
	"slices"
	"strings"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy/sources"
	"gatewright.dev/gatewright/internal/questions"
)

// check is one rule of the engine. It returns nil when it does not object.
type check struct {
	name string
	run  func(*evaluation) *Obligation
}

// checks is the order in which rules are tried: what needs no look at the arguments first, then what is cheap, and the
// policy's own expressions last, when everything that they rely on holds.
var checks = []check{
	{ruleClassForbidden, checkClassForbidden},
	{ruleNotAttested, checkAttested},
	{ruleFactMissing, checkFacts},
	{ruleMissingScope, checkScopes},
	{ruleArgumentsSchema, checkSchema},
	{rulePathEscape, checkPaths},
	{ruleHostNotAllowed, checkHosts},
	{ruleArgumentSource, checkSources},
	{"rules", checkRules},
}

func objection(outcome Outcome, reason Reason, rule string, remedy Remedy, message string) *Obligation {
	return &Obligation{Outcome: outcome, Reason: reason, By: "rule:" + rule, Remedy: remedy, Message: message}
}

func unknownTool(outcome Outcome) Obligation {
	message := "the policy does not list this tool, so nobody may call it: an admin can add it under spec.tools"
	remedy := RemedyAskAdmin
	if outcome == Confirm {
		message, remedy = "the policy does not list this tool, so a person has to confirm the call", RemedyWaitForApproval
	}
	return *objection(outcome, ReasonUnknownTool, ruleUnknownTool, remedy, message)
}

func checkClassForbidden(e *evaluation) *Obligation {
	if !e.class.forbidden {
		return nil
	}
	return objection(Block, ReasonClassForbidden, ruleClassForbidden, RemedyNone,
		"tools of class "+e.class.name+" are forbidden here, and nobody can approve them")
}

func checkAttested(e *evaluation) *Obligation {
	needed := e.policy.trust == v1alpha1.TrustAttested
	if !needed && (e.request.Attestation == "" || len(e.policy.attestors) == 0) {
		return nil
	}
	context, err := e.policy.attestation(e.request)
	if err != nil {
		if !needed {
			return nil // facts that must be attested are then missing
		}
		return objection(Block, ReasonNotAttested, ruleNotAttested, RemedyChangeArguments,
			"the policy trusts only context that a front door has signed: send a valid context.attestation")
	}
	e.context = context
	return nil
}

func checkFacts(e *evaluation) *Obligation {
	var missing []string
	for name, f := range e.policy.facts {
		if f.Presence != v1alpha1.FactRequired {
			continue
		}
		if _, ok := e.fact(f); !ok {
			missing = append(missing, name)
		}
	}
	if missing == nil {
		return nil
	}
	slices.Sort(missing)
	return objection(Block, ReasonFactMissing, ruleFactMissing, RemedyAskAdmin,
		"the agent has to state context.facts: "+strings.Join(missing, ", "))
}

func checkScopes(e *evaluation) *Obligation {
	for _, s := range e.tool.scopes {
		if !slices.Contains(e.scopes(), s) {
			return objection(Block, ReasonMissingScope, ruleMissingScope, RemedyAskAdmin,
				"the caller does not hold scope "+s+": an admin can grant it under spec.grants")
		}
	}
	return nil
}

func checkSchema(e *evaluation) *Obligation {
	if e.tool.schema == nil {
		return nil
	}
	err := e.tool.schema.Validate(instance(e.request.Arguments))
	if err == nil {
		e.schema = questions.True
		return nil
	}
	e.schema = questions.False
	outcome, remedy := outcomeOf(e.tool.rule.OnSchemaViolation), RemedyChangeArguments
	if outcome != Clarify {
		outcome = Block
	} else {
		remedy = RemedyAskUser
	}
	missing := missingFrom(err)
	message := "these arguments are missing or do not fit the schema: " + someOf(missing)
	if outcome == Clarify && e.tool.rule.ClarifyMessage != "" {
		message = e.tool.rule.ClarifyMessage
	}
	o := objection(outcome, ReasonArgumentsInvalid, ruleArgumentsSchema, remedy, message)
	o.Missing = missing
	return o
}

// instance keeps a call without arguments an empty object for the schema.
func instance(arguments map[string]any) any {
	if arguments == nil {
		return map[string]any{}
	}
	return arguments
}

func checkPaths(e *evaluation) *Obligation {
	for i := range e.tool.paths {
		p := &e.tool.paths[i]
		if code := eachText(e, p.pointer, func(s string) string {
			if v := p.roots.Check(s); v != nil {
				return string(v.Code)
			}
			return ""
		}); code != "" {
			return objection(Block, ReasonPathNotAllowed, rulePathEscape, RemedyChangeArguments,
				fmt.Sprintf("the path in %s is not below an allowed root (%s)", p.text, code))
		}
	}
	return nil
}

func checkHosts(e *evaluation) *Obligation {
	for i := range e.tool.hosts {
		h := &e.tool.hosts[i]
		if code := eachText(e, h.pointer, func(s string) string {
			if v := h.hosts.Check(s); v != nil {
				return string(v.Code)
			}
			return ""
		}); code != "" {
			return objection(Block, ReasonHostNotAllowed, ruleHostNotAllowed, RemedyChangeArguments,
				fmt.Sprintf("the host in %s is not allowed (%s)", h.text, code))
		}
	}
	return nil
}

// codeNotText is the objection to a value that is no text where text is judged.
const codeNotText = "NotText"

// eachText runs a check over the text at a pointer, or over each text of a list there. A value that is absent has
// nothing to check; one of another type cannot be judged and is refused.
func eachText(e *evaluation, pointer []string, check func(string) string) string {
	v, at := lookup(e.request.Arguments, pointer, e.budget)
	switch at {
	case absent:
		return ""
	case misshapen:
		return codeNotText
	case present:
	}
	switch v := v.(type) {
	case string:
		return check(v)
	case []any:
		for _, item := range v {
			s, isText := item.(string)
			if !isText {
				return codeNotText
			}
			if code := check(s); code != "" {
				return code
			}
		}
		return ""
	}
	return codeNotText
}

func checkSources(e *evaluation) *Obligation {
	if len(e.tool.sources) == 0 {
		return nil
	}
	outcome := Allow
	var elsewhere []string
	for i := range e.tool.sources {
		s := &e.tool.sources[i]
		if s.pointer == everyArgument {
			continue
		}
		if _, at := lookup(e.request.Arguments, s.parts, e.budget); at == misshapen {
			outcome = min(outcome, s.outcome)
			elsewhere = append(elsewhere, s.pointer)
		}
	}
	for _, f := range e.trace() {
		for i := range e.tool.sources {
			s := &e.tool.sources[i]
			if !isBelow(f.Pointer, s.pointer) {
				continue
			}
			if !s.accepts(f) {
				outcome = min(outcome, s.outcome)
				elsewhere = append(elsewhere, f.Pointer)
			}
			break
		}
	}
	if elsewhere == nil {
		return nil
	}
	return sourceObjection(outcome, elsewhere)
}

// accepts says whether a value stands whole in an accepted source. Where it only partly stands anywhere, the source that
// it was given counts and no other.
func (s *sourceCheck) accepts(f sources.Finding) bool {
	if f.IsPartial() {
		return f.Source == sources.Tool && s.accept[sources.Tool]
	}
	if s.accept[f.Source] {
		return true
	}
	for source := range s.accept {
		if f.Seen.Has(source) {
			return true
		}
	}
	return false
}

// someOf keeps a message readable however many arguments there are; all of them are in Missing.
func someOf(pointers []string) string {
	const most = 8
	if len(pointers) <= most {
		return strings.Join(pointers, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(pointers[:most], ", "), len(pointers)-most)
}

func sourceObjection(outcome Outcome, elsewhere []string) *Obligation {
	message, remedy := "these values do not come from where they must: "+someOf(elsewhere), RemedyChangeArguments
	switch outcome {
	case Clarify:
		message, remedy = message+". Ask the user, and call again after the user has answered", RemedyAskUser
	case Confirm:
		message, remedy = message+". A person has to confirm the call", RemedyWaitForApproval
	case Block, Allow:
	}
	o := objection(outcome, ReasonSourceNotAccepted, ruleArgumentSource, remedy, message)
	o.Missing = elsewhere
	return o
}

// checkRules tries the policy's own expressions in order. The first that is true decides; one that cannot be evaluated
// blocks, because what it was there to stop may be the case.
func checkRules(e *evaluation) *Obligation {
	for i := range e.tool.rules {
		r := &e.tool.rules[i]
		matched, err := e.budget.isTrue(e.ctx, r.program, activation{e})
		if err != nil {
			return failedRule(e, r)
		}
		if matched {
			return &Obligation{Outcome: r.outcome, Reason: r.reason, By: r.by, Message: r.message, Remedy: remedyOf(r.outcome)}
		}
	}
	return nil
}

func failedRule(e *evaluation, r *callCheck) *Obligation {
	if e.ctx.Err() != nil {
		return canceled()
	}
	return &Obligation{Outcome: Block, Reason: ReasonRuleFailed, By: r.by, Remedy: RemedyChangeArguments,
		Message: "a rule of the policy could not be evaluated for these arguments: an argument that it reads may be missing, of another type, or spelt otherwise"}
}

func canceled() *Obligation {
	return objection(Block, ReasonCanceled, ruleDeadline, RemedyRetry, "the deadline of the request passed while its rules were run")
}

func remedyOf(o Outcome) Remedy {
	switch o {
	case Clarify:
		return RemedyAskUser
	case Confirm:
		return RemedyWaitForApproval
	case Block, Allow:
	}
	return RemedyChangeArguments
}
