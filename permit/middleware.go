package permit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/strictjson"
)

// MaxBody is the longest body that the middleware reads, as long as a gate's longest request.
const MaxBody = 1 << 20

// Codes of answers of the middleware, beside "Permit" and the Reason.
const (
	// CodeTooLarge: the body is longer than MaxBody. HTTP 413.
	CodeTooLarge = "TooLarge"
	// CodeBadCall: the body is no call that could be compared with a permit. HTTP 400.
	CodeBadCall = "BadCall"
)

// ErrNoCall says that a request holds no call. Its text and what it wraps are for the caller.
var ErrNoCall = errors.New("body is no call")

// Verify lets a request through to a handler only with a permit for the call that read finds in it, once. The
// audience is the tool server's own name. Whatever is wrong with a permit is HTTP 403 with code and message as JSON.
//
// The handler gets the body as it was read, and the permit's claims by FromContext. It has to act on what read has
// looked at and on nothing else, neither on the path nor on other headers: a permit covers tool and arguments alone.
func Verify(v *Verifier, audience string, read func(*http.Request) (Call, error)) func(http.Handler) http.Handler {
	if v == nil || audience == "" || read == nil {
		panic("permit: a middleware needs a verifier, an audience and a reader")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			claims, refusal := v.authenticateRequest(r) // before a body is read for somebody unknown
			if refusal != nil {
				answerRefusal(w, refusal)
				return
			}
			call, body, err := readCall(w, r, read)
			if err != nil {
				answerBadCall(w, err)
				return
			}
			call.Audience = audience
			if refusal := v.admit(r.Context(), claims, call); refusal != nil {
				answerRefusal(w, refusal)
				return
			}
			next.ServeHTTP(w, permitted(r, claims, body))
		})
	}
}

func (v *Verifier) authenticateRequest(r *http.Request) (*Claims, *Error) {
	tokens := r.Header.Values(Header)
	if len(tokens) == 0 {
		return nil, refuse(ReasonMissing, nil)
	}
	if len(tokens) > 1 {
		return nil, refuse(ReasonMalformed, errors.New("several permits"))
	}
	return v.authenticate(r.Context(), tokens[0])
}

// readCall reads the whole body, and lets read look at a copy of the request.
func readCall(w http.ResponseWriter, r *http.Request, read func(*http.Request) (Call, error)) (Call, []byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err != nil {
		return Call{}, nil, err
	}
	look := r.Clone(r.Context())
	setBody(look, body)
	call, err := read(look)
	return call, body, err
}

func setBody(r *http.Request, body []byte) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.TransferEncoding = nil
}

type claimsKey struct{}

// FromContext gives the claims of the permit by which a request was let through.
func FromContext(ctx context.Context) (*Claims, bool) {
	c, ok := ctx.Value(claimsKey{}).(*Claims)
	return c, ok
}

// permitted is the request for the handler. The permit is used up, and leaves it so that nobody logs or forwards it.
func permitted(r *http.Request, c *Claims, body []byte) *http.Request {
	out := r.Clone(context.WithValue(r.Context(), claimsKey{}, c))
	out.Header.Del(Header)
	setBody(out, body)
	return out
}

// ReadJSON reads a call from a body {"tool": NAME, "arguments": {...}} for the tools of a server, by the name under which
// callers ask the gate; empty if they name none. Another field is refused: the permit would not cover it.
func ReadJSON(server string) func(*http.Request) (Call, error) {
	return func(r *http.Request) (Call, error) {
		data, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
		if err != nil {
			return Call{}, fmt.Errorf("reading call: %w", err)
		}
		var body struct {
			Tool      string            `json:"tool"`
			Arguments strictjson.Object `json:"arguments"`
		}
		if err := strictjson.Decode(data, strictjson.Limits{MaxBytes: MaxBody}, &body); err != nil {
			return Call{}, fmt.Errorf("%w: %w", ErrNoCall, err)
		}
		if body.Tool == "" || body.Arguments == nil {
			return Call{}, fmt.Errorf("%w: tool and arguments are required, an empty object for none", ErrNoCall)
		}
		return Call{Tool: body.Tool, Server: server, Arguments: body.Arguments}, nil
	}
}

func answerRefusal(w http.ResponseWriter, e *Error) {
	answer(w, http.StatusForbidden, "Permit"+string(e.Reason), e.Error())
}

func answerBadCall(w http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		answer(w, http.StatusRequestEntityTooLarge, CodeTooLarge, fmt.Sprintf("body is longer than %d bytes", MaxBody))
	case errors.Is(err, ErrNoCall):
		answer(w, http.StatusBadRequest, CodeBadCall, err.Error())
	default:
		answer(w, http.StatusBadRequest, CodeBadCall, "body cannot be read")
	}
}

func answer(w http.ResponseWriter, status int, code, message string) {
	body, err := json.Marshal(review.Error{Code: code, Message: message})
	if err != nil {
		body = []byte(`{"code":"Internal","message":"internal error"}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller is gone if this fails, and the tool has not run
}

// ParseArguments reads the arguments of a call, one JSON object of at most MaxBody bytes, for Call.Arguments. What two
// readers could understand differently is refused: a name twice, a number that a double does not hold, data that follows.
func ParseArguments(data []byte) (map[string]any, error) {
	tree, err := strictjson.Parse(data, strictjson.Limits{MaxBytes: MaxBody})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoCall, err)
	}
	arguments, ok := tree.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%w: arguments are no object", ErrNoCall)
	}
	return arguments, nil
}

// ArgumentsDigest is the digest that a permit has for these arguments.
func ArgumentsDigest(arguments map[string]any) (string, error) { return strictjson.Digest(arguments) }
