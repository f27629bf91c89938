package gate

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Told to end, a gate says so before it stops listening: who balances load must have the time to look elsewhere.
func TestAGateThatEndsIsNotReadyAndStillAnswers(t *testing.T) {
	f := newFixture(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- f.gate.Serve(ctx, l, f.gate.Routes(prometheus.NewRegistry()), time.Second)
	}()
	if got := status(t, l, "/readyz"); got != http.StatusOK {
		t.Errorf("before the end: %d", got)
	}
	cancel()
	for f.gate.Ready() {
		time.Sleep(time.Millisecond)
	}
	if got := status(t, l, "/readyz"); got != http.StatusServiceUnavailable {
		t.Errorf("ready when told to end: %d", got)
	}
	if got := status(t, l, "/healthz"); got != http.StatusOK {
		t.Errorf("no answer within the notice: %d", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

func status(t *testing.T, l net.Listener, path string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}
