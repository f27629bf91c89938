package serve

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/audit"
)

// deskMetrics say what people decide. Labels are classes as policies name them, and words of closed sets.
type deskMetrics struct {
	decided *prometheus.CounterVec
	wait    *prometheus.HistogramVec
	labels  *prometheus.CounterVec
}

// waitBuckets go from a second to the longest life of an approval, each one and a half to three times the one before.
var waitBuckets = []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, approval.MaxLifetime.Seconds()}

func newDeskMetrics() *deskMetrics {
	return &deskMetrics{
		decided: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_approvals_decided_total", Help: "Calls that a person has decided, by class and what they said.",
		}, []string{"class", "outcome"}),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gatewright_approval_wait_seconds", Help: "Time from putting a call before a person to their decision, by class.", Buckets: waitBuckets,
		}, []string{"class"}),
		labels: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_labels_total", Help: "Labels given to decisions, by the class and outcome of the decision and what would have been right.",
		}, []string{"class", "outcome", "label"}),
	}
}

func (m *deskMetrics) register(r prometheus.Registerer) error {
	return errors.Join(r.Register(m.decided), r.Register(m.wait), r.Register(m.labels))
}

// decision counts what a person has just said. Both outcomes of a class begin together, so that a rate of one of them is
// zero and not unknown.
func (m *deskMetrics) decision(a *approval.Approval) {
	if a.Decision == nil {
		return
	}
	for _, outcome := range []approval.State{approval.Approved, approval.Rejected} {
		m.decided.WithLabelValues(a.Call.Class, string(outcome))
	}
	m.decided.WithLabelValues(a.Call.Class, string(a.Decision.Outcome)).Inc()
	m.wait.WithLabelValues(a.Call.Class).Observe(max(0, a.Decision.At.Sub(a.Call.RaisedAt).Seconds()))
}

// labelNames are the values of label.
var labelNames = map[review.Outcome]string{review.Allow: "allow", review.Block: "block"}

// label counts a label that is durable. A decision that could not be looked up has no class and no outcome.
func (m *deskMetrics) label(of *audit.Entry, right review.Outcome) {
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
