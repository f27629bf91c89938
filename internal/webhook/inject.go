package webhook

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"gatewright.dev/gatewright/internal/names"
)

// tokenSeconds is how long an injected token is good; the kubelet renews it at four fifths of that.
const tokenSeconds = 3600

// Patch is one operation of a JSON patch (RFC 6902). Only additions are made: a field of a pod that this program does not
// know stays as it is.
type Patch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Injection is what a pod is given, or why it is given nothing.
type Injection struct {
	Patches []Patch
	// Skipped says why the pod is left alone; empty if it is not.
	Skipped string
	// Warning is for whoever creates the pod.
	Warning string
}

// NeverInjected are the namespaces whose pods are left alone whatever their labels say: those that a cluster cannot do
// without, and Gatewright's own.
func NeverInjected(gatewright string) []string {
	return []string{"kube-system", "kube-public", "kube-node-lease", gatewright}
}

// Inject gives every container of a pod the gate's URL, its authority and a token for it. gatewright is Gatewright's own
// namespace. What a container has already wins, so that doing it again adds nothing.
func Inject(pod *corev1.Pod, namespace, gatewright string) Injection {
	if why := leftAlone(pod, namespace, gatewright); why.Skipped != "" {
		return why
	}
	var out Injection
	if !hasVolume(pod) {
		out.add("/spec/volumes", pod.Spec.Volumes == nil, volume())
	}
	env := variables(gatewright)
	for i := range pod.Spec.InitContainers {
		out.container(fmt.Sprintf("/spec/initContainers/%d", i), &pod.Spec.InitContainers[i], env)
	}
	for i := range pod.Spec.Containers {
		out.container(fmt.Sprintf("/spec/containers/%d", i), &pod.Spec.Containers[i], env)
	}
	if pod.Annotations[names.InjectedAnnotation] != "true" && len(out.Patches) > 0 {
		out.annotate(pod.Annotations == nil)
	}
	return out
}

// leftAlone says why a pod is given nothing, if so.
func leftAlone(pod *corev1.Pod, namespace, gatewright string) Injection {
	_, isMirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case slices.Contains(NeverInjected(gatewright), namespace):
		return Injection{Skipped: "nothing is injected into namespace " + namespace}
	case pod.Labels[names.InjectLabel] == names.InjectDisabled:
		return Injection{Skipped: "the pod says " + names.InjectLabel + ": " + names.InjectDisabled}
	case isMirror:
		return Injection{Skipped: "it mirrors a static pod, which is as its node's file says"}
	case pod.Spec.ServiceAccountName == "":
		return Injection{Skipped: "the pod has no service account, so there is nobody whose token it could have"}
	case hasVolumeOfOthers(pod):
		return Injection{
			Skipped: "the pod has another volume of that name",
			Warning: "gatewright: this pod has a volume named " + names.InjectedVolume + " of its own: the gate's URL and token were not injected",
		}
	case pod.Spec.HostNetwork && pod.Spec.DNSPolicy != corev1.DNSClusterFirstWithHostNet:
		return Injection{
			Skipped: "the pod is in its node's network and does not resolve Services",
			Warning: "gatewright: a pod with hostNetwork finds the gate only with dnsPolicy: ClusterFirstWithHostNet: nothing was injected",
		}
	}
	return Injection{}
}

// hasVolume says whether our volume is there, from an earlier pass.
func hasVolume(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == names.InjectedVolume })
}

// hasVolumeOfOthers says whether a volume of our name is something else than a token for the gate.
func hasVolumeOfOthers(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == names.InjectedVolume && !HoldsToken(&v)
	})
}

// HoldsToken says whether a volume projects a token whose audience is the gate.
func HoldsToken(v *corev1.Volume) bool {
	return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
		return s.ServiceAccountToken != nil && s.ServiceAccountToken.Audience == names.Audience
	})
}

// volume holds a token for the gate and the authority by which the gate is known. A namespace without the authority's
// ConfigMap lets the pod wait with an event that says so, which is clearer than an agent that trusts nobody.
func volume() corev1.Volume {
	seconds := int64(tokenSeconds)
	return corev1.Volume{Name: names.InjectedVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: names.Audience, ExpirationSeconds: &seconds, Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: names.AuthorityConfigMap},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
		},
	}}}
}

func variables(gatewright string) []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: names.URLVariable, Value: "https://" + names.GateService + "." + gatewright + ".svc"},
		{Name: names.CAFileVariable, Value: names.InjectedPath + "/ca.crt"},
		{Name: names.TokenFileVariable, Value: names.InjectedPath + "/token"},
	}
}

// container adds what a container lacks. One that has something else mounted there keeps it and is told no files.
func (i *Injection) container(path string, c *corev1.Container, env []corev1.EnvVar) {
	mount := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.Name == names.InjectedVolume || strings.TrimSuffix(m.MountPath, "/") == names.InjectedPath
	})
	wanted := env
	switch {
	case mount < 0:
		i.add(path+"/volumeMounts", c.VolumeMounts == nil, corev1.VolumeMount{Name: names.InjectedVolume, MountPath: names.InjectedPath, ReadOnly: true})
	case c.VolumeMounts[mount].Name != names.InjectedVolume || strings.TrimSuffix(c.VolumeMounts[mount].MountPath, "/") != names.InjectedPath:
		wanted = env[:1] // the URL is right wherever the files are
	}
	isMissing := c.Env == nil
	for _, v := range wanted {
		if slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == v.Name }) {
			continue
		}
		i.add(path+"/env", isMissing, v)
		isMissing = false
	}
}

// add appends to a list, which is made first where it is missing.
func (i *Injection) add(path string, isMissing bool, value any) {
	if isMissing {
		i.Patches = append(i.Patches, Patch{Op: "add", Path: path, Value: []any{value}})
		return
	}
	i.Patches = append(i.Patches, Patch{Op: "add", Path: path + "/-", Value: value})
}

func (i *Injection) annotate(isMissing bool) {
	if isMissing {
		i.Patches = append(i.Patches, Patch{Op: "add", Path: "/metadata/annotations", Value: map[string]string{names.InjectedAnnotation: "true"}})
		return
	}
	i.Patches = append(i.Patches, Patch{Op: "add", Path: "/metadata/annotations/" + strings.ReplaceAll(names.InjectedAnnotation, "/", "~1"), Value: "true"})
}
