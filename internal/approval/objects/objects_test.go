package objects_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approval/objects"
	"gatewright.dev/gatewright/internal/names"
)

// full is a call in which nothing is left out, with texts that are easily changed on the way.
func full() approval.Call {
	awkward := "<b>&\u2028 \u00e9 e\u0301 \U0001F4A3 \"quoted\" \\ \t\n end "
	return live("refund.full", func(c *approval.Call) {
		c.OnBehalfOf, c.Session, c.AttestedBy = "jo@example.com", "s-1 "+awkward[:4], "chat"
		c.ConfirmReasons = []string{"A " + awkward, "B"}
		c.Message, c.ToolDescription, c.UserRequest = awkward, awkward, awkward
		c.EarlierTurns, c.OmittedTurns = []string{awkward, "", "null", "true"}, 7
		c.Arguments = json.RawMessage(`{"amount":0.1,"big":9007199254740991,"e":1e-7,"note":"<b>& ` + "\u2028" + `","z":null}`)
		c.Sensitive = []string{"/card", "/card"}
		c.Sources = map[string]string{"/amount": "User", "/a~1b": "Nowhere", "/": "Tool"}
		c.Answers = map[string]string{"asked": "yes 93 %", "severity": "level 1.25"}
		c.Probabilities = map[string]float64{"asked": 0.1 + 0.2, "severity": 1e-17, "third": 5e-324, "whole": 1}
		c.Reasons = []approval.Reason{{Key: "A", Policy: "ToolPolicy/shop/p", By: "rule:x", Reason: "Irreversible", Message: awkward}, {Key: "B", Reason: "Unsure"}}
		c.InbandClaims, c.Fingerprint, c.Policies = []string{"user", "tool"}, "sha256:00", []string{"ToolPolicy/shop/p@3", "ClusterToolPolicy/floor@1"}
		c.CaptureState = "Encrypted"
		c.Approvers = approval.Approvers{
			SelfApproval: true, Channels: []approval.Channel{approval.ChannelKubernetes, approval.ChannelOIDC}, Issuers: []string{"https://issuer.example.com"},
			Attestors: []approval.Attestor{{Name: "chat", Key: json.RawMessage(`{"kty":"OKP","crv":"Ed25519","x":"AA"}`)}},
		}
	})
}

// The seal is over every byte that the person sees. So a call has to come back from the API server as it was.
func TestACallComesBackAsItWas(t *testing.T) {
	c := full()
	for v, i := reflect.ValueOf(c), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Fatalf("%s is left out", v.Type().Field(i).Name)
		}
	}
	for v, i := reflect.ValueOf(c.Binding), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Fatalf("%s of the binding is left out", v.Type().Field(i).Name)
		}
	}
	cluster := install(t)
	s := seals(t, clock.RealClock{})
	store := cluster.open(t, clock.RealClock{}, s)
	raised, err := store.Raise(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	got, err := cluster.open(t, clock.RealClock{}, s).Get(t.Context(), raised.Name)
	if err != nil {
		t.Fatal(err)
	}
	want, err := objects.Normal(c)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Call); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := s.Verify(&got); err != nil {
		t.Error(err)
	}
	cluster.clear(t)
}

// What an object cannot hold is not cut: it is not raised. The error names fields and no values, which are private.
func TestACallThatDoesNotFitIsNotRaised(t *testing.T) {
	cluster := install(t)
	store := cluster.open(t, clock.RealClock{}, seals(t, clock.RealClock{}))
	long := strings.Repeat("private", 50)
	for name, test := range map[string]struct {
		change func(c *approval.Call)
		want   error
		field  string
	}{
		"a text that is too long":         {func(c *approval.Call) { c.OnBehalfOf = long }, approval.ErrTooLarge, "spec.call.onBehalfOf"},
		"a list that is too long":         {func(c *approval.Call) { c.InbandClaims = strings.Split("a b c d e f g h i", " ") }, approval.ErrTooLarge, "spec.call.inbandClaims"},
		"a class that is none":            {func(c *approval.Call) { c.Class = "private" }, approval.ErrBadCall, "spec.call.class"},
		"a source that is none":           {func(c *approval.Call) { c.Sources = map[string]string{"/a": "private"} }, approval.ErrBadCall, "spec.call.sources"},
		"no reason to ask":                {func(c *approval.Call) { c.ConfirmReasons = nil }, approval.ErrBadCall, "spec.call.confirmReasons"},
		"no arguments":                    {func(c *approval.Call) { c.Arguments = nil }, approval.ErrBadCall, ""},
		"a digest that is none":           {func(c *approval.Call) { c.PolicyDigest = "private" }, approval.ErrBadCall, "spec.call.policyDigest"},
		"a caller of no namespace at all": {func(c *approval.Call) { c.Caller = "absent-private/agent" }, approval.ErrUnavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := store.Raise(t.Context(), live("does-not-fit", test.change))
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.field) {
				t.Fatalf("error %v, want %v that names %s", err, test.want, test.field)
			}
			if test.want != approval.ErrUnavailable && strings.Contains(err.Error(), "private") {
				t.Errorf("the error gives values away: %v", err)
			}
		})
	}
}

func TestTwoGatesShareOneApprovalAndUseItOnce(t *testing.T) {
	cluster := install(t)
	s := seals(t, clock.RealClock{})
	gates := []*objects.Store{cluster.open(t, clock.RealClock{}, s), cluster.open(t, clock.RealClock{}, s)}
	const rounds, callers = 3, 8
	for round := range rounds {
		raised := race(t, gates, callers, func(g *objects.Store) string {
			a, err := g.Raise(t.Context(), live("race"))
			if err != nil {
				t.Errorf("Raise: %v", err)
			}
			return a.ID + " " + a.Name
		})
		if len(raised) != 1 {
			t.Fatalf("round %d: %d approvals were raised for one call: %v", round, len(raised), raised)
		}
		id, name := "", ""
		for text := range raised {
			id, name, _ = strings.Cut(text, " ")
		}
		w := &try{t, cluster, gates[0], name}
		w.approved()
		used := race(t, gates, callers, func(g *objects.Store) string {
			switch err := g.Consume(t.Context(), id); {
			case err == nil:
				return "used"
			case errors.Is(err, approval.ErrUsed):
				return "refused"
			default:
				t.Errorf("Consume: %v", err)
				return "failed"
			}
		})
		if used["used"] != 1 || used["refused"] != 2*callers-1 {
			t.Fatalf("round %d: %v, want one use", round, used)
		}
	}
	cluster.clear(t)
}

// race lets every gate do something many times at once, and counts what came of it.
func race(t *testing.T, gates []*objects.Store, callers int, do func(*objects.Store) string) map[string]int {
	t.Helper()
	results := make(chan string, len(gates)*callers)
	var all sync.WaitGroup
	for _, g := range gates {
		for range callers {
			all.Go(func() { results <- do(g) })
		}
	}
	all.Wait()
	close(results)
	counts := map[string]int{}
	for r := range results {
		counts[r]++
	}
	return counts
}

// A rejection holds although its object is gone, as it is when its namespace was deleted and made again.
func TestARejectionHoldsWithoutItsObject(t *testing.T) {
	cluster := install(t)
	s := seals(t, clock.RealClock{})
	store, other := cluster.open(t, clock.RealClock{}, s), cluster.open(t, clock.RealClock{}, s)
	call := live("gone")
	a, err := store.Raise(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	anotherPolicy := func(c *approval.Call) { c.PolicyDigest = "sha256:0c" }
	b, err := store.Raise(t.Context(), live("gone", anotherPolicy))
	if err != nil {
		t.Fatal(err)
	}
	(&try{t, cluster, store, b.Name}).approved()
	w := &try{t, cluster, store, a.Name}
	if err := w.patch(cluster.user(t, "lee"), reject); err != nil {
		t.Fatal(err)
	}
	for _, g := range []*objects.Store{store, other} {
		eventually(t, "the rejection is kept in a lease", func() bool { return g.HasSeenRejection(call.CallKey) })
	}
	if err := w.as(cluster.manager).Delete(t.Context(), a.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	found, err := other.Find(t.Context(), live("gone", func(c *approval.Call) { c.PolicyDigest = "sha256:0d" }).Binding)
	if err != nil || len(found) != 1 || found[0].ID != a.ID || found[0].State != approval.Rejected || found[0].Decision.Message != "no" || s.Verify(&found[0]) != nil {
		t.Errorf("Find = %+v, %v; want the rejection with its seal and the person's words", found, err)
	}
	if raised, err := other.Raise(t.Context(), live("gone", anotherPolicy)); err != nil || raised.ID != a.ID {
		t.Errorf("Raise = %s %s, %v; want the rejection", raised.Name, raised.State, err)
	}
	if err := other.Consume(t.Context(), b.ID); !errors.Is(err, approval.ErrRejected) {
		t.Errorf("Consume: %v, want ErrRejected", err)
	}
	cluster.clear(t)
}

// What somebody else has sealed, or nobody, is given to be reported; it neither stands for a call nor is it used.
func TestWhatIsNotSealedDoesNotCount(t *testing.T) {
	cluster := install(t)
	stranger, s := cluster.open(t, clock.RealClock{}, seals(t, clock.RealClock{})), seals(t, clock.RealClock{})
	store := cluster.open(t, clock.RealClock{}, s)
	forged, err := stranger.Raise(t.Context(), live("forged"))
	if err != nil {
		t.Fatal(err)
	}
	(&try{t, cluster, stranger, forged.Name}).approved()
	eventually(t, "the other's approval is found", func() bool {
		found, err := store.Find(t.Context(), live("forged").Binding)
		return err == nil && len(found) == 1 && errors.Is(s.Verify(&found[0]), approval.ErrNotSealed)
	})
	if err := store.Consume(t.Context(), forged.ID); !errors.Is(err, approval.ErrNotSealed) {
		t.Errorf("Consume: %v, want ErrNotSealed", err)
	}
	own, err := store.Raise(t.Context(), live("forged"))
	if err != nil || own.ID == forged.ID || own.Name == forged.Name || s.Verify(&own) != nil {
		t.Errorf("Raise = %s, %v; want another one that is sealed", own.Name, err)
	}
	cluster.clear(t)
}

func TestAUseIsMirroredAndItsLeaseStaysForItsTime(t *testing.T) {
	cluster := install(t)
	c := atNoon()
	s := seals(t, c)
	store := cluster.open(t, c, s)
	a, err := store.Raise(t.Context(), live("mirror", func(c *approval.Call) { c.RaisedAt, c.ExpiresAt = noon, noon.Add(10*time.Minute) }))
	if err != nil {
		t.Fatal(err)
	}
	(&try{t, cluster, store, a.Name}).approved()
	c.SetTime(noon.Add(time.Minute))
	if err := store.Consume(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the use stands in the status", func() bool {
		o := cluster.object(t, a.Name)
		return objects.State(o, nil, noon) == approval.Consumed && objects.EndedAt(o, nil, noon).Equal(noon.Add(time.Minute))
	})
	leases := cluster.leases(t)
	if len(leases) != 1 || leases[0].Name != names.UseLeasePrefix+a.ID || *leases[0].Spec.HolderIdentity != "gate-0" {
		t.Fatalf("leases %+v, want that of the use by gate-0", leases)
	}
	for _, step := range []struct {
		at   time.Duration
		want int
	}{{9 * time.Minute, 1}, {10 * time.Minute, 1}, {75 * time.Minute, 1}, {81 * time.Minute, 0}} {
		c.SetTime(noon.Add(step.at))
		eventually(t, "the cache has the lease", func() bool {
			if err := store.Tidy(t.Context()); err != nil {
				t.Fatal(err)
			}
			return len(cluster.leases(t)) == step.want
		})
	}
	cluster.clear(t)
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("not so: %s", what)
}

// Without an API server nothing is found to be absent, nothing is raised and nothing is used, and nobody waits for long.
func TestWithoutAnAPIServerNothingIsUsed(t *testing.T) {
	hanging := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	hanging.Start()
	defer hanging.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for name, host := range map[string]string{"one that does not answer": hanging.URL, "one that is gone": "http://" + closed.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			store, err := objects.New(objects.Options{Config: &rest.Config{Host: host}, Seals: seals(t, clock.RealClock{}), Timeout: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			if store.IsEmpty() || store.IsSynced() {
				t.Error("it takes what it has not read for empty")
			}
			for act, do := range map[string]func(ctx context.Context) error{
				"Find":    func(ctx context.Context) error { _, err := store.Find(ctx, live("t").Binding); return err },
				"Raise":   func(ctx context.Context) error { _, err := store.Raise(ctx, live("t")); return err },
				"Get":     func(ctx context.Context) error { _, err := store.Get(ctx, "ta-1"); return err },
				"List":    func(ctx context.Context) error { _, err := store.List(ctx); return err },
				"Consume": func(ctx context.Context) error { return store.Consume(ctx, "00") },
				"Decide": func(ctx context.Context) error {
					return store.Decide(ctx, "ta-1", approval.Decision{Outcome: approval.Approved, By: approval.Approver{Type: approval.OIDC, Name: "n"}})
				},
			} {
				if err := do(t.Context()); !errors.Is(err, approval.ErrUnavailable) {
					t.Errorf("%s: %v, want ErrUnavailable", act, err)
				}
			}
		})
	}
}

// An answer of the API server that drops a field is no approval that a person could have seen.
func TestWhatTheAPIServerDropsIsNotRaised(t *testing.T) {
	var posts atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodPost {
			_, _ = w.Write([]byte(`{"apiVersion":"gatewright.dev/v1alpha1","kind":"ToolApprovalList","metadata":{},"items":[]}`))
			return
		}
		posts.Add(1)
		var o map[string]any
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			t.Error(err)
		}
		delete(o["spec"].(map[string]any)["call"].(map[string]any), "message")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(o)
	}))
	defer server.Close()
	store, err := objects.New(objects.Options{Config: &rest.Config{Host: server.URL}, Seals: seals(t, clock.RealClock{})})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Raise(t.Context(), live("t")); !errors.Is(err, approval.ErrUnavailable) || posts.Load() != 1 {
		t.Errorf("Raise: %v after %d posts, want ErrUnavailable after one", err, posts.Load())
	}
}

func TestKubectlShowsWhatAPersonNeeds(t *testing.T) {
	cluster := install(t)
	store := cluster.open(t, clock.RealClock{}, seals(t, clock.RealClock{}))
	a, err := store.Raise(t.Context(), live("refund", func(c *approval.Call) { c.OnBehalfOf = "jo@example.com" }))
	if err != nil {
		t.Fatal(err)
	}
	file, admin := cluster.KubeconfigOf(t, cluster.user(t, "kim")), cluster.KubeconfigOf(t, cluster.Config())
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"at a glance":       {[]string{"get", "ta", "-n", shop}, []string{a.Name, "refund", "shop/agent", "Refund 5 EUR?", "EXPIRES", a.Call.ExpiresAt.Format(time.RFC3339)}},
		"with what it does": {[]string{"get", "ta", "-n", shop, "-o", "wide"}, []string{"jo@example.com", `{"amount":5}`, "Payments"}},
		"by its category":   {[]string{"get", "gatewright", "-n", shop, "--kubeconfig", admin}, []string{a.Name}},
		"what it means":     {[]string{"explain", "toolapproval.spec.call.approvers"}, []string{"selfApproval", "channels"}},
		"one by its id":     {[]string{"get", "ta", "-n", shop, "--field-selector", "spec.call.id=" + a.ID, "-o", "name"}, []string{a.Name}},
		"approving":         {[]string{"patch", "ta", a.Name, "-n", shop, "--type", "merge", "-p", approve}, []string{"patched"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := cluster.Kubectl(t, file, test.args...)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, want := range test.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in:\n%s", want, out)
				}
			}
		})
	}
	out, err := cluster.Kubectl(t, file, "get", "ta", "-n", shop)
	if err != nil || !strings.Contains(out, "Approve") || !strings.Contains(out, "kim") {
		t.Errorf("who decided is not shown: %v\n%s", err, out)
	}
	cluster.clear(t)
}

// Whoever alters the policy, or deletes it, gets no approval used: neither one that waited before nor one that was
// decided meanwhile, also when the policy is back.
func TestNoApprovalIsHonouredWithoutThePolicy(t *testing.T) {
	cluster := install(t)
	c := &offset{}
	s := seals(t, c)
	store := cluster.open(t, c, s).WithGuardLag(0)
	policies := dynamic.NewForConfigOrDie(cluster.Config()).Resource(admissionPolicies)
	bindings := dynamic.NewForConfigOrDie(cluster.Config()).Resource(admissionBindings)
	patch := func(r dynamic.ResourceInterface, text string) error {
		_, err := r.Patch(t.Context(), names.ApprovalPolicy, "application/merge-patch+json", []byte(text), metav1.PatchOptions{})
		return err
	}
	for name, break_ := range map[string]func() error{
		"the policy is deleted":   func() error { return policies.Delete(t.Context(), names.ApprovalPolicy, metav1.DeleteOptions{}) },
		"the binding only audits": func() error { return patch(bindings, `{"spec":{"validationActions":["Audit"]}}`) },
	} {
		t.Run(name, func(t *testing.T) {
			first, second := raiseApproved(t, cluster, store, "first "+name), raiseApproved(t, cluster, store, "second "+name)
			if err := store.Consume(t.Context(), first); err != nil {
				t.Fatalf("with the policy in force: %v", err)
			}
			if err := break_(); err != nil {
				t.Fatal(err)
			}
			c.pass(11 * time.Second) // what was read is too old by then
			if err := store.Consume(t.Context(), second); !errors.Is(err, objects.ErrUnguarded) || !errors.Is(err, approval.ErrUnavailable) {
				t.Errorf("broken: %v, want ErrUnguarded", err)
			}
			for _, r := range []dynamic.ResourceInterface{policies, bindings} { // applying does not take away what another has added
				_ = r.Delete(t.Context(), names.ApprovalPolicy, metav1.DeleteOptions{})
			}
			cluster.Apply(t, "config/admission/approvals.yaml")
			time.Sleep(2 * time.Second)
			c.pass(11 * time.Second)
			if err := store.Consume(t.Context(), second); !errors.Is(err, objects.ErrUnguarded) {
				t.Errorf("decided while it was broken: %v, want ErrUnguarded", err)
			}
			if err := store.Consume(t.Context(), raiseApproved(t, cluster, store, "third "+name)); err != nil {
				t.Errorf("raised since it is back: %v", err)
			}
			if err := store.WithGuardLag(time.Hour).Consume(t.Context(), raiseApproved(t, cluster, store, "fourth "+name)); !errors.Is(err, objects.ErrUnguarded) {
				t.Errorf("raised before all API servers have it: %v, want ErrUnguarded", err)
			}
			store.WithGuardLag(0)
		})
	}
	cluster.clear(t)
	installing.Lock()
	defer installing.Unlock()
	installed = nil // another test waits until the policies are old enough again
}

func raiseApproved(t *testing.T, cluster *cluster, store *objects.Store, tool string) string {
	t.Helper()
	a, err := store.Raise(t.Context(), live(tool))
	if err != nil {
		t.Fatal(err)
	}
	(&try{t, cluster, store, a.Name}).approved()
	return a.ID
}

// offset is the system's clock, put forward.
type offset struct{ by atomic.Int64 }

func (o *offset) Now() time.Time                  { return time.Now().Add(time.Duration(o.by.Load())) }
func (o *offset) Since(t time.Time) time.Duration { return o.Now().Sub(t) }
func (o *offset) pass(d time.Duration)            { o.by.Add(int64(d)) }
