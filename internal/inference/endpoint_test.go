package inference

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gatewright.dev/gatewright/internal/questions"
)

func TestTransportFailures(t *testing.T) {
	hijack := func(write string) func(http.ResponseWriter, string, []byte) {
		return func(w http.ResponseWriter, _ string, _ []byte) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, write)
				_ = conn.Close()
			}
		}
	}
	tests := map[string]struct {
		handle func(http.ResponseWriter, string, []byte)
		want   Reason
	}{
		"hung up before a byte":      {hijack(""), Unreachable},
		"hung up in the headers":     {hijack("HTTP/1.1 200 OK\r\nConte"), Unreachable},
		"hung up in the body":        {hijack("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + goodNoul), Unreachable},
		"hung up between two chunks": {hijack("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strconv.FormatInt(int64(len(goodNoul)), 16) + "\r\n" + goodNoul + "\r\n"), Unreachable},
		"not HTTP":                   {hijack("hello\r\n\r\n"), Unreachable},
		"a reply beyond the limit":   {replies(200, goodNoul+strings.Repeat(" ", maxReply)), BadReply},
		"an endless error":           {replies(500, strings.Repeat("x", maxReply+10)), Unreachable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, tt.handle)
			got, err := systemOne(t, s).Decide(t.Context(), request(t, "asked"))
			if ReasonOf(err) != tt.want || got.Answers != nil {
				t.Errorf("Decide() = %+v, %v; want %s", got, err, tt.want)
			}
			var e *Error
			if errors.As(err, &e) && e.unsent {
				t.Error("the request was sent, so it must not be tried again")
			}
		})
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	elsewhere := newServer(t, replies(200, goodNoul))
	s := newServer(t, func(w http.ResponseWriter, _ string, _ []byte) {
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	if _, err := systemOne(t, s).Decide(t.Context(), request(t, "asked")); ReasonOf(err) != BadReply || len(elsewhere.recorded()) != 0 {
		t.Errorf("error = %v, %d requests elsewhere", err, len(elsewhere.recorded()))
	}
}

func TestNobodyListens(t *testing.T) {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	url := "http://" + l.Addr().String()
	_ = l.Close()
	d := must(NewSystemOne(SystemOneOptions{ServerOptions: ServerOptions{BaseURL: url, Model: "m", Transport: transport(t)}}))
	_, err := d.Decide(t.Context(), request(t, "asked"))
	var e *Error
	if !errors.As(err, &e) || e.Reason != Unreachable || !e.unsent {
		t.Errorf("error = %+v", err)
	}
}

func TestAnUntrustedCertificate(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the call was sent") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	d := must(NewSystemOne(SystemOneOptions{ServerOptions: ServerOptions{BaseURL: s.URL, Model: "m", Transport: transport(t)}}))
	if _, err := d.Decide(t.Context(), request(t, "asked")); ReasonOf(err) != Unreachable || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("error = %v", err)
	}
}

// roundTripper is a server without a network, so that time can be made up.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestASlowServer(t *testing.T) {
	for name, want := range map[string]Reason{"the deadline passes": Timeout, "the caller leaves": Canceled} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := roundTripper(func(r *http.Request) (*http.Response, error) {
					<-r.Context().Done()
					return nil, r.Context().Err()
				})
				d := must(NewSystemOne(SystemOneOptions{ServerOptions: ServerOptions{BaseURL: "http://localhost", Model: "m", Transport: slow}}))
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				if want == Canceled {
					time.AfterFunc(time.Second, cancel)
				}
				start := time.Now()
				_, err := d.Decide(ctx, request(t, "asked"))
				if ReasonOf(err) != want || time.Since(start) > 2*time.Second {
					t.Errorf("error = %v after %v", err, time.Since(start))
				}
				if errors.Is(err, context.DeadlineExceeded) != (want == Timeout) || errors.Is(err, context.Canceled) != (want == Canceled) {
					t.Errorf("%v does not unwrap to its context's error", err)
				}
			})
		})
	}
}

func TestASlowBody(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ string, _ []byte) {
		_, _ = io.WriteString(w, goodNoul[:30])
		w.(http.Flusher).Flush()
		time.Sleep(100 * time.Millisecond)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := systemOne(t, s).Decide(ctx, request(t, "asked")); ReasonOf(err) != Timeout {
		t.Errorf("error = %v", err)
	}
}

// TestErrorsKeepSecrets makes a server that quotes everything it was sent, in every place where it can.
func TestErrorsKeepSecrets(t *testing.T) {
	for _, status := range []int{200, 400, 401, 413, 422, 429, 500, 503} {
		s := newServer(t, func(w http.ResponseWriter, path string, body []byte) {
			quoted, _ := encode(map[string]any{
				"error": map[string]string{"type": string(body), "message": string(body)}, "detail": string(body) + "secret-token",
				"model": string(body), "answers": map[string]any{"do-not-leak": string(body)},
			})
			replies(status, string(quoted))(w, path, body)
		})
		d := systemOne(t, s, func(o *SystemOneOptions) { o.Token = func() string { return "secret-token" } })
		_, err := d.Decide(t.Context(), request(t, "asked"))
		if err == nil {
			t.Fatal("no error")
		}
		for _, secret := range []string{"do-not-leak", "secret-token", s.URL, "refund order"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("status %d: %q is in %v", status, secret, err)
			}
		}
	}
	// A token that cannot be a header makes the transport fail with an error that quotes it.
	s := newServer(t, replies(200, goodNoul))
	d := systemOne(t, s, func(o *SystemOneOptions) { o.Token = func() string { return "secret\ntoken" } })
	if _, err := d.Decide(t.Context(), request(t, "asked")); ReasonOf(err) != Unreachable || strings.Contains(err.Error(), "secret") {
		t.Errorf("error = %v", err)
	}
}

func TestErrorsAreTellableApart(t *testing.T) {
	for _, reason := range Reasons() {
		err := error(&Error{Reason: reason, Detail: "x"})
		if ReasonOf(err) != reason || !errors.Is(err, &Error{Reason: reason}) {
			t.Errorf("%v is not a %s", err, reason)
		}
		if errors.Is(err, ErrTooLong) != (reason == TooLong) {
			t.Errorf("errors.Is(%v, ErrTooLong) = %v", err, reason != TooLong)
		}
	}
	if got := ReasonOf(errors.New("other")); got != BadReply {
		t.Errorf("an error of others is %s", got)
	}
	if got := ReasonOf(nil); got != "" {
		t.Errorf("no error is %s", got)
	}
}

func TestDecideChecksEveryDecider(t *testing.T) {
	r := request(t, "asked")
	_, err := decide(t.Context(), r, nil, func(context.Context, []byte, []questions.Question) (Result, error) {
		return Result{Answers: questions.Answers{}}, nil
	})
	if ReasonOf(err) != BadReply {
		t.Errorf("error = %v", err)
	}
	_, err = decide(t.Context(), r, nil, func(context.Context, []byte, []questions.Question) (Result, error) {
		return Result{}, errors.New("private text")
	})
	if ReasonOf(err) != BadReply || strings.Contains(err.Error(), "private") {
		t.Errorf("error = %v", err)
	}
}

func TestALaterStepIsNeverUnsent(t *testing.T) {
	r := request(t, "asked", "instructed_by_content")
	calls := 0
	_, err := decide(t.Context(), r, nil, func(context.Context, []byte, []questions.Question) (Result, error) {
		if calls++; calls == 2 {
			return Result{}, &Error{Reason: Unreachable, unsent: true}
		}
		return Result{Answers: questions.Answers{"asked": {Type: questions.YesNo, Coverage: 1}}}, nil
	})
	var e *Error
	if !errors.As(err, &e) || e.Reason != Unreachable || e.unsent {
		t.Errorf("error = %+v", err)
	}
}
