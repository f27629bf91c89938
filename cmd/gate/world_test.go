package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/keyring"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/pki"
	"gatewright.dev/gatewright/internal/served"
	"gatewright.dev/gatewright/internal/testkit"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// world is an installation on a real API server, of which the gates are real and the rest is written down.
type world struct {
	server    *kubetest.Server
	client    client.Client
	authority *pki.Authority
	keys      string
	guarded   time.Time // when the admission policies were written
}

// newWorld installs what the chart does: accounts, roles and the admission policies that guard approvals.
func newWorld(t *testing.T, s *kubetest.Server) *world {
	t.Helper()
	s.EnsureNamespace(t, names.Namespace)
	s.Apply(t, "config/rbac/accounts.yaml", "config/rbac/gate.yaml", "config/rbac/approver.yaml", "config/admission")
	authority, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, appsv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(s.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{server: s, client: c, authority: authority, keys: t.TempDir(), guarded: time.Now()}
	for name, make := range map[string]func(clock.PassiveClock) ([]byte, error){
		names.KeySeal: keyring.NewFile, names.KeyPermit: keyring.NewFile, names.KeyAudit: audit.NewKeyFile,
	} {
		data, err := make(clock.RealClock{})
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(w.keys, name), data, 0o440) // as a Secret is mounted for a group
	}
	return w
}

func put(t *testing.T, path string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}

// issue writes a certificate of the installation's authority into a folder, as its Secret is mounted.
func (w *world) issue(t *testing.T, dir string, r pki.Request) {
	t.Helper()
	data, err := w.authority.Issue(time.Now(), r)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range data {
		put(t, filepath.Join(dir, name), value, 0o600)
	}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// running is a gate that runs.
type running struct {
	world       *world
	config      config
	url, status string
	agent       *http.Client
	log         *testkit.Log
	stop        func() error
}

// run starts a gate as the gate's service account, with the flags of a command line, and waits until it is ready.
func (w *world) run(t *testing.T, flags ...string) *running {
	t.Helper()
	g := w.start(t, flags...)
	eventually(t, "the gate is ready", func() error {
		code, body := g.about(t, "/readyz")
		if code != http.StatusOK {
			return fmt.Errorf("status %d: %s\n%s", code, body, g.log)
		}
		return nil
	})
	return g
}

func (w *world) start(t *testing.T, flags ...string) *running {
	t.Helper()
	dir := t.TempDir()
	w.issue(t, filepath.Join(dir, "tls"), pki.Request{Name: "gate", DNSNames: []string{"gate.test"}, Usage: x509.ExtKeyUsageServerAuth})
	w.issue(t, filepath.Join(dir, "client"), pki.Request{Name: "gate", Usage: x509.ExtKeyUsageClientAuth})
	g := &running{world: w, log: &testkit.Log{}}
	args := append([]string{
		"-kubeconfig", w.server.KubeconfigOf(t, w.server.ServiceAccount(t, names.Namespace, names.GateServiceAccount)),
		"-listen", "127.0.0.1:0", "-status-listen", "127.0.0.1:0", "-tls-dir", filepath.Join(dir, "tls"), "-decider-client-dir", filepath.Join(dir, "client"),
		"-keys-dir", w.keys, "-audit-key", filepath.Join(w.keys, names.KeyAudit), "-audit-log", filepath.Join(dir, "audit.jsonl"),
		"-external-tokens-dir", filepath.Join(dir, "tokens"), "-shutdown-delay", "0s",
	}, flags...)
	c, err := parse(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	addresses := make(chan [2]net.Addr, 1)
	c.listening = func(callers, status net.Addr) { addresses <- [2]net.Addr{callers, status} }
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, c, g.log) }()
	g.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		if err := g.stop(); err != nil {
			t.Errorf("the gate ended: %v\n%s", err, g.log)
		}
	})
	select {
	case a := <-addresses:
		g.url, g.status = "https://"+a[0].String(), "http://"+a[1].String()
	case err := <-ended:
		ended <- err
		t.Fatalf("the gate did not start: %v\n%s", err, g.log)
	}
	g.config = c
	g.agent = w.trusting("gate.test")
	return g
}

// trusting is a client that knows a server by the installation's authority, as an injected pod does.
func (w *world) trusting(name string) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.authority.Bundle())
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS12}}}
}

// about asks at the status address.
func (g *running) about(t *testing.T, path string) (int, string) {
	t.Helper()
	reply, err := http.Get(g.status + path)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(body)
}

func (g *running) served(t *testing.T) served.Report {
	t.Helper()
	code, body := g.about(t, names.ServedPath)
	var out served.Report
	if err := json.Unmarshal([]byte(body), &out); err != nil || code != http.StatusOK {
		t.Fatalf("status %d, %v: %s", code, err, body)
	}
	return out
}

// metric gives the value of a sample as /metrics writes it, empty if there is none.
func (g *running) metric(t *testing.T, sample string) string {
	t.Helper()
	_, body := g.about(t, "/metrics")
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), sample+" "); ok {
			return value
		}
	}
	return ""
}

// call is one proposed call.
type call struct {
	tool, user string
	arguments  map[string]any
}

// ask asks about a call with a token, and gives the HTTP status and the answer.
func (g *running) ask(t *testing.T, token string, c call) (int, *review.Response) {
	t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	if c.arguments == nil {
		c.arguments = map[string]any{}
	}
	body, err := json.Marshal(map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind, "request": map[string]any{
		"uid": id.String(), "tool": map[string]any{"name": c.tool}, "arguments": c.arguments, "context": map[string]any{"userRequest": c.user},
	}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+review.Path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	reply, err := g.agent.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	var out review.ToolCallReview
	if err := json.NewDecoder(reply.Body).Decode(&out); err != nil && reply.StatusCode == http.StatusOK {
		t.Fatal(err)
	}
	return reply.StatusCode, out.Response
}

// wants asks about a call until it comes to an outcome for a reason.
func (g *running) wants(t *testing.T, token string, c call, outcome review.Outcome, reason string) *review.Response {
	t.Helper()
	var last *review.Response
	eventually(t, fmt.Sprintf("%s of %s is %s %s", c.tool, c.user, outcome, reason), func() error {
		status, r := g.ask(t, token, c)
		if status != http.StatusOK || r.Outcome != outcome || r.Reason != reason {
			return fmt.Errorf("status %d, %+v\n%s", status, r, tail(g.log.String()))
		}
		last = r
		return nil
	})
	return last
}

// is asks about a call once.
func (g *running) is(t *testing.T, token string, c call, outcome review.Outcome, reason string) *review.Response {
	t.Helper()
	status, r := g.ask(t, token, c)
	if status != http.StatusOK || r.Outcome != outcome || r.Reason != reason {
		t.Fatalf("%s: status %d, %+v, want %s %s\n%s", c.tool, status, r, outcome, reason, tail(g.log.String()))
	}
	return r
}

func tail(s string) string { return s[max(0, len(s)-2000):] }

// eventually tries until it works, for as long as a busy machine may take.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(45 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatalf("never: %s: %v", what, err)
}

// policy writes a ToolPolicy.
func (w *world) policy(t *testing.T, namespace, name, spec string) {
	t.Helper()
	w.server.ApplyObjects(t, object(t, fmt.Sprintf("apiVersion: gatewright.dev/v1alpha1\nkind: ToolPolicy\nmetadata: {name: %s, namespace: %s}\nspec:\n%s", name, namespace, indent(spec))))
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ") + "\n"
}

// deleteAccount deletes a service account, so that no token of it counts any more.
func (w *world) deleteAccount(t *testing.T, namespace, name string) {
	t.Helper()
	if err := w.server.Client(t).CoreV1().ServiceAccounts(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// as is a client of a user.
func (w *world) as(t *testing.T, c *rest.Config) client.Client {
	t.Helper()
	out, err := client.New(c, client.Options{Scheme: w.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
