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
	"gatewright.dev/gatewright/internal/webhook"
)

// policies looks at what the manager says about policies.
func (d *diagnosis) policies() {
	for i := range d.ToolPolicies {
		p := &d.ToolPolicies[i]
		if d.isAsked(p.Namespace) {
			d.policy("ToolPolicy/"+p.Namespace+"/"+p.Name, p.Generation, &p.Status, p.Spec.Mode)
		}
	}
	for i := range d.ClusterToolPolicies {
		p := &d.ClusterToolPolicies[i]
		d.policy("ClusterToolPolicy/"+p.Name, p.Generation, &p.Status, p.Spec.Mode)
	}
}

func (d *diagnosis) policy(object string, generation int64, s *v1alpha1.PolicyStatus, mode v1alpha1.PolicyMode) {
	if mode == v1alpha1.ModeAudit {
		d.add(Info, CheckPolicies, object, "is in mode Audit and enforces nothing", "set mode: Enforce when its records say what it should")
	}
	if s.ObservedGeneration < generation {
		d.add(Warning, CheckPolicies, object, fmt.Sprintf("generation %d is written, and %d is what its conditions speak of", generation, s.ObservedGeneration),
			"wait a moment; if it stays, look at the manager's log")
		return
	}
	for _, t := range []struct {
		condition v1alpha1.ConditionType
		severity  Severity
		effect    string
	}{
		{v1alpha1.ConditionAccepted, Error, "every call of its callers is blocked"},
		{v1alpha1.ConditionResolvedRefs, Error, "what needs the decider is blocked or asks a person"},
		{v1alpha1.ConditionProgrammed, Warning, "some gates decide by another generation"},
	} {
		c := meta.FindStatusCondition(s.Conditions, string(t.condition))
		switch {
		case c == nil:
			d.add(Warning, CheckPolicies, object, "has no condition "+string(t.condition), "look at the manager's log")
		case c.Status == metav1.ConditionFalse:
			d.add(t.severity, CheckPolicies, object, fmt.Sprintf("is not %s, %s: %s; %s", t.condition, c.Reason, c.Message, t.effect), "correct what the message names")
			return
		case c.Status == metav1.ConditionUnknown:
			d.add(Warning, CheckPolicies, object, fmt.Sprintf("whether it is %s is not known, %s: %s", t.condition, c.Reason, c.Message), "wait a moment; if it stays, look at the manager's log")
			return
		}
	}
}

// caller is a service account that may ask the gate.
type caller struct {
	namespace, account string
	pods               []*corev1.Pod
}

func (c caller) String() string { return c.namespace + "/" + c.account }

// callersOf lists the service accounts whose pods hold a token for the gate, sorted.
func (d *diagnosis) callersOf() []caller {
	byName := map[string]*caller{}
	for i := range d.Pods {
		p := &d.Pods[i]
		if isOver(p) || p.Namespace == d.Namespace || !d.isAsked(p.Namespace) || !holdsToken(p) {
			continue
		}
		c := caller{namespace: p.Namespace, account: accountOf(p)}
		if byName[c.String()] == nil {
			byName[c.String()] = &c
		}
		byName[c.String()].pods = append(byName[c.String()].pods, p)
	}
	out := make([]caller, 0, len(byName))
	for _, c := range byName {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b caller) int { return strings.Compare(a.String(), b.String()) })
	return out
}

func accountOf(p *corev1.Pod) string {
	if p.Spec.ServiceAccountName == "" {
		return "default"
	}
	return p.Spec.ServiceAccountName
}

// holdsToken says whether a pod has a token for the gate, under whatever name.
func holdsToken(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return webhook.HoldsToken(&v) })
}

// isSelected says whether a policy applies to a service account.
func isSelected(p *v1alpha1.ToolPolicy, namespace, account string) bool {
	return p.Namespace == namespace && (len(p.Spec.Subjects) == 0 || slices.Contains(p.Spec.Subjects, v1alpha1.ObjectName(account)))
}

func (d *diagnosis) callers() {
	if d.blind(seesPods, seesToolPolicies, seesServiceAccounts, seesNamespaces) {
		return
	}
	callers := d.callersOf()
	for _, c := range callers {
		if !d.hasPolicy(c.namespace, c.account) {
			d.add(Warning, CheckCallers, "ServiceAccount/"+c.String(), fmt.Sprintf("has %s that may ask the gate, and no ToolPolicy selects it: every call is Block NoPolicy", count(len(c.pods), "pod")),
				"write a ToolPolicy in namespace "+c.namespace+" that selects it")
		}
	}
	d.idleAccounts(callers)
	for i := range d.ToolPolicies {
		if p := &d.ToolPolicies[i]; d.isAsked(p.Namespace) {
			d.callersOfPolicy(p, callers)
		}
	}
}

func (d *diagnosis) hasPolicy(namespace, account string) bool {
	return slices.ContainsFunc(d.ToolPolicies, func(p v1alpha1.ToolPolicy) bool { return isSelected(&p, namespace, account) })
}

// idleAccounts are those of labelled namespaces that could ask and would be refused. The account default is in every
// namespace and says nothing.
func (d *diagnosis) idleAccounts(callers []caller) {
	for i := range d.ServiceAccounts {
		a := &d.ServiceAccounts[i]
		isCaller := slices.ContainsFunc(callers, func(c caller) bool { return c.namespace == a.Namespace && c.account == a.Name })
		if a.Name == "default" || isCaller || !d.isAsked(a.Namespace) || !d.labelled(a.Namespace) || d.hasPolicy(a.Namespace, a.Name) {
			continue
		}
		d.add(Info, CheckCallers, "ServiceAccount/"+a.Namespace+"/"+a.Name, "is in a namespace of agents, and no ToolPolicy selects it: its calls would be Block NoPolicy",
			"write a ToolPolicy that selects it, if it is an agent")
	}
}

func (d *diagnosis) labelled(namespace string) bool {
	return slices.ContainsFunc(d.Namespaces, func(n corev1.Namespace) bool { return n.Name == namespace && isLabelled(&n) })
}

// callersOfPolicy says when a policy selects nobody that is there.
func (d *diagnosis) callersOfPolicy(p *v1alpha1.ToolPolicy, callers []caller) {
	object := "ToolPolicy/" + p.Namespace + "/" + p.Name
	for _, subject := range p.Spec.Subjects {
		exists := slices.ContainsFunc(d.ServiceAccounts, func(a corev1.ServiceAccount) bool { return a.Namespace == p.Namespace && a.Name == string(subject) })
		if !exists {
			d.add(Warning, CheckCallers, object, fmt.Sprintf("selects service account %s, which is not there", subject), "correct spec.subjects, or create the service account")
		}
	}
	if !slices.ContainsFunc(callers, func(c caller) bool { return isSelected(p, c.namespace, c.account) }) {
		d.add(Info, CheckCallers, object, "has no caller: no pod that it selects holds a token for the gate", "label the namespace "+names.InjectLabel+"="+names.InjectEnabled+" and restart the agents")
	}
}

// injection finds pods of labelled namespaces that were given nothing.
func (d *diagnosis) injection() {
	if d.blind(seesPods, seesNamespaces) {
		return
	}
	for i := range d.Pods {
		p := &d.Pods[i]
		if isOver(p) || !d.isAsked(p.Namespace) || !d.labelled(p.Namespace) || holdsToken(p) || p.Labels[names.InjectLabel] == names.InjectDisabled {
			continue
		}
		object := "Pod/" + p.Namespace + "/" + p.Name
		if skipped := webhook.Inject(p, p.Namespace, d.Namespace).Skipped; skipped != "" {
			d.add(Warning, CheckInjection, object, "has no token for the gate: "+skipped, "see the guide on injection, or label the pod "+names.InjectLabel+"="+names.InjectDisabled)
			continue
		}
		d.add(Warning, CheckInjection, object, "has no token for the gate: it is older than the label of its namespace, or the webhook did not answer", "create it anew: kubectl rollout restart")
	}
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
