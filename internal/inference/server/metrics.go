package server

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/questions"
)

// metrics have labels from closed sets, or facts about what was loaded. Nothing from a request becomes a label.
type metrics struct {
	requests      *prometheus.CounterVec
	refused       *prometheus.CounterVec
	seconds       *prometheus.HistogramVec
	questions     *prometheus.CounterVec
	tokens        prometheus.Counter
	reused        prometheus.Counter
	verifications *prometheus.CounterVec
}

// buckets go from 50 microseconds, less than it takes to read a request, to the longest time of one.
var buckets = []float64{.00005, .0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30}

func newMetrics(r prometheus.Registerer, s *Server) (*metrics, error) {
	m := newCounters()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "gatewright_decider_server_info", Help: "What is loaded; always 1.",
		ConstLabels: prometheus.Labels{
			"model": s.info.Model, "sha256": s.info.SHA256, "fingerprint": s.info.Fingerprint, "library": s.info.Library, "cpu_variant": s.info.CPUVariant,
		},
	})
	info.Set(1)
	all := []prometheus.Collector{m.requests, m.refused, m.seconds, m.questions, m.tokens, m.reused, m.verifications, info}
	var errs []error
	for _, c := range append(all, newGauges(s)...) {
		errs = append(errs, r.Register(c))
	}
	return m, errors.Join(errs...)
}

func newCounters() *metrics {
	return &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_decider_server_requests_total", Help: "Requests by HTTP status; 499 went away before their answer.",
		}, []string{"code"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_decider_server_refused_total", Help: "Requests that got no answers, by error_type.",
		}, []string{"reason"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gatewright_decider_server_phase_seconds", Help: "Time of requests by phase: parse, queue, prompt, total.", Buckets: buckets,
		}, []string{"phase"}),
		questions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_decider_server_questions_total", Help: "Questions answered, by type.",
		}, []string{"type"}),
		tokens: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatewright_decider_server_prompt_tokens_total", Help: "Tokens of all prompts.",
		}),
		reused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatewright_decider_server_reused_tokens_total", Help: "Tokens of prompts that were not computed again.",
		}),
		verifications: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_decider_server_verifications_total", Help: "Looks at the loaded bytes, by result: ok, failed.",
		}, []string{"result"}),
	}
}

func newGauges(s *Server) []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gatewright_decider_server_queue_length", Help: "Requests that wait for the engine.",
		}, func() float64 { return float64(s.queue.length()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gatewright_decider_server_in_flight", Help: "Requests that the engine works on: 0 or 1.",
		}, func() float64 { return float64(s.worker.inFlight()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gatewright_decider_server_ready", Help: "1 while the readiness probe passes.",
		}, func() float64 {
			if s.Ready() && s.healthy() {
				return 1
			}
			return 0
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gatewright_decider_server_verify_age_seconds", Help: "Time since the loaded bytes were last found to be the right ones.",
		}, func() float64 { return s.options.Clock.Now().Sub(time.Unix(0, s.verified.Load())).Seconds() }),
	}
}

var wireTypes = map[questions.Type]string{questions.YesNo: "noul", questions.Choice: "choice", questions.Score: "score"}

func (m *metrics) answered(asked []questions.Question, reply engine.Reply) {
	m.requests.WithLabelValues("200").Inc()
	m.tokens.Add(float64(reply.PromptTokens))
	m.reused.Add(float64(reply.ReusedTokens))
	for _, q := range asked {
		m.questions.WithLabelValues(wireTypes[q.Type]).Inc()
	}
}

// took observes the phases that a request came through.
func (m *metrics) took(x *exchange, now time.Time) {
	observe := func(phase string, start, end time.Time) {
		m.seconds.WithLabelValues(phase).Observe(end.Sub(start).Seconds())
	}
	observe("total", x.began, now)
	if !x.parsed.IsZero() {
		observe("parse", x.began, x.parsed)
	}
	if x.job == nil {
		return
	}
	select {
	case <-x.job.done: // only now may its times be read
	default:
		return
	}
	if x.job.started.IsZero() {
		return // it was pushed out
	}
	observe("queue", x.job.queued, x.job.started)
	observe("prompt", x.job.started, x.job.ended)
}
