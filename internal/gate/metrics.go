package gate

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/policy"
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
	// captureFailures counts calls that should have been kept.
	captureFailures prometheus.Counter

	tools     *prometheus.CounterVec
	fallbacks *prometheus.CounterVec
	confirms  *prometheus.CounterVec
	asks      *prometheus.CounterVec
	flaps     *prometheus.CounterVec

	callers callerNames
}

// maxCallerNames bounds the callers that have a series of their own. Service accounts are made by admins, but a cluster may
// have very many of them.
const maxCallerNames = 1000

// callerNames gives names to the first callers that are seen, and one name to all others.
type callerNames struct {
	mu   sync.Mutex
	seen map[policy.Caller]bool
}

func (n *callerNames) of(c policy.Caller) (namespace, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.seen[c] {
		if len(n.seen) >= maxCallerNames {
			return "", "others"
		}
		n.seen[c] = true
	}
	return c.Namespace, c.ServiceAccount
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
		captureFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatewright_capture_failures_total", Help: "Calls that a policy wants kept and that could not be.",
		}),
		callers: callerNames{seen: map[policy.Caller]bool{}},
	}
	m.vectors()
	inFlight := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gatewright_in_flight", Help: "Calls that are being judged.",
	}, func() float64 { return float64(g.slots.InUse()) })
	policies := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gatewright_policies", Help: "Policies in force.",
	}, func() float64 {
		if s := g.snapshot.Load(); s != nil {
			return float64(s.Policies.Len())
		}
		return 0
	})
	var errs []error
	for _, c := range []prometheus.Collector{m.decisions, m.seconds, m.deciders, m.unavailable, m.refused, m.repeated, m.replayed, m.audit, m.captureFailures, m.tools, m.fallbacks, m.confirms, m.asks, m.flaps, inFlight, policies} {
		errs = append(errs, r.Register(c))
	}
	return m, errors.Join(errs...)
}

// vectors makes the metrics by tool, class and caller.
func (m *metrics) vectors() {
	m.tools = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatewright_tool_decisions_total", Help: "Decisions by class and tool as policies write them, outcome, and what decided.",
	}, []string{"class", "tool", "outcome", "by"})
	m.fallbacks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatewright_decider_fallbacks_total", Help: "Decisions that fell back because a decider did not answer, by class, why, and to what.",
	}, []string{"class", "reason", "outcome"})
	m.confirms = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatewright_confirmations_total", Help: "Calls that were put before a person, by the service account that asked.",
	}, []string{"namespace", "service_account"})
	m.asks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatewright_decider_repeats_total", Help: "Decisions by a decider about a state that it had decided before, by class.",
	}, []string{"class"})
	m.flaps = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatewright_decider_flaps_total", Help: "Decisions by a decider that differ from its last about the same state, by class.",
	}, []string{"class"})
}

func (m *metrics) decided(d *decision) {
	var class, base, tool string
	if d.judgement != nil {
		class, base = d.judgement.Class()
		tool = d.judgement.ToolName()
	}
	outcome := d.verdict.Outcome.String()
	m.decisions.WithLabelValues(outcome, base, string(d.verdict.Reason)).Inc()
	m.seconds.WithLabelValues(outcome).Observe(d.took.Seconds())
	by, _, _ := strings.Cut(d.verdict.By, ":") // a rule's or an approval's name stays in the record
	m.tools.WithLabelValues(class, tool, outcome, by).Inc()
	if d.deciderErr != "" {
		m.fallbacks.WithLabelValues(class, string(d.deciderErr), outcome).Inc()
	}
	if d.verdict.Outcome == policy.Confirm && d.verdict.Reason != ReasonApprovalPending && !d.in.review.DryRun {
		namespace, name := m.callers.of(d.in.caller)
		m.confirms.WithLabelValues(namespace, name).Inc()
	}
	if again, changed := d.compareWithLast(); again {
		m.asks.WithLabelValues(class).Inc()
		if changed {
			m.flaps.WithLabelValues(class).Inc()
		}
	}
}

func (m *metrics) asked(decider string, took time.Duration, err error) {
	m.deciders.WithLabelValues(decider).Observe(took.Seconds())
	if err != nil {
		m.unavailable.WithLabelValues(decider, string(inference.ReasonOf(err))).Inc()
	}
}
