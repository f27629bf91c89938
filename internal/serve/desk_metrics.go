package serve

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/lru"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approval/decided"
	"gatewright.dev/gatewright/internal/audit"
)

// deskMetrics say what people decide and label. Labels are classes as policies name them, and words of closed sets.
type deskMetrics struct {
	decided *decided.Metrics
	labels  *prometheus.CounterVec
	// counted are labels that were counted, so that saying the same of a decision again weighs no more.
	counted *lru.Cache
}

// maxCounted is how many labels are remembered as counted.
const maxCounted = 16384

// labelled is one word about one decision.
type labelled struct {
	decision string
	right    review.Outcome
}

func newDeskMetrics() *deskMetrics {
	return &deskMetrics{
		decided: decided.NewMetrics(), counted: lru.New(maxCounted),
		labels: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_labels_total", Help: "Labels given to decisions, each once, by the class and outcome of the decision and what would have been right.",
		}, []string{"class", "outcome", "label"}),
	}
}

func (m *deskMetrics) register(r prometheus.Registerer) error {
	return errors.Join(m.decided.Register(r), r.Register(m.labels))
}

// decision counts what a person has just said.
func (m *deskMetrics) decision(a *approval.Approval) {
	if d := a.Decision; d != nil {
		m.decided.Count(a.Call.Class, d.Outcome, d.At.Sub(a.Call.RaisedAt))
	}
}

// labelNames are the values of label.
var labelNames = map[review.Outcome]string{review.Allow: "allow", review.Block: "block"}

// label counts a label of a decision that is durable, once however often it is given. A decision that could not be looked up
// has no class and no outcome.
func (m *deskMetrics) label(decision string, of *audit.Entry, right review.Outcome) {
	key := labelled{decision, right}
	if _, isCounted := m.counted.Get(key); isCounted {
		return
	}
	m.counted.Add(key, nil)
	m.labels.WithLabelValues(of.Class, string(of.Outcome), labelNames[right]).Inc()
}

// reloadMetrics say whether what is in the folder of manifests is what is in force.
type reloadMetrics struct {
	failures   prometheus.Counter
	successful prometheus.Gauge
}

func newReloadMetrics() *reloadMetrics {
	return &reloadMetrics{
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatewright_manifest_reload_failures_total", Help: "Times that changed manifests could not be read.",
		}),
		successful: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gatewright_manifest_last_reload_successful", Help: "1 if the manifests in the folder are in force, 0 if older ones are because they could not be read.",
		}),
	}
}

func (m *reloadMetrics) register(r prometheus.Registerer) error {
	return errors.Join(r.Register(m.failures), r.Register(m.successful))
}

func (m *reloadMetrics) loaded(err error) {
	if err != nil {
		m.failures.Inc()
		m.successful.Set(0)
		return
	}
	m.successful.Set(1)
}
