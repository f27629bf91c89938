// Package proxy stands in front of a tool server and lets a tool call through only with the gate's word for exactly this
// call: a permit that it verifies and uses up, or an Allow that it asks for itself. Everything that is no tool call and
// is not listed is refused.
//
// What is judged and what is forwarded are the same bytes. A body is read whole, read strictly once, and sent on as it
// came; what two readers could understand differently is refused before the gate's word is looked at.
package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/permit"
)

// kind is what a request is to the proxy.
type kind string

const (
	kindCall   kind = "call"   // runs a tool: needs the gate's word
	kindPass   kind = "pass"   // listed to pass
	kindStream kind = "stream" // listed to pass, and open for as long as it lasts
)

// call is one tool call, read once.
type call struct {
	tool      string
	arguments map[string]any
	// permit that came with the call, empty for none.
	permit string
	// about is what the agent says led to the call.
	about about
	// id by which the caller matches the answer; nil where the wire has none.
	id any
}

// about is what an agent may tell the gate beside the call. None of it is trusted any further than the agent is.
type about struct{ userRequest, session, approval string }

// request is what a wire has read.
type request struct {
	kind kind
	call *call
	// body as it came. Nil streams what is left of the request.
	body []byte
	// listsTools says that the answer tells which tools there are.
	listsTools bool
}

// wire reads requests of one protocol, and says no in it.
type wire interface {
	// isStream says, before anything is read, whether a request stays open for long.
	isStream(r *http.Request) bool
	// read classifies a request. It reads the body of what it classifies by it, and of nothing else.
	read(r *http.Request, body bodyReader) (*request, *denial)
	// deny answers in place of the tool server. The call is nil if none was read.
	deny(w http.ResponseWriter, c *call, d *denial)
}

// bodyReader gives the whole body, within bounds of length and time.
type bodyReader func() ([]byte, *denial)

// checker gets the gate's word for a call.
type checker interface {
	// check gives what goes to the tool server beside the call, or why the call may not run.
	check(ctx context.Context, c *call) (http.Header, *denial)
	// ready says whether calls can be checked now.
	ready(ctx context.Context) error
}

// options of newProxy. All but origins and tools are required.
type options struct {
	wire      wire
	checker   checker
	upstream  *url.URL
	transport http.RoundTripper
	origins   []string
	limits    limits
	clock     clock.PassiveClock
	log       *slog.Logger
	registry  prometheus.Registerer
	tools     *toolWatch
}

// limits bound what one proxy does at once.
type limits struct {
	body     int64         // bytes that are read of one request
	bodyTime time.Duration // in which a body has to be there
	callTime time.Duration // of one request to the tool server, streams aside
	requests int           // at once
	streams  int           // at once
}

// Proxy is the handler.
type Proxy struct {
	options
	metrics  *metrics
	requests chan struct{}
	streams  chan struct{}
	// ending says that the process was told to end.
	ending atomic.Bool
	// draining ends streams when the process is told to end.
	draining context.Context //nolint:containedctx // the life of the process, which no request brings along
	drain    context.CancelFunc
}

func newProxy(o options) (*Proxy, error) {
	p := &Proxy{options: o, requests: make(chan struct{}, o.limits.requests), streams: make(chan struct{}, o.limits.streams)}
	p.draining, p.drain = context.WithCancel(context.Background())
	var err error
	if p.metrics, err = newMetrics(o.registry, p); err != nil {
		return nil, err
	}
	if p.tools != nil {
		p.tools.changed, p.tools.unread = p.metrics.changed.Inc, p.metrics.unread.Inc
	}
	return p, nil
}

// ServeHTTP is a request's way: shape, room, classification, the gate's word, the tool server.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer p.recover(w, r)
	d := p.readWithin(w, p.limits.bodyTime)
	if d == nil {
		d = checkShape(r, p.origins)
	}
	if d != nil {
		p.refuse(w, r, nil, d)
		return
	}
	isStream := p.wire.isStream(r)
	leave, d := p.enter(isStream)
	if d != nil {
		p.refuse(w, r, nil, d)
		return
	}
	defer leave()
	ctx, cancel := p.life(r.Context(), isStream)
	defer cancel()
	r = r.WithContext(ctx)
	req, d := p.wire.read(r, func() ([]byte, *denial) { return p.readBody(w, r) })
	if d != nil {
		p.refuse(w, r, nil, d)
		return
	}
	var extra http.Header
	if req.kind == kindCall {
		if extra, d = p.check(ctx, req.call); d != nil {
			p.refuse(w, r, req.call, d)
			return
		}
	}
	if d = p.release(w, r, req); d != nil {
		p.refuse(w, r, req.call, d)
		return
	}
	p.metrics.forwarded.WithLabelValues(string(req.kind)).Inc()
	p.forward(w, r, req, extra)
}

// release gives a request that goes on the time that it has from here.
func (p *Proxy) release(w http.ResponseWriter, r *http.Request, req *request) *denial {
	switch {
	case req.body == nil && r.ContentLength > p.limits.body:
		return p.tooLarge()
	case req.kind == kindPass && req.body == nil:
		return p.readWithin(w, p.limits.callTime)
	}
	return p.readWithin(w, 0)
}

// check asks for the gate's word. No answer is no.
func (p *Proxy) check(ctx context.Context, c *call) (http.Header, *denial) {
	start := p.clock.Now()
	extra, d := p.checker.check(ctx, c)
	p.metrics.seconds.Observe(p.clock.Since(start).Seconds())
	if d == nil && ctx.Err() != nil {
		return nil, &denial{status: http.StatusGatewayTimeout, code: CodeTimeout, message: "the caller's time is over: nothing was run"}
	}
	return extra, d
}

// enter takes a place, at once or not at all.
func (p *Proxy) enter(isStream bool) (leave func(), d *denial) {
	places := p.requests
	if isStream {
		places = p.streams
	}
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	default:
		return nil, &denial{status: http.StatusServiceUnavailable, code: CodeOverloaded, message: "too many requests at once: call again in a moment"}
	}
}

// life bounds a request by the time of a call, and a stream by that of the process.
func (p *Proxy) life(ctx context.Context, isStream bool) (context.Context, context.CancelFunc) {
	if !isStream {
		return context.WithTimeout(ctx, p.limits.callTime)
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(p.draining, cancel)
	return ctx, func() { stop(); cancel() }
}

// refuse answers, counts and logs. Nothing of the arguments is said.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, c *call, d *denial) {
	p.metrics.refused.WithLabelValues(d.label()).Inc()
	attrs := []any{"code", d.code, "status", d.status, "method", plainMethod(r.Method)}
	if c != nil {
		attrs = append(attrs, "tool", plainName(c.tool))
	}
	if d.decision != nil {
		attrs = append(attrs, "outcome", string(d.decision.Outcome), "decision", d.decision.Decision.ID)
	}
	if d.cause != nil {
		attrs = append(attrs, "error", d.cause.Error())
	}
	p.log.InfoContext(r.Context(), "refused", attrs...)
	if d.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	p.wire.deny(w, c, d)
}

// recover turns a fault of ours into a refusal, if nothing was answered yet. net/http ends the connection otherwise.
func (p *Proxy) recover(w http.ResponseWriter, r *http.Request) {
	fault := recover()
	if fault == nil {
		return
	}
	if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(fault) // the answer broke off, and its reader has to know
	}
	p.log.ErrorContext(r.Context(), "panic", "panic", typeOf(fault), "stack", string(debug.Stack()))
	p.refuse(w, r, nil, &denial{status: http.StatusInternalServerError, code: CodeInternal, message: "internal error: nothing can be said of the call"})
}

// Ready says whether calls can be checked now, and the process is not ending.
func (p *Proxy) Ready(ctx context.Context) error {
	if p.ending.Load() || p.draining.Err() != nil {
		return errors.New("ending")
	}
	return p.checker.ready(ctx)
}

// Drain ends streams and readiness. Calls that run come to their end.
func (p *Proxy) Drain() { p.drain() }

// headers that are the proxy's own. What a caller sends under such a name goes no further.
const (
	ownHeaders     = "Gatewright-"
	callerHeader   = "Gatewright-Caller"
	decisionHeader = "Gatewright-Decision"
)

// told is what the tool server learns of a permit.
func told(c *permit.Claims) http.Header {
	return http.Header{callerHeader: {c.Subject}, decisionHeader: {c.Decision}}
}
