package server

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"gatewright.dev/gatewright/internal/inference/engine"
)

// Paths of the wire, and headers of a reply or a request that are this server's own.
const (
	PathSystemOne = "/v1/systemone"
	PathModels    = "/v1/models"
	// HeaderFingerprint repeats the fingerprint of the body, for who logs headers.
	HeaderFingerprint = "Gatewright-Fingerprint"
	// HeaderRequestTimeout shortens the time of a request, in seconds, such as 1.5.
	HeaderRequestTimeout = "Request-Timeout"
)

// Handler returns the routes of a server. Probes and metrics are open, and are neither traced nor counted.
func (s *Server) Handler(metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+PathSystemOne, s.systemOne)
	mux.HandleFunc("GET "+PathModels, s.models)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		probe(w, s.healthy(), "the engine is stuck or cannot be trusted")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { probe(w, s.Ready() && s.healthy(), s.notReady().message) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	for _, path := range []string{PathSystemOne, PathModels} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			s.refuse(w, r, refuse(http.StatusMethodNotAllowed, CodeMethodNotAllowed, "ask with POST %s, list with GET %s", PathSystemOne, PathModels))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, refuse(http.StatusNotFound, CodeNotFound, "questions go to POST %s", PathSystemOne))
	})
	return mux
}

func probe(w http.ResponseWriter, ok bool, otherwise string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, otherwise+"\n")
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

// notReady is what a request gets that is not taken.
func (s *Server) notReady() *refusal {
	switch s.is() {
	case starting:
		return unavailable(CodeNotReady, retryAfterWhileStarting, "the golden question has not been answered yet")
	case leaving, draining:
		return refusedByCause(errDraining)
	default:
		return refusedByCause(s.endCause) // it was set before the phase
	}
}

// takes says whether requests are taken. While readiness has only just failed, callers still send some.
func (s *Server) takes() bool { return s.is() == ready || s.is() == leaving }

// exchange is one request to /v1/systemone.
type exchange struct {
	began  time.Time
	caller string
	parsed time.Time // when the body had been read
	job    *job
}

// systemOne answers all questions of a request, or says why not.
func (s *Server) systemOne(w http.ResponseWriter, r *http.Request) {
	x := &exchange{began: s.options.Clock.Now()}
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := s.tracer.Start(ctx, "POST "+PathSystemOne, trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	r = r.WithContext(ctx)
	if refused := s.exchange(w, r, x); refused != nil {
		span.SetStatus(codes.Error, string(refused.code))
		span.SetAttributes(attribute.Int("http.response.status_code", refused.status))
		s.refuse(w, r, refused)
	}
	s.metrics.took(x, s.options.Clock.Now())
}

func (s *Server) exchange(w http.ResponseWriter, r *http.Request, x *exchange) *refusal {
	caller, refused := s.admit(r)
	if refused != nil {
		return refused
	}
	x.caller = caller
	// Bodies take memory while they are read, so more of them than can wait are not even begun.
	if !s.open.Take(caller) {
		return s.full()
	}
	defer s.open.Give(caller)
	timeout, refused := s.timeoutOf(r)
	if refused != nil {
		return refused
	}
	body, refused := s.read(w, r)
	if refused != nil {
		return refused
	}
	req, refused := parseRequest(body, s.options.MaxBody)
	x.parsed = s.options.Clock.Now()
	if refused != nil {
		return refused
	}
	if !s.names[req.model] {
		return refuse(http.StatusNotFound, CodeUnknownModel, "another model is loaded here, GET %s names it", PathModels)
	}
	reply, refused := s.ask(r.Context(), x, req, timeout)
	if refused != nil {
		return refused
	}
	return s.answer(w, r, x, reply)
}

// admit says who asks, before anything of the body is read.
func (s *Server) admit(r *http.Request) (string, *refusal) {
	caller := remoteHost(r.RemoteAddr)
	if s.options.RequireCertificate {
		name, ok := certified(r.TLS)
		if !ok {
			return "", refuse(http.StatusUnauthorized, CodeUnauthorized, "a client certificate of the configured authority is required")
		}
		caller = name
	}
	if s.options.Callers != nil {
		name, ok := s.options.Callers.caller(r.Header)
		if !ok {
			return "", refuse(http.StatusUnauthorized, CodeUnauthorized, "a known bearer token is required")
		}
		caller = name
	}
	if !s.takes() {
		return "", s.notReady()
	}
	return caller, nil
}

func remoteHost(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// timeoutOf is how long the request may take: what the server allows, or less.
func (s *Server) timeoutOf(r *http.Request) (time.Duration, *refusal) {
	text := r.Header.Get(HeaderRequestTimeout)
	if text == "" {
		return s.options.RequestTimeout, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds > 0) {
		return 0, refuse(http.StatusBadRequest, CodeInvalidHeader, "%s must be a number of seconds above 0", HeaderRequestTimeout)
	}
	if seconds >= s.options.RequestTimeout.Seconds() {
		return s.options.RequestTimeout, nil
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

func (s *Server) read(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := parameters["charset"]
	if err != nil || kind != "application/json" || charset != "" && charset != "utf-8" && charset != "UTF-8" || r.Header.Get("Content-Encoding") != "" {
		return nil, refuse(http.StatusUnsupportedMediaType, CodeUnsupportedMedia, "the body must be application/json in UTF-8, not compressed")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.options.MaxBody)))
	if err == nil {
		return body, nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		refused := refuse(http.StatusRequestEntityTooLarge, CodeRequestTooLarge, "the body exceeds %d bytes: nothing of it was read", s.options.MaxBody)
		refused.extra.Limit = s.options.MaxBody
		return nil, refused
	}
	return nil, refuse(statusClientClosed, CodeCanceled, "the body ended early")
}

// ask waits for the engine's reply. When the caller goes away or the time is over, the request leaves the queue, and an
// engine that is at work on it is interrupted.
func (s *Server) ask(ctx context.Context, x *exchange, req request, timeout time.Duration) (engine.Reply, *refusal) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout-s.options.Clock.Now().Sub(x.began), errDeadline)
	defer cancel()
	x.job = &job{ctx: ctx, caller: x.caller, state: req.state, asked: req.asked, queued: x.parsed, done: make(chan struct{})}
	if err := s.wait(ctx, x.job); err != nil {
		if errors.Is(err, errQueueFull) {
			return engine.Reply{}, s.full()
		}
		if errors.Is(err, errEnded) {
			return engine.Reply{}, refusedByCause(s.endCause)
		}
		return engine.Reply{}, refusedAsk(ctx, err)
	}
	select {
	case <-s.ended: // what was worked out while the bytes were in doubt is not given away
		return engine.Reply{}, refusedByCause(s.endCause)
	default:
		return x.job.reply, nil
	}
}

var (
	errQueueFull = errors.New("the queue is full")
	errEnded     = errors.New("the server ended")
)

// wait returns the end of a job, of its context, or of the server, whichever is first.
func (s *Server) wait(ctx context.Context, j *job) error {
	if !s.queue.push(j) {
		return errQueueFull
	}
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		s.queue.remove(j)
		return ctx.Err()
	case <-s.ended:
		s.queue.remove(j)
	}
	select {
	case <-j.done: // the job that ended the server knows better why
		return j.err
	default:
		return errEnded
	}
}

func (s *Server) full() *refusal {
	waiting := s.queue.length()
	return &refusal{
		status: http.StatusTooManyRequests, code: CodeQueueFull, message: strconv.Itoa(waiting) + " requests are waiting",
		retryAfter: s.worker.expectedWait(waiting),
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, x *exchange, reply engine.Reply) *refusal {
	body, err := answerBody(s.info, x.job.asked, reply)
	if err != nil {
		return refuse(http.StatusInternalServerError, CodeEngineFailed, "the reply cannot be written")
	}
	s.trace(r.Context(), x, reply)
	s.metrics.answered(x.job.asked, reply)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set(HeaderFingerprint, s.info.Fingerprint)
	h.Set("Server-Timing", x.serverTiming(s.options.Clock.Now()))
	_, _ = w.Write(body)
	return nil
}

// trace adds the phases to the span of the request. No span holds text of the state or of a question.
func (s *Server) trace(ctx context.Context, x *exchange, reply engine.Reply) {
	for _, phase := range []struct {
		name       string
		start, end time.Time
	}{{"queue", x.job.queued, x.job.started}, {"prompt", x.job.started, x.job.ended}} {
		_, span := s.tracer.Start(ctx, phase.name, trace.WithTimestamp(phase.start))
		span.End(trace.WithTimestamp(phase.end))
	}
	trace.SpanFromContext(ctx).SetAttributes(
		attribute.Int("http.response.status_code", http.StatusOK),
		attribute.Int("gatewright.decider.questions", len(x.job.asked)),
		attribute.Int("gatewright.decider.prompt_tokens", reply.PromptTokens),
		attribute.Int("gatewright.decider.reused_tokens", reply.ReusedTokens),
		attribute.String("gatewright.decider.fingerprint", s.info.Fingerprint),
	)
}

// serverTiming names the phases in milliseconds.
func (x *exchange) serverTiming(now time.Time) string {
	ms := func(d time.Duration) string { return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 3, 64) }
	return "parse;dur=" + ms(x.parsed.Sub(x.began)) + ", queue;dur=" + ms(x.job.started.Sub(x.job.queued)) +
		", prompt;dur=" + ms(x.job.ended.Sub(x.job.started)) + ", total;dur=" + ms(now.Sub(x.began))
}

// refuse answers without answers.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, refused *refusal) {
	s.metrics.refused.WithLabelValues(string(refused.code)).Inc()
	s.metrics.requests.WithLabelValues(strconv.Itoa(refused.status)).Inc()
	s.options.Logger.DebugContext(r.Context(), "request refused", "status", refused.status, "reason", string(refused.code))
	refused.write(w)
}

type wireModels struct {
	Models []wireModel `json:"models"`
}

type wireModel struct {
	Name          string   `json:"name"`
	Description   string   `json:"description"`
	ReleaseDate   string   `json:"release_date"` // empty: a file does not say it, but clients of this wire read no list without it
	SHA256        string   `json:"sha256"`
	Fingerprint   string   `json:"fingerprint"`
	Architecture  string   `json:"architecture"`
	Readout       string   `json:"readout"`
	Library       string   `json:"library"`
	CPUVariant    string   `json:"cpu_variant"`
	ContextTokens int      `json:"context_tokens"`
	Threads       int      `json:"threads"`
	Questions     []string `json:"questions"` // empty: any
	Ready         bool     `json:"ready"`
}

// models says what is loaded. It is answered before the server is ready: it tells a fingerprint, not a judgement.
func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	if _, refused := s.admit(r); refused != nil && refused.status == http.StatusUnauthorized {
		s.refuse(w, r, refused)
		return
	}
	i := s.info
	text, err := json.Marshal(wireModels{[]wireModel{{
		Name: i.Model, Description: i.Architecture + " read by " + i.Readout, SHA256: i.SHA256, Fingerprint: i.Fingerprint, Architecture: i.Architecture,
		Readout: i.Readout, Library: i.Library, CPUVariant: i.CPUVariant, ContextTokens: i.ContextTokens, Threads: i.Threads,
		Questions: append([]string{}, i.Supports...), Ready: s.Ready(),
	}}})
	if err != nil {
		s.refuse(w, r, refuse(http.StatusInternalServerError, CodeEngineFailed, "the list cannot be written"))
		return
	}
	s.metrics.requests.WithLabelValues("200").Inc()
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}
