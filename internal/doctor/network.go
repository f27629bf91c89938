package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"gatewright.dev/gatewright/internal/names"
)

// NetworkPolicies add up: what one of them allows is allowed, and a pod that none selects may do everything. So a path is
// open when any policy opens it, or when no policy selects the pod for that direction.

// egress says which ways lead out of a pod beside those to the gate, to proxies in front of tools and to name service.
func (d *diagnosis) egress(p *corev1.Pod) []string {
	if p.Spec.HostNetwork {
		return []string{"everything: it is in its node's network, where NetworkPolicies do not hold"}
	}
	return d.opens(p, networkingv1.PolicyTypeEgress, "everything: no NetworkPolicy limits its egress", func(n *networkingv1.NetworkPolicy) (who []string) {
		for _, rule := range n.Spec.Egress {
			if !isNameService(rule.Ports) {
				who = append(who, d.peers(n.Namespace, rule.To, d.isWayOfCalls)...)
			}
		}
		return who
	})
}

// ingress says who reaches a decider beside the parts of the installation that ask it.
func (d *diagnosis) ingress(p *corev1.Pod) []string {
	return d.opens(p, networkingv1.PolicyTypeIngress, "everybody: no NetworkPolicy limits its ingress", func(n *networkingv1.NetworkPolicy) (who []string) {
		for _, rule := range n.Spec.Ingress {
			who = append(who, d.peers(n.Namespace, rule.From, d.mayAskDeciders)...)
		}
		return who
	})
}

// opens says whom the policies that limit a pod in a direction let through, each with its name, and otherwise that none does.
func (d *diagnosis) opens(p *corev1.Pod, direction networkingv1.PolicyType, otherwise string, lets func(*networkingv1.NetworkPolicy) []string) []string {
	var open []string
	isSelected := false
	for i := range d.NetworkPolicies {
		n := &d.NetworkPolicies[i]
		if !applies(n, p, direction) {
			continue
		}
		isSelected = true
		for _, who := range lets(n) {
			open = append(open, who+" by NetworkPolicy "+n.Name)
		}
	}
	if !isSelected {
		return []string{otherwise}
	}
	slices.Sort(open)
	return slices.Compact(open)
}

// applies says whether a NetworkPolicy limits a pod in a direction. One without policyTypes limits ingress, and egress
// if it has rules for it.
func applies(n *networkingv1.NetworkPolicy, p *corev1.Pod, direction networkingv1.PolicyType) bool {
	if n.Namespace != p.Namespace || !matches(&n.Spec.PodSelector, p.Labels) {
		return false
	}
	if len(n.Spec.PolicyTypes) > 0 {
		return slices.Contains(n.Spec.PolicyTypes, direction)
	}
	return direction == networkingv1.PolicyTypeIngress || len(n.Spec.Egress) > 0
}

// matches says whether a selector matches. One that cannot be read opens what it is in: better said than passed over.
func matches(s *metav1.LabelSelector, set map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err != nil || selector.Matches(labels.Set(set))
}

// isNameService says whether a rule is about port 53 and nothing else.
func isNameService(ports []networkingv1.NetworkPolicyPort) bool {
	return len(ports) > 0 && !slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		return p.Port == nil || p.Port.IntValue() != 53 || p.EndPort != nil && *p.EndPort != 53
	})
}

// peers names who is meant by peers of a rule, beside those that are meant to be. No peers are all.
func (d *diagnosis) peers(namespace string, peers []networkingv1.NetworkPolicyPeer, isMeant func(*corev1.Pod) bool) []string {
	if len(peers) == 0 {
		return []string{"every address"}
	}
	var out []string
	for i := range peers {
		if peers[i].IPBlock != nil {
			out = append(out, peers[i].IPBlock.CIDR)
			continue
		}
		out = append(out, d.peer(namespace, &peers[i], isMeant)...)
	}
	return out
}

// peer looks at namespaces and pods. A whole namespace is named even when nothing runs there yet.
func (d *diagnosis) peer(namespace string, peer *networkingv1.NetworkPolicyPeer, isMeant func(*corev1.Pod) bool) []string {
	var out []string
	for i := range d.Namespaces {
		n := &d.Namespaces[i]
		isIn := n.Name == namespace
		if peer.NamespaceSelector != nil {
			isIn = matches(peer.NamespaceSelector, n.Labels)
		}
		if !isIn {
			continue
		}
		if peer.PodSelector == nil && n.Name != d.Namespace {
			out = append(out, "every pod of namespace "+n.Name)
			continue
		}
		if example := d.other(n.Name, peer.PodSelector, isMeant); example != "" {
			out = append(out, "pods such as "+n.Name+"/"+example)
		}
	}
	return out
}

// other is the first pod that a selector matches and that is not meant.
func (d *diagnosis) other(namespace string, selector *metav1.LabelSelector, isMeant func(*corev1.Pod) bool) string {
	for i := range d.Pods {
		p := &d.Pods[i]
		if p.Namespace == namespace && !isOver(p) && (selector == nil || matches(selector, p.Labels)) && !isMeant(p) {
			return p.Name
		}
	}
	return ""
}

// isWayOfCalls says whether a pod is where calls of tools are supposed to go: the gate, or a proxy that asks it. All of
// Gatewright's own namespace counts, since it admits agents to the gate alone.
func (d *diagnosis) isWayOfCalls(p *corev1.Pod) bool {
	isOurs := p.Labels[names.NameLabel] == names.Name
	return isOurs && (p.Namespace == d.Namespace || p.Labels[names.ComponentLabel] == names.ComponentProxy)
}

// mayAskDeciders says whether a pod is of a part that asks deciders.
func (d *diagnosis) mayAskDeciders(p *corev1.Pod) bool {
	return p.Namespace == d.Namespace && p.Labels[names.NameLabel] == names.Name && slices.Contains(
		[]string{names.ComponentGate, names.ComponentManager, names.ComponentEvaluator, names.ComponentDecider}, p.Labels[names.ComponentLabel])
}

// some are the first few of a list, with how many more there are.
func some(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(list[:most], "; "), len(list)-most)
}
