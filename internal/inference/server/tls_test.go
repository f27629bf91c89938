package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatewright.dev/gatewright/internal/testkit"
)

// authority signs certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.key = newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = block("CERTIFICATE", der)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// sign returns a certificate and its key in PEM, good for both ends.
func (a *authority) sign(t *testing.T, serial int64, change ...func(*x509.Certificate)) (cert, key string) {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "someone"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	for _, f := range change {
		f(template)
	}
	private := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", text)
}

// startTLS starts a server over TLS on files in a folder.
func startTLS(t *testing.T, f TLSFiles) (r *running, log *testkit.Log) {
	t.Helper()
	log = &testkit.Log{}
	secure, err := f.Config(slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	r = &running{engine: newScripted(), registry: prometheus.NewRegistry(), result: make(chan error, 1)}
	r.Server, err = New(Options{Engine: r.engine, Registry: r.registry, Logger: slog.New(slog.DiscardHandler), RequireCertificate: f.ClientCA != ""})
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.url = "https://" + l.Addr().String()
	ctx, cancel := context.WithCancelCause(context.Background()) //nolint:usetesting // it ends after the test's own context, by Cleanup
	go func() { r.result <- r.Serve(ctx, l, r.Handler(r.registry), secure) }()
	t.Cleanup(func() {
		cancel(ErrLeaveNow)
		<-r.result
	})
	eventually(t, "the server is ready", r.Ready)
	return r, log
}

// dial asks over a connection of its own and returns the status and the serial number of the server's certificate.
func dial(t *testing.T, r *running, roots string, cert, key string, path string) (status int, serial int64, protocol string, err error) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(roots))
	c := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if cert != "" {
		pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	method, body := http.MethodPost, asks(`"s"`)
	if path != PathSystemOne {
		method, body = http.MethodGet, ""
	}
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, 0, "", err
	}
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	return resp.StatusCode, resp.TLS.PeerCertificates[0].SerialNumber.Int64(), resp.Proto, err
}

func TestTLSFilesAreReadAnew(t *testing.T) {
	dir := t.TempDir()
	a := newAuthority(t)
	f := TLSFiles{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	put := func(serial int64) {
		cert, key := a.sign(t, serial)
		write(t, f.Cert, cert)
		write(t, f.Key, key)
	}
	put(100)
	r, log := startTLS(t, f)
	serves := func(want int64) {
		t.Helper()
		status, serial, protocol, err := dial(t, r, a.pem, "", "", PathSystemOne)
		if err != nil || status != 200 || serial != want || protocol != "HTTP/2.0" {
			t.Errorf("status %d, certificate %d by %s, error %v; want certificate %d", status, serial, protocol, err, want)
		}
	}
	serves(100)
	put(101)
	serves(101)
	write(t, f.Key, "no key")
	serves(101)
	if !strings.Contains(log.String(), "the earlier ones stay in use") {
		t.Errorf("log: %s", log)
	}
	put(102)
	serves(102)
}

func TestClientCertificates(t *testing.T) {
	dir := t.TempDir()
	a, clients, others := newAuthority(t), newAuthority(t), newAuthority(t)
	f := TLSFiles{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ClientCA: filepath.Join(dir, "ca.crt")}
	cert, key := a.sign(t, 100)
	write(t, f.Cert, cert)
	write(t, f.Key, key)
	write(t, f.ClientCA, clients.pem)
	r, _ := startTLS(t, f)
	known, knownKey := clients.sign(t, 1)
	old, oldKey := clients.sign(t, 2, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	server, serverKey := clients.sign(t, 3, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })
	foreign, foreignKey := others.sign(t, 1)
	tests := map[string]struct {
		cert, key, path string
		status          int // 0: the connection fails
	}{
		"a certificate of the authority":    {known, knownKey, PathSystemOne, 200},
		"none":                              {"", "", PathSystemOne, 401},
		"none, for the list":                {"", "", PathModels, 401},
		"none, for a probe":                 {"", "", "/readyz", 200},
		"none, for metrics":                 {"", "", "/metrics", 200},
		"one of another authority":          {foreign, foreignKey, PathSystemOne, 0},
		"one that has run out":              {old, oldKey, PathSystemOne, 0},
		"one that is not made for a client": {server, serverKey, PathSystemOne, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			status, _, _, err := dial(t, r, a.pem, tt.cert, tt.key, tt.path)
			// A client that the server does not take may offer no certificate at all, and is then refused by status.
			if tt.status == 0 && (err != nil || status == 401) {
				return
			}
			if err != nil || status != tt.status {
				t.Errorf("status %d, error %v, want %d", status, err, tt.status)
			}
		})
	}
	write(t, f.ClientCA, others.pem) // another authority from now on
	if status, _, _, err := dial(t, r, a.pem, known, knownKey, PathSystemOne); err == nil && status == 200 {
		t.Error("a certificate of the earlier authority is still good")
	}
	if status, _, _, err := dial(t, r, a.pem, foreign, foreignKey, PathSystemOne); err != nil || status != 200 {
		t.Errorf("a certificate of the new authority: status %d, error %v", status, err)
	}
}

func TestNamesInCertificates(t *testing.T) {
	a := newAuthority(t)
	spiffe, err := url.Parse("spiffe://cluster/ns/gatewright/sa/gate")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		change func(*x509.Certificate)
		want   string
	}{
		"an address": {func(c *x509.Certificate) { c.URIs, c.DNSNames = []*url.URL{spiffe}, []string{"gate"} }, spiffe.String()},
		"a name":     {func(c *x509.Certificate) { c.DNSNames = []string{"gate"} }, "gate"},
		"a subject":  {func(*x509.Certificate) {}, "CN=someone"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text, _ := a.sign(t, 5, tt.change)
			der, _ := pem.Decode([]byte(text))
			leaf, err := x509.ParseCertificate(der.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := certified(&tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf, a.cert}}})
			if !ok || got != tt.want {
				t.Errorf("got %q, %v", got, ok)
			}
			if got, ok := certified(&tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}); ok {
				t.Errorf("an unverified certificate has the name %q", got)
			}
		})
	}
	if _, ok := certified(nil); ok {
		t.Error("a connection without TLS has a name")
	}
}

func TestTLSFilesThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	a := newAuthority(t)
	cert, key := a.sign(t, 1)
	_, another := a.sign(t, 2)
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		write(t, path, text)
		return path
	}
	good := TLSFiles{Cert: file("crt", cert), Key: file("key", key)}
	for name, f := range map[string]TLSFiles{
		"no files":                  {Cert: filepath.Join(dir, "none"), Key: filepath.Join(dir, "none")},
		"another certificate's key": {Cert: good.Cert, Key: file("another", another)},
		"an authority without file": {Cert: good.Cert, Key: good.Key, ClientCA: filepath.Join(dir, "none")},
		"an authority of prose":     {Cert: good.Cert, Key: good.Key, ClientCA: file("prose", "trust me")},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := f.Config(slog.New(slog.DiscardHandler)); err == nil {
				t.Error("no error")
			}
		})
	}
}
