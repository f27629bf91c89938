package gate

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/strictjson"
)

// Code is the code of an answer that is no decision.
type Code string

// Codes.
const (
	CodeMethodNotAllowed     Code = "MethodNotAllowed"
	CodeNotFound             Code = "NotFound"
	CodeUnsupportedMediaType Code = "UnsupportedMediaType"
	CodeTooLarge             Code = "TooLarge"
	CodeBadRequest           Code = "BadRequest"
	CodeInvalidField         Code = "InvalidField"
	CodeStaleUID             Code = "StaleUid"
	CodeUIDReused            Code = "UidReused"
	CodeUnauthorized         Code = "Unauthorized"
	CodeTooManyRequests      Code = "TooManyRequests"
	CodeTooManyUnknown       Code = "TooManyUnknown"
	CodeIdentityUnavailable  Code = "IdentityUnavailable"
	CodeInternal             Code = "Internal"
)

// httpError is the one error that a caller sees. Cause stays in the log.
type httpError struct {
	Status  int
	Code    Code
	Message string
	Field   string
	Cause   error
}

func (e *httpError) Error() string {
	if e.Cause != nil {
		return string(e.Code) + ": " + e.Message + ": " + e.Cause.Error()
	}
	return string(e.Code) + ": " + e.Message
}

func (e *httpError) Unwrap() error { return e.Cause }

func badRequest(code Code, field, message string) *httpError {
	return &httpError{Status: http.StatusBadRequest, Code: code, Field: field, Message: message}
}

// unidentified says why a caller is not known. Whatever is wrong with a token, its sender learns no more than that.
func unidentified(err error) *httpError {
	switch {
	case errors.Is(err, ErrTooManyUnknown):
		return &httpError{Status: http.StatusTooManyRequests, Code: CodeTooManyUnknown, Message: "too many unknown tokens came from this address: call again in a moment", Cause: err}
	case errors.Is(err, ErrIdentityUnavailable):
		return &httpError{Status: http.StatusServiceUnavailable, Code: CodeIdentityUnavailable, Message: "nobody can say now whose token this is: call again in a moment", Cause: err}
	}
	return &httpError{Status: http.StatusUnauthorized, Code: CodeUnauthorized, Message: "unknown caller: send a bearer token of a service account", Cause: err}
}

// decodingError says what is wrong with a body, without repeating it.
func decodingError(err error) *httpError {
	var e *strictjson.Error
	if !errors.As(err, &e) {
		return &httpError{Status: http.StatusInternalServerError, Code: CodeInternal, Message: "internal error", Cause: err}
	}
	status := http.StatusBadRequest
	code := Code(e.Code)
	if e.Code == strictjson.TooLarge {
		status, code = http.StatusRequestEntityTooLarge, CodeTooLarge
	}
	return &httpError{Status: status, Code: code, Field: e.Pointer, Message: e.Error()}
}

// write answers with an error object. Unknown errors say nothing but their id.
func (e *httpError) write(w http.ResponseWriter, id string) {
	body, err := json.Marshal(review.Error{Code: string(e.Code), Message: e.Message, Field: e.Field, ID: id})
	if err != nil {
		body = []byte(`{"code":"Internal","message":"internal error"}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if e.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(e.Status)
	_, _ = w.Write(body) // the caller is gone if this fails, and an answer that did not arrive means Block
}
