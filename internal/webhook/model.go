package webhook

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference"
)

// ValidateDeciderModel says what of a decider cannot work, or would have no effect and look as if it had one. Whether the
// bytes have the pinned hash is for those who load them.
func ValidateDeciderModel(s *v1alpha1.DeciderModelSpec) field.ErrorList {
	p := field.NewPath("spec")
	var errs field.ErrorList
	errs = append(errs, validateRuntime(s, p)...)
	if s.Artifact != nil {
		errs = append(errs, validateArtifact(s.Artifact, p.Child("artifact"))...)
	}
	if s.External != nil {
		errs = append(errs, validateExternal(s.External, p.Child("external"))...)
	}
	if c := s.Calibration; c != nil && c.YesNoMilli == nil && c.ChoiceMilli == nil && c.ScoreMilli == nil {
		errs = append(errs, field.Required(p.Child("calibration"), "name a temperature: yesNoMilli, choiceMilli or scoreMilli; or remove calibration"))
	}
	if s.Pod != nil {
		errs = append(errs, validatePod(s.Pod, p.Child("pod"))...)
	}
	if r := s.Rollout; r != nil && r.Evaluation != nil {
		errs = append(errs, validateEvaluation(r.Evaluation, p.Child("rollout", "evaluation"))...)
	}
	return errs
}

// validateRuntime refuses settings that the runtime does not have.
func validateRuntime(s *v1alpha1.DeciderModelSpec, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	isOurs := s.Runtime == v1alpha1.RuntimeLlamaCpp || s.Runtime == v1alpha1.RuntimeContainer
	if s.Runtime == v1alpha1.RuntimeExternal && s.Pod != nil {
		errs = append(errs, field.Forbidden(p.Child("pod"), "an External decider is run by somebody else: remove pod"))
	}
	if !isOurs && s.Threads != nil {
		errs = append(errs, field.Forbidden(p.Child("threads"), "is for a decider that runs in pods: remove it"))
	}
	if !isOurs && s.Readout != "" && s.Readout != v1alpha1.ReadoutAuto {
		errs = append(errs, field.Invalid(p.Child("readout"), s.Readout, "follows from the runtime and its protocol: remove it, or write Auto"))
	}
	if a := s.Artifact; s.Runtime == v1alpha1.RuntimeEmbedded && a != nil && (a.Bundled == nil || a.Bundled.Name != inference.EmbeddedName) {
		errs = append(errs, field.Invalid(p.Child("artifact"), a.Type,
			"runtime Embedded has only the judge in the gate: use type Bundled with name "+inference.EmbeddedName))
	}
	return errs
}

func validateArtifact(a *v1alpha1.Artifact, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if a.URL != "" {
		errs = append(errs, validateURL(a.URL, p.Child("url"))...)
	}
	if a.OCI != nil {
		errs = append(errs, validateFile(a.OCI.Path, p.Child("oci", "path"))...)
	}
	if a.PersistentVolumeClaim != nil {
		errs = append(errs, validateFile(a.PersistentVolumeClaim.Path, p.Child("persistentVolumeClaim", "path"))...)
	}
	return errs
}

// validateURL refuses what cannot be fetched, and addresses at which a cloud hands out credentials.
func validateURL(text string, p *field.Path) field.ErrorList {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(p, text, "is no URL: write https://HOST/PATH")}
	case u.Hostname() == "":
		return field.ErrorList{field.Invalid(p, text, "has no host: write https://HOST/PATH")}
	case u.Fragment != "":
		return field.ErrorList{field.Invalid(p, text, "has a fragment, which is never sent: remove what follows #")}
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		if ip = ip.Unmap().WithZone(""); ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() || ip.IsMulticast() || ip.IsUnspecified() {
			return field.ErrorList{field.Invalid(p, text, "is a link-local, multicast or unspecified address, where nodes keep credentials and no server belongs: name another host")}
		}
	}
	return nil
}

// validateFile refuses paths that leave the place that they are in.
func validateFile(text string, p *field.Path) field.ErrorList {
	if strings.ContainsAny(text, "\x00\n\r") {
		return field.ErrorList{field.Invalid(p, text, "holds a control character: write the path of one file")}
	}
	if clean := path.Clean("/" + text); strings.HasSuffix(text, "/") || clean != "/"+strings.TrimPrefix(text, "/") || clean == "/" {
		return field.ErrorList{field.Invalid(p, text, "is not the plain path of a file: write it without .., . and double slashes")}
	}
	return nil
}

func validateExternal(x *v1alpha1.ExternalRuntime, p *field.Path) field.ErrorList {
	errs := validateURL(x.URL, p.Child("url"))
	if _, query, ok := strings.Cut(x.URL, "?"); ok && len(errs) == 0 {
		errs = append(errs, field.Invalid(p.Child("url"), strings.TrimSuffix(x.URL, query)+"...",
			"has a query, which the wire does not have and which may be a credential that everybody reads here: remove it, and use tokenSecretRef for a token"))
	}
	if x.CABundle != "" {
		errs = append(errs, validateCertificates(x.CABundle, p.Child("caBundle"))...)
	}
	return errs
}

// validateCertificates wants certificates in PEM and nothing else: a private key that was pasted along would be on show.
func validateCertificates(text string, p *field.Path) field.ErrorList {
	rest, found := []byte(text), 0
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return field.ErrorList{field.Invalid(p, block.Type, "holds something other than a certificate: remove it, it must not be here")}
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return field.ErrorList{field.Invalid(p, fmt.Sprintf("certificate %d", found+1), "cannot be read: "+err.Error())}
		}
		found++
	}
	switch {
	case found == 0:
		return field.ErrorList{field.Invalid(p, "", "holds no certificate in PEM: start it with -----BEGIN CERTIFICATE-----")}
	case strings.TrimSpace(string(rest)) != "":
		return field.ErrorList{field.Invalid(p, "", fmt.Sprintf("has text after certificate %d that is no PEM: remove or complete it", found))}
	}
	return nil
}

func validatePod(d *v1alpha1.DeciderPod, p *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(d.NodeSelector, p.Child("nodeSelector"))
	if m := d.ModelMemoryLimit; m != nil && m.Sign() <= 0 {
		errs = append(errs, field.Invalid(p.Child("modelMemoryLimit"), m.String(), "leaves no room for a model: write more than 0, or remove it"))
	}
	if d.HasSystemPriority() {
		errs = append(errs, field.Invalid(p.Child("priorityClassName"), d.PriorityClassName,
			"is for the parts of the cluster itself, before which everything else has to go: name a class of your own"))
	}
	if d.Resources != nil {
		errs = append(errs, validateResources(d.Resources, p.Child("resources"))...)
	}
	for i := range d.Tolerations {
		errs = append(errs, validateToleration(&d.Tolerations[i], p.Child("tolerations").Index(i))...)
	}
	return errs
}

func validateResources(r *corev1.ResourceRequirements, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, side := range []struct {
		name string
		list corev1.ResourceList
	}{{"limits", r.Limits}, {"requests", r.Requests}} {
		for _, name := range sortedNames(side.list) {
			if q := side.list[name]; q.Sign() < 0 {
				errs = append(errs, field.Invalid(p.Child(side.name).Key(string(name)), q.String(), "is less than nothing: write 0 or more"))
			}
		}
	}
	for _, name := range sortedNames(r.Requests) {
		request := r.Requests[name]
		if limit, ok := r.Limits[name]; ok && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(p.Child("requests").Key(string(name)), request.String(), "is more than the limit "+limit.String()+": no pod would be made"))
		}
	}
	if len(r.Claims) > 0 {
		errs = append(errs, field.Forbidden(p.Child("claims"), "a decider has no resource claims: remove them"))
	}
	return errs
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	byName := make(map[string]resource.Quantity, len(list))
	for name, q := range list {
		byName[string(name)] = q
	}
	var out []corev1.ResourceName
	for _, name := range sortedKeys(byName) {
		out = append(out, corev1.ResourceName(name))
	}
	return out
}

// validateToleration refuses what no API server takes into a pod.
func validateToleration(t *corev1.Toleration, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch t.Operator {
	case "", corev1.TolerationOpEqual:
		if t.Key == "" {
			errs = append(errs, field.Required(p.Child("key"), "an empty key needs operator: Exists"))
		}
	case corev1.TolerationOpExists:
		if t.Value != "" {
			errs = append(errs, field.Invalid(p.Child("value"), t.Value, "must be empty with operator: Exists"))
		}
	default:
		errs = append(errs, field.NotSupported(p.Child("operator"), t.Operator, []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
	}
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		errs = append(errs, field.NotSupported(p.Child("effect"), t.Effect,
			[]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}))
	}
	return errs
}

func validateEvaluation(e *v1alpha1.EvaluationGate, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	f := e.Floors
	if f.RecallPercent == nil && f.FlapPercent == nil && f.P95Milliseconds == nil && f.P99Milliseconds == nil && len(f.FalseBlockPercent) == 0 {
		errs = append(errs, field.Required(p.Child("floors"), "name at least one floor: without any, every revision would pass"))
	}
	if e.CaseSet.OCI != nil {
		errs = append(errs, validateFile(e.CaseSet.OCI.Path, p.Child("caseSet", "oci", "path"))...)
	}
	return errs
}
