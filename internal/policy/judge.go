package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/questions"
)

// Judgement is a call on its way to a verdict. It belongs to one goroutine.
type Judgement struct {
	request     *Request
	evaluations []evaluation
	asks        []Ask
	extra       []Obligation // the engine's own
	base        v1alpha1.Base
	class       string
	auditOnly   bool
}

// Ask is one request to a decider.
type Ask struct {
	// Decider is the name of the DeciderModel.
	Decider string
	// Policy that asks.
	Policy string
	// Namespace of the caller.
	Namespace string
	Timeout   time.Duration
	State     questions.State
	Questions []questions.Question
}

// Answered is what came of an Ask. The zero value is a decider that gave no answer.
type Answered struct {
	Answers     questions.Answers
	Fingerprint string
	// Unavailable says why there is no usable answer; empty if there is one.
	Unavailable Reason
}

// Approval is a person's yes to this very call.
type Approval struct {
	Name string
	// Shown are the keys of the reasons to confirm that the person saw.
	Shown []string
}

// Judge runs the rules of all policies that select the caller. It always returns a judgement: what cannot be judged is
// blocked by it.
func (s *Set) Judge(ctx context.Context, r *Request) *Judgement {
	j := &Judgement{request: r, base: v1alpha1.BaseReadOnly}
	selected := s.forNamespace(r.Caller.Namespace)
	grants, minEnforce, toolPolicies := clusterTerms(selected, r.Caller)
	if toolPolicies == 0 {
		j.base = v1alpha1.BaseDestructive
		j.extra = append(j.extra, Obligation{Outcome: Block, Reason: ReasonNoPolicy, By: byNoPolicy, Remedy: RemedyAskAdmin,
			Message: "no ToolPolicy selects this service account: an admin has to apply one in its namespace"})
		return j
	}
	cost := &budget{left: runLimit}
	enforced, listed := 0, 0
	j.evaluations = make([]evaluation, 0, len(selected))
	for _, p := range selected {
		if !p.selects(r.Caller) {
			continue
		}
		isEnforced := !p.audit || minEnforce && !p.cluster
		if isEnforced && !p.cluster {
			enforced++
		}
		if j.add(ctx, p, isEnforced, grants, cost) && isEnforced && !p.cluster {
			listed++
		}
	}
	j.auditOnly = enforced == 0
	if enforced > 0 && listed == 0 && len(j.extra) == 0 {
		j.base = v1alpha1.BaseDestructive
		j.extra = append(j.extra, unknownTool(Block))
	}
	j.prepareAsks()
	return j
}

// clusterTerms gathers what cluster policies mean for those of the namespace.
func clusterTerms(selected []*Compiled, c Caller) (grants []*Compiled, minEnforce bool, toolPolicies int) {
	for _, p := range selected {
		if !p.selects(c) {
			continue
		}
		switch {
		case !p.cluster || p.Invalid:
			toolPolicies++ // one that does not compile must say so, and not look like none
		default:
			minEnforce = minEnforce || p.minEnforce
			if !p.audit && len(p.grants) > 0 {
				// A policy that is only observed must not help anybody over another's bar.
				grants = append(grants, p)
			}
		}
	}
	return grants, minEnforce, toolPolicies
}

// add evaluates one policy and says whether it has an opinion about the tool.
func (j *Judgement) add(ctx context.Context, p *Compiled, enforced bool, grants []*Compiled, cost *budget) bool {
	j.evaluations = append(j.evaluations, evaluation{
		ctx: ctx, request: j.request, policy: p, enforced: enforced, clusterGrants: grants, budget: cost,
		asked: -1, askedResults: -1, tool: p.unknownTool,
	})
	e := &j.evaluations[len(j.evaluations)-1]
	if p.Invalid {
		e.settle(Obligation{Outcome: Block, Reason: ReasonPolicyInvalid, By: byPolicyInvalid, Remedy: RemedyAskAdmin,
			Message: "a policy that applies to this service account does not compile: its admin has to mend it"})
		j.raise(enforced, v1alpha1.BaseDestructive, "")
		return true
	}
	t := p.match(j.request.Tool, j.request.Server)
	if t == nil {
		return j.addUnknown(e, enforced)
	}
	e.tool = t
	e.classify()
	j.raise(enforced, e.class.base, e.class.name)
	e.run()
	return true
}

func (j *Judgement) addUnknown(e *evaluation, enforced bool) bool {
	switch e.policy.unknown {
	case v1alpha1.UnknownToolsDefer:
		j.evaluations = j.evaluations[:len(j.evaluations)-1]
		return false
	case v1alpha1.UnknownToolsConfirm:
		e.settle(unknownTool(Confirm))
	default:
		e.settle(unknownTool(Block))
	}
	j.raise(enforced, v1alpha1.BaseDestructive, "")
	return true
}

func (e *evaluation) settle(o Obligation) {
	o.Policy = e.policy.label
	e.obligations = append(e.obligations, o)
	e.settled = true
}

// raise joins the class that one policy sees into the class of the call.
func (j *Judgement) raise(enforced bool, base v1alpha1.Base, name string) {
	if !enforced {
		if j.class == "" {
			j.class = name
		}
		return
	}
	if rank(base) >= rank(j.base) {
		j.base = base
		if name != "" {
			j.class = name
		}
	}
}

// IsRead says whether every policy in force sees a read. Anything else has to be recorded before it is allowed.
func (j *Judgement) IsRead() bool { return j.base == v1alpha1.BaseReadOnly }

// Class returns the name and base of the class of the call; of several, that of the strictest base. The name is empty
// for a tool that nobody lists.
func (j *Judgement) Class() (name, base string) { return j.class, string(j.base) }

// IsSettled says whether rules alone have blocked the call. A Clarify of one policy settles that policy only: another
// may still come to Block, and adding a policy must never make a verdict weaker.
func (j *Judgement) IsSettled() bool {
	for _, o := range j.extra {
		if o.Outcome == Block {
			return true
		}
	}
	for i := range j.evaluations {
		if e := &j.evaluations[i]; e.enforced && e.settled && strictest(e.obligations).Outcome == Block {
			return true
		}
	}
	return false
}

// Policies returns the policies that applied, each with its generation.
func (j *Judgement) Policies() []string {
	out := make([]string, len(j.evaluations))
	for i := range j.evaluations {
		out[i] = j.evaluations[i].policy.stamp
	}
	return out
}

// PolicyDigest identifies everything in the policies in force that bears on this tool, with the engine's semantics.
func (j *Judgement) PolicyDigest() string {
	h := sha256.New()
	h.Write([]byte(EngineSemantics))
	for i := range j.evaluations {
		if e := &j.evaluations[i]; e.enforced && e.tool != nil {
			h.Write([]byte(e.tool.digest))
		}
	}
	var sum [sha256.Size]byte
	return hex.EncodeToString(h.Sum(sum[:0]))
}
