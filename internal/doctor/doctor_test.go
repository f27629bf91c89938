package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/testkit"
	"gatewright.dev/gatewright/internal/webhook"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// healthy is an installation with one agent, about which there is nothing worse to say than nothing.
func healthy(wanted Wanted) *Snapshot {
	s := &Snapshot{
		Namespace: names.Namespace, Now: now, Wanted: wanted,
		Namespaces: []corev1.Namespace{
			namespace(names.Namespace), namespace("kube-system"), namespace("other"),
			namespace(testkit.Namespace, names.InjectLabel, names.InjectEnabled),
		},
		Pods: []corev1.Pod{
			ours("manager-1", names.ComponentManager), ours("gate-1", names.ComponentGate), ours("gate-2", names.ComponentGate), ours("decider-1", names.ComponentDecider),
			agent("agent-1"), {ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "web", Labels: map[string]string{"app": "web"}}},
		},
		ServiceAccounts: []corev1.ServiceAccount{account(testkit.Namespace, testkit.ServiceAccount), account(testkit.Namespace, "default")},
		NetworkPolicies: []networkingv1.NetworkPolicy{deciderPolicy(), agentPolicy()},
		EndpointSlices:  []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{endpoint(true), endpoint(true)}}},
		Authorities:     []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Namespace: testkit.Namespace, Name: names.AuthorityConfigMap}, Data: map[string]string{"ca.crt": "CA\n"}}},
		Certificates:    []Certificate{{Secret: names.GateTLSSecret, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(90 * 24 * time.Hour), CA: "CA\n"}},
		ToolPolicies:    []v1alpha1.ToolPolicy{*served(testkit.ToolPolicy("p", testkit.WithTool("db.read", "ReadOnly"), testkit.WithTool("db.drop", "Destructive", testkit.Permit("db"))))},
		DeciderModels:   []v1alpha1.DeciderModel{*readyModel()},
		Validating:      []admissionregistrationv1.ValidatingWebhookConfiguration{*webhook.Validating(names.Namespace)},
		Mutating:        []admissionregistrationv1.MutatingWebhookConfiguration{*webhook.Mutating(names.Namespace)},
	}
	for i := range s.Validating[0].Webhooks {
		s.Validating[0].Webhooks[i].ClientConfig.CABundle = []byte("CA")
	}
	s.Mutating[0].Webhooks[0].ClientConfig.CABundle = []byte("CA")
	for i := range wanted.Definitions {
		s.Definitions = append(s.Definitions, *wanted.Definitions[i].DeepCopy())
	}
	for i := range wanted.AdmissionPolicies {
		s.AdmissionPolicies = append(s.AdmissionPolicies, *wanted.AdmissionPolicies[i].DeepCopy())
	}
	for i := range wanted.AdmissionBindings {
		s.AdmissionBindings = append(s.AdmissionBindings, *wanted.AdmissionBindings[i].DeepCopy())
	}
	for i := range s.Definitions {
		s.Definitions[i].Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	}
	return s
}

func namespace(name string, labels ...string) corev1.Namespace {
	n := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/metadata.name": name}}}
	if len(labels) == 2 {
		n.Labels[labels[0]] = labels[1]
	}
	return n
}

func account(namespace, name string) corev1.ServiceAccount {
	return corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func ours(name, component string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: name, Labels: map[string]string{names.NameLabel: names.Name, names.ComponentLabel: component}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Image: "registry.example.com:5000/gatewright:1.0"}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

// agent is a pod that was injected.
func agent(name string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: testkit.Namespace, Name: name, Labels: map[string]string{"app": "agent"}},
		Spec: corev1.PodSpec{ServiceAccountName: testkit.ServiceAccount, Volumes: []corev1.Volume{{Name: names.InjectedVolume, VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: names.Audience}}}},
		}}}},
	}
}

func endpoint(isReady bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: &isReady}}
}

func component(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{names.ComponentLabel: name, names.NameLabel: names.Name}}
}

func inNamespace(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": name}}
}

// deciderPolicy admits the gate alone.
func deciderPolicy() networkingv1.NetworkPolicy {
	return networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: "deciders"},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *component(names.ComponentDecider), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: component(names.ComponentGate)}}}},
		},
	}
}

// agentPolicy leaves agents the gate and name service.
func agentPolicy(peers ...networkingv1.NetworkPolicyPeer) networkingv1.NetworkPolicy {
	dns, gate := intstr.FromInt32(53), networkingv1.NetworkPolicyPeer{NamespaceSelector: inNamespace(names.Namespace), PodSelector: component(names.ComponentGate)}
	return networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: testkit.Namespace, Name: "agents"},
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress: []networkingv1.NetworkPolicyEgressRule{
				{Ports: []networkingv1.NetworkPolicyPort{{Port: &dns}}},
				{To: append([]networkingv1.NetworkPolicyPeer{gate}, peers...)},
			},
		},
	}
}

func served(p *v1alpha1.ToolPolicy) *v1alpha1.ToolPolicy {
	p.Status.ObservedGeneration = p.Generation
	for _, c := range []v1alpha1.ConditionType{v1alpha1.ConditionAccepted, v1alpha1.ConditionResolvedRefs, v1alpha1.ConditionProgrammed} {
		p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: string(c), Status: metav1.ConditionTrue})
	}
	return p
}

func readyModel() *v1alpha1.DeciderModel {
	m := &v1alpha1.DeciderModel{ObjectMeta: metav1.ObjectMeta{Name: "judge", Generation: 1}}
	m.Status.ObservedGeneration = 1
	m.Status.Conditions = []metav1.Condition{{Type: string(v1alpha1.ConditionReady), Status: metav1.ConditionTrue}}
	return m
}

// enforcedByPermit is what there is to say about the healthy policy.
const enforcedByPermit = "Info Enforcement ToolPolicy/shop/p: is enforced: the 1 tool that change something need a permit"

const (
	advicePermit = "1 of 1 tool that change something need no permit (db.drop)"
	adviceReach  = "is advice, not enforcement: " + advicePermit + ", and its callers reach "
)

func TestDiagnose(t *testing.T) {
	advice := func(s *Snapshot) {
		drop := &s.ToolPolicies[0].Spec.Tools[1]
		drop.Permit, drop.PermitAudience = v1alpha1.PermitNone, ""
	}
	tests := map[string]struct {
		change func(*Snapshot)
		// want are the beginnings of all that is said: severity, check, object and message.
		want []string
	}{
		"a healthy installation": {func(*Snapshot) {}, []string{enforcedByPermit}},
		"what could not be read is said, and nothing is made of it": {
			func(s *Snapshot) {
				s.Pods = nil
				s.NotSeen = []NotSeen{{seesPods, errors.New("forbidden")}}
			},
			[]string{"Warning NotSeen pods: could not be read, so nothing is said about it: forbidden"},
		},

		"a kind is missing": {func(s *Snapshot) { s.Definitions = s.Definitions[1:] }, []string{"Error Definitions CustomResourceDefinition/clustertoolpolicies.gatewright.dev: is missing", enforcedByPermit}},
		"a kind is older": {func(s *Snapshot) {
			spec := schemaOf(&s.Definitions[0]).Properties["spec"]
			delete(spec.Properties, "minimumMode")
		}, []string{"Error Definitions CustomResourceDefinition/clustertoolpolicies.gatewright.dev: has another schema than this version", enforcedByPermit}},
		"a kind is not served":      {func(s *Snapshot) { s.Definitions[0].Spec.Versions[0].Served = false }, []string{"Error Definitions CustomResourceDefinition/clustertoolpolicies.gatewright.dev: does not serve v1alpha1", enforcedByPermit}},
		"a kind is not established": {func(s *Snapshot) { s.Definitions[0].Status.Conditions = nil }, []string{"Error Definitions CustomResourceDefinition/clustertoolpolicies.gatewright.dev: is not established", enforcedByPermit}},

		"gate and manager of two versions": {func(s *Snapshot) { s.Pods[1].Spec.Containers[0].Image = "registry.example.com:5000/gatewright:0.9" },
			[]string{"Warning Versions Namespace/gatewright-system: managers and gates are of several versions: registry.example.com:5000/gatewright:0.9, registry.example.com:5000/gatewright:1.0", enforcedByPermit}},
		"an image without a version": {func(s *Snapshot) { s.Pods[3].Spec.Containers[0].Image = "registry.example.com:5000/gatewright" },
			[]string{"Warning Versions Pod/gatewright-system/decider-1: runs image registry.example.com:5000/gatewright, which is whatever was there", enforcedByPermit}},
		"an image by digest":          {func(s *Snapshot) { s.Pods[3].Spec.Containers[0].Image = "a/b@sha256:00" }, []string{enforcedByPermit}},
		"no manager":                  {func(s *Snapshot) { s.Pods = s.Pods[1:] }, []string{"Error Manager Namespace/gatewright-system: has no manager", enforcedByPermit}},
		"a manager that is not ready": {func(s *Snapshot) { s.Pods[0].Status.Conditions = nil }, []string{"Error Manager Namespace/gatewright-system: none of 1 managers is ready", enforcedByPermit}},
		"no gate":                     {func(s *Snapshot) { s.EndpointSlices = nil }, []string{"Error Gates Service/gatewright-system/gatewright-gate: no gate is ready, of 0", enforcedByPermit}},
		"a gate that is not ready":    {func(s *Snapshot) { s.EndpointSlices[0].Endpoints[0] = endpoint(false) }, []string{"Warning Gates Service/gatewright-system/gatewright-gate: 1 of 2 gates are ready", enforcedByPermit}},
		"one gate":                    {func(s *Snapshot) { s.EndpointSlices[0].Endpoints = s.EndpointSlices[0].Endpoints[1:] }, []string{"Info Gates Service/gatewright-system/gatewright-gate: one gate serves", enforcedByPermit}},

		"a certificate that has ended": {func(s *Snapshot) { s.Certificates[0].NotAfter = now }, []string{"Error Certificates Secret/gatewright-system/gatewright-gate-tls: ended at 2030-01-01T00:00:00Z", enforcedByPermit}},
		"a certificate near its end": {func(s *Snapshot) {
			s.Certificates[0].NotAfter = now.Add(13 * 24 * time.Hour)
			s.Certificates[0].NotBefore = now.Add(-77 * 24 * time.Hour)
		},
			[]string{"Warning Certificates Secret/gatewright-system/gatewright-gate-tls: ends in 312 hours", enforcedByPermit}},
		"a short certificate in its prime": {func(s *Snapshot) { s.Certificates[0].NotAfter = now.Add(13 * 24 * time.Hour) }, []string{enforcedByPermit}},
		"a certificate of tomorrow":        {func(s *Snapshot) { s.Certificates[0].NotBefore = now.Add(time.Hour) }, []string{"Error Certificates Secret/gatewright-system/gatewright-gate-tls: is good from 2030-01-01T01:00:00Z on", enforcedByPermit}},
		"a certificate that is missing":    {func(s *Snapshot) { s.Certificates[0].Err = errors.New("is missing") }, []string{"Error Certificates Secret/gatewright-system/gatewright-gate-tls: is missing", enforcedByPermit}},
		"no authority for agents":          {func(s *Snapshot) { s.Authorities = nil }, []string{"Error Authority ConfigMap/shop/gatewright-ca: is missing: pods that are injected wait for it", enforcedByPermit}},
		"another authority for agents":     {func(s *Snapshot) { s.Authorities[0].Data["ca.crt"] = "OLD" }, []string{"Error Authority ConfigMap/shop/gatewright-ca: does not hold the authority of the gate's certificate", enforcedByPermit}},

		"an admission policy is missing": {func(s *Snapshot) { s.AdmissionPolicies = s.AdmissionPolicies[1:] }, []string{"Error Admission ValidatingAdmissionPolicy/gatewright-approvals: is missing", enforcedByPermit}},
		"an admission policy is weaker": {func(s *Snapshot) {
			ignore := admissionregistrationv1.Ignore
			s.AdmissionPolicies[0].Spec.FailurePolicy = &ignore
		}, []string{"Error Admission ValidatingAdmissionPolicy/gatewright-approvals: says something else", enforcedByPermit}},
		"a binding that only warns": {func(s *Snapshot) {
			s.AdmissionBindings[0].Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
		},
			[]string{"Error Admission ValidatingAdmissionPolicyBinding/gatewright-approvals: says something else", enforcedByPermit}},
		"no webhooks": {func(s *Snapshot) { s.Validating, s.Mutating = nil, nil },
			[]string{"Warning Webhooks ValidatingWebhookConfiguration/gatewright: is missing", "Info Webhooks MutatingWebhookConfiguration/gatewright: is missing", enforcedByPermit}},
		"a webhook without an authority": {func(s *Snapshot) { s.Validating[0].Webhooks[1].ClientConfig.CABundle = nil },
			[]string{"Error Webhooks ValidatingWebhookConfiguration/gatewright: has no authority for clustertoolpolicies.gatewright.dev: the API server cannot ask, and nobody can write a policy", enforcedByPermit}},
		"an injection without an authority": {func(s *Snapshot) { s.Mutating[0].Webhooks[0].ClientConfig.CABundle = nil },
			[]string{"Error Webhooks MutatingWebhookConfiguration/gatewright: has no authority for inject.gatewright.dev: the API server cannot ask, and no pod is injected", enforcedByPermit}},
		"a webhook that was weakened": {func(s *Snapshot) {
			ignore := admissionregistrationv1.Ignore
			s.Validating[0].Webhooks[3].FailurePolicy = &ignore
		}, []string{"Warning Webhooks ValidatingWebhookConfiguration/gatewright: asks something else", enforcedByPermit}},
		"an injection that asks for everything": {func(s *Snapshot) { s.Mutating[0].Webhooks[0].NamespaceSelector = &metav1.LabelSelector{} },
			[]string{"Warning Webhooks MutatingWebhookConfiguration/gatewright: asks something else", enforcedByPermit}},

		"a decider that is not ready": {func(s *Snapshot) { s.DeciderModels[0].Status.Conditions = nil }, []string{"Warning Deciders DeciderModel/judge: is not ready, no condition is there yet", enforcedByPermit}},
		"a decider with other bytes": {func(s *Snapshot) {
			s.DeciderModels[0].Status.Conditions = []metav1.Condition{{Type: "Verified", Status: metav1.ConditionFalse, Reason: "HashMismatch", Message: "m"}}
		}, []string{"Error Deciders DeciderModel/judge: did not load the bytes that are pinned, HashMismatch: m", enforcedByPermit}},
		"a decider that was changed": {func(s *Snapshot) { s.DeciderModels[0].Generation = 2 }, []string{"Warning Deciders DeciderModel/judge: generation 2 is written, and 1 is what its conditions speak of", enforcedByPermit}},
		"a decider without a NetworkPolicy": {func(s *Snapshot) { s.NetworkPolicies = s.NetworkPolicies[1:] },
			[]string{"Error Deciders Pod/gatewright-system/decider-1: can be reached by everybody: no NetworkPolicy limits its ingress", enforcedByPermit}},
		"a decider whose NetworkPolicy is for egress": {func(s *Snapshot) {
			s.NetworkPolicies[0].Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
		},
			[]string{"Error Deciders Pod/gatewright-system/decider-1: can be reached by everybody", enforcedByPermit}},
		"a second NetworkPolicy that adds everybody": {func(s *Snapshot) {
			n := deciderPolicy()
			n.Name, n.Spec.Ingress = "second", []networkingv1.NetworkPolicyIngressRule{{}}
			s.NetworkPolicies = append(s.NetworkPolicies, n)
		}, []string{"Error Deciders Pod/gatewright-system/decider-1: can be reached by every address by NetworkPolicy second", enforcedByPermit}},
		"a decider that agents reach": {func(s *Snapshot) {
			s.NetworkPolicies[0].Spec.Ingress[0].From = append(s.NetworkPolicies[0].Spec.Ingress[0].From, networkingv1.NetworkPolicyPeer{NamespaceSelector: inNamespace(testkit.Namespace)})
		}, []string{"Error Deciders Pod/gatewright-system/decider-1: can be reached by every pod of namespace shop by NetworkPolicy deciders", enforcedByPermit}},
		"a decider that some pods reach": {func(s *Snapshot) {
			s.NetworkPolicies[0].Spec.Ingress[0].From = append(s.NetworkPolicies[0].Spec.Ingress[0].From, networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{}, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}})
		}, []string{"Error Deciders Pod/gatewright-system/decider-1: can be reached by pods such as other/web by NetworkPolicy deciders", enforcedByPermit}},
		"a decider that a network reaches": {func(s *Snapshot) {
			s.NetworkPolicies[0].Spec.Ingress[0].From = []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8"}}}
		}, []string{"Error Deciders Pod/gatewright-system/decider-1: can be reached by 10.0.0.0/8 by NetworkPolicy deciders", enforcedByPermit}},

		"a policy that does not compile": {func(s *Snapshot) {
			s.ToolPolicies[0].Status.Conditions[0] = metav1.Condition{Type: "Accepted", Status: metav1.ConditionFalse, Reason: "Invalid", Message: "m"}
		}, []string{"Error Policies ToolPolicy/shop/p: is not Accepted, Invalid: m; every call of its callers is blocked", enforcedByPermit}},
		"a policy whose decider is missing": {func(s *Snapshot) {
			s.ToolPolicies[0].Status.Conditions[1] = metav1.Condition{Type: "ResolvedRefs", Status: metav1.ConditionFalse, Reason: "DeciderNotFound", Message: "m"}
		}, []string{"Error Policies ToolPolicy/shop/p: is not ResolvedRefs, DeciderNotFound: m; what needs the decider is blocked or asks a person", enforcedByPermit}},
		"a policy that lags": {func(s *Snapshot) {
			s.ToolPolicies[0].Status.Conditions[2] = metav1.Condition{Type: "Programmed", Status: metav1.ConditionFalse, Reason: "GenerationNotServed", Message: "m"}
		}, []string{"Warning Policies ToolPolicy/shop/p: is not Programmed, GenerationNotServed: m; some gates decide by another generation", enforcedByPermit}},
		"a policy of which nothing is known": {func(s *Snapshot) {
			s.ToolPolicies[0].Status.Conditions[2] = metav1.Condition{Type: "Programmed", Status: metav1.ConditionUnknown, Reason: "GatesNotObserved", Message: "m"}
		}, []string{"Warning Policies ToolPolicy/shop/p: whether it is Programmed is not known, GatesNotObserved: m", enforcedByPermit}},
		"a policy without conditions": {func(s *Snapshot) { s.ToolPolicies[0].Status.Conditions = s.ToolPolicies[0].Status.Conditions[:2] },
			[]string{"Warning Policies ToolPolicy/shop/p: has no condition Programmed", enforcedByPermit}},
		"a policy that nobody has looked at": {func(s *Snapshot) { s.ToolPolicies[0].Generation = 2 }, []string{"Warning Policies ToolPolicy/shop/p: generation 2 is written, and 1", enforcedByPermit}},
		"a cluster policy in Audit": {func(s *Snapshot) {
			f := testkit.ClusterToolPolicy("floor", testkit.InAudit())
			f.Status = s.ToolPolicies[0].Status
			s.ClusterToolPolicies = []v1alpha1.ClusterToolPolicy{*f}
		}, []string{"Info Policies ClusterToolPolicy/floor: is in mode Audit and enforces nothing", enforcedByPermit}},

		"a caller without a policy": {func(s *Snapshot) {
			s.ToolPolicies[0].Spec.Subjects = []v1alpha1.ObjectName{"other"}
			s.ServiceAccounts = append(s.ServiceAccounts, account(testkit.Namespace, "other"))
		}, []string{
			"Warning Callers ServiceAccount/shop/agent: has 1 pod that may ask the gate, and no ToolPolicy selects it",
			"Info Callers ToolPolicy/shop/p: has no caller", enforcedByPermit,
		}},
		"a service account that would have none": {func(s *Snapshot) {
			s.ToolPolicies[0].Spec.Subjects = []v1alpha1.ObjectName{testkit.ServiceAccount}
			s.ServiceAccounts = append(s.ServiceAccounts, account(testkit.Namespace, "idle"), account("other", "elsewhere"))
		}, []string{"Info Callers ServiceAccount/shop/idle: is in a namespace of agents, and no ToolPolicy selects it", enforcedByPermit}},
		"a subject that is not there": {func(s *Snapshot) {
			s.ToolPolicies[0].Spec.Subjects = []v1alpha1.ObjectName{testkit.ServiceAccount, "gone"}
		},
			[]string{"Warning Callers ToolPolicy/shop/p: selects service account gone, which is not there", enforcedByPermit}},
		"a pod older than the label": {func(s *Snapshot) { s.Pods[4].Spec.Volumes = nil }, []string{
			"Warning Injection Pod/shop/agent-1: has no token for the gate: it is older than the label",
			"Info Callers ToolPolicy/shop/p: has no caller", enforcedByPermit,
		}},
		"a pod in its node's network": {func(s *Snapshot) { s.Pods[4].Spec.Volumes = nil; s.Pods[4].Spec.HostNetwork = true }, []string{
			"Warning Injection Pod/shop/agent-1: has no token for the gate: the pod is in its node's network",
			"Info Callers ToolPolicy/shop/p: has no caller", enforcedByPermit,
		}},
		"a pod that says no": {func(s *Snapshot) {
			s.Pods[4].Spec.Volumes, s.Pods[4].Labels = nil, map[string]string{names.InjectLabel: names.InjectDisabled}
		}, []string{"Info Callers ToolPolicy/shop/p: has no caller", enforcedByPermit}},
		"a pod that has ended": {func(s *Snapshot) { s.Pods[4].Spec.Volumes = nil; s.Pods[4].Status.Phase = corev1.PodSucceeded },
			[]string{"Info Callers ToolPolicy/shop/p: has no caller", enforcedByPermit}},

		"no permit, and the network leaves no other way": {advice, []string{"Info Enforcement ToolPolicy/shop/p: is enforced by the network alone: " + advicePermit}},
		"no permit, and no NetworkPolicy": {func(s *Snapshot) { advice(s); s.NetworkPolicies = s.NetworkPolicies[:1] },
			[]string{"Warning Enforcement ToolPolicy/shop/p: " + adviceReach + "everything: no NetworkPolicy limits its egress"}},
		"no permit, and an address": {func(s *Snapshot) {
			advice(s)
			s.NetworkPolicies[1] = agentPolicy(networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "203.0.113.0/24"}})
		}, []string{"Warning Enforcement ToolPolicy/shop/p: " + adviceReach + "203.0.113.0/24 by NetworkPolicy agents"}},
		"no permit, and a second NetworkPolicy opens a namespace": {func(s *Snapshot) {
			advice(s)
			n := agentPolicy(networkingv1.NetworkPolicyPeer{NamespaceSelector: inNamespace("other")})
			n.Name = "second"
			s.NetworkPolicies = append(s.NetworkPolicies, n)
		}, []string{"Warning Enforcement ToolPolicy/shop/p: " + adviceReach + "every pod of namespace other by NetworkPolicy second"}},
		"no permit, and a tool without a proxy": {func(s *Snapshot) {
			advice(s)
			s.NetworkPolicies[1] = agentPolicy(networkingv1.NetworkPolicyPeer{NamespaceSelector: inNamespace("other"), PodSelector: &metav1.LabelSelector{}})
		}, []string{"Warning Enforcement ToolPolicy/shop/p: " + adviceReach + "pods such as other/web by NetworkPolicy agents"}},
		"no permit, and a tool behind a proxy": {func(s *Snapshot) {
			advice(s)
			s.Pods[5].Labels = map[string]string{names.NameLabel: names.Name, names.ComponentLabel: names.ComponentProxy}
			s.NetworkPolicies[1] = agentPolicy(networkingv1.NetworkPolicyPeer{NamespaceSelector: inNamespace("other"), PodSelector: component(names.ComponentProxy)})
		}, []string{"Info Enforcement ToolPolicy/shop/p: is enforced by the network alone"}},
		"no permit, and a rule for every address": {func(s *Snapshot) {
			advice(s)
			s.NetworkPolicies[1].Spec.Egress[1].To = nil
		}, []string{"Warning Enforcement ToolPolicy/shop/p: " + adviceReach + "every address by NetworkPolicy agents"}},
		"no permit, and a NetworkPolicy for other pods": {func(s *Snapshot) {
			advice(s)
			s.NetworkPolicies[1].Spec.PodSelector = metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		}, []string{"Warning Enforcement ToolPolicy/shop/p: " + adviceReach + "everything: no NetworkPolicy"}},
		"no permit, and a NetworkPolicy for what comes in": {func(s *Snapshot) {
			advice(s)
			s.NetworkPolicies[1].Spec.PolicyTypes, s.NetworkPolicies[1].Spec.Egress = nil, nil
		}, []string{"Warning Enforcement ToolPolicy/shop/p: " + adviceReach + "everything: no NetworkPolicy"}},
		"no permit, and a pod in its node's network": {func(s *Snapshot) { advice(s); s.Pods[4].Spec.HostNetwork = true },
			[]string{"Warning Enforcement ToolPolicy/shop/p: " + adviceReach + "everything: it is in its node's network"}},
		"no permit, and nobody to look at": {func(s *Snapshot) { advice(s); s.Pods = s.Pods[:4] },
			[]string{"Info Callers ToolPolicy/shop/p: has no caller", "Info Enforcement ToolPolicy/shop/p: is advice, not enforcement: " + advicePermit + ", and no pod is there"}},
		"a permit that a floor requires": {func(s *Snapshot) {
			advice(s)
			f := testkit.ClusterToolPolicy("floor", testkit.WithTool("db.drop", "Destructive", testkit.Permit("db")))
			f.Status = s.ToolPolicies[0].Status
			s.ClusterToolPolicies = []v1alpha1.ClusterToolPolicy{*f}
		}, []string{enforcedByPermit}},
		"another namespace is asked about": {func(s *Snapshot) {
			s.Only = "other"
			advice(s)
			s.NetworkPolicies = s.NetworkPolicies[:1]
			s.Authorities = nil
			s.Pods[4].Spec.Volumes = nil
		}, nil},
	}
	wanted, err := NewWanted(names.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := healthy(wanted)
			tt.change(s)
			var got []string
			for i, f := range Diagnose(t.Context(), s) {
				text := string(f.Severity) + " " + string(f.Check) + " " + f.Object + ": " + f.Message
				if f.Remedy == "" {
					t.Errorf("no remedy for %s", text)
				}
				if i < len(tt.want) && strings.HasPrefix(text, tt.want[i]) {
					text = tt.want[i]
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTagOf(t *testing.T) {
	for image, want := range map[string]string{
		"gatewright": "", "gatewright:1": "1", "registry:5000/gatewright": "", "registry:5000/a/gatewright:1": "1", "a/b@sha256:0f": "sha256:0f", "a:1@sha256:0f": "sha256:0f",
	} {
		if got := tagOf(image); got != want {
			t.Errorf("tagOf(%s) = %q, want %q", image, got, want)
		}
	}
}

func TestSeverities(t *testing.T) {
	if !Error.AtLeast(Warning) || !Warning.AtLeast(Warning) || Info.AtLeast(Warning) {
		t.Error("severities are not in order")
	}
}
