package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gatewright.dev/gatewright/internal/names"
)

func agentPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: corev1.PodSpec{
		ServiceAccountName: "agent", Containers: []corev1.Container{{Name: "main", Image: "agent"}},
	}}
	for _, change := range changes {
		change(p)
	}
	return p
}

// paths are where additions are made, with the name of what is added.
func paths(i Injection) []string {
	var out []string
	for _, p := range i.Patches {
		text, err := json.Marshal(p.Value)
		if err != nil {
			panic(err)
		}
		var named struct{ Name string }
		if err := json.Unmarshal([]byte(strings.Trim(string(text), "[]")), &named); err != nil {
			named.Name = string(text)
		}
		out = append(out, strings.TrimSpace(p.Op+" "+p.Path+" "+named.Name))
	}
	return out
}

func TestInject(t *testing.T) {
	const (
		volume     = "add /spec/volumes gatewright"
		annotation = "add /metadata/annotations"
	)
	all := func(container string) []string {
		return []string{"add " + container + "/volumeMounts gatewright", "add " + container + "/env GATEWRIGHT_URL", "add " + container + "/env/- GATEWRIGHT_CA_FILE", "add " + container + "/env/- GATEWRIGHT_TOKEN_FILE"}
	}
	join := func(lists ...[]string) []string {
		var out []string
		for _, l := range lists {
			out = append(out, l...)
		}
		return out
	}
	main := "/spec/containers/0"
	tests := map[string]struct {
		pod         *corev1.Pod
		namespace   string
		want        []string
		wantSkipped string
		wantWarning string
	}{
		"a plain pod": {pod: agentPod(), want: join([]string{volume}, all(main), []string{annotation})},
		"every container and init container": {
			pod: agentPod(func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{{Name: "init"}}
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "second"})
			}),
			want: join([]string{volume}, all("/spec/initContainers/0"), all(main), all("/spec/containers/1"), []string{annotation}),
		},
		"what lists hold already stays in front": {
			pod: agentPod(func(p *corev1.Pod) {
				p.Annotations = map[string]string{"a": "b"}
				p.Spec.Volumes = []corev1.Volume{{Name: "data"}}
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A"}}
				p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
			}),
			want: []string{"add /spec/volumes/- gatewright", "add " + main + "/volumeMounts/- gatewright", "add " + main + "/env/- GATEWRIGHT_URL",
				"add " + main + "/env/- GATEWRIGHT_CA_FILE", "add " + main + "/env/- GATEWRIGHT_TOKEN_FILE", `add /metadata/annotations/gatewright.dev~1injected "true"`},
		},
		"a variable of the pod's own wins": {
			pod: agentPod(func(p *corev1.Pod) {
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: names.URLVariable, Value: "https://elsewhere"}}
			}),
			want: []string{volume, "add " + main + "/volumeMounts gatewright", "add " + main + "/env/- GATEWRIGHT_CA_FILE", "add " + main + "/env/- GATEWRIGHT_TOKEN_FILE", annotation},
		},
		"a container that has something else mounted there is told no files": {
			pod: agentPod(func(p *corev1.Pod) {
				p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: names.InjectedPath + "/"}}
			}),
			want: []string{volume, "add " + main + "/env GATEWRIGHT_URL", annotation},
		},
		"a container that has the volume elsewhere is told no files": {
			pod: agentPod(func(p *corev1.Pod) {
				p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: names.InjectedVolume, MountPath: "/gate"}}
			}),
			want: []string{volume, "add " + main + "/env GATEWRIGHT_URL", annotation},
		},
		"a pod that mounts no token of its own": {
			pod:  agentPod(func(p *corev1.Pod) { no := false; p.Spec.AutomountServiceAccountToken = &no }),
			want: join([]string{volume}, all(main), []string{annotation}),
		},
		"a pod that says no": {
			pod:         agentPod(func(p *corev1.Pod) { p.Labels = map[string]string{names.InjectLabel: names.InjectDisabled} }),
			wantSkipped: "the pod says gatewright.dev/inject: disabled",
		},
		"a pod of kube-system":          {pod: agentPod(), namespace: "kube-system", wantSkipped: "nothing is injected into namespace kube-system"},
		"a pod of Gatewright":           {pod: agentPod(), namespace: names.Namespace, wantSkipped: "nothing is injected into namespace gatewright-system"},
		"a mirror of a static pod":      {pod: agentPod(func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }), wantSkipped: "it mirrors a static pod, which is as its node's file says"},
		"a pod without service account": {pod: agentPod(func(p *corev1.Pod) { p.Spec.ServiceAccountName = "" }), wantSkipped: "the pod has no service account, so there is nobody whose token it could have"},
		"a pod with another volume of that name": {
			pod:         agentPod(func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: names.InjectedVolume}} }),
			wantSkipped: "the pod has another volume of that name",
			wantWarning: "gatewright: this pod has a volume named gatewright of its own: the gate's URL and token were not injected",
		},
		"a pod in its node's network": {
			pod:         agentPod(func(p *corev1.Pod) { p.Spec.HostNetwork = true; p.Spec.DNSPolicy = corev1.DNSClusterFirst }),
			wantSkipped: "the pod is in its node's network and does not resolve Services",
			wantWarning: "gatewright: a pod with hostNetwork finds the gate only with dnsPolicy: ClusterFirstWithHostNet: nothing was injected",
		},
		"a pod in its node's network that resolves Services": {
			pod: agentPod(func(p *corev1.Pod) {
				p.Spec.HostNetwork = true
				p.Spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
			}),
			want: join([]string{volume}, all(main), []string{annotation}),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			namespace := tt.namespace
			if namespace == "" {
				namespace = "shop"
			}
			got := Inject(tt.pod, namespace, names.Namespace)
			if diff := cmp.Diff(tt.want, paths(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Skipped != tt.wantSkipped || got.Warning != tt.wantWarning {
				t.Errorf("skipped %q, warning %q", got.Skipped, got.Warning)
			}
		})
	}
}

func TestInjectAnswers(t *testing.T) {
	raw, err := json.Marshal(agentPod())
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		raw         string
		namespace   string
		wantAllowed bool
		wantPatch   bool
	}{
		"a pod is patched":                   {raw: string(raw), namespace: "shop", wantAllowed: true, wantPatch: true},
		"a pod that is left alone":           {raw: string(raw), namespace: "kube-system", wantAllowed: true},
		"what is no pod is an error":         {raw: "[]", namespace: "shop"},
		"fields that are not known are kept": {raw: strings.Replace(string(raw), `"spec":{`, `"spec":{"fieldOfTomorrow":1,`, 1), namespace: "shop", wantAllowed: true, wantPatch: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := injector{namespace: names.Namespace}.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Namespace: tt.namespace, Object: runtime.RawExtension{Raw: []byte(tt.raw)},
			}})
			if got.Allowed != tt.wantAllowed || (len(got.Patch) > 0) != tt.wantPatch {
				t.Errorf("allowed %v, patch %s", got.Allowed, got.Patch)
			}
			if strings.Contains(string(got.Patch), `"remove"`) || strings.Contains(string(got.Patch), `"replace"`) {
				t.Errorf("the patch takes something away: %s", got.Patch)
			}
		})
	}
}
