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
	at := func(url, secret string) *v1alpha1.ExternalRuntime {
		return &v1alpha1.ExternalRuntime{URL: url, Model: secret, TokenSecretRef: &v1alpha1.SecretReference{Name: v1alpha1.ObjectName(secret)}}
	}
	servers := []*v1alpha1.ExternalRuntime{at("https://elsewhere.example.com", "one")} // names the Secret of another's server
	for _, name := range []string{"one", "empty", "missing", "far", "kept", "other-host", names.ExternalTokensSecret} {
		servers = append(servers, at("https://example.com", name))
	}
	for _, server := range servers {
		m := judge(func(s *v1alpha1.DeciderModelSpec) {
			s.Runtime, s.Artifact, s.External = v1alpha1.RuntimeExternal, nil, server
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
	one := workload.TokenFile(at("https://example.com", "one"))
	want(map[string][]byte{one: []byte("t1")})
	changed := secret(k.namespace, "one", nil)
	k.get(client.ObjectKeyFromObject(changed), changed)
	changed.Data["token"] = []byte("t9")
	if err := k.client.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	want(map[string][]byte{one: []byte("t9")})
	// Released for the other host, with a token of that one: the decider that has used the Secret so far does not get it.
	release(changed, "elsewhere.example.com")
	changed.Data["token"] = []byte("t10")
	if err := k.client.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	want(map[string][]byte{workload.TokenFile(servers[0]): []byte("t10")})
	if err := k.client.Delete(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	want(nil)
}
