package inference

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"gatewright.dev/gatewright/internal/questions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a scripted HTTP server: it records what it gets and does what the test says.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	calls []call
}

type call struct {
	method, path, auth string
	body               []byte
}

func newServer(t *testing.T, handle func(w http.ResponseWriter, path string, body []byte)) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.calls = append(s.calls, call{r.Method, r.URL.Path, r.Header.Get("Authorization"), body})
		s.mu.Unlock()
		handle(w, r.URL.Path, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) recorded() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]call(nil), s.calls...)
}

func replies(status int, body string) func(http.ResponseWriter, string, []byte) {
	return func(w http.ResponseWriter, _ string, _ []byte) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func transport(t *testing.T) *http.Transport {
	tr := NewTransport()
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func builtin(t testing.TB, names ...string) []questions.Question {
	t.Helper()
	var all []questions.Question
	for _, name := range names {
		q, ok := questions.Builtin(name)
		if !ok {
			t.Fatalf("no built-in question %s", name)
		}
		all = append(all, q)
	}
	return all
}

func state(words string) questions.State {
	return questions.State{
		Tool:        questions.Tool{Name: "orders.refund", Server: "shop", Description: "Refunds an order"},
		Arguments:   map[string]any{"order": "5521", "private": "do-not-leak"},
		UserTurns:   []string{words},
		ToolResults: []string{"planted text"},
	}
}

func request(t testing.TB, names ...string) Request {
	return Request{Tenant: "ns", State: state("refund order 5521"), Questions: builtin(t, names...)}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// deciderFunc is a decider made of one function.
type deciderFunc func(ctx context.Context, r Request) (Result, error)

func (f deciderFunc) Decide(ctx context.Context, r Request) (Result, error) { return f(ctx, r) }
