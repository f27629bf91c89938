package doctor

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
)

// workloads reads pods and what is around them. Pods of all namespaces are needed: who a rule of the network lets in or
// out is told by the pods that there are.
func (g *gatherer) workloads() {
	s := g.into
	s.Pods = list(g, seesPods, &corev1.PodList{}, func(l *corev1.PodList) []corev1.Pod { return l.Items })
	s.ServiceAccounts = list(g, seesServiceAccounts, &corev1.ServiceAccountList{}, func(l *corev1.ServiceAccountList) []corev1.ServiceAccount { return l.Items })
	s.NetworkPolicies = list(g, seesNetworkPolicies, &networkingv1.NetworkPolicyList{}, func(l *networkingv1.NetworkPolicyList) []networkingv1.NetworkPolicy { return l.Items })
	s.Authorities = list(g, seesAuthorities, &corev1.ConfigMapList{}, func(l *corev1.ConfigMapList) []corev1.ConfigMap { return l.Items },
		client.MatchingFields{"metadata.name": names.AuthorityConfigMap})
}

// kinds reads Gatewright's own.
func (g *gatherer) kinds() {
	s := g.into
	s.ToolPolicies = list(g, seesToolPolicies, &v1alpha1.ToolPolicyList{}, func(l *v1alpha1.ToolPolicyList) []v1alpha1.ToolPolicy { return l.Items })
	s.ClusterToolPolicies = list(g, seesFloors, &v1alpha1.ClusterToolPolicyList{}, func(l *v1alpha1.ClusterToolPolicyList) []v1alpha1.ClusterToolPolicy { return l.Items })
	s.DeciderModels = list(g, seesDeciders, &v1alpha1.DeciderModelList{}, func(l *v1alpha1.DeciderModelList) []v1alpha1.DeciderModel { return l.Items })
}

// clusterWide reads what an installation has outside of namespaces.
func (g *gatherer) clusterWide() {
	s := g.into
	s.Definitions = list(g, seesDefinitions, &apiextensionsv1.CustomResourceDefinitionList{},
		func(l *apiextensionsv1.CustomResourceDefinitionList) []apiextensionsv1.CustomResourceDefinition {
			return l.Items
		})
	s.Validating = list(g, seesValidating, &admissionregistrationv1.ValidatingWebhookConfigurationList{},
		func(l *admissionregistrationv1.ValidatingWebhookConfigurationList) []admissionregistrationv1.ValidatingWebhookConfiguration {
			return l.Items
		})
	s.Mutating = list(g, seesMutating, &admissionregistrationv1.MutatingWebhookConfigurationList{},
		func(l *admissionregistrationv1.MutatingWebhookConfigurationList) []admissionregistrationv1.MutatingWebhookConfiguration {
			return l.Items
		})
	s.AdmissionPolicies = list(g, seesPolicies, &admissionregistrationv1.ValidatingAdmissionPolicyList{},
		func(l *admissionregistrationv1.ValidatingAdmissionPolicyList) []admissionregistrationv1.ValidatingAdmissionPolicy {
			return l.Items
		})
	s.AdmissionBindings = list(g, seesBindings, &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{},
		func(l *admissionregistrationv1.ValidatingAdmissionPolicyBindingList) []admissionregistrationv1.ValidatingAdmissionPolicyBinding {
			return l.Items
		})
}
