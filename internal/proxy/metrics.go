package proxy

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics have labels from closed sets. Nothing from a call becomes a label.
type metrics struct {
	forwarded *prometheus.CounterVec
	refused   *prometheus.CounterVec
	seconds   prometheus.Histogram
	upstream  prometheus.Counter
	changed   prometheus.Counter
	unread    prometheus.Counter
}

// buckets go from 50 microseconds to the longest time that a gate takes, each about twice the one before.
var buckets = []float64{.00005, .0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 15}

func newMetrics(r prometheus.Registerer, p *Proxy) (*metrics, error) {
	m := &metrics{
		forwarded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_proxy_forwarded_total", Help: "Requests that were forwarded, by kind.",
		}, []string{"kind"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_proxy_refused_total", Help: "Requests that were not forwarded, by reason.",
		}, []string{"reason"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gatewright_proxy_check_seconds", Help: "Time that the gate's word for a call took: verifying its permit, or asking.", Buckets: buckets,
		}),
		upstream: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatewright_proxy_upstream_errors_total", Help: "Forwarded requests that the tool server did not answer.",
		}),
		changed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatewright_proxy_tool_changes_total", Help: "Changes of what the tool server says of a tool that it listed before.",
		}),
		unread: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatewright_proxy_listings_unread_total", Help: "Listings of tools that were passed and could not be looked at.",
		}),
	}
	inFlight := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gatewright_proxy_in_flight", Help: "Requests in the proxy now, streams aside.",
	}, func() float64 { return float64(len(p.requests)) })
	streams := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gatewright_proxy_streams", Help: "Streams that are open now.",
	}, func() float64 { return float64(len(p.streams)) })
	var errs []error
	for _, c := range []prometheus.Collector{m.forwarded, m.refused, m.seconds, m.upstream, m.changed, m.unread, inFlight, streams} {
		errs = append(errs, r.Register(c))
	}
	return m, errors.Join(errs...)
}
