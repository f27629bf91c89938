//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatewright.dev/gatewright/api/review/v1alpha1"
)

const stream = "GATEWRIGHT"

// stream records calls in NATS, with it and without it.
func (c *cluster) stream(t *testing.T) {
	c.startNATS(t)
	key := c.auditKey(t)
	start := time.Now()
	c.helm(t, "upgrade", "gatewright", "charts/gatewright", "--namespace", system, "--values", "test/e2e/values.yaml",
		"--set", "audit.sink=nats", "--set", "audit.nats.url=nats://nats.outside.svc:4222/"+stream, "--wait", "--timeout", "4m")
	c.kubectl(t, "-n", system, "rollout", "status", "deployment/gatewright-gate", "--timeout=120s")
	if out, err := c.try(t, "-n", system, "get", "statefulset", "gatewright-gate"); err == nil {
		t.Fatalf("the gate is a StatefulSet still: %s", out)
	}
	c.note(t, "`helm upgrade` from a log on volumes to NATS, gates as a Deployment: %.1f s", time.Since(start).Seconds())
	var ids []string
	for n := range 12 { // by connections of their own, so that both gates get some
		got := c.must(t, time.Minute, write(fmt.Sprintf("N-%d", n)), v1alpha1.Allow, "")
		ids = append(ids, got.Decision.ID)
	}
	c.inStream(t, key, ids)
	c.withoutNATS(t)
	got := c.must(t, 2*time.Minute, write("N-after"), v1alpha1.Allow, "")
	c.note(t, "NATS back: `orders.ship` is %s again", got.Outcome)
	c.inStream(t, key, append(ids, got.Decision.ID))
}

// write is a call that changes something.
func write(order string) v1alpha1.Request {
	return call("orders.ship", map[string]any{"order": order}, "Ship order "+order+".")
}

func (c *cluster) startNATS(t *testing.T) {
	t.Helper()
	dir := filepath.Join(c.state, "volumes/nats")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 65532, 65532); err != nil {
		t.Fatal(err)
	}
	c.apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: outside}\n")
	c.apply(t, file(t, "nats.yaml", "VOLUMES", filepath.Join(c.state, "volumes")))
	c.kubectl(t, "-n", "outside", "rollout", "status", "deployment/nats", "--timeout=120s")
}

// withoutNATS stops the server, asks, and starts it again.
func (c *cluster) withoutNATS(t *testing.T) {
	t.Helper()
	c.kubectl(t, "-n", "outside", "scale", "deployment/nats", "--replicas=0")
	c.kubectl(t, "-n", "outside", "wait", "--for=delete", "pod", "-l", "app=nats", "--timeout=60s")
	blocked := c.must(t, time.Minute, write("N-away"), v1alpha1.Block, "AuditUnavailable")
	read := c.must(t, time.Minute, call("orders.read", map[string]any{"order": "N-1"}, "Show me order N-1."), v1alpha1.Allow, "")
	c.note(t, "without NATS: `orders.ship` is %s %s, `orders.read` is %s", blocked.Outcome, blocked.Reason, read.Outcome)
	c.kubectl(t, "-n", "outside", "scale", "deployment/nats", "--replicas=1")
	c.kubectl(t, "-n", "outside", "rollout", "status", "deployment/nats", "--timeout=120s")
}

// inStream takes the logs out of the stream, checks them, and looks that the decisions are in them.
func (c *cluster) inStream(t *testing.T, key string, ids []string) {
	t.Helper()
	address := c.forward(t, "outside", "deployment/nats", 4222)
	cli := filepath.Join(c.root, ".cache/e2e/kubectl-gatewright")
	list, err := c.run(t.Context(), "", cli, "audit", "export", "nats://"+address+"/"+stream, "--list")
	if err != nil {
		t.Fatal(err)
	}
	logs := strings.Fields(list)
	if len(logs) < 2 {
		t.Fatalf("want a log for each of two gates: %v", logs)
	}
	var all strings.Builder
	for _, subject := range logs {
		lines, err := c.run(t.Context(), "", cli, "audit", "export", "nats://"+address+"/"+stream+"?subject="+subject)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := c.run(t.Context(), "", cli, "audit", "verify", "--key", key, path)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		all.WriteString(lines)
		c.note(t, "`audit export` of %s and `audit verify`: %s", subject, lastLine(strings.ReplaceAll(out, path, "audit.jsonl")))
	}
	for _, id := range ids {
		if !strings.Contains(all.String(), id) {
			t.Errorf("decision %s is in no log of the stream", id)
		}
	}
	c.note(t, "the %d calls of this step are in them", len(ids))
}

// lastLine is that of a text.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// forward opens a port of this machine that leads to one in a pod, until the end of the step. kubectl chooses a free one and
// says which.
func (c *cluster) forward(t *testing.T, namespace, pod string, port int) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "kubectl"), "--kubeconfig", filepath.Join(c.state, "pki/admin.kubeconfig"),
		"-n", namespace, "port-forward", "--address", "127.0.0.1", pod, fmt.Sprintf(":%d", port))
	said, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	var problem bytes.Buffer
	cmd.Stderr = &problem
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was ended
	})
	slow := time.AfterFunc(30*time.Second, cancel)
	lines := bufio.NewReader(said)
	line, err := lines.ReadString('\n') // Forwarding from 127.0.0.1:40123 -> 4222
	if !slow.Stop() || err != nil {
		cancel()
		_ = cmd.Wait()
		t.Fatalf("kubectl does not say which port it has opened: %q %v\n%s", line, err, &problem)
	}
	go func() { _, _ = lines.WriteTo(io.Discard) }() // it says each connection, and ends with kubectl
	rest, isThere := strings.CutPrefix(line, "Forwarding from ")
	address, _, isWhole := strings.Cut(rest, " -> ")
	if !isThere || !isWhole {
		t.Fatalf("kubectl says %q, and not from where it forwards", line)
	}
	return address
}
