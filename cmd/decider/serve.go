package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"gatewright.dev/gatewright/internal/inference/server"
	"gatewright.dev/gatewright/internal/profiling"
	"gatewright.dev/gatewright/internal/tracing"
)

// serve loads the model and answers until the context ends. Files are read and the address is taken before the model is
// loaded, which takes longest.
func serve(ctx context.Context, c config, p process) (err error) {
	log := slog.New(slog.NewJSONHandler(p.stderr, &slog.HandlerOptions{Level: c.logLevel}))
	tokens, secure, err := files(c, log)
	if err != nil {
		return &exit{exitFiles, err}
	}
	listener, err := listen(ctx, c.listen)
	if err != nil {
		return &exit{exitListen, fmt.Errorf("listening: %w", err)}
	}
	defer func() { _ = listener.Close() }()
	stopProfiles, err := profiling.Serve(ctx, c.pprof)
	if err != nil {
		return &exit{exitListen, fmt.Errorf("listening for profiles: %w", err)}
	}
	defer stopProfiles()
	tracer, stopTracing, err := tracing.Start(ctx, "gatewright-decider", version)
	if err != nil {
		return fmt.Errorf("setting up traces: %w", err)
	}
	defer stopTracing()
	loaded, err := load(ctx, c, p)
	if err != nil || loaded == nil {
		return err
	}
	defer func() {
		if errors.Is(err, server.ErrStuck) {
			return // to close what still computes would crash instead of reporting
		}
		err = errors.Join(err, loaded.Close())
	}()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s, err := server.New(server.Options{
		Engine: loaded, Aliases: c.aliases, Golden: c.golden, Callers: tokens, RequireCertificate: c.clientCA != "",
		MaxBody: c.maxBody, Queue: c.queue, RequestTimeout: c.requestTimeout, VerifyInterval: c.verifyInterval,
		DrainDelay: c.drainDelay, DrainTimeout: c.drainTimeout, Registry: registry, Logger: log, Tracer: tracer,
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, "listening on", listener.Addr())
	return s.Serve(ctx, listener, s.Handler(registry), secure)
}

// listen takes the address. A socket is born for this user alone: were its mode set afterwards, others could connect before.
func listen(ctx context.Context, address string) (net.Listener, error) {
	path, ok := socket(address)
	if !ok {
		return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	}
	mask := syscall.Umask(0o177) // of the whole process, which does nothing else yet
	defer syscall.Umask(mask)
	return (&net.ListenConfig{}).Listen(ctx, "unix", path)
}

func files(c config, log *slog.Logger) (tokens *server.Tokens, secure *tls.Config, err error) {
	if c.tokenFile != "" {
		if tokens, err = server.OpenTokens(c.tokenFile); err != nil {
			return nil, nil, err
		}
	}
	if c.tlsCert != "" {
		if secure, err = (server.TLSFiles{Cert: c.tlsCert, Key: c.tlsKey, ClientCA: c.clientCA}).Config(log); err != nil {
			return nil, nil, err
		}
	}
	return tokens, secure, nil
}

// load opens the engine. Native loading cannot be interrupted: when the context ends meanwhile, nothing is loaded, and the
// process that is about to end takes the half-loaded model with it.
func load(ctx context.Context, c config, p process) (server.Engine, error) {
	type result struct {
		engine server.Engine
		err    error
	}
	done := make(chan result, 1)
	go func() {
		e, err := p.open(ctx, c)
		done <- result{e, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			if ctx.Err() != nil {
				return nil, nil
			}
			return nil, fmt.Errorf("loading model: %w", r.err)
		}
		return r.engine, nil
	case <-ctx.Done():
		return nil, nil
	}
}
