package gate

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatewright.dev/gatewright/internal/inference"
)

// metrics have labels from closed sets, or names that an admin gave. Nothing from a call becomes a label.
type metrics struct {
	decisions   *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	deciders    *prometheus.HistogramVec
	unavailable *prometheus.CounterVec
	refused     *prometheus.CounterVec
	repeated    prometheus.Counter
	replayed    prometheus.Counter
	audit       prometheus.Counter
}

// buckets go from 50 microseconds to the longest deadline, each about twice the one before.
var buckets = []float64{.00005, .0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 15}

func newMetrics(r prometheus.Registerer, g *Gate) (*metrics, error) {
	m := &metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_decisions_total", Help: "Decisions by outcome, base of the class and reason.",
		}, []string{"outcome", "base", "reason"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gatewright_decision_seconds", Help: "Time from the request to its decision, without the write to the audit log.", Buckets: buckets,
		}, []string{"outcome"}),
		deciders: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gatewright_decider_seconds", Help: "Time that a decider took, queue included.", Buckets: buckets,
		}, []string{"decider"}),
		unavailable: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_decider_unavailable_total", Help: "Questions that a decider did not answer, by reason.",
		}, []string{"decider", "reason"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_requests_refused_total", Help: "Requests that came to no decision, by code.",
		}, []string{"code"}),
		repeated: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatewright_repeated_denials_total", Help: "Calls that were denied before in the same state, and not asked about again.",
		}),
		replayed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatewright_replayed_requests_total", Help: "Requests answered again for the same uid and body.",
		}),
		audit: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatewright_audit_failures_total", Help: "Decisions that could not be recorded.",
		}),
	}
	inFlight := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gatewright_in_flight", Help: "Calls that are being judged.",
	}, func() float64 { return float64(g.slots.inUse()) })
	policies := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gatewright_policies", Help: "Policies in force.",
	}, func() float64 {
		if s := g.snapshot.Load(); s != nil {
			return float64(s.Policies.Len())
		}
		return 0
	})
	var errs []error
	for _, c := range []prometheus.Collector{m.decisions, m.seconds, m.deciders, m.unavailable, m.refused, m.repeated, m.replayed, m.audit, inFlight, policies} {
		errs = append(errs, r.Register(c))
	}
	return m, errors.Join(errs...)
}

func (m *metrics) decided(d *decision) {
	base := ""
	if d.judgement != nil {
		_, base = d.judgement.Class()
	}
	m.decisions.WithLabelValues(d.verdict.Outcome.String(), base, string(d.verdict.Reason)).Inc()
	m.seconds.WithLabelValues(d.verdict.Outcome.String()).Observe(d.took.Seconds())
}

func (m *metrics) asked(decider string, took time.Duration, err error) {
	m.deciders.WithLabelValues(decider).Observe(took.Seconds())
	if err != nil {
		m.unavailable.WithLabelValues(decider, string(inference.ReasonOf(err))).Inc()
	}
}
