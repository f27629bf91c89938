package permit

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

const transferBody = `{"tool": "transfer", "arguments": {"to": "ACME", "amount": 1.0}}`

// tool is a handler that notes what reached it.
type tool struct {
	body   string
	length int64
	permit []string
	claims *Claims
	runs   int
}

func (h *tool) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.runs++
	h.body, h.length, h.permit = string(data), r.ContentLength, r.Header.Values(Header)
	h.claims, _ = FromContext(r.Context())
	w.WriteHeader(http.StatusNoContent)
}

func TestMiddlewareLetsThePermittedCallThroughOnce(t *testing.T) {
	w := newWorld(t)
	h := &tool{}
	server := Verify(w.verifier, "payments", ReadJSON("bank"))(h)
	token := w.sign(t, claims(t))
	send := func() *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/call", iotest.OneByteReader(strings.NewReader(transferBody)))
		r.Header.Set(Header, token)
		got := httptest.NewRecorder()
		server.ServeHTTP(got, r)
		return got
	}
	if got := send(); got.Code != http.StatusNoContent {
		t.Fatalf("HTTP %d %s", got.Code, got.Body)
	}
	if h.body != transferBody || h.length != int64(len(transferBody)) {
		t.Errorf("the tool got %d bytes %q, want the body as it was sent", h.length, h.body)
	}
	if h.permit != nil {
		t.Error("the permit reached the tool")
	}
	if h.claims == nil || h.claims.OnBehalfOf != "ann" {
		t.Errorf("claims = %+v", h.claims)
	}
	if got := send(); got.Code != http.StatusForbidden || !strings.Contains(got.Body.String(), "PermitUsed") || h.runs != 1 {
		t.Errorf("the second time: HTTP %d %s, %d runs", got.Code, got.Body, h.runs)
	}
}

func TestMiddlewareRefuses(t *testing.T) {
	w := newWorld(t)
	token := w.sign(t, claims(t))
	for name, tc := range map[string]struct {
		permits    []string
		body       io.Reader
		wantStatus int
		wantCode   string
	}{
		"no permit":                   {nil, strings.NewReader(transferBody), 403, "PermitMissing"},
		"an empty permit":             {[]string{""}, strings.NewReader(transferBody), 403, "PermitMissing"},
		"two permits":                 {[]string{token, token}, strings.NewReader(transferBody), 403, "PermitMalformed"},
		"no permit and no good body":  {nil, iotest.ErrReader(errors.New("must not be read")), 403, "PermitMissing"},
		"another tool":                {[]string{token}, strings.NewReader(`{"tool":"refund","arguments":{"to":"ACME","amount":1}}`), 403, "PermitWrongTool"},
		"another amount":              {[]string{token}, strings.NewReader(`{"tool":"transfer","arguments":{"to":"ACME","amount":2}}`), 403, "PermitWrongArguments"},
		"no body":                     {[]string{token}, http.NoBody, 400, CodeBadCall},
		"one argument twice":          {[]string{token}, strings.NewReader(`{"tool":"transfer","arguments":{"to":"ACME","amount":1,"amount":2}}`), 400, CodeBadCall},
		"a field beside":              {[]string{token}, strings.NewReader(`{"tool":"transfer","arguments":{"to":"ACME","amount":1},"force":true}`), 400, CodeBadCall},
		"no arguments":                {[]string{token}, strings.NewReader(`{"tool":"transfer"}`), 400, CodeBadCall},
		"arguments that are null":     {[]string{token}, strings.NewReader(`{"tool":"transfer","arguments":null}`), 400, CodeBadCall},
		"no tool":                     {[]string{token}, strings.NewReader(`{"arguments":{}}`), 400, CodeBadCall},
		"a body that breaks off":      {[]string{token}, iotest.ErrReader(io.ErrUnexpectedEOF), 400, CodeBadCall},
		"a body that is too long":     {[]string{token}, strings.NewReader(strings.Repeat(" ", MaxBody) + transferBody), 413, CodeTooLarge},
		"a number that is not a call": {[]string{token}, strings.NewReader(`1`), 400, CodeBadCall},
	} {
		t.Run(name, func(t *testing.T) {
			h := &tool{}
			r := httptest.NewRequest(http.MethodPost, "/call", tc.body)
			for _, p := range tc.permits {
				r.Header.Add(Header, p)
			}
			got := httptest.NewRecorder()
			Verify(w.verifier, "payments", ReadJSON("bank"))(h).ServeHTTP(got, r)
			var e review.Error
			if err := json.Unmarshal(got.Body.Bytes(), &e); err != nil {
				t.Fatalf("%v in %q", err, got.Body)
			}
			if got.Code != tc.wantStatus || e.Code != tc.wantCode || e.Message == "" {
				t.Errorf("HTTP %d %+v, want %d %s", got.Code, e, tc.wantStatus, tc.wantCode)
			}
			if strings.Contains(e.Message, "ACME") || strings.Contains(e.Message, token) {
				t.Errorf("the answer repeats the call: %s", e.Message)
			}
			if h.runs != 0 {
				t.Error("the tool ran")
			}
		})
	}
}

func TestMiddlewareIsForOneAudience(t *testing.T) {
	w := newWorld(t)
	h := &tool{}
	read := func(*http.Request) (Call, error) { return call(), nil } // says payments
	r := httptest.NewRequest(http.MethodPost, "/call", http.NoBody)
	r.Header.Set(Header, w.sign(t, claims(t)))
	got := httptest.NewRecorder()
	Verify(w.verifier, "mail", read)(h).ServeHTTP(got, r)
	if got.Code != http.StatusForbidden || !strings.Contains(got.Body.String(), "PermitWrongAudience") || h.runs != 0 {
		t.Errorf("HTTP %d %s, %d runs", got.Code, got.Body, h.runs)
	}
}

func TestMiddlewareHidesWhyAReaderFailed(t *testing.T) {
	w := newWorld(t)
	r := httptest.NewRequest(http.MethodPost, "/call", http.NoBody)
	r.Header.Set(Header, w.sign(t, claims(t)))
	got := httptest.NewRecorder()
	read := func(*http.Request) (Call, error) { return call(), errors.New("secret") }
	Verify(w.verifier, "payments", read)(&tool{}).ServeHTTP(got, r)
	want := `{"code":"BadCall","message":"body cannot be read"}`
	if diff := cmp.Diff(want, got.Body.String()); diff != "" || got.Code != http.StatusBadRequest {
		t.Errorf("HTTP %d (-want +got):\n%s", got.Code, diff)
	}
}

func TestMiddlewareNeedsItsParts(t *testing.T) {
	w := newWorld(t)
	for name, make := range map[string]func(){
		"no verifier": func() { Verify(nil, "payments", ReadJSON("")) },
		"no audience": func() { Verify(w.verifier, "", ReadJSON("")) },
		"no reader":   func() { Verify(w.verifier, "payments", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			make()
		})
	}
}
