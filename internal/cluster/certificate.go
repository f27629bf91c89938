package cluster

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/keywatch"
)

// authorityKey is the file of a mounted Secret that holds the certificates to trust, beside tls.crt and tls.key.
const authorityKey = "ca.crt"

// handshakeTimeout bounds connecting to a decider.
const handshakeTimeout = 5 * time.Second

// Certificate is a certificate with its key in a folder, as a Secret of type kubernetes.io/tls is mounted, that is read
// again when it is renewed. Its methods are safe for concurrent use.
type Certificate struct {
	dir  string
	held atomic.Pointer[heldCertificate]
}

type heldCertificate struct {
	pair tls.Certificate
	pool *x509.CertPool // nil without an authority
}

// OpenCertificate reads a folder. One that holds no authority is trusted by nobody here, but can be presented.
func OpenCertificate(dir string) (*Certificate, error) {
	c := &Certificate{dir: dir}
	if err := c.Reload(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Certificate) path(name string) string { return filepath.Join(c.dir, name) }

// Reload reads the folder again. After an error what was read before stays in force.
func (c *Certificate) Reload() error {
	pair, err := tls.LoadX509KeyPair(c.path(corev1.TLSCertKey), c.path(corev1.TLSPrivateKeyKey))
	if err != nil {
		return fmt.Errorf("reading the certificate in %s: %w", c.dir, err)
	}
	next := &heldCertificate{pair: pair}
	authority, err := os.ReadFile(c.path(authorityKey))
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("reading the authority in %s: %w", c.dir, err)
	default:
		next.pool = x509.NewCertPool()
		if !next.pool.AppendCertsFromPEM(authority) {
			return fmt.Errorf("reading the authority in %s: it holds no certificate in PEM", c.dir)
		}
	}
	c.held.Store(next)
	return nil
}

// File is what to watch, named by a flag.
func (c *Certificate) File(name string) *keywatch.File {
	return &keywatch.File{
		Name: name, Paths: []string{c.path(corev1.TLSCertKey), c.path(corev1.TLSPrivateKeyKey), c.path(authorityKey)},
		Reload: c.Reload, IDs: c.ids,
	}
}

// ids name the certificate by the first bytes of its digest.
func (c *Certificate) ids() []string {
	sum := sha256.Sum256(c.held.Load().pair.Certificate[0])
	return []string{hex.EncodeToString(sum[:8])}
}

// ServerConfig presents the certificate to callers. Only HTTP/1.1 is spoken: a Service spreads connections and not
// requests, and one connection with many streams would keep a caller at one replica.
func (c *Certificate) ServerConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &c.held.Load().pair, nil },
	}
}

// Transport presents the certificate to servers of one name, and trusts those that the authority beside it has signed.
// Dial makes connections; nil is the transport's own.
func (c *Certificate) Transport(serverName string, dial func(ctx context.Context, network, address string) (net.Conn, error)) http.RoundTripper {
	t := inference.NewTransport()
	if dial == nil {
		dial = t.DialContext
	}
	t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		held := c.held.Load()
		if held.pool == nil {
			return nil, errors.New("there is no authority to know deciders by")
		}
		ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
		defer cancel()
		raw, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(raw, &tls.Config{MinVersion: tls.VersionTLS13, ServerName: serverName, RootCAs: held.pool, Certificates: []tls.Certificate{held.pair}})
		if err := conn.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, raw.Close())
		}
		return conn, nil
	}
	return t
}
