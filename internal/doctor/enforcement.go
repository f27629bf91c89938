package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/policy"
)

// enforcement says of each policy whether it is enforced or advice. A call can only not go around the gate where the tool
// checks a permit, or where the network leaves no other way.
func (d *diagnosis) enforcement() {
	if d.blind(seesPods, seesNamespaces, seesNetworkPolicies, seesToolPolicies, seesFloors) {
		return
	}
	set := d.compiled()
	callers := d.callersOf()
	for i := range d.ToolPolicies {
		if p := &d.ToolPolicies[i]; d.isAsked(p.Namespace) && len(p.Spec.Tools) > 0 {
			d.enforced(p, set, callers)
		}
	}
}

// compiled are the policies as the gate has them.
func (d *diagnosis) compiled() *policy.Set {
	var all []*policy.Compiled
	for i := range d.ToolPolicies {
		c, _ := policy.Compile(&d.ToolPolicies[i])
		all = append(all, c)
	}
	for i := range d.ClusterToolPolicies {
		c, _ := policy.CompileCluster(&d.ClusterToolPolicies[i])
		all = append(all, c)
	}
	return policy.NewSet(all)
}

func (d *diagnosis) enforced(p *v1alpha1.ToolPolicy, set *policy.Set, callers []caller) {
	object := "ToolPolicy/" + p.Namespace + "/" + p.Name
	advice, all := d.withoutPermit(p, set)
	if len(advice) == 0 {
		if all > 0 {
			d.add(Info, CheckEnforcement, object, fmt.Sprintf("is enforced: the %s that change something need a permit", count(all, "tool")), "keep the tool servers checking it")
		}
		return
	}
	tools := fmt.Sprintf("%d of %s that change something need no permit (%s)", len(advice), count(all, "tool"), some(advice))
	open, pods := d.waysOut(p, callers)
	const remedy = "require a permit for these tools (permit: Required) and let their servers check it, or let NetworkPolicies leave the agents no way but to the gate and to proxies that ask it"
	switch {
	case pods == 0:
		d.add(Info, CheckEnforcement, object, "is advice, not enforcement: "+tools+", and no pod is there whose network could be looked at", remedy)
	case len(open) > 0:
		d.add(Warning, CheckEnforcement, object, "is advice, not enforcement: "+tools+", and its callers reach "+some(open), remedy)
	default:
		d.add(Info, CheckEnforcement, object, "is enforced by the network alone: "+tools+", and its callers reach nothing but the gate and proxies",
			"see to it that the network plugin enforces NetworkPolicies: that cannot be seen from here")
	}
}

// withoutPermit lists the tools of a policy that change something and need no permit, and counts those that change
// something. A permit may be required by another policy that applies too.
func (d *diagnosis) withoutPermit(p *v1alpha1.ToolPolicy, set *policy.Set) (advice []string, all int) {
	account := "default"
	if len(p.Spec.Subjects) > 0 {
		account = string(p.Spec.Subjects[0])
	}
	for i := range p.Spec.Tools {
		t := &p.Spec.Tools[i]
		j := set.Judge(d.ctx, &policy.Request{
			Caller: policy.Caller{Namespace: p.Namespace, ServiceAccount: account}, Tool: strings.Replace(t.Name, "*", "x", 1), Server: t.Server, Now: d.Now,
		})
		if _, base := j.Class(); base == string(v1alpha1.BaseReadOnly) {
			continue
		}
		all++
		if j.Terms().PermitAudience == "" {
			advice = append(advice, t.Name)
		}
	}
	return advice, all
}

// waysOut lists where the callers of a policy may go without the gate.
func (d *diagnosis) waysOut(p *v1alpha1.ToolPolicy, callers []caller) (open []string, pods int) {
	for _, c := range callers {
		if !isSelected(p, c.namespace, c.account) {
			continue
		}
		for _, pod := range c.pods {
			pods++
			open = append(open, d.egress(pod)...)
		}
	}
	slices.Sort(open)
	return slices.Compact(open), pods
}

// deciders looks at what the manager says about deciders, and at who reaches their pods.
func (d *diagnosis) deciders() {
	for i := range d.DeciderModels {
		d.decider(&d.DeciderModels[i])
	}
	if d.blind(seesPods, seesNamespaces, seesNetworkPolicies) {
		return
	}
	for _, p := range d.component(names.ComponentDecider) {
		d.reached(p)
	}
}

func (d *diagnosis) decider(m *v1alpha1.DeciderModel) {
	object := "DeciderModel/" + m.Name
	if m.Status.ObservedGeneration < m.Generation {
		d.add(Warning, CheckDeciders, object, fmt.Sprintf("generation %d is written, and %d is what its conditions speak of", m.Generation, m.Status.ObservedGeneration),
			"wait a moment; if it stays, look at the manager's log")
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, string(v1alpha1.ConditionVerified)); c != nil && c.Status == metav1.ConditionFalse {
		d.add(Error, CheckDeciders, object, "did not load the bytes that are pinned, "+c.Reason+": "+c.Message, "pin the hash of the file that you trust, or put the right file there")
		return
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, string(v1alpha1.ConditionReady)); c == nil || c.Status != metav1.ConditionTrue {
		reason := "no condition is there yet"
		if c != nil {
			reason = c.Reason + ": " + c.Message
		}
		d.add(Warning, CheckDeciders, object, "is not ready, "+reason+"; whenDeciderUnavailable of each class decides", "kubectl describe decidermodel "+m.Name)
	}
}

func (d *diagnosis) reached(p *corev1.Pod) {
	if open := d.ingress(p); len(open) > 0 {
		d.add(Error, CheckDeciders, "Pod/"+p.Namespace+"/"+p.Name, "can be reached by "+some(open)+": whoever reaches a decider learns what makes it say yes, and keeps it from answering",
			"let a NetworkPolicy admit the gate, the manager and evaluations alone: the chart has one")
	}
}
