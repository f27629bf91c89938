package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approval/objects"
	"gatewright.dev/gatewright/internal/approverapi"
	"gatewright.dev/gatewright/internal/cluster"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/keywatch"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/permit"
	"gatewright.dev/gatewright/internal/profiling"
	"gatewright.dev/gatewright/internal/records"
	"gatewright.dev/gatewright/internal/tracing"
	verifying "gatewright.dev/gatewright/permit"
)

// app is a gate with all that it needs.
type app struct {
	config   config
	clock    clock.WithTicker
	log      *slog.Logger
	registry *prometheus.Registry
	server   *rest.Config
	client   kubernetes.Interface

	serving, pods *cluster.Certificate
	seals         *approval.Seals
	permits       *permit.Keys
	records       *records.Records
	approvals     *objects.Store
	contact       *cluster.Contact
	keys          *cluster.Keys
	source        *cluster.Source
	gate          *gate.Gate

	closers []func() error
}

// run answers until the context ends.
func run(ctx context.Context, c config, stderr io.Writer) (err error) {
	a := &app{
		config: c, clock: clock.RealClock{}, registry: prometheus.NewRegistry(),
		log: slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: c.logLevel})),
	}
	ctx = logr.NewContext(ctx, logr.FromSlogHandler(a.log.Handler())) // what client-go has to say
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	defer func() { err = errors.Join(err, a.close()) }()
	for _, step := range []func(context.Context) error{a.connect, a.openFiles, a.openApprovals, a.open, a.watch} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return a.serve(ctx)
}

func (a *app) later(f func() error) { a.closers = append(a.closers, f) }

// close closes what was opened, the last first.
func (a *app) close() error {
	var errs []error
	for _, f := range slices.Backward(a.closers) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// connect makes the clients. Nothing is asked yet: a gate starts while the API server is away, and is not ready.
func (a *app) connect(context.Context) error {
	var err error
	if a.config.kubeconfig != "" {
		a.server, err = clientcmd.BuildConfigFromFlags("", a.config.kubeconfig)
	} else {
		a.server, err = rest.InClusterConfig()
	}
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	// What is sent is bounded where it is decided, by caller and in all; a queue here would let one keep all others waiting.
	a.server.QPS = -1
	a.server.UserAgent = "gatewright-gate/" + version
	if a.client, err = kubernetes.NewForConfig(a.server); err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	reader := a.client.Discovery().RESTClient()
	ping := func(ctx context.Context) error {
		return reader.Get().AbsPath(cluster.PingPath).Param("limit", "1").Do(ctx).Error()
	}
	a.contact = cluster.NewContact(cluster.ContactOptions{
		Ping: ping, Paths: slices.Concat(cluster.WatchedPaths(a.config.namespace), objects.WatchedPaths(a.config.namespace)), Limit: a.config.maxStaleness, Clock: a.clock, Log: a.log,
	})
	a.keys = cluster.NewKeys(reader, a.clock, a.log)
	return nil
}

// openFiles reads what is mounted.
func (a *app) openFiles(ctx context.Context) (err error) {
	c := &a.config
	if a.serving, err = cluster.OpenCertificate(c.tlsDir); err != nil {
		return fmt.Errorf("-tls-dir: %w", err)
	}
	if a.pods, err = cluster.OpenCertificate(c.clientDir); err != nil {
		return fmt.Errorf("-decider-client-dir: %w", err)
	}
	if a.seals, err = approval.LoadSeals(c.key(names.KeySeal), a.clock); err != nil {
		return fmt.Errorf("-keys-dir: %s: %w", names.KeySeal, err)
	}
	if a.permits, err = permit.LoadKeys(c.key(names.KeyPermit), a.clock); err != nil {
		return fmt.Errorf("-keys-dir: %s: %w", names.KeyPermit, err)
	}
	a.records, err = records.Open(ctx, records.Options{Config: c.audit, File: c.auditLog, ExistingKey: true, Version: version, Log: a.log, Registry: a.registry})
	if err != nil {
		return err
	}
	a.later(a.records.Close)
	return nil
}

func (a *app) openApprovals(context.Context) error {
	if a.config.identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("finding a name for -identity: %w", err)
		}
		a.config.identity = host
	}
	server := rest.CopyConfig(a.server)
	server.Wrap(a.contact.Wrap)
	store, err := objects.New(objects.Options{
		Config: server, Namespace: a.config.namespace, Identity: a.config.identity, Seals: a.seals, Clock: a.clock, Log: a.log,
	})
	if err != nil {
		return err
	}
	a.approvals = store
	a.later(func() error { store.Close(); return nil })
	return nil
}

// open makes the gate.
func (a *app) open(ctx context.Context) error {
	c := &a.config
	provider, stop, err := tracing.Start(ctx, "gatewright-gate", version)
	if err != nil {
		return fmt.Errorf("setting up traces: %w", err)
	}
	a.later(func() error { stop(); return nil })
	identity, err := cluster.NewIdentity(cluster.IdentityOptions{
		Reviews: a.client.AuthenticationV1().TokenReviews(), Keys: a.keys, IsAway: a.contact.IsAway,
		Limit: c.maxStaleness, IsStale: func() bool { return a.contact.Age() > c.maxStaleness }, Audience: c.audience, TTL: c.tokenTTL, Clock: a.clock, Registry: a.registry,
	})
	if err != nil {
		return err
	}
	signer, err := permit.NewSigner(a.permits, c.issuer, a.clock)
	if err != nil {
		return err
	}
	o := gate.Options{
		Identify: identity, Recorder: a.records, Capture: a.records.Capturer(), Approvals: a.approvals, Seals: a.seals, Permits: signer,
		Cluster: c.cluster, Age: a.age, MaxStaleness: c.maxStaleness,
		Clock: a.clock, Log: a.log, Registry: a.registry, Tracer: provider, Version: version,
	}
	if c.authorizeTools {
		if o.Authorize, err = cluster.NewAuthorizer(a.client.AuthorizationV1().SubjectAccessReviews(), a.contact.IsAway, a.clock, a.registry); err != nil {
			return err
		}
	}
	if a.gate, err = gate.New(o); err != nil {
		return err
	}
	a.source, err = cluster.NewSource(cluster.SourceOptions{
		Config: a.server, Namespace: c.namespace, Wrap: a.contact.Wrap, Gate: a.gate, Clock: a.clock, Log: a.log, Registry: a.registry,
		Deciders: cluster.DeciderOptions{
			Namespace: c.namespace, Pods: a.pods.Transport(names.DeciderServerName, nil), Tokens: c.tokensDir, Log: a.log,
		},
	})
	return err
}

// age is how old what is in force may be: as long as the API server was not heard, or as a change has waited.
func (a *app) age() time.Duration { return max(a.contact.Age(), a.source.Pending()) }

// watch keeps everything fresh until the app is closed.
func (a *app) watch(ctx context.Context) error {
	files := append([]*keywatch.File{
		a.serving.File("tls-dir"), a.pods.File("decider-client-dir"), keywatch.Ring("seal-key", a.seals.Keys()), keywatch.Ring("permit-key", a.permits.Ring()),
	}, a.records.KeyFiles()...)
	watch := keywatch.New(files, a.log)
	age := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gatewright_snapshot_age_seconds", Help: "Time since the policies and deciders were last known to be in force.",
	}, func() float64 { return a.age().Seconds() })
	if err := errors.Join(watch.Register(a.registry), a.registry.Register(age)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // until the last call was answered, and not until the end is announced
	var wait sync.WaitGroup
	stop := watch.Start(ctx, a.clock)
	wait.Go(func() { a.contact.Run(ctx) })
	wait.Go(func() { a.keys.Run(ctx) })
	wait.Go(func() {
		if a.approvals.WaitForSync(ctx) == nil { // so that a gate that is ready knows who waits
			a.source.Run(ctx)
		}
	})
	a.later(func() error { cancel(); stop(); wait.Wait(); return nil })
	return nil
}

// serve answers callers and status on listeners of their own.
func (a *app) serve(ctx context.Context) error {
	c := &a.config
	callers, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.listen)
	if err != nil {
		return fmt.Errorf("-listen %s: %w", c.listen, err)
	}
	status, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.statusListen)
	if err != nil {
		return errors.Join(fmt.Errorf("-status-listen %s: %w", c.statusListen, err), callers.Close())
	}
	stop, err := profiling.Serve(ctx, c.pprof)
	if err != nil {
		return errors.Join(fmt.Errorf("-pprof %s: %w", c.pprof, err), callers.Close(), status.Close())
	}
	defer stop()
	if c.listening != nil {
		c.listening(callers.Addr(), status.Addr())
	}
	a.log.Info("serving", "callers", callers.Addr().String(), "status", status.Addr().String(), "auditLog", c.auditLog)
	routes := a.gate.CallerRoutes()
	routes.Handle("GET "+verifying.JWKSPath, a.permits)
	routes.Handle("POST "+approverapi.Path+"/{name}", a.gate.Identified(cluster.FrontDoors(a.approvals, a.clock, a.log)))
	about := a.gate.StatusRoutes(a.registry)
	about.HandleFunc("GET "+names.ServedPath, a.report)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := a.openConsole(ctx, routes); err != nil {
		return errors.Join(err, callers.Close(), status.Close())
	}
	ended := make(chan error, 1)
	// Probes are answered until the last call is.
	reachable, unreachable := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		err := serveStatus(reachable, status, about)
		if err != nil {
			cancel(fmt.Errorf("serving status: %w", err)) // a listener that fails ends the process
		}
		ended <- err
	}()
	err = a.gate.Serve(ctx, tls.NewListener(callers, a.serving.ServerConfig()), routes, c.shutdownDelay)
	unreachable()
	return cmp.Or(err, <-ended)
}

// Bounds of a connection to the status address.
const (
	statusTimeout  = 10 * time.Second
	maxStatusBytes = 16 << 10
)

func serveStatus(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadTimeout: statusTimeout, WriteTimeout: 2 * statusTimeout, IdleTimeout: time.Minute, MaxHeaderBytes: maxStatusBytes}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return s.Close()
	}
}

// report says what is served.
func (a *app) report(w http.ResponseWriter, _ *http.Request) {
	report, err := a.source.Report(a.contact.Last())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(report) // the manager is gone if this fails, and asks again
}
