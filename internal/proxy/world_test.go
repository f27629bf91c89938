package proxy

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	signing "gatewright.dev/gatewright/internal/permit"
	"gatewright.dev/gatewright/internal/strictjson"
	"gatewright.dev/gatewright/internal/testkit"
	"gatewright.dev/gatewright/permit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// issuer is a gate's keys: it signs permits, and serves what they are verified with.
type issuer struct {
	url    string
	signer *signing.Signer
	calls  atomic.Int64
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	keys := must(signing.LoadOrCreateKeys(filepath.Join(t.TempDir(), "keys"), clock.RealClock{}))(t)
	server := httptest.NewServer(keys)
	t.Cleanup(server.Close)
	return &issuer{url: server.URL, signer: must(signing.NewSigner(keys, "gate-1", clock.RealClock{}))(t)}
}

// permit signs a permit for a call of the audience "shop" with these arguments.
func (i *issuer) permit(t testing.TB, tool, arguments string, change ...func(*signing.Claims)) string {
	t.Helper()
	tree := must(strictjson.Parse([]byte(arguments), strictjson.Limits{}))(t)
	digest := must(strictjson.Digest(tree))(t)
	c := signing.Claims{
		Audience: "shop", Subject: "system:serviceaccount:sales:agent", Tool: tool, Server: "orders", ArgumentsDigest: digest, PolicyDigest: digest,
		ID: fmt.Sprintf("0123456789abcdef-%d", i.calls.Add(1)), Decision: "d-1",
	}
	for _, f := range change {
		f(&c)
	}
	return must(i.signer.Sign(c, 30*time.Second))(t)
}

// arrived is one request as the tool server got it.
type arrived struct {
	method, target, body string
	length               int64
	chunked              bool
	header               http.Header
}

// toolServer notes what reaches it.
type toolServer struct {
	*httptest.Server
	mu     sync.Mutex
	got    []arrived
	answer http.HandlerFunc
}

func newToolServer(t testing.TB) *toolServer {
	t.Helper()
	s := &toolServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "broken", http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.got = append(s.got, arrived{r.Method, r.RequestURI, string(body), r.ContentLength, len(r.TransferEncoding) > 0, r.Header.Clone()})
		answer := s.answer
		s.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		_, _ = io.WriteString(w, "ran")
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *toolServer) say(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// take gives what arrived since the last time.
func (s *toolServer) take() []arrived {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.got
	s.got = nil
	return got
}

// defaults is a configuration as flags have it.
func defaults(t testing.TB) Config {
	t.Helper()
	var c Config
	f := flag.NewFlagSet("proxy", flag.ContinueOnError)
	c.BindFlags(f)
	if err := f.Parse(nil); err != nil {
		t.Fatal(err)
	}
	c.Listen, c.ProbeListen, c.DrainDelay, c.DrainTimeout = "127.0.0.1:0", "127.0.0.1:0", 0, 5*time.Second
	c.PermitLog = filepath.Join(t.TempDir(), "used")
	return c
}

// running is a proxy that serves.
type running struct {
	url, probes, address string
	log                  *testkit.Log
	stop                 func()
	done                 chan error
}

// run serves a proxy until the test ends, or until it is stopped.
func run(t testing.TB, c Config) *running {
	t.Helper()
	r := &running{log: &testkit.Log{}, done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	listening := make(chan [2]string, 1)
	c.Log = slog.New(slog.NewJSONHandler(r.log, nil))
	c.Listening = func(front, probes net.Addr) { listening <- [2]string{front.String(), probes.String()} }
	failed := make(chan error, 1)
	go func() {
		err := Run(ctx, c)
		failed <- err
		r.done <- err
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-r.done; err != nil {
			t.Errorf("proxy: %v", err)
		}
	})
	t.Cleanup(r.stop)
	select {
	case a := <-listening:
		r.address, r.url, r.probes = a[0], "http://"+a[0], "http://"+a[1]
	case err := <-failed:
		t.Fatalf("proxy: %v", err)
	}
	return r
}

// permitting is a proxy of plain HTTP that takes permits.
func permitting(t testing.TB, change ...func(*Config)) (*running, *issuer, *toolServer) {
	t.Helper()
	gate, tools := newIssuer(t), newToolServer(t)
	c := defaults(t)
	c.Upstream, c.JWKS, c.Audience, c.Server = tools.URL, gate.url, "shop", "orders"
	for _, f := range change {
		f(&c)
	}
	return run(t, c), gate, tools
}

// client keeps no connection, so that none is left at the end.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}

type reply struct {
	status int
	body   string
	header http.Header
}

func send(t testing.TB, method, url, body string, header http.Header) reply {
	t.Helper()
	r, err := exchange(t.Context(), method, url, body, header)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func exchange(ctx context.Context, method, url, body string, header http.Header) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	maps.Copy(req.Header, header)
	resp, err := client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return reply{status: resp.StatusCode, body: string(data), header: resp.Header}, err
}

// jsonWith are the headers of a call with a permit; empty for none.
func jsonWith(token string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	if token != "" {
		h.Set(permit.Header, token)
	}
	return h
}

// raw sends bytes as they are and gives the status of the first answer, 0 if the connection ends without one.
func raw(t testing.TB, address, request string) int {
	t.Helper()
	conn := must(net.Dial("tcp", address))(t)
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	var status int
	line := make([]byte, 12)
	if _, err := io.ReadFull(conn, line); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0
	}
	_, _ = fmt.Sscanf(string(line), "HTTP/1.1 %d", &status)
	return status
}

// talk sends bytes as they are and gives the answer.
func talk(t testing.TB, address, request string) reply {
	t.Helper()
	conn := must(net.Dial("tcp", address))(t)
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	resp := must(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	defer resp.Body.Close()
	return reply{status: resp.StatusCode, body: string(must(io.ReadAll(resp.Body))(t)), header: resp.Header}
}
