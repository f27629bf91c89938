package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval/objects"
	"gatewright.dev/gatewright/internal/cluster"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
)

// partly is a way to the API server on which some requests fail while all others are answered.
type partly struct {
	mu     sync.Mutex
	broken func(r *http.Request) bool
	ended  context.CancelFunc // ends what is under way
	under  context.Context
}

// newPartly gives a configuration that goes over it. All is well at first.
func newPartly(t *testing.T, c *rest.Config) (*partly, *rest.Config) {
	t.Helper()
	transport, err := rest.TransportFor(c)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(c.Host)
	if err != nil || to.Host == "" {
		t.Fatalf("%s: %v", c.Host, err)
	}
	p := &partly{}
	p.breaks(nil)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusServiceUnavailable) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		isBroken, under := p.broken != nil && p.broken(r), p.under
		p.mu.Unlock()
		if isBroken {
			http.Error(w, "broken", http.StatusServiceUnavailable)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(under, cancel)()
		proxy.ServeHTTP(w, r.WithContext(ctx))
	}))
	t.Cleanup(func() { p.breaks(nil); server.Close() })
	return p, &rest.Config{Host: server.URL}
}

// breaks ends all that is under way, and sets what fails from now on.
func (p *partly) breaks(broken func(r *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		p.ended()
	}
	p.broken = broken
	p.under, p.ended = context.WithCancel(context.Background())
}

// The API server answers the beats of the gate all the time, and one kind of question or watch fails. Nothing may be decided
// on what that one said last for longer than the limit.
func TestAnAPIServerThatAnswersInPart(t *testing.T) {
	server := kubetest.Start(t)
	stale := func(g *running, token string) error { return g.comesTo(t, token, review.Block, "StaleSnapshot") }
	type broken struct {
		of   func(r *http.Request) bool
		want func(g *running, token string) error
	}
	tests := map[string]broken{
		"no question about a token is answered": {
			func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/tokenreviews") },
			func(g *running, token string) error {
				if status, r := g.ask(t, token, call{tool: "orders.note"}); status != http.StatusServiceUnavailable {
					return fmt.Errorf("status %d, %+v", status, r)
				}
				return nil
			},
		},
	}
	for _, path := range append(cluster.WatchedPaths(names.Namespace), objects.WatchedPaths(names.Namespace)...) {
		tests["no watch on "+path] = broken{func(r *http.Request) bool { return r.URL.Path == path && r.URL.Query().Has("watch") }, stale}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, server)
			way, config := newPartly(t, server.ServiceAccount(t, names.Namespace, names.GateServiceAccount))
			g := w.run(t, "-kubeconfig", server.KubeconfigOf(t, config), "-max-staleness", "3s", "-token-ttl", "1s")
			namespace := server.Namespace(t)
			w.policy(t, namespace, "shop", shop)
			token := server.Token(t, namespace, "assistant", names.Audience)
			allowed := func() error { return g.comesTo(t, token, review.Allow, "RulesPassed") }
			eventually(t, "all is well", allowed)
			way.breaks(test.of)
			eventually(t, "the gate no longer goes by it", func() error { return test.want(g, token) })
			way.breaks(nil)
			eventually(t, "all is well again", allowed)
		})
	}
}

// comesTo asks about a write once.
func (g *running) comesTo(t *testing.T, token string, outcome review.Outcome, reason string) error {
	t.Helper()
	if status, r := g.ask(t, token, call{tool: "orders.note"}); status != http.StatusOK || r.Outcome != outcome || r.Reason != reason {
		return fmt.Errorf("status %d, %+v\n%s", status, r, tail(g.log.String()))
	}
	return nil
}
