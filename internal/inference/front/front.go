// Package front stands in front of a decider of somebody else that speaks plain HTTP, in the same pod: it ends TLS, lets in
// only callers with a certificate, passes on only the two paths of the wire, and no more requests at once than the decider
// can keep apart.
package front

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"gatewright.dev/gatewright/internal/inference/server"
)

const (
	// maxBody bounds a request in bytes, as the decider server does.
	maxBody = server.DefaultMaxBody
	// maxReply bounds a reply in bytes: that of a decider is small.
	maxReply = 1 << 20
	// waiting bounds who waits for a turn.
	waiting = server.DefaultQueue
	// timeout of a request, the wait for its turn included: the longest that a policy can give a decider, and a little.
	timeout = 12 * time.Second
	// drain is how long requests may take at the end.
	drain = 20 * time.Second
)

// Options of a front. All are required.
type Options struct {
	// Upstream is where the decider listens: http, on loopback.
	Upstream *url.URL
	// MaxInFlight is how many requests it gets at once.
	MaxInFlight int
	// TLS is the server's; it has to ask for client certificates.
	TLS *tls.Config
	Log *slog.Logger
}

// Front is such a server.
type Front struct {
	options Options
	proxy   *httputil.ReverseProxy
	turns   chan struct{} // one for each request that is with the decider
	places  chan struct{} // one for each that is with it or waits
}

// New returns a front, or says which option is wrong.
func New(o Options) (*Front, error) {
	switch {
	case o.Upstream == nil || o.Upstream.Scheme != "http" || !isLoopback(o.Upstream.Hostname()) || o.Upstream.Port() == "":
		return nil, errors.New("the decider has to be at http://127.0.0.1 and a port: what users write goes there in the clear")
	case o.MaxInFlight < 1 || o.TLS == nil || o.Log == nil:
		return nil, errors.New("TLS, a log and at least one request at once are required")
	}
	f := &Front{options: o, turns: make(chan struct{}, o.MaxInFlight), places: make(chan struct{}, o.MaxInFlight+waiting)}
	transport := &http.Transport{
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, MaxIdleConnsPerHost: o.MaxInFlight, DisableCompression: true,
		IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
	}
	f.proxy = &httputil.ReverseProxy{
		Transport: transport, Rewrite: f.rewrite, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		ModifyResponse: func(r *http.Response) error {
			if r.ContentLength > maxReply {
				return errors.New("the reply is too long")
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			o.Log.Debug("decider did not answer", "error", err.Error())
			refuse(w, http.StatusBadGateway, "engine_failed", "the decider behind this address did not answer")
		},
	}
	return f, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// passed are the headers that the decider gets. It is told nothing about who asks.
var passed = []string{"Content-Type", "Accept", "Request-Timeout", "Traceparent"}

func (f *Front) rewrite(p *httputil.ProxyRequest) {
	p.SetURL(f.options.Upstream)
	in := p.Out.Header
	p.Out.Header = http.Header{}
	for _, name := range passed {
		if v := in.Get(name); v != "" {
			p.Out.Header.Set(name, v)
		}
	}
	p.Out.Header.Set("User-Agent", "gatewright")
	p.Out.Host = f.options.Upstream.Host
}

// Handler returns the routes. Probes need no certificate: the kubelet has none.
func (f *Front) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+server.PathSystemOne, f.pass)
	mux.HandleFunc("GET "+server.PathModels, f.pass)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", f.ready)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "not_found", "questions go to POST "+server.PathSystemOne)
	})
	return mux
}

// ready says whether somebody listens behind.
func (f *Front) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", f.options.Upstream.Host)
	if err != nil {
		http.Error(w, "nobody listens behind this address yet", http.StatusServiceUnavailable)
		return
	}
	_ = c.Close()
	_, _ = w.Write([]byte("ok\n"))
}

// pass waits for a turn and passes the request on.
func (f *Front) pass(w http.ResponseWriter, r *http.Request) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		refuse(w, http.StatusUnauthorized, "unauthorized", "a client certificate of this installation is required")
		return
	}
	select {
	case f.places <- struct{}{}:
		defer func() { <-f.places }()
	default:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, "queue_full", "too many requests wait")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	select {
	case f.turns <- struct{}{}:
		defer func() { <-f.turns }()
	case <-ctx.Done():
		refuse(w, http.StatusGatewayTimeout, "deadline_exceeded", "the time of the request was over before its turn")
		return
	}
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	f.proxy.ServeHTTP(w, r)
}

// refuse answers in the form of the decider server.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"detail":{"error_type":%q,"message":%q}}`, code, message)
}

// Serve answers on a listener until the context ends, and then finishes what it has taken.
func (f *Front) Serve(ctx context.Context, l net.Listener) error {
	web := &http.Server{
		Handler: f.Handler(), TLSConfig: f.options.TLS, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 20 * time.Second, WriteTimeout: 20*time.Second + timeout,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(f.options.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	failed := make(chan error, 1)
	go func() { failed <- web.ServeTLS(l, "", "") }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	down, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := web.Shutdown(down); err != nil {
		return errors.Join(fmt.Errorf("finishing requests: %w", err), web.Close())
	}
	return nil
}
