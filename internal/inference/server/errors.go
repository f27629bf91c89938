package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/strictjson"
)

// Code says in one word why a request got no answers. It is error_type in the body and reason in the metrics.
type Code string

// The codes.
const (
	CodeInvalidJSON         Code = "invalid_json"           // 400: the body is not JSON that can be read in one way only
	CodeInvalidHeader       Code = "invalid_header"         // 400: a header cannot be understood
	CodeUnauthorized        Code = "unauthorized"           // 401: no known token, or no client certificate
	CodeUnknownModel        Code = "unknown_model"          // 404: another model was asked for
	CodeNotFound            Code = "not_found"              // 404: nothing is served at this path
	CodeMethodNotAllowed    Code = "method_not_allowed"     // 405
	CodeRequestTooLarge     Code = "request_too_large"      // 413: the body exceeds its limit in bytes
	CodeMaxTokensExceeded   Code = "max_tokens_exceeded"    //nolint:gosec // no credential; 413: a prompt does not fit into the window
	CodeUnsupportedMedia    Code = "unsupported_media_type" // 415: the body is not application/json, or is compressed
	CodeValidation          Code = "validation_error"       // 422: a member is missing, unknown, or out of bounds
	CodeStateUnreadable     Code = "state_unreadable"       // 422: the state cannot be put before the model whole
	CodeNotSupported        Code = "question_not_supported" // 422: this model does not answer this question
	CodeLowCoverage         Code = "low_coverage"           // 422: the model hardly considered the offered answers
	CodeQueueFull           Code = "queue_full"             // 429: too many requests wait
	CodeCanceled            Code = "canceled"               // 499: the caller went away; only metrics and logs see it
	CodeEngineFailed        Code = "engine_failed"          // 500, and 503 for other requests: the engine failed, and this process ends
	CodeNotReady            Code = "not_ready"              // 503: the golden question has not been answered yet
	CodeDraining            Code = "draining"               // 503: the process is ending
	CodeIntegrityLost       Code = "integrity_lost"         // 503: the loaded bytes cannot be trusted, and this process ends
	CodeDeadlineExceeded    Code = "deadline_exceeded"      // 504: the time of the request was over
	statusClientClosed           = 499
	maxRetryAfter                = time.Minute
	retryAfterWhileStarting      = 2 * time.Second
)

// refusal is every answer that holds no answers. Message is written here and holds no text of state or question.
type refusal struct {
	status     int
	code       Code
	message    string
	retryAfter time.Duration
	extra      refusalExtra
}

type refusalExtra struct {
	// Rule is the rule of strict JSON that was broken.
	Rule strictjson.Code
	// Pointer is the place in the body (RFC 6901).
	Pointer string
	// Question is the id of the question at fault.
	Question      string
	Tokens, Limit int
}

func refuse(status int, code Code, format string, args ...any) *refusal {
	return &refusal{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// wireRefusal is the body of a refusal.
type wireRefusal struct {
	Detail struct {
		ErrorType Code            `json:"error_type"`
		Message   string          `json:"message"`
		Rule      strictjson.Code `json:"rule,omitempty"`
		Pointer   string          `json:"pointer,omitempty"`
		Question  string          `json:"question,omitempty"`
		Tokens    int             `json:"tokens,omitzero"`
		Limit     int             `json:"limit,omitzero"`
	} `json:"detail"`
}

func (r *refusal) write(w http.ResponseWriter) {
	var body wireRefusal
	body.Detail.ErrorType, body.Detail.Message = r.code, r.message
	body.Detail.Rule, body.Detail.Pointer, body.Detail.Question = r.extra.Rule, r.extra.Pointer, r.extra.Question
	body.Detail.Tokens, body.Detail.Limit = r.extra.Tokens, r.extra.Limit
	text, err := json.Marshal(body)
	if err != nil { // a struct of texts and numbers
		text = []byte(`{"detail":{"error_type":"engine_failed","message":"internal error"}}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if r.retryAfter > 0 {
		seconds := math.Ceil(min(r.retryAfter, maxRetryAfter).Seconds())
		h.Set("Retry-After", strconv.Itoa(int(seconds)))
	}
	if r.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(text)
}

// refusedBody turns an error of the strict reader into a refusal.
func refusedBody(err error) *refusal {
	e, ok := errors.AsType[*strictjson.Error](err)
	if !ok {
		return refuse(http.StatusBadRequest, CodeInvalidJSON, "the body cannot be read")
	}
	r := refuse(http.StatusBadRequest, CodeInvalidJSON, "%s", e.Detail)
	if e.Code == strictjson.TooLarge {
		r = refuse(http.StatusRequestEntityTooLarge, CodeRequestTooLarge, "%s", e.Detail)
	}
	r.extra.Rule, r.extra.Pointer = e.Code, e.Pointer
	return r
}

// refusedAsk turns the end of a request without answers into a refusal. The cause of its context comes first: an engine
// that was interrupted may fail in any way.
func refusedAsk(ctx context.Context, err error) *refusal {
	if ctx.Err() != nil {
		return refusedByCause(context.Cause(ctx))
	}
	if errors.Is(err, errPushedOut) {
		return &refusal{status: http.StatusTooManyRequests, code: CodeQueueFull, message: errPushedOut.Error(), retryAfter: time.Second}
	}
	e, ok := errors.AsType[*engine.Error](err)
	if !ok {
		return refuse(http.StatusInternalServerError, CodeEngineFailed, "the engine failed")
	}
	r := &refusal{status: http.StatusUnprocessableEntity}
	switch e.Reason {
	case engine.TooLong:
		r = refuse(http.StatusRequestEntityTooLarge, CodeMaxTokensExceeded, "the prompt has %d tokens, the context window holds %d: nothing was cut, and nothing was read", e.Tokens, e.Limit)
		r.extra.Tokens, r.extra.Limit = e.Tokens, e.Limit
	case engine.LowCoverage:
		r.code, r.message = CodeLowCoverage, "the model was about to say something that is none of the offered answers"
	case engine.NotSupported:
		r.code, r.message = CodeNotSupported, "this model does not answer this question"
	case engine.Unreadable:
		r.code, r.message = CodeStateUnreadable, "the state is not text that the model's tokenizer can hold"
	default:
		r = refuse(http.StatusInternalServerError, CodeEngineFailed, "the engine failed")
	}
	r.extra.Question = e.Question
	return r
}

func unavailable(code Code, after time.Duration, message string) *refusal {
	return &refusal{status: http.StatusServiceUnavailable, code: code, message: message, retryAfter: after}
}

func refusedByCause(cause error) *refusal {
	if _, ok := errors.AsType[*EngineError](cause); ok {
		return unavailable(CodeEngineFailed, maxRetryAfter, "the engine failed, and this process ends")
	}
	switch {
	case errors.Is(cause, errDeadline), errors.Is(cause, context.DeadlineExceeded):
		return refuse(http.StatusGatewayTimeout, CodeDeadlineExceeded, "the time of the request was over before all questions were answered")
	case errors.Is(cause, errDraining):
		return unavailable(CodeDraining, time.Second, errDraining.Error())
	case errors.Is(cause, context.Canceled):
		return refuse(statusClientClosed, CodeCanceled, "the caller went away")
	default:
		return unavailable(CodeIntegrityLost, maxRetryAfter, "the loaded model cannot be trusted any more")
	}
}
