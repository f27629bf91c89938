package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/controllers"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/testkit"
)

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func within(t *testing.T, what string, log *testkit.Log, check func() error) {
	t.Helper()
	deadline := time.After(40 * time.Second)
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s: %v\n%s", what, err, log.String())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// TestManagerWithItsOwnRights runs the whole manager as its service account, with the roles that an installation has and
// nothing more, from its flags to its end.
func TestManagerWithItsOwnRights(t *testing.T) {
	s := kubetest.Own(t)
	scheme, err := controllers.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(s.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	s.EnsureNamespace(t, names.Namespace)
	s.Apply(t, "config/rbac")
	ns := s.Namespace(t)
	policy := testkit.ToolPolicy("orders", testkit.InNamespace(ns), testkit.WithTool("db.get", "ReadOnly"))
	if err := admin.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	s.Apply(t, "config/webhook") // no policy can be written from here on: there is no Service by which the webhooks are found

	metrics, probes := freeAddress(t), freeAddress(t)
	_, webhookPort, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := s.KubeconfigOf(t, s.ServiceAccount(t, names.Namespace, names.ManagerServiceAccount))
	log := &testkit.Log{}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- start(ctx, []string{
			"-kubeconfig", kubeconfig, "-metrics-listen", metrics, "-probe-listen", probes, "-webhook-port", webhookPort,
			"-webhook-cert-dir", t.TempDir(), "-gate-poll", "100ms",
		}, log, log)
	}()

	within(t, "it leads", log, func() error {
		var lease coordinationv1.Lease
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: leaderLease}, &lease); err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return fmt.Errorf("nobody holds the lease")
		}
		return nil
	})
	within(t, "it makes certificates and keys", log, func() error {
		for _, name := range []string{names.AuthoritySecret, names.GateTLSSecret, names.GateClientSecret, names.DeciderTLSSecret, names.GateKeysSecret} {
			if err := admin.Get(t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: name}, &corev1.Secret{}); err != nil {
				return err
			}
		}
		return nil
	})
	within(t, "it writes the status of policies", log, func() error {
		var p v1alpha1.ToolPolicy
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(policy), &p); err != nil {
			return err
		}
		if p.Status.ObservedGeneration != 1 {
			return fmt.Errorf("status %+v", p.Status)
		}
		return nil
	})
	for _, url := range []string{"http://" + probes + "/healthz", "http://" + metrics + "/metrics"} {
		within(t, url, log, func() error {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
			if err != nil {
				return err
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusOK {
				return fmt.Errorf("status %d", response.StatusCode)
			}
			return nil
		})
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "forbidden") || strings.Contains(line, "Forbidden") {
			t.Errorf("something is not allowed: %s", line)
		}
	}
	var lease coordinationv1.Lease
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: leaderLease}, &lease); err != nil {
		t.Fatal(err)
	}
	if lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
		t.Errorf("%s still holds the lease", *lease.Spec.HolderIdentity)
	}
}
