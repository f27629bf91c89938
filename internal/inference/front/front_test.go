package front

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// certificates are one that signs itself, for server and clients, and a pool that trusts it.
func certificates(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"decider"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// start starts a front before a decider, and returns its address and clients with a certificate and without.
func start(t *testing.T, inFlight int, decider http.HandlerFunc) (address string, known, unknown *http.Client) {
	t.Helper()
	upstream := httptest.NewServer(decider)
	t.Cleanup(upstream.Close)
	at, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	pair, pool := certificates(t)
	f, err := New(Options{
		Upstream: at, MaxInFlight: inFlight, Log: slog.New(slog.DiscardHandler),
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Serve(ctx, l) }()
	client := func(certificates ...tls.Certificate) *http.Client {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "decider", Certificates: certificates}}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		f.proxy.Transport.(*http.Transport).CloseIdleConnections()
	})
	return "https://" + l.Addr().String(), client(pair), client()
}

func do(t *testing.T, c *http.Client, method, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer secret")
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	answer, err := c.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

func TestOnlyTheWireAndOnlyForKnownCallers(t *testing.T) {
	var headers http.Header
	address, known, unknown := start(t, 1, func(w http.ResponseWriter, r *http.Request) {
		headers = r.Header.Clone()
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %d", r.Method, r.URL.Path, len(body))
	})
	tests := map[string]struct {
		client       *http.Client
		method, path string
		body         string
		status       int
		want         string
	}{
		"a question":                       {known, "POST", "/v1/systemone", "12345", 200, "POST /v1/systemone 5"},
		"the list of models":               {known, "GET", "/v1/models", "", 200, "GET /v1/models 0"},
		"a question of somebody unknown":   {unknown, "POST", "/v1/systemone", "12345", 401, "client certificate"},
		"the list for somebody unknown":    {unknown, "GET", "/v1/models", "", 401, "client certificate"},
		"the life sign for the kubelet":    {unknown, "GET", "/healthz", "", 200, "ok"},
		"the ready sign for the kubelet":   {unknown, "GET", "/readyz", "", 200, "ok"},
		"a path that is not of the wire":   {known, "POST", "/admin", "", 404, "not_found"},
		"a method that is not of the wire": {known, "DELETE", "/v1/models", "", 404, "not_found"},
		"a path that climbs":               {known, "POST", "/v1/systemone/%2e%2e/%2e%2e/admin", "", 404, "not_found"},
		"a body that is too long":          {known, "POST", "/v1/systemone", strings.Repeat("x", maxBody+1), 502, "engine_failed"},
		"a body that is as long as can be": {known, "POST", "/v1/systemone", strings.Repeat("x", maxBody), 200, fmt.Sprint(maxBody)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			status, text := do(t, test.client, test.method, address+test.path, test.body)
			if status != test.status || !strings.Contains(text, test.want) {
				t.Errorf("%d %s, want %d %s", status, text, test.status, test.want)
			}
		})
	}
	do(t, known, "POST", address+"/v1/systemone", "{}")
	headers.Del("Content-Length")
	want := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"gatewright"}, "Accept-Encoding": nil}
	delete(want, "Accept-Encoding")
	if diff := cmp.Diff(want, headers); diff != "" {
		t.Errorf("the decider is told more than it needs: %s", diff)
	}
}

func TestADeciderGetsNoMoreAtOnceThanItCanKeepApart(t *testing.T) {
	var now, most atomic.Int64
	address, known, _ := start(t, 2, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		for {
			seen := most.Load()
			if n <= seen || most.CompareAndSwap(seen, n) {
				break
			}
		}
		body, _ := io.ReadAll(r.Body)
		time.Sleep(time.Millisecond)
		now.Add(-1)
		_, _ = w.Write(body)
	})
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			if status, text := do(t, known, "POST", address+"/v1/systemone", fmt.Sprint(i)); status != 200 || text != fmt.Sprint(i) {
				t.Errorf("%d: %d %s", i, status, text)
			}
		})
	}
	all.Wait()
	if most.Load() > 2 {
		t.Errorf("%d at once", most.Load())
	}
}

func TestWhoWouldWaitTooLongIsToldAtOnce(t *testing.T) {
	released := make(chan struct{})
	arrived := make(chan struct{}, 1)
	address, known, _ := start(t, 1, func(http.ResponseWriter, *http.Request) {
		select {
		case arrived <- struct{}{}:
		default:
		}
		<-released
	})
	var all sync.WaitGroup
	var refused atomic.Int64
	for range waiting + 20 {
		all.Go(func() {
			if status, text := do(t, known, "POST", address+"/v1/systemone", "{}"); status == http.StatusTooManyRequests && strings.Contains(text, "queue_full") {
				if refused.Add(1) == 19 {
					close(released)
				}
			}
		})
	}
	<-arrived
	all.Wait()
	if refused.Load() != 19 {
		t.Errorf("%d were refused, want what is beyond one at work and %d that wait", refused.Load(), waiting)
	}
}

func TestADeciderThatIsNotThereIsNotReady(t *testing.T) {
	address, known, unknown := start(t, 1, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if status, text := do(t, known, "POST", address+"/v1/systemone", "{}"); status != 502 || !strings.Contains(text, "engine_failed") {
		t.Error(status, text)
	}
	pair, pool := certificates(t)
	f, err := New(Options{
		Upstream: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}, MaxInFlight: 1, Log: slog.New(slog.DiscardHandler),
		TLS: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	f.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", http.NoBody))
	if w.Code != http.StatusServiceUnavailable {
		t.Error(w.Code)
	}
	if status, _ := do(t, unknown, "GET", address+"/readyz", ""); status != 200 {
		t.Error(status)
	}
}

func TestAFrontOnlyLeadsToItsOwnPod(t *testing.T) {
	for _, address := range []string{"http://10.0.0.1:80", "https://127.0.0.1:80", "http://localhost:80", "http://127.0.0.1", "127.0.0.1:80"} {
		at, _ := url.Parse(address)
		if _, err := New(Options{Upstream: at, MaxInFlight: 1, TLS: &tls.Config{MinVersion: tls.VersionTLS12}, Log: slog.New(slog.DiscardHandler)}); err == nil {
			t.Errorf("%s was taken", address)
		}
	}
}
