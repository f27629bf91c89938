package policy

import (
	"gatewright.dev/gatewright/internal/questions"
)

// Ladder is what a policy makes of a decider's answers to calls of one tool in one class, as the gate applies it.
type Ladder struct {
	// Tool is the rule that gives the thresholds, by name and server; empty if the class gives them.
	Tool, Server string
	// Class and its base.
	Class, Base string
	// AlwaysConfirm says that calls of the class need a person whatever the answers are.
	AlwaysConfirm bool
	// Questions that are asked, those that see tool results last.
	Questions []questions.Question

	inner *ladder
}

// LadderFor finds the ladder for calls of a tool that have a class; a tool whose calls all have one class needs no name of
// it. False: the policy does not list the tool, the tool cannot have the class, or no decider is asked.
func (p *Compiled) LadderFor(name, server, className string) (Ladder, bool) {
	t := p.match(name, server)
	if t == nil || p.Invalid {
		return Ladder{}, false
	}
	classes := t.classes()
	for _, k := range classes {
		l := t.ladder(k)
		if k.name != className && len(classes) > 1 || !l.asks() {
			continue
		}
		out := Ladder{Class: k.name, Base: string(k.base), AlwaysConfirm: k.always, inner: l}
		out.Questions = append(append(out.Questions, l.questions...), l.withResults...)
		if l.ownSteps {
			out.Tool, out.Server = string(t.rule.Name), t.rule.Server
		}
		return out, true
	}
	return Ladder{}, false
}

// FromCode returns the answers that the policy has for a tool without asking: the effects that its rule declares.
func (p *Compiled) FromCode(name, server string) questions.Answers {
	t := p.match(name, server)
	if t == nil {
		return nil
	}
	e := &evaluation{tool: t}
	e.answerFromCode()
	return e.code
}

// Decide says what the answers come to. Answers to all Questions have to be there.
func (l Ladder) Decide(answers questions.Answers) Outcome { return l.inner.decide(answers).Outcome }
