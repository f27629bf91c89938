// Package decided counts what people decide about calls, wherever they do.
package decided

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatewright.dev/gatewright/internal/approval"
)

// Metrics say what people decide. Labels are classes as policies name them, and words of closed sets. Whoever counts sees
// each decision once.
type Metrics struct {
	decided *prometheus.CounterVec
	wait    *prometheus.HistogramVec
}

// waitBuckets go from a second to the longest life of an approval, each one and a half to three times the one before.
var waitBuckets = []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, approval.MaxLifetime.Seconds()}

// NewMetrics makes them.
func NewMetrics() *Metrics {
	return &Metrics{
		decided: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_approvals_decided_total", Help: "Calls that a person has decided, by class and what they said.",
		}, []string{"class", "outcome"}),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gatewright_approval_wait_seconds", Help: "Time from putting a call before a person to their decision, by class.", Buckets: waitBuckets,
		}, []string{"class"}),
	}
}

// Register registers them.
func (m *Metrics) Register(r prometheus.Registerer) error {
	return errors.Join(r.Register(m.decided), r.Register(m.wait))
}

// MustRegister registers them and panics where a metric of the same name is there.
func (m *Metrics) MustRegister(r prometheus.Registerer) { r.MustRegister(m.decided, m.wait) }

// Count counts what a person has just said after a time. Both outcomes of a class begin together, so that a rate of one of
// them is zero and not unknown.
func (m *Metrics) Count(class string, outcome approval.State, waited time.Duration) {
	for _, o := range []approval.State{approval.Approved, approval.Rejected} {
		m.decided.WithLabelValues(class, string(o))
	}
	m.decided.WithLabelValues(class, string(outcome)).Inc()
	m.wait.WithLabelValues(class).Observe(max(0, waited.Seconds()))
}
