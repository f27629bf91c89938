package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/served"
)

// fakeGates answer at addresses of their own as gates do.
type fakeGates struct {
	t *testing.T

	mu      sync.Mutex
	reports map[string]any // by address; a string is sent as it is
	asked   map[string]int
	atOnce  int
	most    int
}

func newFakeGates(t *testing.T) *fakeGates {
	return &fakeGates{t: t, reports: map[string]any{}, asked: map[string]int{}}
}

// set lets the gate at an address answer with a report, or a text; nil lets it fail. It gives what it answered before.
func (f *fakeGates) set(address string, report any) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.reports[address]
	f.reports[address] = report
	return old
}

// askedOf is how often the gate at an address was asked.
func (f *fakeGates) askedOf(address string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[address]
}

func (f *fakeGates) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked[r.Host]++
	f.atOnce++
	f.most = max(f.most, f.atOnce)
	report := f.reports[r.Host]
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.atOnce--
		f.mu.Unlock()
	}()
	switch v := report.(type) {
	case nil:
		http.Error(w, "not there", http.StatusServiceUnavailable)
	case string:
		_, _ = w.Write([]byte(v))
	default:
		if r.URL.Path != names.ServedPath {
			f.t.Errorf("asked for %s", r.URL.Path)
		}
		_ = json.NewEncoder(w).Encode(v)
	}
}

// client reaches the fake gates at every address.
func (f *fakeGates) client() *http.Client {
	s := httptest.NewServer(f)
	f.t.Cleanup(s.Close)
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
	}
	transport := &http.Transport{DialContext: dial}
	f.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

func testScheme(t *testing.T) *fake.ClientBuilder {
	t.Helper()
	s, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(s)
}

// slice is an EndpointSlice of the gate's Service: pods by address, those in notReady not ready.
func slice(name string, pods map[string]string, notReady ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: names.Namespace, Labels: map[string]string{discoveryv1.LabelServiceName: names.GateService},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for pod, address := range pods {
		ready := !slices.Contains(notReady, pod)
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod},
		})
	}
	return s
}

func testGates(t *testing.T, reader client.Reader, f *fakeGates) *Gates {
	t.Helper()
	o := Options{Client: f.client(), Registry: prometheus.NewRegistry(), Clock: clocktesting.NewFakeClock(noon)}
	o.setDefaults()
	return newGates(reader, o)
}

func reportOf(generation int64) *served.Report {
	return &served.Report{Policies: map[string]int64{"p": generation}, SnapshotAt: noon.Add(time.Duration(generation))}
}

func round(t *testing.T, g *Gates) *Observation {
	t.Helper()
	if err := g.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g.Observation()
}

func TestGatesThatAreReadyAreAsked(t *testing.T) {
	f := newFakeGates(t)
	for _, address := range []string{"10.0.0.1:8081", "10.0.0.2:8081", "10.0.0.3:8081", "[fd00::1]:8081"} {
		f.set(address, reportOf(4))
	}
	six := slice("six", map[string]string{"gate-0": "fd00::1"})
	six.AddressType = discoveryv1.AddressTypeIPv6
	other := slice("other", map[string]string{"decider": "10.0.0.9"})
	other.Labels[discoveryv1.LabelServiceName] = "decider"
	far := slice("far", map[string]string{"gate-9": "10.0.0.9"})
	far.Namespace = "elsewhere"
	c := testScheme(t).WithObjects(
		slice("a", map[string]string{"gate-0": "10.0.0.1", "gate-1": "10.0.0.2", "gate-2": "10.0.0.3"}, "gate-2"), six, other, far).Build()
	got := round(t, testGates(t, c, f))
	want := &Observation{Known: true, Reports: map[string]*served.Report{"gate-0": reportOf(4), "gate-1": reportOf(4)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("observation (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"10.0.0.1:8081": 1, "10.0.0.2:8081": 1}, f.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestGateThatDoesNotAnswer(t *testing.T) {
	for name, answer := range map[string]any{
		"it fails": nil, "it answers with text": "hello", "it answers with a list": "[]", "its answer is cut": `{"policies":{"p":4`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeGates(t)
			f.set("10.0.0.1:8081", reportOf(4))
			f.set("10.0.0.2:8081", reportOf(4))
			g := testGates(t, testScheme(t).WithObjects(slice("a", map[string]string{"gate-0": "10.0.0.1", "gate-1": "10.0.0.2"})).Build(), f)
			known := round(t, g)
			f.set("10.0.0.2:8081", answer)
			for i := 1; i < patience; i++ {
				if now := round(t, g); !now.equal(known) {
					t.Fatalf("after %d rounds without an answer: %+v", i, now)
				}
			}
			want := &Observation{Known: true, Reports: map[string]*served.Report{"gate-0": reportOf(4)}, Silent: []string{"gate-1"}}
			if diff := cmp.Diff(want, round(t, g)); diff != "" {
				t.Errorf("after %d rounds (-want +got):\n%s", patience, diff)
			}
			f.set("10.0.0.2:8081", reportOf(4))
			if now := round(t, g); !now.equal(known) {
				t.Errorf("after it answers again: %+v", now)
			}
		})
	}
}

func TestNewGateIsAwaitedBeforeItCountsAsSilent(t *testing.T) {
	f := newFakeGates(t)
	g := testGates(t, testScheme(t).WithObjects(slice("a", map[string]string{"gate-0": "10.0.0.1"})).Build(), f)
	for i := 1; i < patience; i++ {
		if diff := cmp.Diff(&Observation{Reports: map[string]*served.Report{}}, round(t, g)); diff != "" {
			t.Fatalf("round %d (-want +got):\n%s", i, diff)
		}
	}
	if diff := cmp.Diff(&Observation{Known: true, Reports: map[string]*served.Report{}, Silent: []string{"gate-0"}}, round(t, g)); diff != "" {
		t.Errorf("after %d rounds (-want +got):\n%s", patience, diff)
	}
}

func TestFewGatesAreAskedAtATime(t *testing.T) {
	f := newFakeGates(t)
	pods := map[string]string{}
	for i := range byte(40) {
		address := net.IPv4(10, 0, 1, i).String()
		pods["gate-"+address] = address
		f.set(address+":8081", reportOf(1))
	}
	if got := round(t, testGates(t, testScheme(t).WithObjects(slice("a", pods)).Build(), f)); len(got.Reports) != 40 {
		t.Errorf("%d gates reported, want 40", len(got.Reports))
	}
	if f.most > gatesAtOnce {
		t.Errorf("%d gates were asked at a time, want at most %d", f.most, gatesAtOnce)
	}
}

func TestListenersHearOfChangesOnly(t *testing.T) {
	f := newFakeGates(t)
	f.set("10.0.0.1:8081", reportOf(4))
	g := testGates(t, testScheme(t).WithObjects(slice("a", map[string]string{"gate-0": "10.0.0.1"})).Build(), f)
	var heard []string
	g.listeners = append(g.listeners, func(_ context.Context, from, to *Observation) {
		heard = append(heard, from.programmed("p", 4).Reason+" to "+to.programmed("p", 4).Reason)
	})
	for _, generation := range []int64{4, 4, 5, 5, 4} {
		f.set("10.0.0.1:8081", reportOf(generation))
		round(t, g)
	}
	f.set("10.0.0.1:8081", &served.Report{Policies: map[string]int64{"p": 4}, SnapshotAt: noon.Add(time.Hour)})
	round(t, g)
	want := []string{"Pending to Programmed", "Programmed to GenerationNotServed", "GenerationNotServed to Programmed"}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("heard (-want +got):\n%s", diff)
	}
}

func TestObservationOutlivesAFailedRead(t *testing.T) {
	f := newFakeGates(t)
	f.set("10.0.0.1:8081", reportOf(4))
	var failing bool
	c := testScheme(t).WithObjects(slice("a", map[string]string{"gate-0": "10.0.0.1"})).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if failing {
				return errors.New("not now")
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	g := testGates(t, c, f)
	known := round(t, g)
	failing = true
	if err := g.round(t.Context()); err == nil {
		t.Error("a round without endpoints has no error")
	}
	if g.Observation() != known {
		t.Error("what was known is gone")
	}
}

// TestStartAsksAtEachTick lets the time of a fake clock pass.
func TestStartAsksAtEachTick(t *testing.T) {
	f := newFakeGates(t)
	f.set("10.0.0.1:8081", reportOf(1))
	g := testGates(t, testScheme(t).WithObjects(slice("a", map[string]string{"gate-0": "10.0.0.1"})).Build(), f)
	heard := make(chan int64)
	g.listeners = append(g.listeners, func(_ context.Context, _, to *Observation) { heard <- to.Reports["gate-0"].Policies["p"] })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- g.Start(ctx) }()
	fakeClock := g.clock.(*clocktesting.FakeClock)
	for want := int64(1); want <= 3; want++ {
		if got := <-heard; got != want {
			t.Fatalf("heard of generation %d, want %d", got, want)
		}
		f.set("10.0.0.1:8081", reportOf(want+1))
		fakeClock.Step(g.every)
	}
	<-heard
	stop()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}
