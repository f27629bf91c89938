package gate

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// approvalMetrics say what was not believed about approvals.
type approvalMetrics struct {
	ignored *prometheus.CounterVec
	inband  *prometheus.CounterVec
}

func newApprovalMetrics(r prometheus.Registerer) (*approvalMetrics, error) {
	m := &approvalMetrics{
		ignored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_approvals_ignored_total", Help: "Approvals, and lines of their journal, that were not believed, by reason.",
		}, []string{"reason"}),
		inband: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_inband_approval_claims_total", Help: "Calls that may need a person and whose conversation claims that one has approved already, by who claims it.",
		}, []string{"role"}),
	}
	return m, errors.Join(r.Register(m.ignored), r.Register(m.inband))
}

// CountIgnored counts something about approvals that was not believed before it reached the gate, by an IgnoredReason.
func (g *Gate) CountIgnored(reason string) { g.approvals.ignored.WithLabelValues(reason).Inc() }
