package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/served"
)

const (
	// defaultGatePoll is how often gates are asked: a person who edits a policy waits for its status about as long.
	defaultGatePoll = 2 * time.Second
	// gateTimeout is how long a gate may take to answer. It answers from memory.
	gateTimeout = 3 * time.Second
	// gatesAtOnce bounds how many are asked at a time.
	gatesAtOnce = 8
	// maxReport bounds a report in bytes. 10,000 policies with the longest names are 5 MB.
	maxReport = 16 << 20
	// patience is how many rounds a gate may miss before its last report no longer counts: longer than an endpoint stays
	// in its slice after its pod has gone.
	patience = 5
)

// Gates asks the ready gates in turns what they serve. Whoever is concerned is told when the answers changed, and only then.
type Gates struct {
	reader    client.Reader
	namespace string
	every     time.Duration
	clock     clock.WithTicker
	http      *http.Client
	count     *prometheus.GaugeVec

	latest atomic.Pointer[Observation]
	missed map[string]int // rounds that a gate did not answer, by pod; used by the one goroutine of Start

	mu        sync.Mutex
	listeners []func(ctx context.Context, from, to *Observation)
}

// +kubebuilder:rbac:groups=discovery.k8s.io,namespace=gatewright-system,resources=endpointslices,verbs=get;list;watch

func newGates(reader client.Reader, o Options) *Gates {
	g := &Gates{
		reader: reader, namespace: o.Namespace, every: o.GatePoll, clock: o.Clock, http: o.Client, missed: map[string]int{},
		count: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "gatewright_manager_gates", Help: "Ready gates, by whether they say what they serve.",
		}, []string{"state"}),
	}
	g.latest.Store(&Observation{})
	o.Registry.MustRegister(g.count)
	return g
}

// Observation is what the gates last said.
func (g *Gates) Observation() *Observation { return g.latest.Load() }

// Changes is a source of the requests that follow from a change of what the gates say. Affected gives them.
func (g *Gates) Changes(affected func(ctx context.Context, from, to *Observation) []reconcile.Request) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.listeners = append(g.listeners, func(ctx context.Context, from, to *Observation) {
			for _, r := range affected(ctx, from, to) {
				queue.Add(r)
			}
		})
		return nil
	})
}

// Start asks the gates until the context ends.
func (g *Gates) Start(ctx context.Context) error {
	ticker := g.clock.NewTicker(g.every)
	defer ticker.Stop()
	for {
		if err := g.round(ctx); err != nil && ctx.Err() == nil {
			logf.FromContext(ctx).Error(err, "gates cannot be asked what they serve")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// round asks every ready gate once.
func (g *Gates) round(ctx context.Context) error {
	endpoints, err := g.endpoints(ctx)
	if err != nil {
		return err
	}
	answers := g.ask(ctx, endpoints)
	if ctx.Err() != nil {
		return nil // what was not answered says nothing about the gates
	}
	from := g.latest.Load()
	to := g.observe(from, endpoints, answers)
	g.count.WithLabelValues("reporting").Set(float64(len(to.Reports)))
	g.count.WithLabelValues("silent").Set(float64(len(to.Silent)))
	g.latest.Store(to)
	if from.equal(to) {
		return nil
	}
	g.mu.Lock()
	listeners := slices.Clone(g.listeners)
	g.mu.Unlock()
	for _, tell := range listeners {
		tell(ctx, from, to)
	}
	return nil
}

// observe joins the answers of a round with what was known before.
func (g *Gates) observe(from *Observation, endpoints map[string]string, answers map[string]*served.Report) *Observation {
	to := &Observation{Known: true, Reports: map[string]*served.Report{}}
	for pod := range endpoints {
		if answers[pod] == nil {
			g.missed[pod]++
		} else {
			delete(g.missed, pod)
		}
		switch {
		case answers[pod] != nil:
			to.Reports[pod] = answers[pod]
		case g.missed[pod] >= patience:
			to.Silent = append(to.Silent, pod)
		case from.Reports[pod] != nil:
			to.Reports[pod] = from.Reports[pod]
		default:
			to.Known = false
		}
	}
	maps.DeleteFunc(g.missed, func(pod string, _ int) bool { return endpoints[pod] == "" })
	slices.Sort(to.Silent)
	return to
}

// endpoints gives the address of each ready gate by name of its pod.
func (g *Gates) endpoints(ctx context.Context) (map[string]string, error) {
	var slicesOf discoveryv1.EndpointSliceList
	err := g.reader.List(ctx, &slicesOf, client.InNamespace(g.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: names.GateService})
	if err != nil {
		return nil, fmt.Errorf("listing the gates: %w", err)
	}
	// One pod may stand in several slices, one for each family of addresses: the first of a fixed order is taken.
	slices.SortFunc(slicesOf.Items, func(a, b discoveryv1.EndpointSlice) int {
		return cmp.Or(cmp.Compare(a.AddressType, b.AddressType), cmp.Compare(a.Name, b.Name))
	})
	out := map[string]string{}
	for _, slice := range slicesOf.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready || len(e.Addresses) == 0 {
				continue
			}
			pod := e.Addresses[0]
			if e.TargetRef != nil {
				pod = e.TargetRef.Name
			}
			if out[pod] == "" {
				out[pod] = e.Addresses[0]
			}
		}
	}
	return out, nil
}

// ask asks gates at once, a few at a time.
func (g *Gates) ask(ctx context.Context, endpoints map[string]string) map[string]*served.Report {
	var (
		mu  sync.Mutex
		out = map[string]*served.Report{}
	)
	var group errgroup.Group
	group.SetLimit(gatesAtOnce)
	for pod, address := range endpoints {
		group.Go(func() error {
			report, err := g.askOne(ctx, address)
			if err != nil {
				logf.FromContext(ctx).V(1).Info("a gate does not say what it serves", "pod", pod, "error", err.Error())
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			out[pod] = report
			return nil
		})
	}
	_ = group.Wait() // none gives an error: a gate that does not answer is missing in the map
	return out
}

func (g *Gates) askOne(ctx context.Context, address string) (*served.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	url := "http://" + net.JoinHostPort(address, strconv.Itoa(names.GateStatusPort)) + names.ServedPath
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := g.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxReport+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxReport {
		return nil, fmt.Errorf("its report is longer than %d bytes", maxReport)
	}
	report := &served.Report{}
	if err := json.Unmarshal(data, report); err != nil {
		return nil, fmt.Errorf("reading its report: %w", err)
	}
	return report, nil
}
