package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httputil"
	"strings"
)

// forward sends a request on and streams the answer back. The bytes that were judged are the bytes that go, under one
// length; nothing is written anew.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, req *request, extra http.Header) {
	reverse := httputil.ReverseProxy{
		Transport: p.transport, FlushInterval: -1, // what the tool server says arrives when it says it
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
		Rewrite: func(out *httputil.ProxyRequest) {
			out.SetURL(p.upstream)
			out.SetXForwarded()
			p.dress(out.Out, req, extra)
		},
		ModifyResponse: func(answer *http.Response) error {
			if req.listsTools && p.tools != nil {
				p.tools.follow(answer)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { p.failed(w, r, req.call, err) },
	}
	if req.body == nil && r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, p.limits.body)
	}
	reverse.ServeHTTP(w, r)
}

// dress gives a request the body that was read, and takes from its headers what is the proxy's own.
func (p *Proxy) dress(out *http.Request, req *request, extra http.Header) {
	for name := range out.Header {
		if strings.HasPrefix(name, ownHeaders) {
			out.Header.Del(name)
		}
	}
	maps.Copy(out.Header, extra)
	out.Header.Del("Expect") // the body is here already
	if req.listsTools {
		out.Header.Del("Accept-Encoding") // so that the listing can be read on its way
	}
	if req.body == nil {
		return
	}
	// No GetBody: a call is not sent a second time, whatever becomes of the connection.
	out.Body, out.ContentLength, out.TransferEncoding = io.NopCloser(bytes.NewReader(req.body)), int64(len(req.body)), nil
	if len(req.body) == 0 {
		out.Body = http.NoBody
	}
}

// failed answers for a tool server that did not. Whether it has run the call nobody can say: the permit is used up.
func (p *Proxy) failed(w http.ResponseWriter, r *http.Request, c *call, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil && p.draining.Err() == nil {
		panic(http.ErrAbortHandler) // the caller is gone
	}
	p.metrics.upstream.Inc()
	d := &denial{status: http.StatusBadGateway, code: CodeUpstream, message: "the tool server did not answer: whether the call has run is not known", cause: err}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		d = p.tooLarge()
	} else if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
		d = &denial{status: http.StatusGatewayTimeout, code: CodeTimeout, message: "the tool server took too long: whether the call has run is not known", cause: err}
	}
	p.refuse(w, r, c, d)
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
