package doctor

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/config/admission"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/webhook"
)

// soon is how near the end of a certificate is a finding, or a fifth of its life if that is less: whoever renews it does
// so before.
const soon = 14 * 24 * time.Hour

func (d *diagnosis) certificates() {
	for _, c := range d.Certificates {
		object := "Secret/" + d.Namespace + "/" + c.Secret
		left := c.NotAfter.Sub(d.Now)
		renew := "the manager renews it: look at its log; deleting the Secret lets it be made anew"
		switch {
		case c.Err != nil:
			d.add(Error, CheckCertificates, object, c.Err.Error(), "the manager makes it: look at its log")
		case left <= 0:
			d.add(Error, CheckCertificates, object, "ended at "+c.NotAfter.UTC().Format(time.RFC3339)+": who meets it trusts nobody", renew)
		case c.NotBefore.After(d.Now):
			d.add(Error, CheckCertificates, object, "is good from "+c.NotBefore.UTC().Format(time.RFC3339)+" on: clocks differ", "set the clocks of the nodes")
		case left < min(soon, c.NotAfter.Sub(c.NotBefore)/5):
			d.add(Warning, CheckCertificates, object, fmt.Sprintf("ends in %d hours, at %s", int(left.Hours()), c.NotAfter.UTC().Format(time.RFC3339)), renew)
		}
	}
}

// authorities looks whether each namespace with agents has the authority that the gate's certificate is signed by.
func (d *diagnosis) authorities() {
	if d.blind(seesNamespaces, seesAuthorities) {
		return
	}
	want := ""
	for _, c := range d.Certificates {
		if c.Secret == names.GateTLSSecret {
			want = strings.TrimSpace(c.CA)
		}
	}
	for i := range d.Namespaces {
		n := &d.Namespaces[i]
		if !isLabelled(n) || !d.isAsked(n.Name) {
			continue
		}
		object := "ConfigMap/" + n.Name + "/" + names.AuthorityConfigMap
		at := slices.IndexFunc(d.Authorities, func(c corev1.ConfigMap) bool { return c.Namespace == n.Name })
		switch {
		case at < 0:
			d.add(Error, CheckAuthority, object, "is missing: pods that are injected wait for it", "the manager writes it into namespaces with the label: look at its log")
		case want != "" && !strings.Contains(d.Authorities[at].Data["ca.crt"], want):
			d.add(Error, CheckAuthority, object, "does not hold the authority of the gate's certificate: agents trust nobody", "delete it: the manager writes it anew")
		}
	}
}

// isLabelled says whether pods of a namespace are injected.
func isLabelled(n *corev1.Namespace) bool { return n.Labels[names.InjectLabel] == names.InjectEnabled }

// admission compares the admission policies with those in this binary.
func (d *diagnosis) admission() {
	if d.blind(seesPolicies, seesBindings) {
		return
	}
	for _, want := range d.Wanted.AdmissionPolicies {
		at := slices.IndexFunc(d.AdmissionPolicies, func(p admissionregistrationv1.ValidatingAdmissionPolicy) bool { return p.Name == want.Name })
		d.compared("ValidatingAdmissionPolicy", want.Name, at < 0, at >= 0 && equality.Semantic.DeepEqual(d.AdmissionPolicies[at].Spec, want.Spec))
	}
	for _, want := range d.Wanted.AdmissionBindings {
		at := slices.IndexFunc(d.AdmissionBindings, func(b admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool { return b.Name == want.Name })
		d.compared("ValidatingAdmissionPolicyBinding", want.Name, at < 0, at >= 0 && equality.Semantic.DeepEqual(d.AdmissionBindings[at].Spec, want.Spec))
	}
}

// unguarded is what happens without an admission policy, by its name.
var unguarded = map[string]string{
	names.ApprovalPolicy:   "approvals could be forged, so the gate honours none",
	names.EvaluationPolicy: "whoever may write evaluations could let a revision of a decider pass",

	names.SelfProtectionPolicy:        "an agent whose role lets it may write what it is judged by while the webhook is not asked",
	names.ClusterSelfProtectionPolicy: "an agent by a cluster policy may write what it is judged by while the webhook is not asked",
}

func (d *diagnosis) compared(kind, name string, isMissing, isSame bool) {
	const remedy = "apply config/admission of the version that runs"
	switch {
	case isMissing:
		d.add(Error, CheckAdmission, kind+"/"+name, "is missing: "+unguarded[name], remedy)
	case !isSame:
		d.add(Error, CheckAdmission, kind+"/"+name, "says something else than this version wants: "+unguarded[name], remedy)
	}
}

// ownAdmission are the validating policies and bindings in this binary, for an installation in a namespace.
func ownAdmission(namespace string) (policies []admissionregistrationv1.ValidatingAdmissionPolicy, bindings []admissionregistrationv1.ValidatingAdmissionPolicyBinding, err error) {
	files, err := fs.Glob(admission.Files, "*.yaml")
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		data, err := admission.Files.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		for document := range strings.SplitSeq(admission.In(string(data), namespace), "\n---\n") {
			var p admissionregistrationv1.ValidatingAdmissionPolicy
			var b admissionregistrationv1.ValidatingAdmissionPolicyBinding
			var kind struct{ Kind string }
			if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
				return nil, nil, fmt.Errorf("reading %s: %w", file, err)
			}
			switch kind.Kind {
			case "ValidatingAdmissionPolicy":
				err = yaml.Unmarshal([]byte(document), &p)
				policies = append(policies, p)
			case "ValidatingAdmissionPolicyBinding":
				err = yaml.Unmarshal([]byte(document), &b)
				bindings = append(bindings, b)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("reading %s: %w", file, err)
			}
		}
	}
	return policies, bindings, nil
}

// webhooks compares what the API server asks with what it should, but for the authority, which is written by others.
func (d *diagnosis) webhooks() {
	if !d.blind(seesValidating) {
		want := webhook.Validating(d.Namespace)
		object := "ValidatingWebhookConfiguration/" + want.Name
		at := slices.IndexFunc(d.Validating, func(c admissionregistrationv1.ValidatingWebhookConfiguration) bool { return c.Name == want.Name })
		if at < 0 {
			d.add(Warning, CheckWebhooks, object, "is missing: policies are not compiled when they are written, and agents may write cluster-wide kinds if their role lets them", reapplyWebhooks)
		} else {
			have := d.Validating[at].DeepCopy().Webhooks
			asked(d, object, "nobody can write a policy", have, want.Webhooks, func(i int) (string, *admissionregistrationv1.WebhookClientConfig) {
				return have[i].Name, &have[i].ClientConfig
			})
		}
	}
	if d.blind(seesMutating) {
		return
	}
	want := webhook.Mutating(d.Namespace)
	object := "MutatingWebhookConfiguration/" + want.Name
	at := slices.IndexFunc(d.Mutating, func(c admissionregistrationv1.MutatingWebhookConfiguration) bool { return c.Name == want.Name })
	if at < 0 {
		d.add(Info, CheckWebhooks, object, "is missing: no pod is injected", "apply config/webhook, or write URL, authority and token into the agents by hand")
		return
	}
	have := d.Mutating[at].DeepCopy().Webhooks
	asked(d, object, "no pod is injected", have, want.Webhooks, func(i int) (string, *admissionregistrationv1.WebhookClientConfig) {
		return have[i].Name, &have[i].ClientConfig
	})
}

const reapplyWebhooks = "apply config/webhook of the version that runs"

// asked compares webhooks that are there with those that should be. The i-th is known by what at gives; effect is what happens
// when the API server cannot ask.
func asked[T any](d *diagnosis, object, effect string, have, want []T, at func(i int) (string, *admissionregistrationv1.WebhookClientConfig)) {
	var empty []string
	for i := range have {
		name, config := at(i)
		empty = appendEmpty(empty, name, config)
	}
	d.authority(object, empty, effect)
	if !equality.Semantic.DeepEqual(have, want) {
		d.add(Warning, CheckWebhooks, object, "asks something else than this version wants", reapplyWebhooks)
	}
}

// appendEmpty notes a webhook without an authority, and takes the authority out of the comparison.
func appendEmpty(empty []string, name string, c *admissionregistrationv1.WebhookClientConfig) []string {
	if len(c.CABundle) == 0 {
		empty = append(empty, name)
	}
	c.CABundle = nil
	return empty
}

func (d *diagnosis) authority(object string, empty []string, effect string) {
	if len(empty) > 0 {
		d.add(Error, CheckWebhooks, object, "has no authority for "+strings.Join(empty, ", ")+": the API server cannot ask, and "+effect,
			"the manager writes it, or cert-manager by the annotation "+webhook.CertManagerAnnotation+": look at their logs")
	}
}
