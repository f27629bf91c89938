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
	inForce     classOf
	observed    classOf // by policies in mode Audit
	disclose    v1alpha1.Disclosure
	capture     v1alpha1.CaptureState
	auditOnly   bool
	// confirmations is what all policies in force together let the caller cause, those included that have no opinion about
	// the tool: who is asked too much is asked too much, whatever about. It may be a policy's own: do not write to it.
	confirmations *v1alpha1.ConfirmationBudget
	// inForceBudget and observedBudget are what expressions may cost. What is only observed has one of its own, so that
	// it cannot use up what those in force need.
	inForceBudget, observedBudget budget
}

// Ask is one request to a decider.
type Ask struct {
	// Decider is the name of the DeciderModel.
	Decider string
	// Policy that asks.
	Policy string
	// Namespace of the caller.
	Namespace string
	// Audit says that the policy is only observed: its decider must not change or hold up what the others say.
	Audit     bool
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
	selected := s.forNamespace(r.Caller.Namespace)
	around := survey(selected, r.Caller)
	j := &Judgement{request: r, disclose: around.disclose, capture: around.capture}
	if around.toolPolicies == 0 && !around.isInvalid {
		j.inForce.raise(v1alpha1.BaseDestructive, "")
		j.extra = append(j.extra, Obligation{Outcome: Block, Reason: ReasonNoPolicy, By: byNoPolicy, Remedy: RemedyAskAdmin,
			Message: "no ToolPolicy selects service account " + r.Caller.String() + ": an admin has to apply one in its namespace"})
		return j
	}
	j.evaluations = make([]evaluation, 0, around.policies)
	enforced, listed := j.evaluate(ctx, selected, &around)
	j.auditOnly = enforced == 0
	if j.auditOnly {
		// Nothing in force knows the tool: what it may do is what those who watch say of it, and the worst if none does.
		j.inForce.join(j.observed)
	} else if listed == 0 {
		j.inForce.raise(v1alpha1.BaseDestructive, "")
		j.extra = append(j.extra, unknownTool(Block))
	}
	if j.hasPermitConflict() {
		j.extra = append(j.extra, permitConflict())
	}
	if ctx.Err() != nil {
		j.extra = append(j.extra, *canceled())
	}
	j.prepareAsks()
	return j
}

// surroundings are what all policies that select a caller mean for one another.
type surroundings struct {
	// policies is how many there are, toolPolicies how many of the caller's own namespace.
	policies, toolPolicies int
	// isInvalid: one in force does not compile. It must say so, and not look like none.
	isInvalid bool
	// minEnforce: a cluster policy wants those of the namespace enforced, whatever they say.
	minEnforce bool
	// grants are cluster policies whose grants count for those of the namespace too.
	grants   []*Compiled
	disclose v1alpha1.Disclosure
	capture  v1alpha1.CaptureState
}

func survey(selected []*Compiled, c Caller) surroundings {
	var s surroundings
	for _, p := range selected {
		if !p.selects(c) {
			continue
		}
		if s.policies == 0 {
			s.disclose = p.disclose
		}
		s.disclose = leastDisclosing(s.disclose, p.disclose)
		s.capture = mostPrivate(s.capture, p.capture)
		s.policies++
		if !p.cluster {
			s.toolPolicies++
			continue
		}
		s.minEnforce = s.minEnforce || p.minEnforce
		s.isInvalid = s.isInvalid || p.Invalid && !p.audit
		// A policy that is only observed must not help anybody over another's bar, nor one that does not compile.
		if !p.audit && !p.Invalid && len(p.grants) > 0 {
			s.grants = append(s.grants, p)
		}
	}
	return s
}

// evaluate looks at the call by each policy, those in force first. It returns how many ToolPolicies are in force, and how
// many of these have an opinion about the tool.
func (j *Judgement) evaluate(ctx context.Context, selected []*Compiled, around *surroundings) (enforced, listed int) {
	j.inForceBudget.left, j.observedBudget.left = runLimit, runLimit
	for _, inForce := range [...]bool{true, false} {
		cost := &j.inForceBudget
		if !inForce {
			cost = &j.observedBudget
		}
		for _, p := range selected {
			isEnforced := !p.audit || around.minEnforce && !p.cluster
			if isEnforced != inForce || !p.selects(j.request.Caller) {
				continue
			}
			if inForce && !p.Invalid {
				j.confirmations = tighterBudget(j.confirmations, p.approvals.Budget)
			}
			hasOpinion := j.add(ctx, p, inForce, around.grants, cost)
			if !inForce || p.cluster {
				continue
			}
			enforced++
			if hasOpinion {
				listed++
			}
		}
	}
	return enforced, listed
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
	e.settled, e.fromRules = true, len(e.obligations)
}

// raise joins the class that one policy sees into the class of the call.
func (j *Judgement) raise(enforced bool, base v1alpha1.Base, name string) {
	if enforced {
		j.inForce.raise(base, name)
	} else {
		j.observed.raise(base, name)
	}
}

// classOf is the strictest class that policies see in a call, with the name that the last of them gives it: that of the
// namespace rather than of the cluster. The zero value is nobody's opinion and counts as the worst.
type classOf struct {
	base v1alpha1.Base
	name string
}

func (k *classOf) raise(base v1alpha1.Base, name string) {
	// Of the two worst, data that is gone is the one that settings are stricter about.
	isWorse := k.base == "" || rank(base) > rank(k.base) || base == v1alpha1.BaseDestructive && k.base == v1alpha1.BaseExternal
	if isWorse {
		k.base, k.name = base, name
	} else if base == k.base && name != "" {
		k.name = name
	}
}

func (k *classOf) join(o classOf) {
	if o.base != "" {
		k.raise(o.base, o.name)
	}
}

// worst returns the base, the worst where nobody has said any.
func (k *classOf) worst() v1alpha1.Base {
	if k.base == "" {
		return v1alpha1.BaseDestructive
	}
	return k.base
}

// IsRead says whether every policy in force sees a read. Anything else has to be recorded before it is allowed.
func (j *Judgement) IsRead() bool { return j.inForce.worst() == v1alpha1.BaseReadOnly }

// Class returns the name and base of the class of the call; of several, that of the strictest base. The name is empty
// for a tool that nobody lists.
func (j *Judgement) Class() (name, base string) { return j.inForce.name, string(j.inForce.worst()) }

// ToolName is the tool as the first policy that lists it writes it, a name or a prefix with a star; empty where none in
// force does. It comes from a closed set, however many names callers make up.
func (j *Judgement) ToolName() string {
	for i := range j.evaluations {
		if e := &j.evaluations[i]; e.enforced && e.tool != nil {
			return e.tool.rule.Name
		}
	}
	return ""
}

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

// MayNeedPerson says whether the call could come to Confirm, so that an approval could make a difference to it.
func (j *Judgement) MayNeedPerson() bool {
	if j.IsSettled() {
		return false
	}
	for i := range j.evaluations {
		e := &j.evaluations[i]
		if !e.enforced {
			continue
		}
		if len(e.obligations) > 0 || !e.settled && (e.class.always || e.ladder().asks() || !e.ladder().endAllows) {
			return true
		}
	}
	return false
}

// Attested returns the user's turns and the end user that a front door has signed, as far as a policy in force has looked at
// them. There is one attestation to a call, so all policies that accept it see the same.
func (j *Judgement) Attested() (userTurns []string, onBehalfOf string, ok bool) {
	for i := range j.evaluations {
		if e := &j.evaluations[i]; e.enforced && e.context != nil {
			return e.context.UserTurns, e.context.OnBehalfOf, true
		}
	}
	return nil, "", false
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
