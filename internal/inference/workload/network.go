package workload

import (
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
)

// Service is where the pods of a revision, and of no other, are asked.
func Service(i Install, r Revision) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(r.Name, i.Namespace).WithLabels(Labels(r.Model, r.Name)).WithOwnerReferences(r.owner()).
		WithSpec(corev1ac.ServiceSpec().WithSelector(selector(r.Name)).
			WithPorts(corev1ac.ServicePort().WithName("https").WithProtocol(corev1.ProtocolTCP).WithPort(names.DeciderPort).WithTargetPort(intstr.FromString("https"))))
}

// NetworkPolicy lets only gates, evaluations and the manager ask, and lets the pods go nowhere, but for a download.
func NetworkPolicy(i Install, r Revision) *networkingv1ac.NetworkPolicyApplyConfiguration {
	asking := metav1ac.LabelSelector().WithMatchLabels(map[string]string{names.NameLabel: names.Name}).WithMatchExpressions(
		metav1ac.LabelSelectorRequirement().WithKey(names.ComponentLabel).WithOperator(metav1.LabelSelectorOpIn).
			WithValues(names.ComponentGate, names.ComponentEvaluator, names.ComponentManager))
	spec := networkingv1ac.NetworkPolicySpec().
		WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(selector(r.Name))).
		WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
		WithIngress(networkingv1ac.NetworkPolicyIngressRule().
			WithFrom(networkingv1ac.NetworkPolicyPeer().WithPodSelector(asking)).
			WithPorts(port(corev1.ProtocolTCP, names.DeciderPort)))
	if a := r.Spec.Artifact; a != nil && a.Type == v1alpha1.ArtifactURL {
		spec.WithEgress(networkingv1ac.NetworkPolicyEgressRule().WithPorts(port(corev1.ProtocolUDP, 53), port(corev1.ProtocolTCP, 53)))
		spec.WithEgress(networkingv1ac.NetworkPolicyEgressRule().WithPorts(port(corev1.ProtocolTCP, downloadPort(a.URL))).WithTo(
			networkingv1ac.NetworkPolicyPeer().WithIPBlock(networkingv1ac.IPBlock().WithCIDR("0.0.0.0/0").WithExcept("169.254.0.0/16")),
			networkingv1ac.NetworkPolicyPeer().WithIPBlock(networkingv1ac.IPBlock().WithCIDR("::/0").WithExcept("fe80::/10"))))
	}
	return networkingv1ac.NetworkPolicy(r.Name, i.Namespace).WithLabels(Labels(r.Model, r.Name)).WithOwnerReferences(r.owner()).WithSpec(spec)
}

func port(protocol corev1.Protocol, number int32) *networkingv1ac.NetworkPolicyPortApplyConfiguration {
	return networkingv1ac.NetworkPolicyPort().WithProtocol(protocol).WithPort(intstr.FromInt32(number))
}

// downloadPort is that of an https address.
func downloadPort(address string) int32 {
	if u, err := url.Parse(address); err == nil && u.Port() != "" {
		if n, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
			return int32(n)
		}
	}
	return 443
}

// PodDisruptionBudget lets one pod go at a time. It does not stop the drain of a node that has the only one: a decider that
// is away for a minute makes calls wait, and a node that cannot be drained makes people wait.
func PodDisruptionBudget(i Install, r Revision) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return policyv1ac.PodDisruptionBudget(r.Name, i.Namespace).WithLabels(Labels(r.Model, r.Name)).WithOwnerReferences(r.owner()).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().WithMaxUnavailable(intstr.FromInt32(1)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(r.Name))))
}
