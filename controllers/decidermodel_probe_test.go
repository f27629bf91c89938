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
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "token"}}
	k.create(secret)
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
