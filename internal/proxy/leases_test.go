package proxy

import (
	"flag"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
)

// toolServerExample has a proxy of two replicas with the roles that it needs.
const toolServerExample = "../../config/proxy/tool-server.yaml"

// exampleProxy is the configuration of the example's proxy, as its arguments say it.
func exampleProxy(t *testing.T) (c Config, replicas int) {
	t.Helper()
	for _, o := range must(kubetest.ReadManifests(toolServerExample))(t) {
		if o.GetKind() != "Deployment" {
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
			t.Fatal(err)
		}
		flags := flag.NewFlagSet("proxy", flag.ContinueOnError)
		c.BindFlags(flags)
		args := d.Spec.Template.Spec.Containers[0].Args
		if args[0] != "proxy" {
			t.Fatalf("the first container runs %q", args[0])
		}
		if err := flags.Parse(args[1:]); err != nil {
			t.Fatal(err)
		}
		return c, int(*d.Spec.Replicas)
	}
	t.Fatal("the example has no Deployment")
	return c, 0
}

func TestTheExampleStarts(t *testing.T) {
	c, replicas := exampleProxy(t)
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if c.Replicas != replicas {
		t.Errorf("the proxy is told of %d replicas, and %d run", c.Replicas, replicas)
	}
	c.Store, c.LeaseNamespace = StoreFile, ""
	if err := c.Validate(); err == nil {
		t.Error("with a file for each replica it starts too")
	}
}

// TestReplicasUseAPermitOnceTogetherByLeases runs the proxy of the example with the roles of the example.
func TestReplicasUseAPermitOnceTogetherByLeases(t *testing.T) {
	s := kubetest.Own(t)
	s.EnsureNamespace(t, "shop")
	s.Apply(t, "config/proxy/tool-server.yaml")
	kubeconfig := s.KubeconfigOf(t, s.ServiceAccount(t, "shop", "orders"))
	gate, tools := newIssuer(t), newToolServer(t)
	example, _ := exampleProxy(t)
	replica := func(namespace string) *running {
		c := example
		base := defaults(t)
		c.Listen, c.ProbeListen, c.DrainDelay, c.DrainTimeout = base.Listen, base.ProbeListen, base.DrainDelay, base.DrainTimeout
		c.Upstream, c.JWKS, c.GateURL, c.GateCA, c.Audience = tools.URL, gate.url, "", "", "shop"
		c.Kubeconfig, c.LeaseNamespace, c.LeaseTimeout = kubeconfig, namespace, 20*time.Second // a busy machine takes long
		return run(t, c)
	}
	replicas := []*running{replica(example.LeaseNamespace), replica(example.LeaseNamespace)}
	const permits, tries = 5, 6
	var tokens []string
	for range permits {
		token := gate.permit(t, "refund", refundBody)
		tokens = append(tokens, token)
		if diff := cmp.Diff(tally{ran: 1, used: tries - 1}, raceFor(t, replicas, token, tries), cmp.AllowUnexported(tally{})); diff != "" {
			t.Errorf("uses of one permit (-want +got):\n%s", diff)
		}
	}
	if n := len(tools.take()); n != permits {
		t.Errorf("%d calls arrived, want %d", n, permits)
	}
	selector := metav1.ListOptions{LabelSelector: names.LeaseLabel + "=" + names.LeasePermit}
	if leases := must(s.Client(t).CoordinationV1().Leases(example.LeaseNamespace).List(t.Context(), selector))(t); len(leases.Items) != permits {
		t.Errorf("%d leases, want %d", len(leases.Items), permits)
	}
	replicas[0].stop()
	if got := send(t, "POST", replica(example.LeaseNamespace).url+"/tools/refund", refundBody, jsonWith(tokens[0])); codeIn(t, got) != "PermitUsed" {
		t.Errorf("after a replica was replaced: HTTP %d %s", got.status, got.body)
	}
	if got := send(t, "POST", replica("shop").url+"/tools/refund", refundBody, jsonWith(gate.permit(t, "refund", refundBody))); codeIn(t, got) != "PermitStoreUnavailable" {
		t.Errorf("in a namespace where it may not: HTTP %d %s", got.status, got.body)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := send(t, "POST", replicas[1].url+"/tools/refund", refundBody, jsonWith(gate.permit(t, "refund", refundBody))); codeIn(t, got) != "PermitStoreUnavailable" {
		t.Errorf("without the API server: HTTP %d %s", got.status, got.body)
	}
	if ready := send(t, "GET", replicas[1].probes+"/readyz", "", nil); ready.status != 503 {
		t.Errorf("readiness without the API server: HTTP %d", ready.status)
	}
}

// tally counts what became of requests with one permit.
type tally struct{ ran, used int32 }

// raceFor sends one call several times at once, to the replicas in turn.
func raceFor(t *testing.T, replicas []*running, token string, tries int) tally {
	t.Helper()
	var ran, used atomic.Int32
	var all sync.WaitGroup
	for i := range tries {
		all.Go(func() {
			got, err := exchange(t.Context(), "POST", replicas[i%len(replicas)].url+"/tools/refund", refundBody, jsonWith(token))
			switch {
			case err == nil && got.status == 200:
				ran.Add(1)
			case err == nil && got.status == 403 && codeIn(t, got) == "PermitUsed":
				used.Add(1)
			default:
				t.Errorf("HTTP %d %s, %v", got.status, got.body, err)
			}
		})
	}
	all.Wait()
	return tally{ran.Load(), used.Load()}
}
