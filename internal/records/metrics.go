package records

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"gatewright.dev/gatewright/internal/audit"
)

// register publishes how the log and its copies do.
func (r *Records) register(registry prometheus.Registerer, mirrors map[string]*audit.Mirror) error {
	log := r.File
	counter := func(name, help string, value func(audit.Stats) float64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return value(log.Stats()) })
	}
	all := []prometheus.Collector{
		counter("gatewright_audit_records_total", "Records that are durable.", func(s audit.Stats) float64 { return float64(s.Records) }),
		counter("gatewright_audit_batches_total", "Writes of the audit log.", func(s audit.Stats) float64 { return float64(s.Batches) }),
		counter("gatewright_audit_write_failures_total", "Writes of the audit log that failed.", func(s audit.Stats) float64 { return float64(s.Failures) }),
		counter("gatewright_audit_refused_total", "Records that found no place in the queue.", func(s audit.Stats) float64 { return float64(s.Refused) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gatewright_audit_waiting", Help: "Records that wait to be written."},
			func() float64 { return float64(log.Stats().Waiting) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gatewright_audit_available", Help: "1 if the last write of the audit log worked."},
			func() float64 {
				if log.Available() {
					return 1
				}
				return 0
			}),
	}
	for name, m := range mirrors {
		labels := prometheus.Labels{"sink": name}
		all = append(all,
			prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "gatewright_audit_sink_sent_total", Help: "Records that a copy of the log has got.", ConstLabels: labels},
				func() float64 { return float64(m.Sent()) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "gatewright_audit_sink_dropped_total", Help: "Records that a copy of the log has not got.", ConstLabels: labels},
				func() float64 { return float64(m.Dropped()) }),
		)
	}
	var errs []error
	for _, c := range all {
		errs = append(errs, registry.Register(c))
	}
	return errors.Join(errs...)
}
