package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is an engine whose answers a test can work out: they depend on the state and the question, and on nothing else.
type scripted struct {
	info   engine.Info
	golden string // instructions of the golden question
	ask    func(ctx context.Context, state []byte, asked []questions.Question) (engine.Reply, error)
	verify func() error

	mu     sync.Mutex
	states []string
	inside int
	closed bool
}

func newScripted() *scripted {
	return &scripted{golden: "Is it?", info: engine.Info{
		Model: "judge-1", SHA256: strings.Repeat("ab", 32), Fingerprint: "sha256:" + strings.Repeat("cd", 32), Architecture: "llama",
		Readout: "LabelLogits", Library: "scripted 1", CPUVariant: "none", ContextTokens: 2048, Threads: 1,
	}}
}

func (e *scripted) Info() engine.Info { return e.info }

func (e *scripted) Golden() ([]byte, questions.Question) {
	return []byte(`{"tool":"calendar.create"}`), questions.Question{Name: "golden", Type: questions.YesNo, Instructions: e.golden}
}

func (e *scripted) Ask(ctx context.Context, state []byte, asked []questions.Question) (engine.Reply, error) {
	e.mu.Lock()
	e.inside++
	misused := e.inside > 1 || e.closed
	e.states = append(e.states, string(state))
	ask := e.ask
	e.mu.Unlock()
	if misused {
		panic("the engine was asked twice at once, or after it was closed")
	}
	defer func() {
		e.mu.Lock()
		e.inside--
		e.mu.Unlock()
	}()
	if ask != nil {
		return ask(ctx, state, asked)
	}
	return honest(state, asked), nil
}

func (e *scripted) Verify(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.verify != nil {
		return e.verify()
	}
	return nil
}

func (e *scripted) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	return nil
}

// does makes the engine do something else for whatever is not the golden question.
func (e *scripted) does(ask func(ctx context.Context, state []byte, asked []questions.Question) (engine.Reply, error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ask = func(ctx context.Context, state []byte, asked []questions.Question) (engine.Reply, error) {
		if bytes.Contains(state, []byte("calendar.create")) {
			return honest(state, asked), nil
		}
		return ask(ctx, state, asked)
	}
}

func (e *scripted) verifies(verify func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.verify = verify
}

// asked are the states seen so far, without those of the golden question.
func (e *scripted) asked() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var states []string
	for _, s := range e.states {
		if !strings.Contains(s, "calendar.create") {
			states = append(states, s)
		}
	}
	return states
}

// honest works every distribution out of a hash of the state and the question.
func honest(state []byte, asked []questions.Question) engine.Reply {
	reply := engine.Reply{PromptTokens: len(state), ReusedTokens: len(state) / 2}
	for _, q := range asked {
		reply.Distributions = append(reply.Distributions, distribution(state, q))
	}
	return reply
}

func distribution(state []byte, q questions.Question) engine.Distribution {
	h := sha256.New()
	h.Write(state)
	h.Write([]byte(q.Name))
	seed := h.Sum(nil)
	n := len(q.PromptLabels())
	p := make([]float64, n)
	sum := 0.0
	for i := range p {
		p[i] = 1 + float64(binary.BigEndian.Uint16(seed[i%16:]))
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return engine.Distribution{Probabilities: p, Coverage: 0.75}
}

// running is a server that answers on loopback.
type running struct {
	*Server
	engine   *scripted
	url      string
	listener net.Listener
	registry *prometheus.Registry
	log      *testkit.Log
	client   *http.Client
	stop     context.CancelCauseFunc
	result   chan error
}

// launch starts a server; change may alter its options first.
func launch(t testing.TB, e *scripted, change ...func(*Options)) *running {
	t.Helper()
	r := &running{engine: e, registry: prometheus.NewRegistry(), log: &testkit.Log{}, result: make(chan error, 1)}
	o := Options{Engine: e, Registry: r.registry, Logger: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, f := range change {
		f(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.Server = s
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.listener = l
	r.url = "http://" + l.Addr().String()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	r.client = &http.Client{Transport: transport}
	ctx, cancel := context.WithCancelCause(context.Background()) //nolint:usetesting // it ends after the test's own context, by Cleanup
	r.stop = cancel
	go func() { r.result <- s.Serve(ctx, l, s.Handler(r.registry), nil) }()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel(ErrLeaveNow)
		select {
		case <-r.result:
		case <-time.After(20 * time.Second):
			t.Error("the server does not end")
		}
	})
	return r
}

// start starts a server and waits until it is ready.
func start(t testing.TB, e *scripted, change ...func(*Options)) *running {
	t.Helper()
	r := launch(t, e, change...)
	eventually(t, "the server is ready", r.Ready)
	return r
}

// ended waits for the end of Serve, and leaves it for Cleanup.
func (r *running) ended(t testing.TB) error {
	t.Helper()
	select {
	case err := <-r.result:
		r.result <- err
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("the server does not end")
		return nil
	}
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for range 5000 {
		if is() {
			return
		}
		<-ticker.C
	}
	t.Fatalf("in vain: %s", what)
}

type response struct {
	status int
	header http.Header
	body   string
}

func (r *running) post(t testing.TB, body string, header ...string) response {
	t.Helper()
	got, err := r.send(t.Context(), http.MethodPost, PathSystemOne, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (r *running) get(t testing.TB, path string) response {
	t.Helper()
	got, err := r.send(t.Context(), http.MethodGet, path, "")
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (r *running) send(ctx context.Context, method, path, body string, header ...string) (response, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, strings.NewReader(body))
	if err != nil {
		return response{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, string(text)}, err
}

const oneQuestion = `"questions":{"q":{"type":"noul","instructions":"Is it?"}}`

func asks(state string) string { return `{"state":` + state + `,` + oneQuestion + `}` }
