package serve

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approval/decided"
)

// deskMetrics say what people decide. Labels are classes as policies name them, and words of closed sets.
type deskMetrics struct{ decided *decided.Metrics }

func newDeskMetrics() *deskMetrics { return &deskMetrics{decided.NewMetrics()} }

func (m *deskMetrics) register(r prometheus.Registerer) error { return m.decided.Register(r) }

// decision counts what a person has just said.
func (m *deskMetrics) decision(a *approval.Approval) {
	if d := a.Decision; d != nil {
		m.decided.Count(a.Call.Class, d.Outcome, d.At.Sub(a.Call.RaisedAt))
	}
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
