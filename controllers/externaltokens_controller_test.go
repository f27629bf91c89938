package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference/workload"
	"gatewright.dev/gatewright/internal/names"
)

func TestGatesGetTheTokensThatDecidersName(t *testing.T) {
	k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
	secret := func(namespace, name string, data map[string][]byte) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
		release(s, "example.com")
		return s
	}
	kept := secret(k.namespace, "kept", map[string][]byte{"token": []byte("t4")})
	kept.Labels = nil
	k.create(kept)
	elsewhere := secret(k.namespace, "other-host", map[string][]byte{"token": []byte("t5")})
	release(elsewhere, "other.example.com")
	k.create(elsewhere)
	k.create(secret(k.namespace, "one", map[string][]byte{"token": []byte("t1"), "more": []byte("not this")}))
	k.create(secret(k.namespace, "unnamed", map[string][]byte{"token": []byte("t2")}))
	k.create(secret(k.namespace, "empty", map[string][]byte{"password": []byte("p")}))
	k.create(secret("elsewhere", "far", map[string][]byte{"token": []byte("t3")}))
	for _, name := range []string{"one", "empty", "missing", "far", "kept", "other-host", names.ExternalTokensSecret} {
		m := judge(func(s *v1alpha1.DeciderModelSpec) {
			s.Runtime, s.Artifact = v1alpha1.RuntimeExternal, nil
			s.External = &v1alpha1.ExternalRuntime{URL: "https://example.com", Model: name, TokenSecretRef: &v1alpha1.SecretReference{Name: v1alpha1.ObjectName(name)}}
		})
		c, err := workload.NewRevision(k.models.install(), m)
		if err != nil {
			t.Fatal(err)
		}
		k.create(c)
	}
	r := &TokenReconciler{client: k.client, namespace: k.namespace}
	want := func(data map[string][]byte) {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
		var got corev1.Secret
		k.get(client.ObjectKey{Namespace: k.namespace, Name: names.ExternalTokensSecret}, &got)
		if diff := cmp.Diff(data, got.Data); diff != "" {
			t.Error(diff)
		}
	}
	want(map[string][]byte{"one": []byte("t1")})
	changed := secret(k.namespace, "one", nil)
	k.get(client.ObjectKeyFromObject(changed), changed)
	changed.Data["token"] = []byte("t9")
	if err := k.client.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	want(map[string][]byte{"one": []byte("t9")})
	if err := k.client.Delete(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	want(nil)
}
