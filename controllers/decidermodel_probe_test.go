package controllers

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/deciders"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/inference/workload"
	"gatewright.dev/gatewright/internal/names"
)

func TestAServerOfSomebodyElseIsAskedAQuestion(t *testing.T) {
	asked := 0
	model := "m"
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.Header.Get("Authorization") != "Bearer right" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"model": model, "answers": map[string]any{"asked": map[string]any{"type": "noul", "noul": 0.5}}, "usage": map[string]any{"input_tokens": 1, "output_tokens": 1}})
	}))
	defer s.Close()
	bundle := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
	r := workload.Revision{Name: "r", Spec: v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeExternal, External: &v1alpha1.ExternalRuntime{
		URL: s.URL, Model: "m", CABundle: bundle, TokenSecretRef: &v1alpha1.SecretReference{Name: "token"},
	}}}
	ask := func() (*seen, error) {
		k.clock.Step(2 * rememberForeign)
		return k.models.prober.ask(t.Context(), r)
	}
	wantError := func(want string) {
		t.Helper()
		if got, err := ask(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, %v, want %q", got, err, want)
		}
	}
	wantError("reading spec.external.tokenSecretRef")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "token"}, Data: map[string][]byte{"token": []byte("right")}}
	k.create(secret)
	wantError("is not released for servers outside")
	release(secret, "other.example.com")
	secret.Data = nil
	if err := k.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	wantError("may be sent to host")
	if asked != 0 {
		t.Errorf("it was asked %d times", asked)
	}
	release(secret, strings.TrimPrefix(s.URL, "https://"))
	if err := k.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	wantError("has no key token")
	update := func(token string) {
		k.get(client.ObjectKeyFromObject(secret), secret)
		secret.Data = map[string][]byte{"token": []byte(token)}
		if err := k.client.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	update("wrong")
	wantError("401")
	update("right")
	got, err := ask()
	if err != nil || got.fingerprint == "" || got.sha256 != "" || got.mismatch != "" {
		t.Fatalf("%+v, %v", got, err)
	}
	before := asked
	if again, err := k.models.prober.ask(t.Context(), r); err != nil || *again != *got || asked != before {
		t.Errorf("it is asked again within a minute: %v", err)
	}
	model = "moved"
	if got, err := ask(); err != nil || got.mismatch == "" {
		t.Errorf("an alias that moved: %+v, %v", got, err)
	}
}

// release lets the token of a Secret be sent to a host.
func release(s *corev1.Secret, host string) {
	s.Labels = map[string]string{names.ExternalTokenLabel: names.ExternalTokenEnabled}
	s.Annotations = map[string]string{names.AllowedHostAnnotation: host}
}

// A Secret of another purpose, named by whoever may write a DeciderModel, is not sent to a server of theirs.
func TestASecretOfAnotherPurposeIsNotSent(t *testing.T) {
	asked := 0
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer s.Close()
	k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
	k.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "deployer-token"}, Type: corev1.SecretTypeServiceAccountToken,
		Data: map[string][]byte{"token": []byte("words of a token")},
	})
	k.create(judge(func(m *v1alpha1.DeciderModelSpec) {
		m.Runtime, m.Artifact = v1alpha1.RuntimeExternal, nil
		m.External = &v1alpha1.ExternalRuntime{
			URL: s.URL, Model: "x", MaxInFlight: 1, TokenSecretRef: &v1alpha1.SecretReference{Name: "deployer-token"},
			CABundle: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})),
		}
	}))
	m := k.reconcile()
	k.wantCondition(m, v1alpha1.ConditionAvailable, "False Unavailable: it does not answer: spec.external.tokenSecretRef: Secret deployer-token is not released for servers outside")
	if asked != 0 || m.Status.Active != nil {
		t.Errorf("it was asked %d times, and %+v serves", asked, m.Status.Active)
	}
	e := &v1alpha1.DeciderEvaluation{ObjectMeta: metav1.ObjectMeta{Name: "by-hand", UID: "e"}, Spec: v1alpha1.DeciderEvaluationSpec{
		DeciderRef: v1alpha1.EvaluatedDecider{Name: "judge", Revision: m.Status.Candidate.Name}, CaseSet: v1alpha1.CaseSet{Type: v1alpha1.CaseSetOCI, OCI: &v1alpha1.OCIArtifact{}},
	}}
	k.create(e)
	e = k.reconcileEvaluation("by-hand")
	if got := readyOf(e.Status.Conditions, v1alpha1.ConditionComplete); !strings.HasPrefix(got, "Unknown Pending: spec.external.tokenSecretRef: Secret deployer-token is not released") {
		t.Error(got)
	}
	if got := k.names(&batchv1.JobList{}); got != nil {
		t.Errorf("its token is mounted by %v", got)
	}
}

func TestAForeignImageIsAskedByMutualTLS(t *testing.T) {
	k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
	spec := v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeContainer, Container: &v1alpha1.ContainerRuntime{Image: "x@sha256:" + string(pinnedHash), Model: "judge"}}
	ask := func(image string) (*seen, error) {
		spec.Container.Image = image
		k.clock.Step(2 * rememberForeign)
		return k.models.prober.ask(t.Context(), workload.Revision{Name: "r", Model: "foreign", Spec: spec})
	}
	if got, err := ask(spec.Container.Image); err == nil {
		t.Fatalf("nobody answers, and it says %+v", got)
	}
	k.mu.Lock()
	k.answers["r"] = modelAnswer{name: "judge"}
	k.mu.Unlock()
	one, err := ask("x@sha256:" + string(pinnedHash))
	if err != nil {
		t.Fatal(err)
	}
	other, err := ask("x@sha256:" + string(otherHash))
	if err != nil || one.fingerprint == other.fingerprint || one.sha256 != "" {
		t.Errorf("two images are one decider: %+v, %+v: %v", one, other, err)
	}
	spec.Container.Model = "another"
	got, err := ask(spec.Container.Image)
	if want := `asked as model "another": ModelMismatch: the reply does not carry the pinned model name`; err != nil || got.mismatch != want {
		t.Errorf("%+v, %v, want %s", got, err, want)
	}
}

func TestTheEmbeddedJudgeIsKnownWithoutAsking(t *testing.T) {
	base := inference.EmbeddedFingerprint()
	half := int32(500)
	tests := map[string]struct {
		calibration *v1alpha1.Calibration
		mismatch    bool
		moves       bool
	}{
		"as it is":                    {},
		"with temperatures":           {calibration: &v1alpha1.Calibration{Fingerprint: v1alpha1.Fingerprint(base), YesNoMilli: &half}, moves: true},
		"with those of another judge": {calibration: &v1alpha1.Calibration{Fingerprint: "sha256:other"}, mismatch: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := askEmbedded(&v1alpha1.DeciderModelSpec{Calibration: test.calibration})
			if string(s.sha256) != deciders.EmbeddedHash() || (s.mismatch != "") != test.mismatch || (string(s.fingerprint) != base) != test.moves {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestADeciderIsNotAskedWithoutACertificate(t *testing.T) {
	for name, change := range map[string]func(*corev1.Secret){
		"no certificate": func(s *corev1.Secret) { delete(s.Data, "tls.crt") },
		"no authority":   func(s *corev1.Secret) { s.Data["ca.crt"] = []byte("none") },
	} {
		t.Run(name, func(t *testing.T) {
			k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
			k.answers["r"] = answer(pinnedHash, print64("1"))
			var s corev1.Secret
			k.get(client.ObjectKey{Namespace: k.namespace, Name: names.GateClientSecret}, &s)
			change(&s)
			if err := k.client.Update(t.Context(), &s); err != nil {
				t.Fatal(err)
			}
			got, err := k.models.prober.ask(t.Context(), workload.Revision{Name: "r", Model: "judge", Spec: judge(nil).Spec})
			if err == nil || !strings.HasPrefix(err.Error(), "reading the certificate for deciders") {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestWhatWasSeenIsForgotten(t *testing.T) {
	k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
	for i := range 50 {
		k.clock.Step(time.Hour)
		_, _ = k.models.prober.ask(t.Context(), workload.Revision{Name: fmt.Sprint(i), Spec: v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeEmbedded, Artifact: judge(nil).Spec.Artifact}})
	}
	if n := len(k.models.prober.known); n > 1 {
		t.Errorf("%d revisions are remembered", n)
	}
}
