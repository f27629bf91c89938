package policy

import (
	"context"
	"strings"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy/sources"
	"gatewright.dev/gatewright/internal/questions"
)

// evaluation is one policy's look at one call.
type evaluation struct {
	ctx     context.Context //nolint:containedctx // lives for one call of Judge, whose checks all need it
	request *Request
	policy  *Compiled
	// enforced says whether the obligations count or are only recorded.
	enforced bool
	tool     *tool
	class    *class
	// clusterGrants are policies whose grants count here too.
	clusterGrants []*Compiled

	obligations []Obligation
	// fromRules is how many of the obligations rules have found. Settle adds its own to these.
	fromRules int
	// settled says that a rule has blocked the call or asked to clarify it: nothing further is looked at.
	settled bool
	budget  *budget
	schema  questions.Truth

	context  *attested
	held     []string
	heldDone bool
	findings []sources.Finding
	traced   bool

	asked, askedResults int // index into Judgement.asks; -1: not asked
	failed              Reason
	code                questions.Answers
	answers             questions.Answers
	unanswered          Reason // why a ladder that was climbed has no answers
	skipped             bool   // an approval stands in for the answers
}

// run goes through the checks in order. The first that blocks or asks to clarify settles the matter; reasons to confirm
// add up.
func (e *evaluation) run() {
	defer func() { e.fromRules = len(e.obligations) }()
	for i := range checks {
		o := checks[i].run(e)
		if o == nil {
			continue
		}
		o.Policy = e.policy.label
		e.obligations = append(e.obligations, *o)
		if o.Outcome < Confirm {
			e.settled = true
			return
		}
	}
}

// classify finds the class of the call: the tool's own, unless its parsed arguments are shown to do less.
func (e *evaluation) classify() {
	e.class = e.tool.class
	for i := range e.tool.lower {
		l := &e.tool.lower[i]
		lower, err := e.budget.isTrue(e.ctx, l.program, argumentsActivation{activation{e}})
		if err != nil {
			return // any doubt leaves the class as it is
		}
		if lower {
			e.class = l.class
			return
		}
	}
}

// ladder returns the ladder that applies to the call.
func (e *evaluation) ladder() *ladder { return e.tool.ladder(e.class) }

func (e *evaluation) userTurns() []string {
	if e.policy.trust != v1alpha1.TrustAttested {
		return e.request.UserTurns
	}
	if e.context == nil {
		return nil
	}
	return e.context.UserTurns
}

// onBehalfOf is the end user, as far as the policy takes anybody's word for it.
func (e *evaluation) onBehalfOf() string {
	if e.policy.trust != v1alpha1.TrustAttested {
		return e.request.OnBehalfOf
	}
	if e.context == nil {
		return ""
	}
	return e.context.OnBehalfOf
}

func (e *evaluation) latestWords() string {
	turns := e.userTurns()
	if len(turns) == 0 {
		return ""
	}
	return turns[len(turns)-1]
}

// facts returns what the policy lets be stated. What it does not list is not seen.
func (e *evaluation) facts() map[string]any {
	out := make(map[string]any, len(e.policy.facts))
	for name, f := range e.policy.facts {
		if v, ok := e.fact(f); ok {
			out[name] = v
		}
	}
	return out
}

// fact looks a fact up where the policy wants it from. One that is null says nothing.
func (e *evaluation) fact(f v1alpha1.FactSource) (any, bool) {
	if f.From == v1alpha1.TrustAttested {
		if e.context == nil {
			return nil, false
		}
		v := e.context.Facts[f.Name]
		return v, v != nil
	}
	v := e.request.Facts[f.Name]
	return v, v != nil
}

// trustedFacts are facts that a value may come from, and that a decider may go by.
func (e *evaluation) trustedFacts() map[string]any {
	facts := e.facts()
	if e.policy.trust == v1alpha1.TrustAttested {
		for name, f := range e.policy.facts {
			if f.From != v1alpha1.TrustAttested {
				delete(facts, name)
			}
		}
	}
	return facts
}

// scopes returns the scopes that the caller holds by this policy and by the cluster's.
func (e *evaluation) scopes() []string {
	if e.heldDone {
		return e.held
	}
	e.heldDone = true
	e.held = appendScopes(nil, e.policy, e.request)
	if !e.policy.cluster {
		for _, p := range e.clusterGrants {
			e.held = appendScopes(e.held, p, e.request)
		}
	}
	return e.held
}

func appendScopes(held []string, p *Compiled, r *Request) []string {
	for i := range p.grants {
		if p.grants[i].holds(r.Caller, r.Now) {
			held = append(held, p.grants[i].scopes...)
		}
	}
	return held
}

// trace finds where each value came from, once.
func (e *evaluation) trace() []sources.Finding {
	if e.traced {
		return e.findings
	}
	e.traced = true
	c := sources.Conversation{UserTurns: e.userTurns(), Facts: e.trustedFacts(), Assistant: e.request.Assistant}
	if e.policy.trust != v1alpha1.TrustAttested {
		// Nobody but the caller vouches for these.
		c.System, c.ToolResults = e.request.System, e.request.ToolResults
	}
	e.findings = sources.NewIndex(c).Trace(e.request.Arguments, e.tool.offers)
	return e.findings
}

func (e *evaluation) sourceMap() map[string]string {
	out := make(map[string]string, len(e.trace()))
	for _, f := range e.trace() {
		out[f.Pointer] = string(f.Certain())
	}
	return out
}

// place says what stands at a pointer.
type place uint8

const (
	// absent: an object on the way lacks the key, or a list the place, so there is no such argument.
	absent place = iota
	present
	// misshapen: something on the way is no object, or a list where a name is wanted, or the name stands there in other
	// capitals or may be inherited, which many a tool reads all the same. What the rule is about may well be there in
	// another shape, so it cannot count as absent.
	misshapen
)

// lookup finds the value at a pointer into the arguments. What it looks at is charged to the budget of the call.
func lookup(v any, pointer []string, b *budget) (any, place) {
	for _, p := range pointer {
		switch parent := v.(type) {
		case map[string]any:
			child, ok := parent[p]
			if b.isSpeltOtherwise(parent, p) {
				return nil, misshapen
			}
			if !ok {
				return nil, absent
			}
			v = child
		case []any:
			i, ok := arrayIndex(p)
			if !ok {
				return nil, misshapen
			}
			if i >= len(parent) {
				return nil, absent
			}
			v = parent[i]
		case nil:
			return nil, absent
		default:
			return nil, misshapen
		}
	}
	return v, present
}

func arrayIndex(s string) (int, bool) {
	if s == "" || len(s) > 9 || (len(s) > 1 && s[0] == '0') {
		return 0, false
	}
	i := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		i = i*10 + int(c-'0')
	}
	return i, true
}

// isBelow says whether a pointer is another or stands below it.
func isBelow(pointer, root string) bool {
	return root == everyArgument || pointer == root || strings.HasPrefix(pointer, root+"/")
}
