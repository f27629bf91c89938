// Package profiling serves the profiles of a process to whoever is on its machine.
package profiling

import (
	"context"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// Serve serves profiles on an address of their own, which has to be loopback. Without an address it does nothing. Stop
// ends it.
func Serve(ctx context.Context, address string) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = web.Serve(l)
	}()
	return func() {
		_ = web.Close()
		<-done
	}, nil
}
