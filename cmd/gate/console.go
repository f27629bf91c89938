package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"gatewright.dev/gatewright/internal/cluster"
	"gatewright.dev/gatewright/internal/console"
	"gatewright.dev/gatewright/internal/labeling"
	"gatewright.dev/gatewright/internal/loopback"
	"gatewright.dev/gatewright/internal/names"
)

// hosts is a flag that may be repeated: names of hosts, without ports.
type hosts []string

// String implements flag.Value.
func (h *hosts) String() string { return strings.Join(*h, ",") }

// Set implements flag.Value.
func (h *hosts) Set(text string) error {
	name := strings.ToLower(strings.TrimSuffix(text, "."))
	if net.ParseIP(name) == nil && len(validation.IsDNS1123Subdomain(name)) > 0 {
		return errors.New("want the name of a host or an address, without a port")
	}
	*h = append(*h, name)
	return nil
}

// openConsole puts the web page beside what callers ask. It ends with the context, before the server does, which would
// wait for its streams.
func (a *app) openConsole(ctx context.Context, routes *http.ServeMux) error {
	if !a.config.console {
		return nil
	}
	people := cluster.NewPeople(cluster.PeopleOptions{
		Server: a.server, Reviews: a.client.AuthenticationV1().TokenReviews(), Where: a.approvals.Where, Verify: a.seals.Verify, Clock: a.clock,
	})
	o := console.Options{SignIn: people.SignIn, Replica: a.config.identity, Clock: a.clock, Log: a.log}
	if a.records.Path != "" { // a log in a stream, or on standard output, cannot be read back here
		labeler, err := labeling.New(labeling.Options{
			Log: a.records, Path: a.records.Path, Store: a.records.Store, Clock: a.clock, Logger: a.log, Registry: a.registry,
		})
		if err != nil {
			return fmt.Errorf("-console: %w", err)
		}
		o.Records, o.Label = console.FileRecords{Path: a.records.Path, End: a.records.Head}, labeler.Give
	}
	page, err := console.New(o)
	if err != nil {
		return fmt.Errorf("-console: %w", err)
	}
	context.AfterFunc(ctx, page.Close)
	routes.Handle(console.Path, a.config.byName(page))
	a.log.InfoContext(ctx, "serving the web page", "path", console.Path, "hosts", a.config.consoleHosts.String())
	return nil
}

// byName answers requests that are addressed to this gate by a name of its own: a page elsewhere may point a name that it
// owns at this address, and the browser would take both for one site.
func (c *config) byName(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.isOwnName(r.Host) || !c.isOwnOrigin(r.Header.Get("Origin")) {
			http.Error(w, "The web page is not served by this name. The gate's flag -console-host says by which it is.", http.StatusMisdirectedRequest)
			return
		}
		page.ServeHTTP(w, r)
	})
}

// isOwnName: loopback is where kubectl port-forward ends; names of the Service are nobody else's to give.
func (c *config) isOwnName(host string) bool {
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	service := names.GateService + "." + c.namespace + ".svc"
	return loopback.IsHost(name) || name == service || name == service+".cluster.local" || slices.Contains(c.consoleHosts, name)
}

func (c *config) isOwnOrigin(origin string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == "https" && c.isOwnName(u.Host)
}
