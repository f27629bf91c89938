package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/permit"
)

// Code says why the proxy refused a request before the gate's word was looked at, or could not forward it. Refused
// permits have "Permit" and their reason in its place, and the gate's own denials the gate's reason.
type Code string

// Codes.
const (
	// CodeNotListed: it is neither a tool call nor listed to pass. HTTP 404.
	CodeNotListed Code = "NotListed"
	// CodeBadPath: the path could be read in more than one way, or a call has a query. HTTP 400.
	CodeBadPath Code = "BadPath"
	// CodeBadHeader: a header could make another request of it behind the proxy. HTTP 400.
	CodeBadHeader Code = "BadHeader"
	// CodeOriginNotAllowed: a web page sent it. HTTP 403.
	CodeOriginNotAllowed Code = "OriginNotAllowed"
	// CodeLengthRequired: the body of a call came in chunks or with trailers. HTTP 411.
	CodeLengthRequired Code = "LengthRequired"
	// CodeEncodedBody: the body of a call is compressed. HTTP 415.
	CodeEncodedBody Code = "EncodedBody"
	// CodeUnsupportedMediaType: the body of a call is not declared as JSON. HTTP 415.
	CodeUnsupportedMediaType Code = "UnsupportedMediaType"
	// CodeTooLarge: the body is longer than the proxy reads. HTTP 413.
	CodeTooLarge Code = "TooLarge"
	// CodeBadCall: the body is no call that can be read in one way only. HTTP 400.
	CodeBadCall Code = "BadCall"
	// CodeNotCovered: the call carries something beside tool and arguments, which no permit speaks of. HTTP 400.
	CodeNotCovered Code = "NotCovered"
	// CodeBatch: several JSON-RPC messages in one body. HTTP 400.
	CodeBatch Code = "Batch"
	// CodeMethodNotPassed: a JSON-RPC method that is not listed to pass.
	CodeMethodNotPassed Code = "MethodNotPassed"
	// CodeOverloaded: the proxy has as many requests as it may. HTTP 503.
	CodeOverloaded Code = "Overloaded"
	// CodeTimeout: the time of the request was over before it was forwarded, or the tool server took too long. HTTP 504.
	CodeTimeout Code = "Timeout"
	// CodeGateMismatch: the gate has judged other arguments than those that came. HTTP 502.
	CodeGateMismatch Code = "GateMismatch"
	// CodeUpstream: the tool server could not be reached or broke off. HTTP 502.
	CodeUpstream Code = "Upstream"
	// CodeInternal: a fault of the proxy. HTTP 500.
	CodeInternal Code = "Internal"
)

// denial is why the tool server did not get a request.
type denial struct {
	status  int
	code    Code
	message string
	// decision of the gate, where there is one.
	decision *review.Response
	// reason of a refused permit.
	reason permit.Reason
	// id of the JSON-RPC message, where it was read.
	id any
	// cause is for the log.
	cause error
}

// label is the metric's label: from closed sets, and one word for what a policy calls its own.
func (d *denial) label() string {
	switch {
	case d.decision != nil:
		return "Gate" + string(d.decision.Outcome)
	case d.reason != "":
		return "Permit" + string(d.reason)
	}
	return string(d.code)
}

// refusal is what a caller sees of a denial.
type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// The rest is what the gate has said, where it was asked.
	Outcome   review.Outcome `json:"outcome,omitempty"`
	Remedy    review.Remedy  `json:"remedy,omitempty"`
	Retryable bool           `json:"retryable,omitempty"`
	Missing   []string       `json:"missing,omitempty"`
	Approval  *waiting       `json:"approval,omitempty"`
	Decision  string         `json:"decision,omitempty"`
}

// waiting is an approval that a person has to give.
type waiting struct {
	Name      string    `json:"name"`
	ExpiresAt time.Time `json:"expiresAt"`
}

func (d *denial) refusal() refusal {
	out := refusal{Code: string(d.code), Message: d.message}
	if d.reason != "" {
		out.Code = "Permit" + string(d.reason)
	}
	if r := d.decision; r != nil {
		out.Code, out.Outcome, out.Remedy, out.Retryable = r.Reason, r.Outcome, r.Remedy, r.Retryable
		out.Missing, out.Decision = r.Missing, r.Decision.ID
		if r.Approval != nil {
			out.Approval = &waiting{Name: r.Approval.Name, ExpiresAt: r.Approval.ExpiresAt}
		}
	}
	return out
}

// answerJSON answers with a value. One that has no JSON form is a fault of ours.
func answerJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"code":"Internal","message":"internal error"}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller is gone if this fails, and the tool has not run
}

const maxName = 128 // as long as a tool's name in a policy

// isToolName takes names that a policy can list.
func isToolName(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for i, c := range []byte(s) {
		isWord := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
		if !isWord && (i == 0 || !strings.ContainsRune(".:/-", rune(c))) {
			return false
		}
	}
	return true
}

// plainName is a tool's name for a log. Other names are a caller's free text.
func plainName(s string) string {
	if isToolName(s) {
		return s
	}
	return "(no name of a tool)"
}

func plainMethod(s string) string {
	switch s {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return s
	}
	return "(other)"
}

// typeOf names a value's type, for what must not be printed itself.
func typeOf(v any) string { return fmt.Sprintf("%T", v) }
