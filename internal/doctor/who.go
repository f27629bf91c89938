package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
)

// Who says who decides about the calls of a service account: what holds whatever a call says, and what is looked at when
// there is one.
type Who struct {
	Caller string `json:"caller"`
	// Policies that apply, with why.
	Policies []Applied `json:"policies"`
	// Grants that it holds now.
	Grants []Held `json:"grants,omitempty"`
	// Deciders that its policies ask.
	Deciders []Asked `json:"deciders,omitempty"`
	// Tools that one of its policies lists, or the one that was asked about.
	Tools []ToolView `json:"tools,omitempty"`
	// Verdict on every call if no policy admits it; empty otherwise.
	Verdict string `json:"verdict,omitempty"`
}

// Applied is a policy that applies.
type Applied struct {
	Policy     string `json:"policy"`
	Generation int64  `json:"generation"`
	Mode       string `json:"mode"`
	// Why says by which field it applies.
	Why string `json:"why"`
	// State is Ready, or the reason why not.
	State string `json:"state"`
}

// Held is a scope that a service account holds.
type Held struct {
	Scope string `json:"scope"`
	// By is the policy that grants it: it counts for that policy's tools, and for all if it is a ClusterToolPolicy.
	By string `json:"by"`
	// Until is when it ends; empty: it does not.
	Until string `json:"until,omitempty"`
}

// Asked is a decider, and whether its fingerprint is the one that thresholds were set for.
type Asked struct {
	Decider string `json:"decider"`
	Policy  string `json:"policy"`
	Pinned  string `json:"pinned,omitempty"`
	Active  string `json:"active,omitempty"`
	// State is Fits, Mismatch, NotPinned, Unknown, NotFound or NotAllowed.
	State string `json:"state"`
	// Ready says what the manager says about it.
	Ready string `json:"ready"`
}

// ToolView is what holds for a tool.
type ToolView struct {
	Tool   string `json:"tool"`
	Server string `json:"server,omitempty"`
	Class  string `json:"class"`
	Base   string `json:"base"`
	// AtLeast is the outcome of every call, whatever it says and whatever a decider answers. Allow: that depends.
	AtLeast string `json:"atLeast"`
	// Because are the reasons for it, each with the policy.
	Because []string `json:"because,omitempty"`
	// Checks are looked at when there is a call.
	Checks []string `json:"checks,omitempty"`
	// Asks are questions to deciders.
	Asks []string `json:"asks,omitempty"`
	// Permit is the audience of a permit that the tool server checks; empty: the gate is advice for this tool.
	Permit string `json:"permit,omitempty"`
	// WouldBe is what policies in mode Audit say.
	WouldBe []string `json:"wouldBe,omitempty"`
}

// WhoDecides answers for one service account, and for one tool if it is named.
func WhoDecides(ctx context.Context, s *Snapshot, caller policy.Caller, tool string) Who {
	w := &who{Snapshot: s, ctx: ctx, caller: caller, out: Who{Caller: caller.String()}}
	var listed [][]v1alpha1.ToolRule
	for i := range s.ToolPolicies {
		if p := &s.ToolPolicies[i]; isSelected(p, caller.Namespace, caller.ServiceAccount) {
			listed = append(listed, w.toolPolicy(p))
		}
	}
	for i := range s.ClusterToolPolicies {
		p := &s.ClusterToolPolicies[i]
		if len(p.Spec.Namespaces) == 0 || slices.Contains(p.Spec.Namespaces, v1alpha1.Namespace(caller.Namespace)) {
			listed = append(listed, w.floor(p))
		}
	}
	set := policy.NewSet(w.compiled)
	if v := set.Judge(ctx, w.request("x", "")).Settle(nil, nil); v.Reason == policy.ReasonNoPolicy || v.Reason == policy.ReasonPolicyInvalid {
		w.out.Verdict = fmt.Sprintf("%s %s: %s", v.Outcome, v.Reason, v.Message)
	}
	for _, name := range toolNames(listed, tool) {
		w.out.Tools = append(w.out.Tools, w.tool(set, name))
	}
	return w.out
}

type who struct {
	*Snapshot
	ctx      context.Context
	caller   policy.Caller
	out      Who
	compiled []*policy.Compiled
	// checks are what was left out of the compiled policies, by policy and rule.
	checks []left
}

// left is what a rule looks at when there is a call.
type left struct {
	policy string
	rule   v1alpha1.ToolRule
	checks []string
}

func (w *who) request(tool, server string) *policy.Request {
	return &policy.Request{Caller: w.caller, Tool: tool, Server: server, Now: w.Now}
}

func (w *who) toolPolicy(p *v1alpha1.ToolPolicy) []v1alpha1.ToolRule {
	id := policy.PolicyID{Kind: v1alpha1.KindToolPolicy, Namespace: p.Namespace, Name: p.Name}.String()
	why := "its subjects are all service accounts of namespace " + p.Namespace
	if len(p.Spec.Subjects) > 0 {
		why = "spec.subjects names " + w.caller.ServiceAccount
	}
	full, _ := policy.Compile(p)
	bare := p.DeepCopy()
	w.leave(id, &bare.Spec.PolicyRules)
	c, _ := policy.Compile(bare)
	w.applied(id, p.Generation, &p.Spec.PolicyRules, &p.Status, why, full, c)
	return p.Spec.Tools
}

func (w *who) floor(p *v1alpha1.ClusterToolPolicy) []v1alpha1.ToolRule {
	id := policy.PolicyID{Kind: v1alpha1.KindClusterToolPolicy, Name: p.Name}.String()
	why := "it is for all namespaces"
	if len(p.Spec.Namespaces) > 0 {
		why = "spec.namespaces names " + w.caller.Namespace
	}
	full, _ := policy.CompileCluster(p)
	bare := p.DeepCopy()
	w.leave(id, &bare.Spec.PolicyRules)
	c, _ := policy.CompileCluster(bare)
	w.applied(id, p.Generation, &p.Spec.PolicyRules, &p.Status, why, full, c)
	return p.Spec.Tools
}

func (w *who) applied(id string, generation int64, r *v1alpha1.PolicyRules, s *v1alpha1.PolicyStatus, why string, full, bare *policy.Compiled) {
	bare.Invalid = full.Invalid
	w.compiled = append(w.compiled, bare)
	mode := r.Mode
	if mode == "" {
		mode = v1alpha1.ModeEnforce
	}
	w.out.Policies = append(w.out.Policies, Applied{Policy: id, Generation: generation, Mode: string(mode), Why: why, State: state(s.Conditions)})
	for _, g := range r.Grants {
		if string(g.ServiceAccount) != w.caller.ServiceAccount || g.Namespace != "" && string(g.Namespace) != w.caller.Namespace || g.Until != nil && !w.Now.Before(g.Until.Time) {
			continue
		}
		for _, scope := range g.Scopes {
			h := Held{Scope: string(scope), By: id}
			if g.Until != nil {
				h.Until = g.Until.UTC().Format(time.RFC3339)
			}
			w.out.Grants = append(w.out.Grants, h)
		}
	}
	if full.Decider() != "" {
		w.out.Deciders = append(w.out.Deciders, w.decider(id, r.DeciderRef))
	}
}

// state is what a Ready condition says.
func state(conditions []metav1.Condition) string {
	switch c := meta.FindStatusCondition(conditions, string(v1alpha1.ConditionReady)); {
	case c == nil:
		return "Unknown"
	case c.Status == metav1.ConditionTrue:
		return "Ready"
	default:
		return c.Reason
	}
}

func (w *who) decider(id string, ref *v1alpha1.DeciderReference) Asked {
	out := Asked{Decider: string(ref.Name), Policy: id, Pinned: string(ref.Fingerprint), State: "NotFound", Ready: "Unknown"}
	for i := range w.DeciderModels {
		m := &w.DeciderModels[i]
		if m.Name != string(ref.Name) {
			continue
		}
		out.Ready = state(m.Status.Conditions)
		if m.Status.Active != nil {
			out.Active = string(m.Status.Active.Fingerprint)
		}
		switch {
		case !allows(&m.Spec, w.caller.Namespace):
			out.State = "NotAllowed"
		case out.Active == "":
			out.State = "Unknown"
		case out.Pinned == "":
			out.State = "NotPinned"
		case out.Pinned != out.Active:
			out.State = "Mismatch"
		default:
			out.State = "Fits"
		}
	}
	return out
}

// allows says whether policies of a namespace may refer to a decider.
func allows(m *v1alpha1.DeciderModelSpec, namespace string) bool {
	switch a := m.AllowedNamespaces; {
	case a == nil:
		return m.Runtime != v1alpha1.RuntimeExternal
	case a.From == v1alpha1.NamespacesListed:
		return slices.Contains(a.Namespaces, v1alpha1.Namespace(namespace))
	default:
		return a.From == v1alpha1.NamespacesAll
	}
}

// leave takes out of a policy what looks at the call, and notes it. What is left holds for every call.
func (w *who) leave(id string, r *v1alpha1.PolicyRules) {
	var common []string
	if r.ContextTrust == v1alpha1.TrustAttested {
		common = append(common, "attested context")
	}
	for _, f := range r.FactsFrom {
		if f.Presence == v1alpha1.FactRequired {
			common = append(common, "fact "+f.Name)
		}
	}
	r.ContextTrust, r.FactsFrom = v1alpha1.TrustCaller, nil
	for i := range r.Tools {
		t := &r.Tools[i]
		w.checks = append(w.checks, left{id, *t.DeepCopy(), append(slices.Clone(common), looksAt(t)...)})
		t.ArgumentsSchema, t.Paths, t.Hosts, t.ArgumentSources, t.Rules, t.LowerTo, t.ConfirmMessage = nil, nil, nil, nil, nil, nil, ""
	}
}

// looksAt names what a rule looks at.
func looksAt(t *v1alpha1.ToolRule) []string {
	var out []string
	if t.ArgumentsSchema != nil {
		out = append(out, "schema")
	}
	for _, p := range t.Paths {
		out = append(out, "path "+string(p.Argument))
	}
	for _, h := range t.Hosts {
		out = append(out, "host "+string(h.Argument))
	}
	for _, s := range t.ArgumentSources {
		out = append(out, "source of "+string(s.Argument))
	}
	for _, r := range t.Rules {
		out = append(out, "rule "+r.Name)
	}
	for _, l := range t.LowerTo {
		out = append(out, "lower to "+string(l.Class))
	}
	return out
}

// named is a tool to say something about.
type named struct{ tool, server string }

// toolNames lists what policies list, or the one that is asked about with each server that policies name for it.
func toolNames(listed [][]v1alpha1.ToolRule, only string) []named {
	var out []named
	if only != "" {
		out = append(out, named{tool: only})
	}
	for _, rules := range listed {
		for i := range rules {
			n := named{rules[i].Name, rules[i].Server}
			if only != "" && !covers(n.tool, only) || only != "" && n.server == "" {
				continue
			}
			if only != "" {
				n.tool = only
			}
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b named) int { return strings.Compare(a.tool+"\x00"+a.server, b.tool+"\x00"+b.server) })
	return slices.Compact(out)
}

// covers says whether a name or prefix matches all that another does.
func covers(rule, name string) bool {
	prefix, isPrefix := strings.CutSuffix(rule, "*")
	return rule == name || isPrefix && len(strings.TrimSuffix(name, "*")) >= len(prefix) && strings.HasPrefix(name, prefix) && name != prefix
}

// tool says what holds for one tool. A prefix is looked at by a name below it that nothing else lists.
func (w *who) tool(set *policy.Set, n named) ToolView {
	name := strings.Replace(n.tool, "*", "x", 1)
	j := set.Judge(w.ctx, w.request(name, n.server))
	out := ToolView{Tool: n.tool, Server: n.server}
	out.Class, out.Base = j.Class()
	for _, a := range j.Asks() {
		var questions []string
		for _, q := range a.Questions {
			questions = append(questions, q.Name)
		}
		out.Asks = append(out.Asks, fmt.Sprintf("%s (%s) by %s", a.Decider, strings.Join(questions, ", "), a.Policy))
	}
	// What stands in for the answers shows no reason that a policy has, so that it discharges none.
	v := j.Settle(nil, &policy.Approval{Name: "asked later", Shown: []string{""}})
	out.AtLeast = v.Outcome.String()
	for _, o := range v.Obligations {
		out.Because = append(out.Because, strings.TrimSpace(string(o.Reason)+" "+o.Policy))
	}
	for _, a := range v.WouldBe {
		out.WouldBe = append(out.WouldBe, fmt.Sprintf("%s: %s %s", a.Policy, a.Outcome, a.Reason))
	}
	out.Permit = j.Terms().PermitAudience
	for _, l := range w.checks {
		if covers(l.rule.Name, n.tool) && (l.rule.Server == "" || l.rule.Server == n.server) && !w.isShadowed(&l, n) {
			for _, c := range l.checks {
				out.Checks = append(out.Checks, c+" by "+l.policy)
			}
		}
	}
	return out
}

// isShadowed says whether the same policy has a more specific rule for the tool.
func (w *who) isShadowed(l *left, n named) bool {
	return slices.ContainsFunc(w.checks, func(o left) bool {
		isMore := len(o.rule.Name) > len(l.rule.Name) || len(o.rule.Name) == len(l.rule.Name) && o.rule.Server != "" && l.rule.Server == ""
		return o.policy == l.policy && isMore && covers(o.rule.Name, n.tool) && (o.rule.Server == "" || o.rule.Server == n.server)
	})
}

// PolicyKinds names what WhoDecides goes by.
func PolicyKinds() []string { return []string{seesToolPolicies, seesFloors, seesDeciders} }

// Sees gives an error if one of these could not be read: without it an answer would be wrong.
func (s *Snapshot) Sees(what ...string) error {
	for _, n := range s.NotSeen {
		if slices.Contains(what, n.What) {
			return fmt.Errorf("reading %s: %w", n.What, n.Err)
		}
	}
	return nil
}
