package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// EngineError ends a server whose engine failed. The process should be replaced.
type EngineError struct{ Err error }

func (e *EngineError) Error() string { return "engine failed: " + e.Err.Error() }
func (e *EngineError) Unwrap() error { return e.Err }

// IntegrityError ends a server whose loaded bytes are not, or cannot be shown to be, the pinned ones any more.
type IntegrityError struct{ Err error }

func (e *IntegrityError) Error() string { return "integrity lost: " + e.Err.Error() }
func (e *IntegrityError) Unwrap() error { return e.Err }

var (
	// ErrStuck means that the engine did not return in time, so that it cannot be closed.
	ErrStuck = errors.New("the engine did not return")
	// ErrLeaveNow as the cause of the context of Serve ends it without DrainDelay.
	ErrLeaveNow = errors.New("nobody is left to send requests")
)

// Bounds of a connection. A client that is slower is no gate.
const (
	readTimeout    = 20 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
	closeTimeout   = 2 * time.Second
	// verifyTimeout is more than it takes to hash the largest model from a slow disk.
	verifyTimeout = 5 * time.Minute
)

// Serve answers on a listener until the context ends, and then drains: readiness fails first, requests that were taken
// are answered within DrainTimeout. It returns nil after that, or what ended the server: a *GoldenError, *EngineError or
// *IntegrityError, or an error of the listener. TLS is plain if nil. A server serves once.
func (s *Server) Serve(ctx context.Context, l net.Listener, handler http.Handler, secure *tls.Config) error {
	stopWorker, stopped := s.work(ctx)
	web := s.webServer(ctx, handler, secure)
	failed := make(chan error, 1)
	go func() { failed <- listen(web, l, secure != nil) }()
	err := s.live(ctx, failed)
	if err == nil {
		err = s.drain(ctx, web)
	}
	s.enter(draining)
	s.end(errDraining)
	down, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if web.Shutdown(down) != nil {
		_ = web.Close()
	}
	stopWorker()
	select {
	case <-stopped:
		return err
	case <-s.options.Clock.After(closeTimeout):
		return errors.Join(err, ErrStuck)
	}
}

// work starts the worker, which goes on while requests drain. What it returns last is closed when nothing uses the engine any more.
func (s *Server) work(ctx context.Context) (stop context.CancelFunc, stopped <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.worker.failed = func(err error) {
		s.options.Logger.Error("engine failed", "error", err.Error())
		s.lose(&EngineError{err})
	}
	s.using.Go(func() { s.worker.run(ctx) })
	finished := make(chan struct{})
	context.AfterFunc(ctx, func() {
		s.using.Wait()
		close(finished)
	})
	return cancel, finished
}

func (s *Server) webServer(ctx context.Context, handler http.Handler, secure *tls.Config) *http.Server {
	return &http.Server{
		Handler: handler, TLSConfig: secure,
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: readTimeout + s.options.RequestTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ErrorLog:    slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelDebug),
	}
}

func listen(web *http.Server, l net.Listener, secure bool) error {
	if secure {
		return web.ServeTLS(l, "", "")
	}
	return web.Serve(l)
}

// live asks the golden question and then goes on until the context ends, for which it returns nil, or something breaks.
func (s *Server) live(ctx context.Context, failed <-chan error) error {
	alive, stop := context.WithCancel(ctx)
	defer stop()
	greeted := make(chan error, 1)
	go func() { greeted <- s.greet(alive) }()
	select {
	case err := <-greeted:
		if err != nil && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	case err := <-failed:
		return s.listenerFailed(err)
	case <-ctx.Done():
		return nil
	}
	if s.enter(ready) {
		s.options.Logger.InfoContext(ctx, "ready", "model", s.info.Model, "sha256", s.info.SHA256, "fingerprint", s.info.Fingerprint)
	}
	s.using.Go(func() { s.verify(alive) })
	go s.watch(alive)
	select {
	case err := <-s.broken:
		return err
	case err := <-failed:
		return s.listenerFailed(err)
	case <-ctx.Done():
		return nil
	}
}

func (s *Server) brokenBy() error {
	select {
	case err := <-s.broken:
		return err
	default:
		return nil
	}
}

func (s *Server) listenerFailed(err error) error { return fmt.Errorf("serving: %w", err) }

// verify looks at the loaded bytes again and again. One failed look is the end: nothing here can repair a model.
func (s *Server) verify(ctx context.Context) {
	ticker := s.options.Clock.NewTicker(s.options.VerifyInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		look, cancel := context.WithTimeout(ctx, verifyTimeout)
		err := s.options.Engine.Verify(look)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.metrics.verifications.WithLabelValues("failed").Inc()
			s.options.Logger.ErrorContext(ctx, "integrity lost", "error", err.Error())
			s.lose(&IntegrityError{err})
			return
		}
		s.metrics.verifications.WithLabelValues("ok").Inc()
		s.verified.Store(s.options.Clock.Now().UnixNano())
	}
}

// watch ends a server whose engine does not come back: requests would time out one by one for ever.
func (s *Server) watch(ctx context.Context) {
	ticker := s.options.Clock.NewTicker(s.options.StuckAfter / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		if s.worker.overdue() >= s.options.StuckAfter {
			s.options.Logger.ErrorContext(ctx, "engine is stuck", "overdue", s.worker.overdue().String())
			s.lose(&EngineError{ErrStuck})
			return
		}
	}
}

// drain lets readiness fail, takes requests for a while, and answers what was taken. What is not answered in time is
// refused.
func (s *Server) drain(ctx context.Context, web *http.Server) error {
	s.enter(leaving)
	s.options.Logger.InfoContext(ctx, "draining", "waiting", s.queue.length())
	if !errors.Is(context.Cause(ctx), ErrLeaveNow) {
		select {
		case <-s.options.Clock.After(s.options.DrainDelay):
		case err := <-s.broken:
			return err
		}
	}
	s.enter(draining)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.DrainTimeout)
	defer cancel()
	if err := web.Shutdown(ctx); err != nil {
		s.options.Logger.WarnContext(ctx, "requests were refused at the end of draining", "waiting", s.queue.length())
	}
	return s.brokenBy()
}
