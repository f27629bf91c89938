package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/pki"
)

// company has a root and an authority below it, which issues certificates with RSA keys, as many companies do.
type company struct {
	root, below *x509.Certificate
	key         *ecdsa.PrivateKey
}

func sign(t *testing.T, c, by *x509.Certificate, public crypto.PublicKey, key crypto.Signer) *x509.Certificate {
	t.Helper()
	c.SerialNumber, c.NotBefore, c.NotAfter, c.BasicConstraintsValid = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour), true
	der, err := x509.CreateCertificate(rand.Reader, c, by, public, key)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func newCompany(t *testing.T) *company {
	t.Helper()
	var keys [2]*ecdsa.PrivateKey
	for i := range keys {
		var err error
		if keys[i], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	root := &x509.Certificate{Subject: pkix.Name{CommonName: "root"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign}
	root = sign(t, root, root, keys[0].Public(), keys[0])
	below := sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "below"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign}, root, keys[1].Public(), keys[0])
	return &company{root, below, keys[1]}
}

// mount writes a certificate with its chain into a folder, key and certificate apart, and no authority.
func (c *company) mount(t *testing.T, dir string, names ...string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	leaf := sign(t, &x509.Certificate{DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, c.below, key.Public(), c.key)
	var chain []byte
	for _, one := range []*x509.Certificate{leaf, c.below} {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.Raw})...)
	}
	put(t, filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600)
	put(t, filepath.Join(dir, "tls.crt"), chain, 0o600)
	if err := os.Remove(filepath.Join(dir, "ca.crt")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
}

// testForeignCertificate replaces the certificate of a running gate by one of another authority, and by the former again.
func testForeignCertificate(t *testing.T, w *world, g *running, token string) {
	of := newCompany(t)
	pool := x509.NewCertPool()
	pool.AddCert(of.root)
	ours := g.agent
	theirs := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "gate.company.test", MinVersion: tls.VersionTLS12},
	}}
	// answers says what a client that trusts somebody gets by a connection of its own.
	answers := func(agent *http.Client, wantTrusted bool) error {
		agent.CloseIdleConnections()
		reply, err := agent.Get(g.url + "/.well-known/jwks.json")
		if err == nil {
			_ = reply.Body.Close()
		}
		if (err == nil) != wantTrusted {
			return fmt.Errorf("trusted %v: %w", err == nil, err)
		}
		return nil
	}
	of.mount(t, g.config.tlsDir, "gate.company.test")
	eventually(t, "the gate shows the certificate of somebody else", func() error { return answers(theirs, true) })
	if err := answers(ours, false); err != nil {
		t.Errorf("the former is still shown: %v", err)
	}
	g.agent = theirs
	g.is(t, token, call{tool: "orders.read"}, review.Allow, "RulesPassed")
	g.agent = ours

	put(t, filepath.Join(g.config.tlsDir, "tls.key"), []byte("damaged"), 0o600)
	eventually(t, "a damaged one is counted", func() error {
		if got := g.metric(t, `gatewright_key_reload_failures_total{key="tls-dir"}`); got == "0" || got == "" {
			return fmt.Errorf("%q failures", got)
		}
		return nil
	})
	if err := answers(theirs, true); err != nil {
		t.Errorf("a damaged one is shown: %v", err)
	}
	w.issue(t, g.config.tlsDir, pki.Request{Name: "gate", DNSNames: []string{"gate.test"}, Usage: x509.ExtKeyUsageServerAuth})
	eventually(t, "the gate shows one of its own authority again", func() error { return answers(ours, true) })
}
