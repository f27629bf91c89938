package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
)

// ServeHTTP answers one review: decode, decide, record, answer.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := newID()
	body, err := g.review(r, id)
	if err != nil {
		g.refuse(w, r, id, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the caller is gone if this fails, and an answer that did not arrive means Block
}

// review returns the answer to a request, or why there is none.
func (g *Gate) review(r *http.Request, id string) (answer []byte, err error) {
	ctx := r.Context()
	defer func() {
		if p := recover(); p != nil {
			g.options.Log.ErrorContext(ctx, "panic", "decision", id, "panic", panicText(p), "stack", string(debug.Stack()))
			answer, err = nil, &httpError{Status: http.StatusInternalServerError, Code: CodeInternal, Message: "internal error"}
		}
	}()
	now := g.options.Clock.Now()
	timeout, err := g.timeout(r)
	if err != nil {
		return nil, err
	}
	caller, err := g.options.Identify.Identify(ctx, r)
	if err != nil {
		return nil, unidentified(err)
	}
	in, release, err := g.read(r, caller, now)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return g.once(ctx, in, id)
}

// panicText says what went wrong without a value of the call: what a library panics with may quote its input, what the
// runtime panics with does not.
func panicText(p any) string {
	if err, ok := p.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("of type %T", p)
}

// once answers a uid once: who asks again with the same body gets the same answer.
func (g *Gate) once(ctx context.Context, in *input, id string) ([]byte, error) {
	entry, isFirst := g.replays.begin(in)
	if !isFirst {
		return g.replay(ctx, in, entry)
	}
	var answer []byte
	defer func() { g.replays.finish(in, entry, answer) }()
	d := g.judge(ctx, in, id)
	g.metrics.decided(d)
	body, err := encode(d)
	if err != nil {
		return nil, err
	}
	if !d.retryable() {
		answer = body
	}
	g.compare(ctx, d)
	return body, nil
}

func (g *Gate) replay(ctx context.Context, in *input, entry *replay) ([]byte, error) {
	if entry.body != in.body {
		return nil, &httpError{Status: http.StatusConflict, Code: CodeUIDReused, Field: "/request/uid", Message: "was used for another request: make a new one for each call"}
	}
	select {
	case <-entry.done:
	case <-ctx.Done():
		return nil, &httpError{Status: http.StatusServiceUnavailable, Code: CodeTooManyRequests, Message: "the same request is still being judged", Cause: ctx.Err()}
	}
	if entry.answer == nil {
		return nil, &httpError{Status: http.StatusServiceUnavailable, Code: CodeTooManyRequests, Message: "the same request came to no lasting answer: call again"}
	}
	g.metrics.replayed.Inc()
	return entry.answer, nil
}

// judge takes a slot and decides. Without a free slot the call is blocked at once: a queue in front of a gate only makes
// everybody late.
func (g *Gate) judge(ctx context.Context, in *input, id string) *decision {
	ctx, span := g.tracer.Start(ctx, "decide", trace.WithAttributes(attribute.String("gatewright.decision", id)))
	defer span.End()
	if !g.slots.Take(in.caller.Namespace) {
		d := &decision{gate: g, in: in, id: id, words: in.words()}
		d.block(ReasonOverloaded, "the gate judges as many calls as it can: call again in a moment", true)
		return d.record(ctx)
	}
	defer g.slots.Give(in.caller.Namespace)
	d := g.decide(ctx, in, id)
	span.SetAttributes(attribute.String("gatewright.outcome", d.verdict.Outcome.String()), attribute.String("gatewright.reason", string(d.verdict.Reason)))
	return d
}

// minTimeout is the shortest deadline that a request may name.
const minTimeout = time.Millisecond

// timeout reads ?timeout=2s, as admission webhooks have it.
func (g *Gate) timeout(r *http.Request) (time.Duration, error) {
	if r.URL.RawQuery == "" {
		return g.options.Timeout, nil
	}
	query := r.URL.Query()
	values := query["timeout"]
	if len(query) > 1 || len(values) != 1 {
		return 0, badRequest(CodeBadRequest, "", "the only query parameter is timeout, once, as in ?timeout=2s")
	}
	d, err := time.ParseDuration(values[0])
	if err != nil || d < minTimeout {
		return 0, badRequest(CodeBadRequest, "", "timeout is no duration of at least 1ms, such as 2s")
	}
	return min(d, g.options.Timeout), nil
}

// read reads and decodes a body. How many are read at once is bounded before the first byte, because a body that is being
// read takes memory however little it turns out to ask.
func (g *Gate) read(r *http.Request, caller policy.Caller, now time.Time) (*input, func(), error) {
	if !g.reading.Take(caller.Namespace) {
		return nil, nil, &httpError{Status: http.StatusServiceUnavailable, Code: CodeTooManyRequests, Message: "the gate reads as many requests as it can: call again in a moment"}
	}
	defer g.reading.Give(caller.Namespace)
	body, release, err := g.readBody(r)
	if err != nil {
		return nil, nil, err
	}
	in, bad := g.decode(body, caller, now)
	if bad != nil {
		release()
		return nil, nil, bad
	}
	return in, release, nil
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxPooledBody keeps rare large bodies from staying in memory.
const maxPooledBody = 64 << 10

// readBody reads at most one byte more than is allowed, which decode then refuses.
func (g *Gate) readBody(r *http.Request) (body []byte, release func(), err error) {
	if r.Method != http.MethodPost {
		return nil, nil, &httpError{Status: http.StatusMethodNotAllowed, Code: CodeMethodNotAllowed, Message: "want POST"}
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, nil, &httpError{Status: http.StatusUnsupportedMediaType, Code: CodeUnsupportedMediaType, Message: "want Content-Type: application/json"}
	}
	buffer := bodies.Get().(*bytes.Buffer) //nolint:forcetypeassert // the pool holds nothing else
	buffer.Reset()
	release = func() {
		if buffer.Cap() <= maxPooledBody {
			bodies.Put(buffer)
		}
	}
	if _, err := buffer.ReadFrom(io.LimitReader(r.Body, int64(g.options.Limits.MaxBytes)+1)); err != nil {
		release()
		return nil, nil, &httpError{Status: http.StatusBadRequest, Code: CodeBadRequest, Message: "the body could not be read", Cause: err}
	}
	return buffer.Bytes(), release, nil
}

// refuse answers with an error object.
func (g *Gate) refuse(w http.ResponseWriter, r *http.Request, id string, err error) {
	var e *httpError
	if !errors.As(err, &e) {
		e = &httpError{Status: http.StatusInternalServerError, Code: CodeInternal, Message: "internal error", Cause: err}
	}
	g.metrics.refused.WithLabelValues(string(e.Code)).Inc()
	if e.Status >= http.StatusInternalServerError && e.Cause != nil {
		g.options.Log.ErrorContext(r.Context(), "request failed", "decision", id, "error", e.Cause)
	}
	e.write(w, id)
}

func encode(d *decision) ([]byte, error) {
	if d.verdict.By == "" {
		return nil, &httpError{Status: http.StatusInternalServerError, Code: CodeInternal, Message: "internal error", Cause: errNoDecision}
	}
	body, err := json.Marshal(review.ToolCallReview{APIVersion: review.APIVersion, Kind: review.Kind, Response: d.response()})
	if err != nil {
		return nil, &httpError{Status: http.StatusInternalServerError, Code: CodeInternal, Message: "internal error", Cause: err}
	}
	return body, nil
}

// newID returns a UUIDv7, so that records sort by time.
func newID() string {
	id, err := uuid.NewV7()
	if err != nil {
		// crypto/rand never fails on the systems that Go supports; an id is for people to find a record by.
		return "unidentified"
	}
	return id.String()
}
