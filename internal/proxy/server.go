package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/utils/clock"
)

// Bounds of a connection.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 32 << 10 // a permit has up to 12 KiB
)

// serve listens until the context ends, then drains: not ready any more, streams ended, calls let come to their end.
func (c *Config) serve(ctx context.Context, p *Proxy, gatherer prometheus.Gatherer) error {
	front, err := listen(ctx, c.Listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", c.Listen, err)
	}
	back, err := listen(ctx, c.ProbeListen)
	if err != nil {
		return errors.Join(fmt.Errorf("--probe-listen %s: %w", c.ProbeListen, err), front.Close())
	}
	if c.Listening != nil {
		c.Listening(front.Addr(), back.Addr())
	}
	c.Log.Info("serving", "address", front.Addr().String(), "probes", back.Addr().String(), "protocol", c.Protocol, "asks", c.Ask)
	proxy, probes := newServer(ctx, p, c.Log), newServer(ctx, p.probes(gatherer), c.Log)
	if c.TLSCert != "" {
		front = tls.NewListener(front, &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
				return &pair, err
			},
		})
	}
	failed := make(chan error, 2)
	go func() { failed <- proxy.Serve(front) }()
	go func() { failed <- probes.Serve(back) }()
	select {
	case err = <-failed:
	case <-ctx.Done():
		err = c.drain(ctx, p, proxy)
	}
	p.Drain()
	return errors.Join(ignoreClosed(err), proxy.Close(), probes.Close())
}

func (c *Config) drain(ctx context.Context, p *Proxy, proxy *http.Server) error {
	p.ending.Store(true)
	<-clock.RealClock{}.After(c.DrainDelay)
	p.Drain()
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.DrainTimeout)
	defer cancel()
	return proxy.Shutdown(limit)
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
}

// newServer bounds headers and idle time. Bodies and answers have their times in the handler: some answers are streams.
func newServer(ctx context.Context, h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		DisableGeneralOptionsHandler: true, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
}

// probes answers who looks after the process, apart from what callers reach.
func (p *Proxy) probes(gatherer prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := p.Ready(r.Context()); err != nil {
			p.log.InfoContext(r.Context(), "not ready", "error", err)
			plain(w, http.StatusServiceUnavailable, "not ready: see the log")
			return
		}
		plain(w, http.StatusOK, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	return mux
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}
