package inference

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Reason says in one word why there are no answers.
type Reason string

// The reasons. Each of them means that the decider did not judge the call.
const (
	Timeout              Reason = "Timeout"              // the deadline passed
	Canceled             Reason = "Canceled"             // the caller went away
	Unreachable          Reason = "Unreachable"          // no connection, a broken one, or a server error
	BadReply             Reason = "BadReply"             // a reply that is not exactly the answers asked for
	CutReply             Reason = "CutReply"             // an answer that ended before it was whole
	Refused              Reason = "Refused"              // a 4xx
	Overloaded           Reason = "Overloaded"           // 429, 503 or 529
	TooLong              Reason = "TooLong"              // the decider cannot read all of it
	BreakerOpen          Reason = "BreakerOpen"          // it failed just now and has not been seen well since
	QueueFull            Reason = "QueueFull"            // too many calls wait for it
	QuestionNotSupported Reason = "QuestionNotSupported" // it does not answer this question
	ModelMismatch        Reason = "ModelMismatch"        // another model than the pinned one
	LowCoverage          Reason = "LowCoverage"          // the model hardly considered the offered answers
	LanguageNotSupported Reason = "LanguageNotSupported" // it does not read this language
	StateUnreadable      Reason = "StateUnreadable"      // the call cannot be written down whole
)

// Reasons lists all reasons, for metrics and tables that must be complete.
func Reasons() []Reason {
	return []Reason{Timeout, Canceled, Unreachable, BadReply, CutReply, Refused, Overloaded, TooLong, BreakerOpen, QueueFull,
		QuestionNotSupported, ModelMismatch, LowCoverage, LanguageNotSupported, StateUnreadable}
}

// Error is every error of this package. Detail is written here and never repeats a server's prose, a URL, a credential
// or an argument: servers like to quote what they were sent.
type Error struct {
	Reason Reason
	Detail string
	// Status is the HTTP status, 0 if there was none.
	Status int
	// RetryAfter is what an overloaded server asked for.
	RetryAfter time.Duration
	// unsent means that not one byte of the request left, so that it may be tried again.
	unsent bool
}

// ErrTooLong matches, with errors.Is, every error whose reason is TooLong.
var ErrTooLong error = &Error{Reason: TooLong}

func (e *Error) Error() string {
	if e.Detail == "" {
		return string(e.Reason)
	}
	return string(e.Reason) + ": " + e.Detail
}

// Is matches an Error of the same reason.
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t.Reason == e.Reason
}

// Unwrap gives the context's error for the two reasons that stem from it, and nothing else: causes hold private text.
func (e *Error) Unwrap() error {
	switch e.Reason {
	case Timeout:
		return context.DeadlineExceeded
	case Canceled:
		return context.Canceled
	default:
		return nil
	}
}

// ReasonOf returns the reason of an error: empty for nil, BadReply for one that is not from this package.
func ReasonOf(err error) Reason {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) && e.Reason != "" {
		return e.Reason
	}
	return BadReply
}

func fail(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// afterSending marks an error of a later step: earlier steps of the same request were sent already.
func afterSending(err error) error {
	var e *Error
	if !errors.As(err, &e) || !e.unsent {
		return err
	}
	marked := *e
	marked.unsent = false
	return &marked
}

// asError gives any error a reason. A context that ended explains every error that came with it.
func asError(ctx context.Context, err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(ctx.Err(), context.Canceled):
		return &Error{Reason: Canceled}
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
		return &Error{Reason: Timeout}
	default:
		return fail(BadReply, "the decider failed in an unknown way")
	}
}
