// Package gatewright asks a Gatewright gate before a tool runs. Anything but a clear Allow means that the tool does not
// run, and every way in which asking can fail is a Decision that blocks.
package gatewright

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"gatewright.dev/gatewright/api/review/v1alpha1"
)

// Reasons of a Decision that this client makes in place of the gate. Cancelled is the caller's own doing.
const (
	GateTimeout         = "GateTimeout"
	GateUnreachable     = "GateUnreachable"
	GateStatus          = "GateStatus"
	GateReplyTooLarge   = "GateReplyTooLarge"
	GateReplyMalformed  = "GateReplyMalformed"
	GateReplyMismatch   = "GateReplyMismatch"
	GateUnknownOutcome  = "GateUnknownOutcome"
	RequestNotSendable  = "RequestNotSendable"
	ArgumentsChanged    = "ArgumentsChanged"
	ClientMisconfigured = "ClientMisconfigured"
	Cancelled           = "Cancelled"
)

const (
	defaultTimeout = 12 * time.Second // the gate itself decides in at most 10
	maxReply       = 1 << 20          // bytes; an answer is a few KiB
	maxDepth       = 64               // of what is sent
	retryPause     = 100 * time.Millisecond
	by             = "client"
)

// Options say where the gate is and who asks. Empty fields take GATEWRIGHT_URL, GATEWRIGHT_TOKEN_FILE and
// GATEWRIGHT_CA_FILE.
type Options struct {
	// URL of the gate: https, or http on this very machine.
	URL string
	// Token of the caller. TokenFile is read again for each call.
	Token, TokenFile string
	// CAFile holds the only authorities to trust, and is read again for each call.
	CAFile string
	// Timeout for everything, the retry included; 12 s if zero.
	Timeout time.Duration
}

// Client asks a gate. It is safe for concurrent use.
type Client struct {
	options Options

	mu        sync.Mutex
	ca        []byte // that transport trusts
	transport *http.Transport
}

// New gives a client. What is wrong with its options shows in each Decision.
func New(o Options) *Client {
	fallback := func(field *string, name string) {
		if *field == "" {
			*field = os.Getenv(name)
		}
	}
	fallback(&o.URL, "GATEWRIGHT_URL")
	fallback(&o.TokenFile, "GATEWRIGHT_TOKEN_FILE")
	fallback(&o.CAFile, "GATEWRIGHT_CA_FILE")
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return &Client{options: o}
}

// Decision is what the gate, or this client in its place, said about one call. The zero value allows nothing.
type Decision struct {
	v1alpha1.Response
	// Tool that was asked about.
	Tool string

	allowed bool
}

// Allowed says whether the tool may run. A dry run is never allowed.
func (d Decision) Allowed() bool { return d.allowed }

// DeniedError means that a guarded tool did not run. Its text is what the model should read.
type DeniedError struct{ Decision Decision }

func (e *DeniedError) Error() string { return e.Decision.ForModel() }

type currentKey struct{}

// FromContext gives the Decision under which a guarded function runs; it holds the permit for the tool's server.
func FromContext(ctx context.Context) (Decision, bool) {
	d, ok := ctx.Value(currentKey{}).(Decision)
	return d, ok
}

// Guard wraps a tool so that it runs only on Allow, and gives a *DeniedError otherwise. about says, for each call,
// what led to it; it may be nil.
func Guard[T any](
	c *Client, tool v1alpha1.Tool, about func(context.Context) v1alpha1.Context,
	run func(context.Context, map[string]any) (T, error),
) func(context.Context, map[string]any) (T, error) {
	return func(ctx context.Context, arguments map[string]any) (T, error) {
		request := v1alpha1.Request{Tool: tool, Arguments: arguments}
		if about != nil {
			request.Context = about(ctx)
		}
		d := c.Review(ctx, request)
		if !d.Allowed() {
			var none T
			return none, &DeniedError{Decision: d}
		}
		return run(context.WithValue(ctx, currentKey{}, d), arguments)
	}
}

// Review asks whether a call may run, under a uid of its own. It does not change the request, and blocks if somebody
// else does meanwhile.
func (c *Client) Review(ctx context.Context, r v1alpha1.Request) Decision {
	d, err := c.review(ctx, &r)
	if err == nil {
		return d
	}
	var f *fault
	switch {
	case errors.As(err, &f):
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		f = &fault{reason: Cancelled, message: "The call was cancelled.", remedy: v1alpha1.RemedyNone}
	case errors.Is(err, context.DeadlineExceeded) || isTimeout(err):
		f = &fault{reason: GateTimeout, message: "The gate did not answer in time.", remedy: v1alpha1.RemedyRetry}
	default:
		f = &fault{reason: GateUnreachable, message: "The gate could not be reached.", remedy: v1alpha1.RemedyRetry}
	}
	return f.decision(r)
}

func (c *Client) review(ctx context.Context, r *v1alpha1.Request) (Decision, error) {
	uid, err := uuid.NewV7()
	if err != nil {
		return Decision{}, notSendable("no random uid can be made")
	}
	r.UID = uid.String()
	if r.Arguments == nil {
		r.Arguments = map[string]any{}
	}
	body, err := encode(*r)
	if err != nil {
		return Decision{}, err
	}
	status, reply, err := c.exchange(ctx, body)
	if err != nil {
		return Decision{}, err
	}
	d, err := read(status, reply, *r)
	if err != nil {
		return Decision{}, err
	}
	if again, err := encode(*r); err != nil || !bytes.Equal(again, body) {
		return Decision{}, closed(ArgumentsChanged, "The arguments were changed while the gate decided.")
	}
	return d, nil
}

func (c *Client) exchange(ctx context.Context, body []byte) (int, []byte, error) {
	target, err := c.target()
	if err != nil {
		return 0, nil, err
	}
	token, err := c.token()
	if err != nil {
		return 0, nil, err
	}
	transport, err := c.transportFor()
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	status, reply, err := send(ctx, transport, target, token, body)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return status, reply, err
	}
	// Nothing was sent, and the uid makes a repeat the same request. The pause is for another replica to take over.
	select {
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	case <-time.After(min(retryPause, c.options.Timeout/4)):
		return send(ctx, transport, target, token, body)
	}
}

func send(ctx context.Context, t *http.Transport, target, token string, body []byte) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return 0, nil, misconfigured("the URL of the gate is not valid")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	reply, err := t.RoundTrip(request) // a bare round trip follows no redirect
	if err != nil {
		return 0, nil, fmt.Errorf("asking the gate: %w", err)
	}
	defer reply.Body.Close()
	content, err := io.ReadAll(io.LimitReader(reply.Body, maxReply+1))
	switch {
	case len(content) > maxReply && reply.StatusCode == http.StatusOK:
		return 0, nil, closed(GateReplyTooLarge, "The gate's answer is too large.")
	case len(content) > maxReply:
		return reply.StatusCode, nil, nil // an error of any size is an error
	case err != nil:
		return 0, nil, fmt.Errorf("reading the gate's answer: %w", err)
	}
	return reply.StatusCode, content, nil
}

func (c *Client) target() (string, error) {
	if c.options.Timeout < 10*time.Millisecond || c.options.Timeout > 300*time.Second {
		return "", misconfigured("the time-out is not between 0.01 and 300 seconds")
	}
	u, err := url.Parse(c.options.URL)
	if err != nil {
		return "", misconfigured("the URL of the gate is not valid")
	}
	plain := u.Scheme == "http" && isLoopback(u.Hostname())
	if u.Hostname() == "" || !plain && u.Scheme != "https" {
		return "", misconfigured("the gate is reached by https, or by http on this very machine")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", misconfigured("the URL of the gate holds more than host and path")
	}
	u.Path = strings.TrimRight(u.Path, "/") + v1alpha1.Path
	u.RawPath = ""
	// Five sixths of the time-out, so that the gate's answer can still arrive.
	milliseconds := c.options.Timeout.Milliseconds() * 5 / 6
	u.RawQuery = "timeout=" + strconv.FormatFloat(float64(milliseconds)/1000, 'f', -1, 64) + "s"
	return u.String(), nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

var tokenForm = regexp.MustCompile(`^[\x21-\x7e]+$`)

// token may be absent; the gate then says 401, or knows a caller by other means.
func (c *Client) token() (string, error) {
	token := c.options.Token
	if token == "" && c.options.TokenFile == "" {
		return "", nil
	}
	if token == "" {
		content, err := os.ReadFile(c.options.TokenFile)
		if err != nil {
			return "", misconfigured("the token file cannot be read")
		}
		token = strings.TrimSpace(string(content))
	}
	if !tokenForm.MatchString(token) {
		return "", misconfigured("the token is empty or holds more than one word")
	}
	return token, nil
}

// transportFor keeps connections as long as the CA file stays the same. There is no proxy: its word would be the gate's.
func (c *Client) transportFor() (*http.Transport, error) {
	var ca []byte
	if c.options.CAFile != "" {
		var err error
		if ca, err = os.ReadFile(c.options.CAFile); err != nil {
			return nil, misconfigured("the CA file cannot be read")
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.transport != nil && bytes.Equal(ca, c.ca) {
		return c.transport, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.options.CAFile != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, misconfigured("the CA file cannot be read")
		}
	}
	if c.transport != nil {
		c.transport.CloseIdleConnections()
	}
	c.ca, c.transport = ca, &http.Transport{
		TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
	}
	return c.transport, nil
}

// fault is a call that does not run because of what went wrong between caller and gate.
type fault struct {
	reason, message string
	remedy          v1alpha1.Remedy
}

func (f *fault) Error() string { return f.reason }

func (f *fault) decision(r v1alpha1.Request) Decision {
	return Decision{Tool: r.Tool.Name, Response: v1alpha1.Response{
		UID: r.UID, Outcome: v1alpha1.Block, Reason: f.reason, By: by, Message: f.message,
		Remedy: f.remedy, Retryable: f.remedy == v1alpha1.RemedyRetry,
	}}
}

func closed(reason, message string) *fault {
	return &fault{reason: reason, message: message, remedy: v1alpha1.RemedyAskAdmin}
}

func malformed() *fault {
	return closed(GateReplyMalformed, "The gate's answer could not be understood.")
}

func misconfigured(detail string) *fault {
	return closed(ClientMisconfigured, "The client of the gate is misconfigured: "+detail+".")
}

func notSendable(detail string) *fault {
	message := "The call cannot be written as exact JSON: " + detail + "."
	return &fault{reason: RequestNotSendable, message: message, remedy: v1alpha1.RemedyChangeArguments}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// read turns an answer into a decision. Only what is clearly an Allow for this very request becomes one.
func read(status int, body []byte, r v1alpha1.Request) (Decision, error) {
	if status != http.StatusOK {
		return Decision{}, statusFault(status, body)
	}
	if !utf8.Valid(body) {
		return Decision{}, malformed()
	}
	review, err := object(body)
	if err != nil {
		return Decision{}, malformed()
	}
	var version, kind string
	if fill(review, map[string]any{"apiVersion": &version, "kind": &kind}) != nil ||
		version != v1alpha1.APIVersion || kind != v1alpha1.Kind {
		return Decision{}, malformed()
	}
	response, err := object(review["response"])
	if err != nil {
		return Decision{}, malformed()
	}
	d := Decision{Tool: r.Tool.Name}
	if err := fill(response, fieldsOf(&d.Response)); err != nil {
		return Decision{}, malformed()
	}
	if d.UID != r.UID {
		return Decision{}, closed(GateReplyMismatch, "The gate's answer belongs to another request.")
	}
	switch d.Outcome {
	case v1alpha1.Allow, v1alpha1.Clarify, v1alpha1.Confirm, v1alpha1.Block:
	default:
		return Decision{}, closed(GateUnknownOutcome, "The gate answered with an outcome that this client does not know.")
	}
	d.allowed = d.Outcome == v1alpha1.Allow && !r.DryRun
	return d, nil
}

// fieldsOf names the fields of a response exactly; encoding/json would also take "Outcome" for "outcome".
func fieldsOf(r *v1alpha1.Response) map[string]any {
	return map[string]any{
		"uid": &r.UID, "outcome": &r.Outcome, "reason": &r.Reason, "by": &r.By, "message": &r.Message,
		"remedy": &r.Remedy, "retryable": &r.Retryable, "missing": &r.Missing, "approval": &r.Approval,
		"permit": &r.Permit, "wouldBe": &r.WouldBe, "decision": &r.Decision,
	}
}

func fill(from map[string]json.RawMessage, fields map[string]any) error {
	for name, into := range fields {
		if raw, ok := from[name]; ok {
			if err := json.Unmarshal(raw, into); err != nil {
				return fmt.Errorf("reading %s: %w", name, err)
			}
		}
	}
	return nil
}

var errNotObject = errors.New("not one JSON object with each name once")

// object reads one JSON object and refuses names that are given twice, of which encoding/json would take the last.
func object(data []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errNotObject
	}
	of := map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, errNotObject
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errNotObject
		}
		key, ok := name.(string)
		if _, twice := of[key]; twice || !ok {
			return nil, errNotObject
		}
		of[key] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, errNotObject
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errNotObject
	}
	return of, nil
}

var codeForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,63}$`)

// statusFault names the error's code if it is a plain word; no other text of an error goes to a model.
func statusFault(status int, body []byte) *fault {
	var code string
	if of, err := object(body); err == nil && json.Unmarshal(of["code"], &code) == nil && codeForm.MatchString(code) {
		code = " (" + code + ")"
	} else {
		code = ""
	}
	f := closed(GateStatus, fmt.Sprintf("The gate answered HTTP %d%s.", status, code))
	if status == http.StatusTooManyRequests || status >= http.StatusInternalServerError {
		f.remedy = v1alpha1.RemedyRetry
	}
	return f
}

func encode(r v1alpha1.Request) ([]byte, error) {
	words := []any{r.Tool.Name, r.Tool.Server, r.Context.UserRequest, r.Context.Session, r.Context.OnBehalfOf}
	for _, m := range r.Context.Messages {
		words = append(words, m.Content, m.Name)
	}
	for _, of := range []any{r.Arguments, r.Context.Facts, words} {
		if err := check(of, maxDepth); err != nil {
			return nil, err
		}
	}
	body, err := json.Marshal(v1alpha1.ToolCallReview{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, Request: &r})
	if err != nil {
		return nil, notSendable("a value has no JSON form")
	}
	return body, nil
}

// check refuses what encoding/json would change on its way or cannot write.
func check(value any, depth int) error {
	if depth == 0 {
		return notSendable("it is nested too deeply")
	}
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			if err := errors.Join(check(name, depth), check(inner, depth-1)); err != nil {
				return err
			}
		}
	case []any:
		for _, inner := range v {
			if err := check(inner, depth-1); err != nil {
				return err
			}
		}
	case string:
		if !utf8.ValidString(v) {
			return notSendable("a text is not valid Unicode")
		}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return notSendable("a number is not finite")
		}
	case nil, bool, json.Number, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
	default:
		return notSendable("a value is of a type that JSON does not have")
	}
	return nil
}

// ForModel is what the model should read in place of the tool's result.
func (d Decision) ForModel() string {
	if d.Outcome == v1alpha1.Allow {
		if d.allowed {
			return d.Tool + " may run."
		}
		return d.Tool + " did not run: this was a dry run."
	}
	said := []string{fmt.Sprintf("%s did not run (%s).", d.Tool, d.Reason)}
	if d.Message != "" {
		said = append(said, sentence(d.Message))
	}
	return strings.Join(append(said, d.advice()), " ")
}

// sentence ends a message, so that what comes behind it is read apart.
func sentence(s string) string {
	if r, _ := utf8.DecodeLastRuneInString(s); strings.ContainsRune(".!?…。！？", r) {
		return s
	}
	return s + "."
}

func (d Decision) advice() string {
	switch {
	case d.Outcome == v1alpha1.Clarify && len(d.Missing) > 0:
		return "Ask the user before you call it again. Missing: " + strings.Join(d.Missing, ", ") + "."
	case d.Outcome == v1alpha1.Clarify:
		return "Ask the user before you call it again."
	case d.Outcome == v1alpha1.Confirm:
		name := ""
		if d.Approval != nil && d.Approval.Name != "" {
			name = " (approval " + d.Approval.Name + ")"
		}
		return "A person has to approve this very call first" + name + ". Tell the user that it is waiting and do not " +
			"look for another way; once it is approved, call again with the same arguments."
	case d.Retryable:
		return "The same call may be tried again later."
	case d.Remedy == v1alpha1.RemedyChangeArguments:
		return "Do not retry this call. A call with other arguments may be allowed."
	}
	return "Do not retry this call."
}
