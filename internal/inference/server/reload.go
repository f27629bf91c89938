package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// reloaded is something made of files, made anew when one of them is another than before.
type reloaded[T any] struct {
	files []string
	load  func() (T, error)

	mu     sync.Mutex
	stamps []stamp
	value  T
	err    error
}

// stamp tells one state of a file from another. Replacing a file, or the link that leads to it, gives it another stamp.
type stamp struct {
	info os.FileInfo
	at   time.Time
	size int64
}

func (a stamp) same(b stamp) bool {
	if a.info == nil || b.info == nil {
		return a.info == nil && b.info == nil
	}
	return os.SameFile(a.info, b.info) && a.at.Equal(b.at) && a.size == b.size
}

func newReloaded[T any](load func() (T, error), files ...string) *reloaded[T] {
	return &reloaded[T]{files: files, load: load}
}

// get looks at the files and returns what they say now: the value, and the error of the last attempt to read them. After
// an error the value is the last good one, and whether to use it is for the caller to say.
func (r *reloaded[T]) get() (value T, changed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stamps := make([]stamp, len(r.files))
	for i, path := range r.files {
		if info, err := os.Stat(path); err == nil {
			stamps[i] = stamp{info, info.ModTime(), info.Size()}
		}
	}
	if r.stamps != nil && slices.EqualFunc(r.stamps, stamps, stamp.same) {
		return r.value, false, r.err
	}
	r.stamps = stamps
	fresh, err := r.load()
	if r.err = err; err == nil {
		r.value = fresh
	}
	return r.value, true, r.err
}

// TLSFiles names the files of a server's TLS. ClientCA is optional, and asks callers for certificates.
type TLSFiles struct{ Cert, Key, ClientCA string }

// Config returns a configuration that follows the files: a connection gets what they hold when it begins. While they
// cannot be read, the last good ones hold, and the log says so. Probes need no certificate; /v1 does, see Options.
func (f TLSFiles) Config(log *slog.Logger) (*tls.Config, error) {
	files := []string{f.Cert, f.Key}
	if f.ClientCA != "" {
		files = append(files, f.ClientCA)
	}
	r := newReloaded(f.read, files...)
	if _, _, err := r.get(); err != nil {
		return nil, err
	}
	base := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current, changed, err := r.get()
		if changed && err != nil {
			log.Error("TLS files changed and cannot be read; the earlier ones stay in use", "error", err.Error())
		} else if changed {
			log.Info("TLS files read anew")
		}
		return current, nil
	}
	return base, nil
}

func (f TLSFiles) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("reading certificate and key: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{pair}}
	if f.ClientCA == "" {
		return c, nil
	}
	text, err := os.ReadFile(f.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("reading client authority: %w", err)
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(text) {
		return nil, errors.New("reading client authority: the file holds no certificate")
	}
	c.ClientAuth = tls.VerifyClientCertIfGiven
	return c, nil
}

// certified is the name in a caller's verified certificate.
func certified(c *tls.ConnectionState) (string, bool) {
	if c == nil || len(c.VerifiedChains) == 0 || len(c.VerifiedChains[0]) == 0 {
		return "", false
	}
	leaf := c.VerifiedChains[0][0]
	switch {
	case len(leaf.URIs) > 0:
		return leaf.URIs[0].String(), true
	case len(leaf.DNSNames) > 0:
		return leaf.DNSNames[0], true
	default:
		return leaf.Subject.String(), true
	}
}
