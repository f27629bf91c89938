package gate

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

// Routes returns the handler of a gate with one listener. Probes and metrics are outside of what is traced and counted.
func (g *Gate) Routes(metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	g.forCallers(mux)
	g.status(mux, metrics)
	return mux
}

// CallerRoutes returns what callers may reach.
func (g *Gate) CallerRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	g.forCallers(mux)
	return mux
}

// Identified lets requests of known callers through, and refuses others as a review would.
func (g *Gate) Identified(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := g.options.Identify.Identify(r.Context(), r); err != nil {
			g.refuse(w, r, "", unidentified(err))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// StatusRoutes returns probes and metrics, for a listener of their own.
func (g *Gate) StatusRoutes(metrics prometheus.Gatherer) *http.ServeMux {
	mux := http.NewServeMux()
	g.status(mux, metrics)
	return mux
}

func (g *Gate) status(mux *http.ServeMux, metrics prometheus.Gatherer) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !g.Ready() {
			plain(w, http.StatusServiceUnavailable, "no policies are in force yet, or the gate is about to end")
			return
		}
		plain(w, http.StatusOK, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
}

func (g *Gate) forCallers(mux *http.ServeMux) {
	mux.Handle(review.Path, g)
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(openAPI())
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		g.refuse(w, r, "", &httpError{Status: http.StatusNotFound, Code: CodeNotFound, Message: "reviews go to POST " + review.Path})
	})
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

// Bounds of a connection. A client that is slower is no agent.
const (
	readTimeout     = 20 * time.Second
	idleTimeout     = 2 * time.Minute
	maxHeaderBytes  = 16 << 10
	shutdownTimeout = 20 * time.Second
)

// Serve answers on a listener until the context ends. Then the gate is no longer Ready but still answers for the time of
// notice, so that nobody is sent to a listener that has closed; then calls that are being judged come to their end.
func (g *Gate) Serve(ctx context.Context, l net.Listener, h http.Handler, notice time.Duration) error {
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: 2 * readTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	g.Drain()
	select {
	case err := <-failed:
		return err
	case <-time.After(notice):
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := s.Shutdown(drain); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}
