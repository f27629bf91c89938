package webhook

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
)

// Paths at which the API server asks.
const (
	ToolPolicyPath        = "/validate-toolpolicy"
	ClusterToolPolicyPath = "/validate-clustertoolpolicy"
	DeciderModelPath      = "/validate-decidermodel"
	ProtectPath           = "/protect"
	InjectPath            = "/inject"
)

// Names of the objects that tell the API server to ask.
const (
	ValidatingName = "gatewright"
	MutatingName   = "gatewright"
)

// CertManagerAnnotation names the certificate, NAMESPACE/NAME, whose authority cert-manager writes into a configuration.
const CertManagerAnnotation = "cert-manager.io/inject-ca-from"

// Validating tells the API server to ask about Gatewright's kinds, and to refuse what it cannot ask about: a policy that
// nobody looked at may block a namespace. Reads, and writes of Gatewright itself, do not depend on an answer.
func Validating(namespace string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	none, fail, exact := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail, admissionregistrationv1.Equivalent
	seconds := int32(5)
	hook := func(name, path string, resources []string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.ValidatingWebhook {
		return admissionregistrationv1.ValidatingWebhook{
			Name: name + "." + v1alpha1.GroupVersion.Group, ClientConfig: service(namespace, path),
			Rules:         rules(v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, resources, operations...),
			FailurePolicy: &fail, MatchPolicy: &exact, SideEffects: &none, TimeoutSeconds: &seconds,
			AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector:       &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		}
	}
	written := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	protect := hook("protect", ProtectPath, []string{"*/*"}, append(written, admissionregistrationv1.Delete)...)
	protect.Rules[0].APIVersions = []string{"*"}
	protect.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "is-a-service-account", Expression: "request.userInfo.username.startsWith('system:serviceaccount:')"},
		{Name: "is-not-of-the-installation", Expression: "!(request.userInfo.username in ['" + strings.Join(ownAccounts(namespace), "', '") + "'])"},
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ValidatingName, Labels: labels()},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{
			hook("toolpolicies", ToolPolicyPath, []string{"toolpolicies"}, written...),
			hook("clustertoolpolicies", ClusterToolPolicyPath, []string{"clustertoolpolicies"}, written...),
			hook("decidermodels", DeciderModelPath, []string{"decidermodels"}, written...),
			protect,
		},
	}
}

// Mutating tells the API server to ask what a new pod of a labelled namespace is given, and to go on without an answer: a
// broken webhook must not keep pods from starting. A pod that was given nothing has no token for the gate and calls
// nothing through it.
func Mutating(namespace string) *admissionregistrationv1.MutatingWebhookConfiguration {
	none, ignore, exact := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Ignore, admissionregistrationv1.Equivalent
	again := admissionregistrationv1.IfNeededReinvocationPolicy
	seconds := int32(2)
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: MutatingName, Labels: labels()},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "inject." + v1alpha1.GroupVersion.Group, ClientConfig: service(namespace, InjectPath),
			Rules:         rules("", "v1", []string{"pods"}, admissionregistrationv1.Create),
			FailurePolicy: &ignore, MatchPolicy: &exact, SideEffects: &none, TimeoutSeconds: &seconds, ReinvocationPolicy: &again,
			AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{names.InjectLabel: names.InjectEnabled},
				MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: NeverInjected(namespace)},
				},
			},
			ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: names.InjectLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{names.InjectDisabled}},
			}},
		}},
	}
}

func labels() map[string]string {
	return map[string]string{names.NameLabel: names.Name, names.ComponentLabel: names.ComponentManager}
}

func service(namespace, path string) admissionregistrationv1.WebhookClientConfig {
	port := int32(443)
	return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
		Namespace: namespace, Name: names.WebhookService, Path: &path, Port: &port,
	}}
}

func rules(group, version string, resources []string, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	scope := admissionregistrationv1.AllScopes
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources, Scope: &scope},
	}}
}
