package evaluation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

// Asked is what came of the requests to deciders that one decision needed.
type Asked struct {
	Requests                  int
	Errors                    []string
	InputTokens, OutputTokens int
	// Milliseconds of the longest.
	Milliseconds float64
}

// ClientOptions configure a Client.
type ClientOptions struct {
	// URL of the gate.
	URL string
	// Token is sent as a bearer token; nil or an empty one: none is sent.
	Token func(*Case) string
	// Timeout of one call, 20 s by default. Over it the case has no answer.
	Timeout time.Duration
	// Asked, if set, is asked once for what a decision needed of deciders.
	Asked func(decision string) Asked
	// Decided, if set, is told the id of the decision about each case that got one.
	Decided func(one *Case, decision string)
}

// Client asks a gate over HTTP. It is safe for concurrent use.
type Client struct {
	options ClientOptions
	http    *http.Client
}

// NewClient returns a client with connections of its own.
func NewClient(o ClientOptions) *Client {
	if o.Timeout <= 0 {
		o.Timeout = 20 * time.Second
	}
	return &Client{options: o, http: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64, Proxy: nil},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// maxAnswer bounds the answer of a gate.
const maxAnswer = 4 << 20

// Review sends a case as a dry run, which decides and records as ever and asks no person: with a uid and a session that
// no call had before. It never fails: what goes wrong is the result.
func (c *Client) Review(ctx context.Context, one *Case) Result {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	r := Result{Case: one.ID}
	request, uid, err := c.request(ctx, one)
	if err != nil {
		r.Failure = Unreachable
		return r
	}
	start := time.Now()
	status, data, err := c.send(request)
	r.Milliseconds = float64(time.Since(start)) / float64(time.Millisecond)
	switch {
	case err != nil && (ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded)):
		r.Failure = TimedOut
	case err != nil:
		r.Failure = Unreachable
	case status != http.StatusOK:
		r.refused(data)
	default:
		if id := r.read(data, uid); id != "" {
			c.decided(one, id, &r)
		}
	}
	return r
}

func (c *Client) decided(one *Case, id string, r *Result) {
	if c.options.Decided != nil {
		c.options.Decided(one, id)
	}
	if c.options.Asked != nil {
		a := c.options.Asked(id)
		r.Asked, r.DeciderErrors, r.DeciderMilliseconds = a.Requests, a.Errors, a.Milliseconds
		r.InputTokens, r.OutputTokens = a.InputTokens, a.OutputTokens
	}
}

func (c *Client) request(ctx context.Context, one *Case) (request *http.Request, uid string, err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, "", err
	}
	call := one.Review()
	call.Request.UID, call.Request.DryRun = id.String(), true
	call.Request.Context.Session = "evaluation-" + id.String()
	body, err := json.Marshal(call)
	if err != nil {
		return nil, "", err
	}
	request, err = http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.options.URL, "/")+review.Path, bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	if c.options.Token != nil {
		if token := c.options.Token(one); token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
	}
	return request, id.String(), nil
}

func (c *Client) send(request *http.Request) (status int, data []byte, err error) {
	answer, err := c.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	data, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	return answer.StatusCode, data, err
}

// refused keeps the code of an error object.
func (r *Result) refused(data []byte) {
	r.Failure = Refused
	var e review.Error
	if json.Unmarshal(data, &e) == nil && e.Code != "" {
		r.Reason = e.Code
		return
	}
	r.Failure = Malformed
}

// read takes an answer only as a whole, for this very request and with an outcome that is known. It returns the id of the
// decision.
func (r *Result) read(data []byte, uid string) string {
	var answer review.ToolCallReview
	if err := json.Unmarshal(data, &answer); err != nil || answer.Response == nil || answer.Response.UID != uid || !isKnown(answer.Response.Outcome) {
		r.Failure = Malformed
		return ""
	}
	a := answer.Response
	r.Outcome, r.Judged, r.Reason, r.By = a.Outcome, judged(a), a.Reason, a.By
	d := &a.Decision
	r.Class, r.Base, r.Answers, r.Decider, r.Fingerprint, r.Repeats = d.Class, d.Base, d.Answers, d.Decider, d.Fingerprint, d.Repeats
	return d.ID
}
