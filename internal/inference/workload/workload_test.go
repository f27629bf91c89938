package workload

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	hashA = v1alpha1.SHA256("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	hashB = v1alpha1.SHA256("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb")
)

var install = Install{Namespace: "gatewright-system", DeciderImage: "decider:1", ToolImage: "gatewright:1"}

func model(change func(*v1alpha1.DeciderModelSpec)) *v1alpha1.DeciderModel {
	m := &v1alpha1.DeciderModel{ObjectMeta: metav1.ObjectMeta{Name: "judge", UID: "uid-1"}}
	m.Spec = v1alpha1.DeciderModelSpec{
		Runtime: v1alpha1.RuntimeLlamaCpp, ContextTokens: 4096, Readout: v1alpha1.ReadoutAuto, RequireVerified: v1alpha1.Required,
		Artifact: &v1alpha1.Artifact{
			Type: v1alpha1.ArtifactPVC, SHA256: hashA,
			PersistentVolumeClaim: &v1alpha1.PVCArtifact{ClaimName: "models", Path: "../judge.gguf"},
		},
	}
	if change != nil {
		change(&m.Spec)
	}
	return m
}

func revision(t *testing.T, m *v1alpha1.DeciderModel) Revision {
	t.Helper()
	c, err := NewRevision(install, m)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ReadRevision(m, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fromURL(s *v1alpha1.DeciderModelSpec) {
	s.Artifact = &v1alpha1.Artifact{Type: v1alpha1.ArtifactURL, SHA256: hashA, URL: "https://models.example.com:8443/judge.gguf"}
}

func asContainer(s *v1alpha1.DeciderModelSpec) {
	s.Runtime, s.Artifact = v1alpha1.RuntimeContainer, nil
	s.Container = &v1alpha1.ContainerRuntime{
		Image: "example.com/judge@sha256:" + string(hashA), Port: 8000, Args: []string{"--quiet"}, MaxInFlight: 2, Model: "judge-2b",
	}
}

func asExternal(s *v1alpha1.DeciderModelSpec) {
	s.Runtime, s.Artifact = v1alpha1.RuntimeExternal, nil
	s.External = &v1alpha1.ExternalRuntime{URL: "https://example.com", Model: "m", TokenSecretRef: &v1alpha1.SecretReference{Name: "token"}}
}

func TestChildrenAreAsTheGoldenFilesShow(t *testing.T) {
	tests := map[string]*v1alpha1.DeciderModel{
		"claim": model(nil),
		"url": model(func(s *v1alpha1.DeciderModelSpec) {
			fromURL(s)
			s.Pod = &v1alpha1.DeciderPod{ModelMemoryLimit: new(resource.MustParse("2Gi")), Replicas: new(int32(2))}
		}),
		"image-volume": model(func(s *v1alpha1.DeciderModelSpec) {
			s.Artifact = &v1alpha1.Artifact{Type: v1alpha1.ArtifactOCI, SHA256: hashA, OCI: &v1alpha1.OCIArtifact{Image: "example.com/m@sha256:" + string(hashB), Path: "models/judge.gguf"}}
			s.Calibration = &v1alpha1.Calibration{Fingerprint: "sha256:f", YesNoMilli: new(int32(1300)), ScoreMilli: new(int32(900))}
			s.Readout = v1alpha1.ReadoutLabelLogits
		}),
		"bundled": model(func(s *v1alpha1.DeciderModelSpec) {
			s.Artifact = &v1alpha1.Artifact{Type: v1alpha1.ArtifactBundled, SHA256: hashA, Bundled: &v1alpha1.BundledArtifact{Name: "judge.gguf"}}
			s.Threads = new(int32(3))
			s.Pod = &v1alpha1.DeciderPod{
				NodeSelector: map[string]string{"pool": "cpu"}, PriorityClassName: "high",
				Tolerations: []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}},
				Affinity:    &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone"}}}},
				Resources: &corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4500m")}, Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Gi")},
				},
			}
		}),
		"container": model(asContainer),
	}
	for name, m := range tests {
		t.Run(name, func(t *testing.T) {
			r := revision(t, m)
			golden(t, name, Deployment(install, r), Service(install, r), NetworkPolicy(install, r), PodDisruptionBudget(install, r))
		})
	}
}

func TestEvaluationsAreAsTheGoldenFilesShow(t *testing.T) {
	cases := v1alpha1.CaseSet{Type: v1alpha1.CaseSetConfigMap, SHA256: hashB, ConfigMapName: "cases", LadderSHA256: hashA}
	image := v1alpha1.CaseSet{Type: v1alpha1.CaseSetOCI, SHA256: hashB, OCI: &v1alpha1.OCIArtifact{Image: "example.com/c@sha256:" + string(hashA), Path: "a/../cases.jsonl"}}
	tests := map[string]struct {
		model *v1alpha1.DeciderModel
		cases v1alpha1.CaseSet
	}{
		"evaluation-of-pods":     {model(nil), cases},
		"evaluation-of-external": {model(asExternal), image},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := Evaluation{Name: "judge-0123456789-abcdef", UID: "11111111-2222-3333-4444-555555555555", CaseSet: test.cases, Repeats: 3, Revision: revision(t, test.model)}
			job, err := Job(install, e)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name, job)
		})
	}
}

func golden(t *testing.T, name string, objects ...any) {
	t.Helper()
	var out strings.Builder
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	path := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(path, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("run with -update if this is meant (-want +got):\n%s", diff)
	}
}

// What the restricted profile of Pod Security asks of a pod holds for every pod that is built here.
func TestEveryPodIsRestricted(t *testing.T) {
	e := Evaluation{Name: "e", UID: "u", CaseSet: v1alpha1.CaseSet{Type: v1alpha1.CaseSetConfigMap, ConfigMapName: "cases"}, Revision: revision(t, model(nil))}
	pods := map[string]any{
		"evaluation": evaluationPod(install, e), "claim": podSpec(install, revision(t, model(nil))),
		"url": podSpec(install, revision(t, model(fromURL))), "container": podSpec(install, revision(t, model(asContainer))),
	}
	for name, built := range pods {
		t.Run(name, func(t *testing.T) {
			pod := *convert[corev1.PodSpec](built)
			if s := pod.SecurityContext; s == nil || !*s.RunAsNonRoot || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%+v", s)
			}
			if pod.HostNetwork || pod.HostPID || pod.HostIPC {
				t.Error("it shares something with its node")
			}
			for _, c := range append(pod.InitContainers, pod.Containers...) {
				s := c.SecurityContext
				if s == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Privileged != nil || !cmp.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || s.Capabilities.Add != nil {
					t.Errorf("%s: %+v", c.Name, s)
				}
			}
			for _, v := range pod.Volumes {
				if v.HostPath != nil {
					t.Errorf("volume %s is on the node", v.Name)
				}
			}
		})
	}
}

func TestARevisionIsWhatMovesAnswers(t *testing.T) {
	base := revision(t, model(nil)).Name
	tests := map[string]struct {
		change func(*v1alpha1.DeciderModelSpec)
		same   bool
	}{
		"who may refer to it": {func(s *v1alpha1.DeciderModelSpec) {
			s.AllowedNamespaces = &v1alpha1.NamespaceAllowance{From: v1alpha1.NamespacesNone}
		}, true},
		"whether it must be verified": {func(s *v1alpha1.DeciderModelSpec) { s.RequireVerified = v1alpha1.Optional }, true},
		"what it has to pass": {func(s *v1alpha1.DeciderModelSpec) {
			s.Rollout = &v1alpha1.Rollout{Shadow: &v1alpha1.ShadowComparison{Decisions: 1}}
		}, true},
		"how many replicas": {func(s *v1alpha1.DeciderModelSpec) { s.Pod = &v1alpha1.DeciderPod{Replicas: new(int32(4))} }, true},
		"the file":          {func(s *v1alpha1.DeciderModelSpec) { s.Artifact.SHA256 = hashB }, false},
		"the window":        {func(s *v1alpha1.DeciderModelSpec) { s.ContextTokens = 2048 }, false},
		"a temperature":     {func(s *v1alpha1.DeciderModelSpec) { s.Calibration = &v1alpha1.Calibration{Fingerprint: "f"} }, false},
		"where it runs":     {func(s *v1alpha1.DeciderModelSpec) { s.Pod = &v1alpha1.DeciderPod{PriorityClassName: "high"} }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := revision(t, model(test.change)).Name; (got == base) != test.same {
				t.Errorf("%s, before it was %s", got, base)
			}
		})
	}
}

func TestAnotherEngineIsAnotherRevision(t *testing.T) {
	m := model(nil)
	a, errA := NewRevision(install, m)
	b, errB := NewRevision(Install{Namespace: install.Namespace, DeciderImage: "decider:2"}, m)
	if errA != nil || errB != nil || a.Name == b.Name {
		t.Fatalf("%s, %s: %v, %v", a.Name, b.Name, errA, errB)
	}
	m = model(asContainer)
	a, errA = NewRevision(install, m)
	b, errB = NewRevision(Install{Namespace: install.Namespace, DeciderImage: "decider:2"}, m)
	if errA != nil || errB != nil || a.Name != b.Name {
		t.Fatalf("a foreign image has no engine of ours: %s, %s: %v, %v", a.Name, b.Name, errA, errB)
	}
}

func TestARevisionThatWasChangedIsRefused(t *testing.T) {
	m := model(nil)
	c, err := NewRevision(install, m)
	if err != nil {
		t.Fatal(err)
	}
	c.Data.Raw = []byte(strings.Replace(string(c.Data.Raw), string(hashA), string(hashB), 1))
	if _, err := ReadRevision(m, c); err == nil || !strings.Contains(err.Error(), "does not hold what it is named for") {
		t.Fatal(err)
	}
	c.Data.Raw = []byte("{")
	if _, err := ReadRevision(m, c); err == nil {
		t.Fatal("it is no JSON and was read")
	}
}

func TestNamesFitWhereTheyGo(t *testing.T) {
	for _, name := range []string{"judge", "a.b.c", "1st", "0", strings.Repeat("x", 253), strings.Repeat("y.", 100) + "z", "a" + strings.Repeat("-", 60) + "b"} {
		m := model(nil)
		m.Name = name
		r := revision(t, m)
		if errs := validation.IsDNS1035Label(r.Name); errs != nil {
			t.Errorf("%q: %v", r.Name, errs)
		}
		for k, v := range Labels(m.Name, r.Name) {
			if errs := validation.IsValidLabelValue(v); errs != nil {
				t.Errorf("%s=%q: %v", k, v, errs)
			}
		}
		m.Spec.Rollout = &v1alpha1.Rollout{Evaluation: &v1alpha1.EvaluationGate{}}
		e, err := NewEvaluation(m, r.Name)
		if err != nil {
			t.Fatal(err)
		}
		one := Evaluation{Name: e.Name, UID: "11111111-2222-3333-4444-555555555555", Revision: r}
		if errs := validation.IsDNS1035Label(one.JobName()); errs != nil {
			t.Errorf("%q: %v", one.JobName(), errs)
		}
		for k, v := range one.labels() {
			if errs := validation.IsValidLabelValue(v); errs != nil {
				t.Errorf("%s=%q: %v", k, v, errs)
			}
		}
	}
}

func TestAnEvaluationIsNamedByCasesAndFloors(t *testing.T) {
	gate := func(recall v1alpha1.Percent, cases v1alpha1.SHA256) string {
		name, err := EvaluationName("r", &v1alpha1.EvaluationGate{CaseSet: v1alpha1.CaseSet{SHA256: cases}, Floors: v1alpha1.EvaluationFloors{RecallPercent: &recall}})
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	first, again := gate(95, hashA), gate(95, hashA)
	if first != again || first == gate(96, hashA) || first == gate(95, hashB) {
		t.Error("the same gate has to have the same name, and another one another")
	}
}

// A spec survives its way through a ControllerRevision whole.
func TestARevisionHoldsTheWholeSpec(t *testing.T) {
	m := model(func(s *v1alpha1.DeciderModelSpec) {
		fromURL(s)
		s.Languages = []string{"en"}
		s.Pod = &v1alpha1.DeciderPod{Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000m")}}}
	})
	want, err := json.Marshal(SpecOf(&m.Spec))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(revision(t, m).Spec)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}
