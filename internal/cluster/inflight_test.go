package cluster

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference/workload"
)

// counting is a server of somebody else that lets each request wait until the test lets it go.
type counting struct {
	mu            sync.Mutex
	now, most     int
	arrived, done chan struct{}
}

func (c *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.now++
	c.most = max(c.most, c.now)
	c.mu.Unlock()
	c.arrived <- struct{}{}
	<-c.done
	c.mu.Lock()
	c.now--
	c.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]any{
		"model": "small", "answers": map[string]any{"mine": map[string]any{"type": "noul", "noul": 0.75, "coverage": 1}}, "usage": map[string]any{"input_tokens": 1, "output_tokens": 1},
	})
}

// However many calls a gate has, a server outside gets as many at once as its DeciderModel says, and all of them in the end.
func TestAServerOutsideGetsNoMoreAtOnceThanItsLimit(t *testing.T) {
	const limit, calls = 2, 7
	c := &counting{arrived: make(chan struct{}, calls), done: make(chan struct{})}
	server := httptest.NewServer(c)
	defer server.Close()
	m := external(func(m *v1alpha1.DeciderModel) { m.Spec.External.URL, m.Spec.External.MaxInFlight = server.URL, limit })
	r := revise(t, m)
	m.Status.Active = &v1alpha1.DeciderRevision{Name: v1alpha1.ObjectName(r.Name)}
	p, _ := newSet(t, DeciderOptions{}).place([]*v1alpha1.DeciderModel{m}, map[string]*appsv1.ControllerRevision{r.Name: r})

	failed := make(chan error, calls)
	for range calls {
		go func() {
			_, err := p.active["small"].revision.guard.Decide(t.Context(), asked)
			failed <- err
		}()
	}
	for range limit {
		<-c.arrived
	}
	select {
	case <-c.arrived:
		t.Errorf("a request more than the %d of the limit", limit)
	case <-time.After(100 * time.Millisecond):
	}
	close(c.done)
	for range calls {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if c.most != limit {
		t.Errorf("%d at once, want %d", c.most, limit)
	}
}

func TestHowManyRequestsADeciderGetsAtOnce(t *testing.T) {
	container := func(each int32) v1alpha1.DeciderModelSpec {
		return v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeContainer, Container: &v1alpha1.ContainerRuntime{MaxInFlight: each}}
	}
	tests := map[string]struct {
		spec     v1alpha1.DeciderModelSpec
		replicas int32
		want     int
	}{
		"the judge in the gate computes and waits for nothing": {v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeEmbedded}, 0, embeddedInFlight},
		"one pod has one that it works on and one that waits":  {v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeLlamaCpp}, 1, 2},
		"three pods have three times as many":                  {v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeLlamaCpp}, 3, 6},
		"a model without pods is asked as one with a pod":      {v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeLlamaCpp}, 0, 2},
		"a foreign image gets its limit in each pod":           {container(4), 3, 12},
		"a foreign image without a limit gets one":             {container(0), 1, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := guardOptions(&workload.Revision{Spec: test.spec, Replicas: test.replicas}).MaxInFlight; got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
}
