package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"gatewright.dev/gatewright/api/v1alpha1"
)

func embedded() *v1alpha1.DeciderModelSpec {
	return &v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeEmbedded, Artifact: &v1alpha1.Artifact{
		Type: v1alpha1.ArtifactBundled, SHA256: v1alpha1.SHA256(strings.Repeat("a", 64)), Bundled: &v1alpha1.BundledArtifact{Name: "embedded-v1"},
	}}
}

func llama(change func(*v1alpha1.DeciderModelSpec)) *v1alpha1.DeciderModelSpec {
	s := &v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeLlamaCpp, Artifact: &v1alpha1.Artifact{
		Type: v1alpha1.ArtifactURL, SHA256: v1alpha1.SHA256(strings.Repeat("a", 64)), URL: "https://models.example.com/judge.gguf",
	}}
	change(s)
	return s
}

func from(url string) *v1alpha1.DeciderModelSpec {
	return llama(func(s *v1alpha1.DeciderModelSpec) { s.Artifact.URL = url })
}

func external(change func(*v1alpha1.DeciderModelSpec)) *v1alpha1.DeciderModelSpec {
	s := &v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeExternal, External: &v1alpha1.ExternalRuntime{URL: "https://decider.example.com", Model: "judge-1"}}
	change(s)
	return s
}

func pod(p v1alpha1.DeciderPod) *v1alpha1.DeciderModelSpec {
	return llama(func(s *v1alpha1.DeciderModelSpec) { s.Pod = &p })
}

func quantities(requests, limits string) *corev1.ResourceRequirements {
	return &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(requests)},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limits)},
	}
}

// inPEM gives a certificate and its key.
func inPEM(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{SerialNumber: big.NewInt(1)}, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
}

func TestValidateDeciderModel(t *testing.T) {
	cert, key := inPEM(t)
	bundle := func(text string) *v1alpha1.DeciderModelSpec {
		return external(func(s *v1alpha1.DeciderModelSpec) { s.External.CABundle = text })
	}
	threads, hundred := int32(4), v1alpha1.Percent(100)
	tests := map[string]struct {
		spec *v1alpha1.DeciderModelSpec
		want []string // the fields
	}{
		"the judge in the gate":          {embedded(), nil},
		"a file by URL":                  {llama(func(*v1alpha1.DeciderModelSpec) {}), nil},
		"a server of others":             {external(func(*v1alpha1.DeciderModelSpec) {}), nil},
		"an embedded judge of one's own": {func() *v1alpha1.DeciderModelSpec { s := embedded(); s.Artifact.Bundled.Name = "other"; return s }(), []string{"spec.artifact"}},
		"an embedded judge by URL": {func() *v1alpha1.DeciderModelSpec {
			s := from("https://example.com/a")
			s.Runtime = v1alpha1.RuntimeEmbedded
			return s
		}(), []string{"spec.artifact"}},
		"threads of the judge in the gate":            {func() *v1alpha1.DeciderModelSpec { s := embedded(); s.Threads = &threads; return s }(), []string{"spec.threads"}},
		"threads of a pod":                            {llama(func(s *v1alpha1.DeciderModelSpec) { s.Threads = &threads }), nil},
		"a readout of the judge in the gate":          {func() *v1alpha1.DeciderModelSpec { s := embedded(); s.Readout = v1alpha1.ReadoutVerdict; return s }(), []string{"spec.readout"}},
		"pods of a server of others":                  {external(func(s *v1alpha1.DeciderModelSpec) { s.Pod = &v1alpha1.DeciderPod{} }), []string{"spec.pod"}},
		"a URL that is none":                          {from("https://exa mple.com:a/b"), []string{"spec.artifact.url"}},
		"a URL without a host":                        {from("https:///judge.gguf"), []string{"spec.artifact.url"}},
		"a URL with a fragment":                       {from("https://example.com/a#b"), []string{"spec.artifact.url"}},
		"the address where a cloud keeps credentials": {from("https://169.254.169.254/latest"), []string{"spec.artifact.url"}},
		"the same written as IPv6":                    {from("https://[::ffff:169.254.169.254]/latest"), []string{"spec.artifact.url"}},
		"a link-local address of IPv6":                {from("https://[fe80::1]/a"), []string{"spec.artifact.url"}},
		"the unspecified address":                     {from("https://0.0.0.0/a"), []string{"spec.artifact.url"}},
		"a private address is somebody's own network": {from("https://10.1.2.3/a"), nil},
		"a link-local server of others":               {external(func(s *v1alpha1.DeciderModelSpec) { s.External.URL = "https://169.254.1.1" }), []string{"spec.external.url"}},
		"a server of others by a query":               {external(func(s *v1alpha1.DeciderModelSpec) { s.External.URL = "https://example.com/?key=k" }), []string{"spec.external.url"}},
		"a file by a query, such as a signed URL":     {from("https://example.com/a?signature=s"), nil},
		"a file in an image": {llama(func(s *v1alpha1.DeciderModelSpec) {
			s.Artifact.URL = ""
			s.Artifact.OCI = &v1alpha1.OCIArtifact{Path: "/models/a.gguf"}
		}), nil},
		"a file outside of an image": {llama(func(s *v1alpha1.DeciderModelSpec) {
			s.Artifact.URL = ""
			s.Artifact.OCI = &v1alpha1.OCIArtifact{Path: "../a"}
		}), []string{"spec.artifact.oci.path"}},
		"a folder in an image": {llama(func(s *v1alpha1.DeciderModelSpec) {
			s.Artifact.URL = ""
			s.Artifact.OCI = &v1alpha1.OCIArtifact{Path: "models/"}
		}), []string{"spec.artifact.oci.path"}},
		"a path that climbs inside": {llama(func(s *v1alpha1.DeciderModelSpec) {
			s.Artifact.URL = ""
			s.Artifact.PersistentVolumeClaim = &v1alpha1.PVCArtifact{Path: "a/../b"}
		}), []string{"spec.artifact.persistentVolumeClaim.path"}},
		"a path with a line break": {llama(func(s *v1alpha1.DeciderModelSpec) {
			s.Artifact.URL = ""
			s.Artifact.PersistentVolumeClaim = &v1alpha1.PVCArtifact{Path: "a\nb"}
		}), []string{"spec.artifact.persistentVolumeClaim.path"}},
		"certificates":                            {bundle(cert + cert), nil},
		"a bundle that is no PEM":                 {bundle("no certificate"), []string{"spec.external.caBundle"}},
		"a key among certificates":                {bundle(cert + key), []string{"spec.external.caBundle"}},
		"a certificate that is cut":               {bundle(cert + cert[:100]), []string{"spec.external.caBundle"}},
		"a certificate that holds something else": {bundle(strings.Replace(key, "EC PRIVATE KEY", "CERTIFICATE", 2)), []string{"spec.external.caBundle"}},
		"a calibration without a temperature": {func() *v1alpha1.DeciderModelSpec {
			s := embedded()
			s.Calibration = &v1alpha1.Calibration{Fingerprint: "f"}
			return s
		}(), []string{"spec.calibration"}},
		"requests within limits":                          {pod(v1alpha1.DeciderPod{Resources: quantities("1Gi", "2Gi")}), nil},
		"requests above limits":                           {pod(v1alpha1.DeciderPod{Resources: quantities("2Gi", "1Gi")}), []string{"spec.pod.resources.requests[memory]"}},
		"less than nothing":                               {pod(v1alpha1.DeciderPod{Resources: quantities("-1", "1Gi")}), []string{"spec.pod.resources.requests[memory]"}},
		"a priority of one's own":                         {pod(v1alpha1.DeciderPod{PriorityClassName: "deciders"}), nil},
		"a priority of the cluster itself":                {pod(v1alpha1.DeciderPod{PriorityClassName: "system-node-critical"}), []string{"spec.pod.priorityClassName"}},
		"a claim":                                         {pod(v1alpha1.DeciderPod{Resources: &corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}), []string{"spec.pod.resources.claims"}},
		"no room for a model":                             {pod(v1alpha1.DeciderPod{ModelMemoryLimit: new(resource.MustParse("0"))}), []string{"spec.pod.modelMemoryLimit"}},
		"a label of a node that is none":                  {pod(v1alpha1.DeciderPod{NodeSelector: map[string]string{"a b": "c"}}), []string{"spec.pod.nodeSelector"}},
		"a toleration":                                    {pod(v1alpha1.DeciderPod{Tolerations: []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}}), nil},
		"a toleration of everything without an Exists":    {pod(v1alpha1.DeciderPod{Tolerations: []corev1.Toleration{{}}}), []string{"spec.pod.tolerations[0].key"}},
		"a toleration with a value that is not looked at": {pod(v1alpha1.DeciderPod{Tolerations: []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists, Value: "b"}}}), []string{"spec.pod.tolerations[0].value"}},
		"operators and effects that are none":             {pod(v1alpha1.DeciderPod{Tolerations: []corev1.Toleration{{Key: "a", Operator: "Maybe", Effect: "Some"}}}), []string{"spec.pod.tolerations[0].operator", "spec.pod.tolerations[0].effect"}},
		"an evaluation that every revision passes": {llama(func(s *v1alpha1.DeciderModelSpec) {
			s.Rollout = &v1alpha1.Rollout{Evaluation: &v1alpha1.EvaluationGate{}}
		}), []string{"spec.rollout.evaluation.floors"}},
		"an evaluation with a floor": {llama(func(s *v1alpha1.DeciderModelSpec) {
			s.Rollout = &v1alpha1.Rollout{Evaluation: &v1alpha1.EvaluationGate{Floors: v1alpha1.EvaluationFloors{RecallPercent: &hundred}}}
		}), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range ValidateDeciderModel(tt.spec) {
				got = append(got, e.Field)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, ValidateDeciderModel(tt.spec))
			}
		})
	}
}

func TestAdviceOnDeciders(t *testing.T) {
	none := int32(0)
	const evaluation = "spec.rollout.evaluation: is missing, so a new revision serves without having passed any labelled cases"
	tests := map[string]struct {
		spec *v1alpha1.DeciderModelSpec
		want []string
	}{
		"nothing about the judge in the gate": {embedded(), nil},
		"a decider that nobody evaluates":     {llama(func(*v1alpha1.DeciderModelSpec) {}), []string{evaluation}},
		"its own word":                        {func() *v1alpha1.DeciderModelSpec { s := embedded(); s.RequireVerified = v1alpha1.Optional; return s }(), []string{"spec.requireVerified: Optional takes the decider's own word for what it computes with"}},
		"nobody may refer to it":              {external(func(*v1alpha1.DeciderModelSpec) {}), []string{evaluation, "spec.allowedNamespaces: is missing, which is none for runtime External: no policy can refer to it yet"}},
		"nobody to answer":                    {pod(v1alpha1.DeciderPod{Replicas: &none}), []string{evaluation, "spec.pod.replicas: 0 leaves nobody to answer: whenDeciderUnavailable of each class decides"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, adviseDeciderModel(tt.spec)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
