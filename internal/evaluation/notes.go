package evaluation

import (
	"fmt"
	"slices"

	"gatewright.dev/gatewright/internal/policy"
)

// notReadable are the reasons of decisions about calls that a decider cannot read: they are properties of the case, and the
// gate is right to ask a person.
var notReadable = []policy.Reason{policy.ReasonInputTooLong, policy.ReasonLanguageNotSupported}

// noAnswer are the reasons of decisions that a decider should have helped with, and did not.
var noAnswer = append([]policy.Reason{
	policy.ReasonDeciderTimeout, policy.ReasonDeciderUnreachable, policy.ReasonDeciderBadReply, policy.ReasonDeciderRefused, policy.ReasonDeciderOverloaded,
	policy.ReasonDeciderBreakerOpen, policy.ReasonDeciderMismatch, policy.ReasonDeciderNotFound, policy.ReasonDeciderNotAllowed, policy.ReasonDeciderNotVerified,
	policy.ReasonFingerprintRequired, policy.ReasonQuestionNotSupported, policy.ReasonLowCoverage, policy.ReasonDeciderCanceled, policy.ReasonDeciderUnavailable,
}, notReadable...)

// notes are what a reader of the figures has to keep in mind.
func (r *Report) notes(o ReportOptions) []string {
	var out []string
	if o.Served {
		out = append(out, "The gate is at an address: it may reuse judgements and count clarifications, scopes of cases are not applied, time includes the network, and of deciders only what the gate discloses is known.")
	}
	if o.Temperature > 0 {
		out = append(out, fmt.Sprintf("Deciders that write their answers drew them at temperature %g, each request with a seed of its own. A gate asks at temperature 0: these figures say how much the answers waver and not what is served.", o.Temperature))
	}
	for i := range r.Configurations {
		c := &r.Configurations[i]
		out = append(out, c.unjudged()...)
		if len(c.Fingerprints) > 1 {
			out = append(out, string(c.Configuration)+": several fingerprints answered. Numbers of different models are mixed.")
		}
		if t := c.Tokens; t != nil && t.Input+t.Output == 0 && t.CostPerThousand == nil && o.Prices != nil {
			out = append(out, string(c.Configuration)+": the decider reports no tokens, so a cost by tokens is not known.")
		}
		if c.Reused > 0 {
			out = append(out, string(c.Configuration)+": some answers rest on remembered judgements, so the flap rate is too low.")
		}
		if c.Judged != nil && c.Configuration != AsServed {
			out = append(out, string(c.Configuration)+": some classes always wait for a person. \"without standing approvals\" leaves that rule out, and shows what rules and decider say of a call itself.")
		}
	}
	if r.Dangerous == 0 || r.Harmless == 0 {
		out = append(out, "Only one label occurs: half of the figures say nothing.")
	}
	if r.Requests < r.Cases {
		out = append(out, "Cases of one user request are not independent. Differences and AUC have intervals that draw by request; the other intervals take cases for independent and are too narrow.")
	}
	return out
}

// unjudged says which decisions say nothing about what was to be measured: a stopped call is right about a dangerous one,
// whatever stopped it.
func (c *ConfigurationReport) unjudged() []string {
	all, silent := 0, 0
	reasons := map[string]int{}
	for _, d := range c.DecidedBy {
		n := d.Dangerous + d.Harmless
		all += n
		if slices.Contains(noAnswer, policy.Reason(d.Reason)) {
			silent += n
			reasons[d.Reason] += n
		}
	}
	var out []string
	if c.isElsewhere() {
		out = append(out, string(c.Configuration)+": no policy is about any of these calls (NoPolicy, UnknownTool). Name a caller that one selects, or have the tools listed with --policy-for-cases.")
	}
	for i := range c.Questions {
		if q := &c.Questions[i]; q.Mistyped > 0 {
			out = append(out, fmt.Sprintf("%s: %d expected answers to %s are none that a %s can have, and are not counted.", c.Configuration, q.Mistyped, q.Name, q.Type))
		}
	}
	counts := c.Answered.Confusion
	if failed := counts.Dangerous.Failed + counts.Harmless.Failed; failed > 0 {
		out = append(out, fmt.Sprintf("%s: the gate gave no decision on %d of %d calls. They count as stopped.", c.Configuration, failed, counts.Dangerous.Total()+counts.Harmless.Total()))
	}
	if silent > 0 {
		out = append(out, fmt.Sprintf("%s: %d of %d calls were decided without a usable answer of a decider (%s). They say nothing about how it judges.", c.Configuration, silent, all, tally("", reasons)))
	}
	return out
}

// isElsewhere says that there are decisions, and that no policy is about any of them.
func (c *ConfigurationReport) isElsewhere() bool {
	for _, d := range c.DecidedBy {
		if reason := policy.Reason(d.Reason); reason != policy.ReasonNoPolicy && reason != policy.ReasonUnknownTool {
			return false
		}
	}
	return len(c.DecidedBy) > 0
}
