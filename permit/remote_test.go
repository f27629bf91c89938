package permit

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// issuer is a gate's JWKS endpoint that answers as told.
type issuer struct {
	*httptest.Server
	fetches atomic.Int32
	answer  atomic.Pointer[http.HandlerFunc]
}

func newIssuer(t *testing.T, answer http.HandlerFunc) *issuer {
	t.Helper()
	i := &issuer{}
	i.answer.Store(&answer)
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.fetches.Add(1)
		(*i.answer.Load())(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) say(answer http.HandlerFunc) { i.answer.Store(&answer) }

func (i *issuer) wantFetches(t *testing.T, want int32) {
	t.Helper()
	if got := i.fetches.Load(); got != want {
		t.Errorf("%d fetches, want %d", got, want)
	}
}

func fail(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "no", http.StatusInternalServerError)
}

func (w *world) remote(t *testing.T, url string) *RemoteKeys {
	t.Helper()
	return must(NewRemoteKeys(RemoteOptions{URL: url, Clock: w.clock}))(t)
}

func TestRemoteKeysAreFetchedWhenNeeded(t *testing.T) {
	w := newWorld(t)
	gate := newIssuer(t, w.keys.ServeHTTP)
	keys := w.remote(t, gate.URL)
	find := func(kid string, want error) {
		t.Helper()
		k, err := keys.Key(t.Context(), kid)
		if !errors.Is(err, want) || (err == nil) != (want == nil) || err == nil && k.ID != kid {
			t.Errorf("Key = %q, %v; want error %v", k.ID, err, want)
		}
	}
	gate.wantFetches(t, 0)
	for range 3 {
		find(w.kid(), nil)
	}
	gate.wantFetches(t, 1)
	old := w.kid()
	w.keys.rotate(t, w.clock.Now().Add(time.Hour))
	for range 20 { // a flood of unknown ids fetches nothing more
		find("unknown", ErrUnknownKey)
		find(w.kid(), ErrUnknownKey)
	}
	gate.wantFetches(t, 1)
	w.pass(fetchEvery)
	find(w.kid(), nil)
	find(old, nil)
	gate.wantFetches(t, 2)
	w.pass(freshFor)
	find(w.kid(), nil)
	find(w.kid(), nil)
	gate.wantFetches(t, 3)
	gate.say(fail)
	w.pass(freshFor)
	find(w.kid(), nil)
	find(w.kid(), nil)
	gate.wantFetches(t, 4)
	find("unknown", ErrKeysUnavailable)
	w.pass(staleAfter - freshFor)
	find(w.kid(), ErrKeysUnavailable)
	gate.wantFetches(t, 5)
	gate.say(w.keys.ServeHTTP)
	find(w.kid(), ErrKeysUnavailable)
	w.pass(fetchEvery)
	find(w.kid(), nil)
	gate.wantFetches(t, 6)
}

func TestRemoteKeyThatIsTakenBackEndsWithinAMinute(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	gate := newIssuer(t, w.keys.ServeHTTP)
	v := w.verify(t, w.remote(t, gate.URL), w.store)
	if _, err := v.Verify(t.Context(), w.sign(t, claims(t)), call()); err != nil {
		t.Fatal(err)
	}
	gate.say(other.keys.ServeHTTP)
	w.pass(freshFor)
	c := claims(t)
	c.ID = "0123456789abcdef-second"
	_, err := v.Verify(t.Context(), w.sign(t, c), call())
	wantReason(t, err, ReasonUnknownKey)
}

func TestRemoteKeysThatCannotBeFetched(t *testing.T) {
	w := newWorld(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	secret := strings.Replace(string(w.keys.set()), `"kty"`, `"d":"AAAA","kty"`, 1)
	write := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(s)) }
	}
	for name, answer := range map[string]http.HandlerFunc{
		"an error":   fail,
		"a redirect": func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, "/elsewhere", http.StatusFound) },
		"a created": func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(http.StatusCreated)
			_, _ = rw.Write(w.keys.set())
		},
		"HTML":              write("<html>"),
		"nothing":           write(""),
		"a private key":     write(secret),
		"an endless answer": write(string(w.keys.set()) + strings.Repeat(" ", MaxKeySet)),
		"a torn answer": func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Length", "1000")
			_, _ = rw.Write(w.keys.set())
		},
		"a broken connection": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			gate := newIssuer(t, answer)
			_, err := w.verify(t, w.remote(t, gate.URL), w.store).Verify(t.Context(), w.sign(t, claims(t)), call())
			wantReason(t, err, ReasonKeysUnavailable)
			gate.wantFetches(t, 1)
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		_, err := w.verify(t, w.remote(t, gone.URL), w.store).Verify(t.Context(), w.sign(t, claims(t)), call())
		wantReason(t, err, ReasonKeysUnavailable)
	})
}

func TestWhoLeavesDoesNotStopTheFetchOfOthers(t *testing.T) {
	w := newWorld(t)
	asked, release := make(chan struct{}), make(chan struct{})
	gate := newIssuer(t, func(rw http.ResponseWriter, r *http.Request) {
		close(asked)
		<-release
		w.keys.ServeHTTP(rw, r)
	})
	keys := w.remote(t, gate.URL)
	first, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := keys.Key(first, w.kid()); err != nil {
			t.Errorf("who fetches: %v", err)
		}
	})
	<-asked
	leave()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := keys.Key(ended, w.kid()); !errors.Is(err, ErrKeysUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("who leaves while waiting: %v", err)
	}
	for range 5 {
		all.Go(func() {
			if _, err := keys.Key(t.Context(), w.kid()); err != nil {
				t.Errorf("who waits: %v", err)
			}
		})
	}
	close(release)
	all.Wait()
	gate.wantFetches(t, 1)
}

func TestRemoteKeysOverTLS(t *testing.T) {
	w := newWorld(t)
	gate := httptest.NewUnstartedServer(w.keys)
	gate.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that has to fail
	gate.StartTLS()
	defer gate.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(gate.Certificate())
	for name, tc := range map[string]struct {
		tls  *tls.Config
		want error
	}{
		"a gate that we trust":    {&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: trusted}, nil},
		"a gate that nobody does": {nil, ErrKeysUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			keys := must(NewRemoteKeys(RemoteOptions{URL: gate.URL, TLS: tc.tls, Clock: w.clock}))(t)
			if _, err := keys.Key(t.Context(), w.kid()); !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
				t.Errorf("Key: %v, want %v", err, tc.want)
			}
		})
	}
}

func TestPlainHTTPNeverLeavesLoopback(t *testing.T) {
	client := newClient(nil, true)
	req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://192.0.2.1/", http.NoBody))(t)
	resp, err := client.Do(req)
	if err == nil {
		resp.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "loopback only") {
		t.Errorf("Do: %v, want a refusal before the connection", err)
	}
}

func TestNewRemoteKeys(t *testing.T) {
	w := newWorld(t)
	for url, wantErr := range map[string]bool{
		"https://gate.example/.well-known/jwks.json":  false,
		"http://127.0.0.1:8080/.well-known/jwks.json": false,
		"http://[::1]:8080/":                          false,
		"http://localhost:8080/":                      false,
		"http://gate.example/":                        true,
		"http://127.0.0.1.example/":                   true,
		"http://localhost.example/":                   true,
		"file:///etc/jwks.json":                       true,
		"https://user:secret@gate.example/":           true,
		"https:///jwks.json":                          true,
		"":                                            true,
		"%":                                           true,
	} {
		if _, err := NewRemoteKeys(RemoteOptions{URL: url, Clock: w.clock}); (err != nil) != wantErr {
			t.Errorf("%q: %v, want an error: %t", url, err, wantErr)
		}
	}
}
