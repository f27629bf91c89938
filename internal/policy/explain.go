package policy

import (
	"fmt"
	"slices"
	"strings"

	"gatewright.dev/gatewright/internal/questions"
)

// Explanation is how each policy looked at a call, step by step.
type Explanation struct {
	Caller   string              `json:"caller"`
	Tool     string              `json:"tool"`
	Class    string              `json:"class,omitempty"`
	Base     string              `json:"base,omitempty"`
	Policies []PolicyExplanation `json:"policies"`
	Engine   []Step              `json:"engine,omitempty"`
}

// PolicyExplanation is one policy's look at a call.
type PolicyExplanation struct {
	Policy string `json:"policy"`
	Mode   string `json:"mode"`
	Steps  []Step `json:"steps"`
}

// Step is one step with its result.
type Step struct {
	Name   string `json:"name"`
	Result string `json:"result"`
	Detail string `json:"detail,omitempty"`
}

// Explain says how the judgement came about. Call it after Settle. It names rules and numbers, and where values came
// from, but no value.
func (j *Judgement) Explain() Explanation {
	out := Explanation{Caller: j.request.Caller.String(), Tool: j.request.Tool}
	out.Class, out.Base = j.Class()
	for _, o := range j.extra {
		out.Engine = append(out.Engine, objectionStep("policies", o))
	}
	for i := range j.evaluations {
		out.Policies = append(out.Policies, j.evaluations[i].explain())
	}
	return out
}

func objectionStep(name string, o Obligation) Step {
	return Step{Name: name, Result: o.Outcome.String(), Detail: string(o.Reason) + " by " + o.By + ": " + o.Message}
}

func (e *evaluation) explain() PolicyExplanation {
	out := PolicyExplanation{Policy: e.policy.stamp, Mode: "Enforce"}
	if !e.enforced {
		out.Mode = "Audit"
	}
	if e.class == nil {
		for _, o := range e.obligations {
			out.Steps = append(out.Steps, objectionStep("match", o))
		}
		return out
	}
	out.Steps = append(out.Steps, Step{Name: "match", Result: "listed as " + e.tool.rule.Name}, e.explainClass())
	out.Steps = append(out.Steps, e.explainChecks()...)
	if e.traced && len(e.findings) > 0 {
		out.Steps = append(out.Steps, e.explainSources())
	}
	if e.settled {
		return out
	}
	out.Steps = append(out.Steps, e.explainLadder()...)
	for _, o := range e.obligations {
		if o.By == byIrreversible || o.By == byApprovalAlways {
			out.Steps = append(out.Steps, objectionStep("person", o))
		}
	}
	return out
}

func (e *evaluation) explainClass() Step {
	s := Step{Name: "class", Result: e.class.name + " (" + string(e.class.base) + ")"}
	if e.class != e.tool.class {
		s.Detail = "lowered from " + e.tool.class.name + " by its parsed arguments"
	} else if len(e.tool.lower) > 0 {
		s.Detail = "not lowered by its parsed arguments"
	}
	return s
}

// explainChecks lists the checks in their order. The obligations of rules were found in that order too.
func (e *evaluation) explainChecks() []Step {
	var steps []Step
	next := 0
	for i := range checks {
		name := checks[i].name
		if next < len(e.obligations) && checkOf(e.obligations[next]) == name {
			o := e.obligations[next]
			steps = append(steps, objectionStep(name, o))
			next++
			if o.Outcome < Confirm {
				return steps
			}
			continue
		}
		if e.hasCheck(name) {
			steps = append(steps, Step{Name: name, Result: "passed"})
		}
	}
	return steps
}

// checkOf returns the name of the check that an obligation came from.
func checkOf(o Obligation) string {
	name, ok := strings.CutPrefix(o.By, "rule:")
	if !ok {
		return ""
	}
	if reservedRules[name] && name != ruleDeadline {
		return name
	}
	return "rules"
}

// hasCheck says whether the policy gives a check something to look at.
func (e *evaluation) hasCheck(name string) bool {
	switch name {
	case ruleMissingScope:
		return len(e.tool.scopes) > 0
	case ruleArgumentsSchema:
		return e.tool.schema != nil
	case rulePathEscape:
		return len(e.tool.paths) > 0
	case ruleHostNotAllowed:
		return len(e.tool.hosts) > 0
	case ruleArgumentSource:
		return len(e.tool.sources) > 0
	case ruleFactMissing:
		return len(e.policy.facts) > 0
	case ruleNotAttested:
		return len(e.policy.attestors) > 0
	case "rules":
		return len(e.tool.rules) > 0
	}
	return false
}

func (e *evaluation) explainSources() Step {
	parts := make([]string, len(e.findings))
	for i, f := range e.findings {
		parts[i] = f.Pointer + " " + string(f.Source)
	}
	return Step{Name: "sources", Result: "traced", Detail: strings.Join(parts, ", ")}
}

func (e *evaluation) explainLadder() []Step {
	l := e.ladder()
	if !l.asks() {
		return []Step{objectionStep("ladder", l.end)}
	}
	switch {
	case e.unanswered != reasonNotUnavailable:
		return []Step{objectionStep("decider", e.unavailable(e.unanswered))}
	case e.skipped:
		return []Step{{Name: "decider", Result: "not asked", Detail: "an approval of this call stands in for its answers"}}
	case e.answers == nil:
		return []Step{{Name: "decider", Result: "not asked"}}
	}
	steps := []Step{{Name: "decider", Result: "answered", Detail: answersInWords(e.answers)}}
	for i := range l.steps {
		if l.steps[i].matches(e.answers) {
			return append(steps, objectionStep(fmt.Sprintf("threshold %d", i+1), l.steps[i].obligation))
		}
		steps = append(steps, Step{Name: fmt.Sprintf("threshold %d", i+1), Result: "does not match"})
	}
	return append(steps, objectionStep("otherwise", l.end))
}

func answersInWords(answers questions.Answers) string {
	parts := make([]string, 0, len(answers))
	for name, a := range answers {
		switch a.Type {
		case questions.YesNo:
			parts = append(parts, fmt.Sprintf("%s %.3f", name, a.Probability))
		case questions.Score:
			parts = append(parts, fmt.Sprintf("%s %.2f", name, a.Score))
		case questions.Choice:
			parts = append(parts, name+" "+a.Choice)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
