package proxy

import (
	"bufio"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"gatewright.dev/gatewright/permit"
)

// natsServer runs with JetStream in a folder of its own.
func natsServer(t *testing.T) *server.Server {
	t.Helper()
	s := must(server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true}))(t)
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server did not start")
	}
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s
}

func TestReplicasUseAPermitOnceTogether(t *testing.T) {
	nats := natsServer(t)
	gate, tools := newIssuer(t), newToolServer(t)
	replica := func() *running {
		c := defaults(t)
		c.Upstream, c.JWKS, c.Audience, c.Server = tools.URL, gate.url, "shop", "orders"
		c.Store, c.NATSURL, c.Replicas = StoreNATS, nats.ClientURL(), 2
		return run(t, c)
	}
	one, two := replica(), replica()
	const permits, tries = 6, 8
	for range permits {
		if diff := cmp.Diff(tally{ran: 1, used: tries - 1}, raceFor(t, []*running{one, two}, gate.permit(t, "refund", refundBody), tries), cmp.AllowUnexported(tally{})); diff != "" {
			t.Errorf("uses of one permit (-want +got):\n%s", diff)
		}
	}
	if n := len(tools.take()); n != permits {
		t.Errorf("%d calls arrived, want %d", n, permits)
	}
	token := gate.permit(t, "refund", refundBody)
	if got := send(t, "POST", one.url+"/tools/refund", refundBody, jsonWith(token)); got.status != 200 {
		t.Fatalf("HTTP %d %s", got.status, got.body)
	}
	one.stop()
	three := replica()
	for _, p := range []*running{two, three} {
		if got := send(t, "POST", p.url+"/tools/refund", refundBody, jsonWith(token)); codeIn(t, got) != "PermitUsed" {
			t.Errorf("after a replica was replaced: HTTP %d %s", got.status, got.body)
		}
	}
	nats.Shutdown()
	nats.WaitForShutdown()
	got := send(t, "POST", two.url+"/tools/refund", refundBody, jsonWith(gate.permit(t, "refund", refundBody)))
	if codeIn(t, got) != "PermitStoreUnavailable" {
		t.Errorf("without NATS: HTTP %d %s", got.status, got.body)
	}
	if ready := send(t, "GET", two.probes+"/readyz", "", nil); ready.status != 503 {
		t.Errorf("readiness without NATS: HTTP %d", ready.status)
	}
}

// Environment of the process that is killed.
const (
	envUpstream = "GATEWRIGHT_TEST_UPSTREAM"
	envJWKS     = "GATEWRIGHT_TEST_JWKS"
	envLog      = "GATEWRIGHT_TEST_PERMIT_LOG"
)

// TestProxyProcess is a proxy in a process of its own, for the test below.
func TestProxyProcess(t *testing.T) {
	if os.Getenv(envUpstream) == "" {
		t.Skip("runs as a process of another test")
	}
	c := defaults(t)
	c.Upstream, c.JWKS, c.PermitLog, c.Audience, c.Server = os.Getenv(envUpstream), os.Getenv(envJWKS), os.Getenv(envLog), "shop", "orders"
	c.Log = slog.New(slog.DiscardHandler)
	c.Listening = func(front, _ net.Addr) { _, _ = os.Stdout.WriteString("listening " + front.String() + "\n") }
	if err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// startProcess gives the address of a proxy in a process of its own, and what kills it.
func startProcess(t *testing.T, upstream, jwks, permitLog string) (address string, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), must(os.Executable())(t), "-test.run=^TestProxyProcess$")
	cmd.Env = append(os.Environ(), envUpstream+"="+upstream, envJWKS+"="+jwks, envLog+"="+permitLog)
	out := must(cmd.StdoutPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait() // says that it was killed
	})
	t.Cleanup(kill)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if a, ok := strings.CutPrefix(lines.Text(), "listening "); ok {
			return a, kill
		}
	}
	t.Fatal("the process does not listen")
	return "", kill
}

func TestAPermitIsGoodOnceThoughTheProxyIsKilled(t *testing.T) {
	gate, tools := newIssuer(t), newToolServer(t)
	permitLog := defaults(t).PermitLog
	header := jsonWith(gate.permit(t, "refund", refundBody))
	address, kill := startProcess(t, tools.URL, gate.url, permitLog)
	if got := send(t, "POST", "http://"+address+"/tools/refund", refundBody, header); got.status != 200 {
		t.Fatalf("HTTP %d %s", got.status, got.body)
	}
	kill()
	address, _ = startProcess(t, tools.URL, gate.url, permitLog)
	if got := send(t, "POST", "http://"+address+"/tools/refund", refundBody, header); codeIn(t, got) != "PermitUsed" {
		t.Errorf("after it was killed and started again: HTTP %d %s", got.status, got.body)
	}
	if n := len(tools.take()); n != 1 {
		t.Errorf("%d calls arrived, want 1", n)
	}
	if _, err := permit.OpenFile(permitLog, nil); err == nil {
		t.Error("a second process could have the file of used permits")
	}
}
