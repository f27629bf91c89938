package main

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// way is the way from a gate to the API server, which can be cut.
type way struct {
	to       string
	listener net.Listener

	mu    sync.Mutex
	state string // "", cut or silent
	conns map[net.Conn]bool
}

// What becomes of connections.
const (
	isOpen   = ""
	isCut    = "cut"    // those there are end, and new ones end at once
	isSilent = "silent" // those there are end, and new ones are taken and never answered
)

// newWay gives a configuration that goes over a way of its own.
func newWay(t *testing.T, c *rest.Config) (*way, *rest.Config) {
	t.Helper()
	u, err := url.Parse(c.Host)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{to: u.Host, listener: l, conns: map[net.Conn]bool{}}
	if u.Host == "" {
		w.to = c.Host
	}
	var wait sync.WaitGroup
	wait.Go(w.accept)
	t.Cleanup(func() { _ = l.Close(); w.set(isCut); wait.Wait() })
	out := rest.CopyConfig(c)
	out.Host = "https://" + l.Addr().String()
	return w, out
}

// set changes the state, and ends the connections that are there.
func (w *way) set(state string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = state
	for c := range w.conns {
		_ = c.Close()
	}
	clear(w.conns)
}

// keep remembers connections in the state that they came in.
func (w *way) keep(conns ...net.Conn) (state string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		if w.state == isCut {
			_ = c.Close()
			continue
		}
		w.conns[c] = true
	}
	return w.state
}

func (w *way) accept() {
	for {
		c, err := w.listener.Accept()
		if err != nil {
			return
		}
		if w.keep(c) != isOpen {
			continue
		}
		server, err := net.Dial("tcp", w.to)
		if err != nil {
			_ = c.Close()
			continue
		}
		if w.keep(server) != isOpen {
			_ = server.Close()
		}
		go pipe(c, server)
		go pipe(server, c)
	}
}

func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}
