package inference

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// fault is one error in a server's reply. The message only helps to tell reasons apart; it goes no further.
type fault struct{ code, message string }

// statusError gives a reason to a reply that is not a 200.
func statusError(status int, header http.Header, body []byte) *Error {
	faults := faultsOf(body)
	e := &Error{Status: status, Detail: "status " + strconv.Itoa(status)}
	if code := safeCode(faults); code != "" {
		e.Detail += ", code " + code
	}
	switch {
	case status == http.StatusRequestEntityTooLarge, (status == 400 || status == 422) && saysTooLong(faults):
		e.Reason = TooLong
	case status == http.StatusUnprocessableEntity && hasCode(faults, "low_coverage"):
		e.Reason = LowCoverage
	case status == http.StatusUnprocessableEntity && hasCode(faults, "question_not_supported"):
		e.Reason = QuestionNotSupported
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable, status == 529:
		e.Reason = Overloaded
		e.RetryAfter = retryAfter(header)
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		e.Reason = Timeout
	case status >= 400 && status < 500:
		e.Reason = Refused
	case status >= 500:
		e.Reason = Unreachable
	default:
		e.Reason = BadReply // a redirect, or a success of another kind
	}
	return e
}

// hasCode says whether a server gave this code of the decider server's own.
func hasCode(faults []fault, code string) bool {
	return slices.ContainsFunc(faults, func(f fault) bool { return f.code == code })
}

// faultsOf reads the error shapes that servers of this wire use:
//
//	{"detail": "text"}, {"detail": {"error_type", "message"}}, {"detail": [{"type", "msg"}]}
//	{"error": "text"}, {"error": {"code", "type", "message"}}
//	{"errors": [{"code", "message"}]}, where message may hold a further reply as text, which is searched as text
//
// Anything else has no faults, and then the status alone gives the reason.
func faultsOf(body []byte) []fault {
	var reply map[string]any
	if tooDeep(body) || json.Unmarshal(body, &reply) != nil {
		return nil
	}
	var all []fault
	for _, key := range []string{"detail", "error", "errors"} {
		switch v := reply[key].(type) {
		case string:
			all = append(all, fault{message: v})
		case map[string]any:
			all = append(all, faultFrom(v))
		case []any:
			for _, item := range v {
				if object, ok := item.(map[string]any); ok {
					all = append(all, faultFrom(object))
				}
			}
		}
	}
	return all
}

func faultFrom(object map[string]any) fault {
	var f fault
	for _, key := range []string{"error_type", "type", "code"} {
		switch v := object[key].(type) {
		case string:
			f.code = first(f.code, v)
		case float64:
			f.code = first(f.code, strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
	for _, key := range []string{"message", "msg"} {
		if v, ok := object[key].(string); ok {
			f.message = first(f.message, v)
		}
	}
	return f
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

var codePattern = regexp.MustCompile(`^[a-z0-9_.]{1,40}$`)

// safeCode returns the first code that can be nothing but a code.
func safeCode(faults []fault) string {
	for _, f := range faults {
		if codePattern.MatchString(f.code) {
			return f.code
		}
	}
	return ""
}

// saysTooLong errs on neither side that matters: a wrong guess still ends in an error, only with another reason.
func saysTooLong(faults []fault) bool {
	signs := []string{"tokens_exceeded", "exceed_context_size", "context_length", "context window", "context size", "context length",
		"too long", "too large", "max_length", "num_ctx", "5021"}
	for _, f := range faults {
		text := strings.ToLower(f.code + " " + f.message)
		for _, sign := range signs {
			if strings.Contains(text, sign) {
				return true
			}
		}
	}
	return false
}

// retryAfter reads the form in seconds, at most a minute: it is advice from outside.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, time.Minute)
}
