package cluster

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"gatewright.dev/gatewright/internal/gate"
)

// apiBuckets cover an API server beside the gate, and one that takes until the time-out.
var apiBuckets = []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 3}

type identityMetrics struct {
	callers *prometheus.CounterVec
	refused *prometheus.CounterVec
	seconds prometheus.Histogram
}

func newIdentityMetrics() identityMetrics {
	return identityMetrics{
		callers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_callers_total", Help: "Requests by how their caller came to be known, or not.",
		}, []string{"result"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_callers_refused_total", Help: "Requests of callers that are not known, by why.",
		}, []string{"reason"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gatewright_token_review_seconds", Help: "Time that the API server took to say whose token it is.", Buckets: apiBuckets,
		}),
	}
}

func (m *identityMetrics) register(r prometheus.Registerer) error {
	return errors.Join(r.Register(m.callers), r.Register(m.refused), r.Register(m.seconds))
}

func (m *identityMetrics) failed(err error) {
	var why refusal
	switch {
	case errors.As(err, &why):
		m.callers.WithLabelValues(howRefused).Inc()
		m.refused.WithLabelValues(string(why)).Inc()
	case errors.Is(err, gate.ErrTooManyUnknown):
		m.callers.WithLabelValues(howLimited).Inc()
	default:
		m.callers.WithLabelValues(howUnavailable).Inc()
	}
}
