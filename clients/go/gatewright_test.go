package gatewright

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"gatewright.dev/gatewright/api/review/v1alpha1"
)

func request(tool string) v1alpha1.Request {
	return v1alpha1.Request{
		Tool:      v1alpha1.Tool{Name: tool},
		Arguments: map[string]any{"order_id": "5521", "amount": 19.99},
		Context:   v1alpha1.Context{UserRequest: "Refund order 5521, please."},
	}
}

func TestContract(t *testing.T) {
	c := readContract(t)
	for _, r := range c.Rows {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			gate, server := serve(t, r)
			timeout := 10 * time.Second
			if r.Timeout > 0 {
				timeout = time.Duration(r.Timeout) * time.Millisecond
			}
			client := New(Options{URL: server.URL, Timeout: timeout})
			ran := false
			guarded := Guard(client, v1alpha1.Tool{Name: c.Tool}, nil, func(ctx context.Context, _ map[string]any) (string, error) {
				_, ran = FromContext(ctx)
				return "done", nil
			})
			start := time.Now()
			d := client.Review(t.Context(), request(c.Tool))
			if took := time.Since(start); took > timeout+2*time.Second {
				t.Errorf("took %v, longer than the time-out of %v", took, timeout)
			}
			got := want{d.Allowed(), string(d.Outcome), d.Reason, d.Retryable, d.ForModel()}
			if diff := cmp.Diff(r.Want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			_, err := guarded(t.Context(), request(c.Tool).Arguments)
			if ran != r.Want.Allowed {
				t.Errorf("tool ran: %v, want %v", ran, r.Want.Allowed)
			}
			var denied *DeniedError
			if !r.Want.Allowed && (!errors.As(err, &denied) || err.Error() != r.Want.Tells) {
				t.Errorf("guard gave %v, want %q", err, r.Want.Tells)
			}
			if asked := gate.askedTimes(); asked != 2 {
				t.Errorf("gate was asked %d times by two calls", asked)
			}
		})
	}
}

func TestReviewSendsTheCallAsItIs(t *testing.T) {
	gate, server := serve(t, allowRow(t))
	client := New(Options{URL: server.URL + "/base/", Token: "tkn"})
	r := request("orders.refund")
	r.UID = "another"
	r.Arguments = map[string]any{"big": json.Number("9007199254740993"), "html": "<&>", "list": []any{1, nil, true}}
	if d := client.Review(t.Context(), r); !d.Allowed() {
		t.Fatalf("blocked: %s", d.ForModel())
	}
	q := gate.queries[0]
	got := []string{q.Method, q.URL.Path, q.URL.RawQuery, q.Header.Get("Content-Type"), q.Header.Get("Authorization")}
	wantLine := []string{"POST", "/base" + v1alpha1.Path, "timeout=10s", "application/json", "Bearer tkn"}
	if diff := cmp.Diff(wantLine, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	id, err := uuid.Parse(gate.reviews[0].Request.UID)
	if seconds, _ := id.Time().UnixTime(); err != nil || id.Version() != 7 || math.Abs(float64(time.Now().Unix()-seconds)) > 60 {
		t.Errorf("uid %q is no fresh UUIDv7: %v", gate.reviews[0].Request.UID, err)
	}
	if !strings.Contains(gate.bodies[0], `"big":9007199254740993`) {
		t.Errorf("a number was changed: %s", gate.bodies[0])
	}
	if r.UID != "another" {
		t.Error("the caller's request was changed")
	}
}

func TestReviewNeverReusesAUID(t *testing.T) {
	gate, server := serve(t, allowRow(t))
	client := New(Options{URL: server.URL})
	seen := map[string]bool{}
	for range 20 {
		client.Review(t.Context(), request("t"))
	}
	for _, review := range gate.reviews {
		seen[review.Request.UID] = true
	}
	if len(seen) != 20 {
		t.Errorf("20 calls had %d uids", len(seen))
	}
}

func TestADryRunIsNeverAllowed(t *testing.T) {
	_, server := serve(t, allowRow(t))
	r := request("t")
	r.DryRun = true
	d := New(Options{URL: server.URL}).Review(t.Context(), r)
	if d.Allowed() || d.Outcome != v1alpha1.Allow || d.ForModel() != "t did not run: this was a dry run." {
		t.Errorf("got %v %s %q", d.Allowed(), d.Outcome, d.ForModel())
	}
}

func TestTheZeroDecisionAllowsNothing(t *testing.T) {
	if (Decision{}).Allowed() || (Decision{Response: v1alpha1.Response{Outcome: v1alpha1.Allow}}).Allowed() {
		t.Error("a decision that no gate gave allows")
	}
}

func TestArgumentsThatJSONWouldChangeAreNotSent(t *testing.T) {
	deep := any("end")
	for range maxDepth {
		deep = []any{deep}
	}
	tests := map[string]struct{ arguments map[string]any }{
		"NaN":                            {map[string]any{"a": math.NaN()}},
		"infinity within a list":         {map[string]any{"a": []any{math.Inf(-1)}}},
		"text that is not UTF-8":         {map[string]any{"a": "\xff"}},
		"a name that is not UTF-8":       {map[string]any{"\xff": 1}},
		"bytes, which would be base64":   {map[string]any{"a": []byte("x")}},
		"a structure":                    {map[string]any{"a": struct{ B int }{1}}},
		"a number that is no number":     {map[string]any{"a": json.Number("1x")}},
		"nesting beyond what is sent":    {map[string]any{"a": deep}},
		"a function, which has no value": {map[string]any{"a": func() {}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			gate, server := serve(t, allowRow(t))
			d := New(Options{URL: server.URL}).Review(t.Context(), v1alpha1.Request{Tool: v1alpha1.Tool{Name: "t"}, Arguments: tt.arguments})
			if d.Allowed() || d.Reason != RequestNotSendable || len(gate.reviews) != 0 {
				t.Errorf("got allowed %v, %s after %d requests", d.Allowed(), d.Reason, len(gate.reviews))
			}
		})
	}
}

func TestAUserRequestThatIsNotUTF8IsNotSent(t *testing.T) {
	r := request("t")
	r.Context.UserRequest = "pay \xff"
	if d := New(Options{URL: "http://127.0.0.1:1"}).Review(t.Context(), r); d.Reason != RequestNotSendable {
		t.Errorf("reason %s", d.Reason)
	}
}

func TestArgumentsThatChangeMeanwhileBlock(t *testing.T) {
	r := request("t")
	change := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.Arguments["amount"] = 1e6
		(&fakeGate{row: allowRow(t)}).ServeHTTP(w, q)
	})
	server := httptest.NewServer(change)
	defer server.Close()
	if d := New(Options{URL: server.URL}).Review(t.Context(), r); d.Allowed() || d.Reason != ArgumentsChanged {
		t.Errorf("allowed %v, reason %s", d.Allowed(), d.Reason)
	}
}

func TestWhatIsMisconfiguredBlocksAndAsksNobody(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ change func(*Options) }{
		"no URL":                        {func(o *Options) { o.URL = "" }},
		"a URL without a scheme":        {func(o *Options) { o.URL = "gate:8443" }},
		"http to another machine":       {func(o *Options) { o.URL = "http://gate.example" }},
		"http to a name like loopback":  {func(o *Options) { o.URL = "http://127.0.0.1.example" }},
		"a URL that does not parse":     {func(o *Options) { o.URL = "https://[::1" }},
		"a password in the URL":         {func(o *Options) { o.URL = strings.Replace(o.URL, "//", "//u:p@", 1) }},
		"a query in the URL":            {func(o *Options) { o.URL += "?timeout=9s" }},
		"a token file that is missing":  {func(o *Options) { o.TokenFile = empty + "x" }},
		"a token file that is empty":    {func(o *Options) { o.TokenFile = empty }},
		"a token of two lines":          {func(o *Options) { o.Token = "a\r\nX-Evil: b" }},
		"a CA file that is missing":     {func(o *Options) { o.CAFile = empty + "x" }},
		"a CA file without a CA":        {func(o *Options) { o.CAFile = empty }},
		"a time-out below nothing":      {func(o *Options) { o.Timeout = -time.Second }},
		"a time-out longer than a call": {func(o *Options) { o.Timeout = time.Hour }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			gate, server := serve(t, allowRow(t))
			o := Options{URL: server.URL}
			tt.change(&o)
			d := New(o).Review(t.Context(), request("t"))
			if d.Allowed() || d.Reason != ClientMisconfigured || d.Retryable || len(gate.reviews) != 0 {
				t.Errorf("got allowed %v, %s after %d requests", d.Allowed(), d.Reason, len(gate.reviews))
			}
		})
	}
}

func TestTheTokenFileIsReadForEachCall(t *testing.T) {
	gate, server := serve(t, allowRow(t))
	file := filepath.Join(t.TempDir(), "token")
	t.Setenv("GATEWRIGHT_URL", server.URL)
	t.Setenv("GATEWRIGHT_TOKEN_FILE", file)
	client := New(Options{})
	for _, token := range []string{"first", "second\n"} {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		if d := client.Review(t.Context(), request("t")); !d.Allowed() {
			t.Fatal(d.ForModel())
		}
	}
	got := []string{gate.queries[0].Header.Get("Authorization"), gate.queries[1].Header.Get("Authorization")}
	if diff := cmp.Diff([]string{"Bearer first", "Bearer second"}, got); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
}

func TestOnlyTheGivenAuthorityIsTrusted(t *testing.T) {
	server := httptest.NewUnstartedServer(&fakeGate{row: allowRow(t)})
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // a handshake that is refused is meant
	server.StartTLS()
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	if d := New(Options{URL: server.URL, CAFile: file}).Review(t.Context(), request("t")); !d.Allowed() {
		t.Errorf("with the CA: %s", d.ForModel())
	}
	if d := New(Options{URL: server.URL}).Review(t.Context(), request("t")); d.Allowed() || d.Reason != GateUnreachable {
		t.Errorf("without the CA: allowed %v, %s", d.Allowed(), d.Reason)
	}
}

// refusing gives an address that nobody listens at.
func refusing(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestAConnectionThatStaysRefusedBlocksAfterASecondTry(t *testing.T) {
	start := time.Now()
	d := New(Options{URL: "http://" + refusing(t)}).Review(t.Context(), request("t"))
	if d.Allowed() || d.Reason != GateUnreachable || !d.Retryable || time.Since(start) < retryPause {
		t.Errorf("allowed %v, %s after %v; want a pause and a second refusal", d.Allowed(), d.Reason, time.Since(start))
	}
}

func TestAGateThatComesBackIsReachedByTheRetry(t *testing.T) {
	// On a busy machine the gate may come back too late, hence several tries, each at an address of its own: a client
	// that does not retry is refused at all of them.
	for range 10 {
		address, gate := refusing(t), &fakeGate{row: allowRow(t)}
		up := make(chan struct{})
		time.AfterFunc(retryPause/4, func() {
			defer close(up)
			if listener, err := net.Listen("tcp", address); err == nil {
				server := &http.Server{Handler: gate, ReadHeaderTimeout: time.Second}
				t.Cleanup(func() { server.Close() })
				go server.Serve(listener)
			}
		})
		d := New(Options{URL: "http://" + address}).Review(t.Context(), request("t"))
		<-up
		if d.Allowed() {
			if asked := gate.askedTimes(); asked != 1 {
				t.Errorf("gate was asked %d times", asked)
			}
			return
		}
	}
	t.Error("a gate that came back was never reached")
}

func TestACancelledCallBlocks(t *testing.T) {
	r := allowRow(t)
	r.Delay = 3000
	_, server := serve(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if d := New(Options{URL: server.URL}).Review(ctx, request("t")); d.Allowed() || d.Reason != Cancelled {
		t.Errorf("allowed %v, %s", d.Allowed(), d.Reason)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if d := New(Options{URL: server.URL}).Review(ctx, request("t")); d.Allowed() || d.Reason != GateTimeout {
		t.Errorf("allowed %v, %s", d.Allowed(), d.Reason)
	}
}

func TestGuardSaysWhatLedToTheCall(t *testing.T) {
	r := allowRow(t)
	r.Body = json.RawMessage(strings.Replace(string(r.Body), `"outcome"`, `"permit": "a.b.c", "outcome"`, 1))
	gate, server := serve(t, r)
	about := func(context.Context) v1alpha1.Context { return v1alpha1.Context{UserRequest: "Refund it."} }
	tool := v1alpha1.Tool{Name: "orders.refund", Server: "orders"}
	guarded := Guard(New(Options{URL: server.URL}), tool, about, func(ctx context.Context, a map[string]any) (string, error) {
		d, _ := FromContext(ctx)
		return d.Permit + " " + a["order_id"].(string), nil
	})
	got, err := guarded(t.Context(), map[string]any{"order_id": "5521"})
	if err != nil || got != "a.b.c 5521" {
		t.Fatalf("got %q, %v", got, err)
	}
	asked := *gate.reviews[0].Request
	asked.UID = ""
	wanted := v1alpha1.Request{Tool: tool, Arguments: map[string]any{"order_id": "5521"}, Context: about(nil)}
	if diff := cmp.Diff(wanted, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}
