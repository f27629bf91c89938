//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatewright.dev/gatewright/api/review/v1alpha1"
)

// TestInstallation goes through the life of an installation. Each step builds on those before it, so the first that fails
// is the last.
func TestInstallation(t *testing.T) {
	c := newCluster(t)
	steps := []struct {
		name string
		run  func(*cluster, *testing.T)
	}{
		{"the chart installs and helm test passes", (*cluster).install},
		{"an agent finds the gate by what is injected, and every outcome is seen", (*cluster).outcomes},
		{"an approval by another user lets the call through once", (*cluster).approval},
		{"the network lets agents reach the gate and nothing else", (*cluster).network},
		{"the doctor finds nothing broken", (*cluster).doctor},
		{"a real model in a pod of its own decides", (*cluster).decider},
		{"an altered model file is refused", (*cluster).tampered},
		{"a model comes by an image volume and by download and in the decider image", (*cluster).artifacts},
		{"an image of others decides behind our front", (*cluster).foreign},
		{"a server outside decides", (*cluster).external},
		{"a decider that is killed under load allows nothing", (*cluster).killed},
		{"a candidate that misses its floors gets no traffic", (*cluster).candidate},
		{"a candidate is compared on live calls and decides nothing", (*cluster).shadow},
		{"a candidate that agrees takes over, and a rollback loses no call", (*cluster).promoted},
		{"an upgrade loses no call and no approval", (*cluster).upgrade},
		{"without the API server nothing is allowed that needs it", (*cluster).withoutAPIServer},
		{"calls are recorded in NATS and blocked without it", (*cluster).stream},
		{"uninstalling leaves nothing", (*cluster).uninstall},
		{"it installs without Helm too", (*cluster).kustomized},
	}
	only := os.Getenv("GATEWRIGHT_E2E_ONLY") // for work on one step: words of names, and "|" between them
	for _, step := range steps {
		if only != "" && !matches(step.name, only) {
			continue
		}
		start := time.Now()
		fmt.Fprintf(c.report, "\n## %s\n\n", strings.ToUpper(step.name[:1])+step.name[1:])
		passed := t.Run(step.name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					c.dump(t)
				}
			})
			step.run(c, t)
			c.note(t, "passed in %.1f s", time.Since(start).Seconds())
		})
		if !passed {
			break
		}
	}
	if path := os.Getenv("GATEWRIGHT_E2E_REPORT"); path != "" && !t.Failed() {
		if err := os.WriteFile(path, []byte(c.report.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
}

func matches(name, only string) bool {
	for words := range strings.SplitSeq(only, "|") {
		if strings.Contains(name, words) {
			return true
		}
	}
	return false
}

func (c *cluster) install(t *testing.T) {
	c.prepare(t, "volumes")
	start := time.Now()
	c.helm(t, "install", "gatewright", "charts/gatewright", "--namespace", system, "--values", "test/e2e/values.yaml", "--wait", "--timeout", "5m")
	c.note(t, "`helm install --wait` until two managers and two gates are ready: %.1f s", time.Since(start).Seconds())
	start = time.Now()
	c.helm(t, "test", "gatewright", "--namespace", system, "--timeout", "3m")
	c.note(t, "`helm test`: a call of a test pod is allowed, %.1f s", time.Since(start).Seconds())
}

// prepare makes the namespace and the volumes, which have to be there before an installation. A log needs the key that it
// was begun with, so an installation with keys of its own gets a folder of its own.
func (c *cluster) prepare(t *testing.T, folder string) {
	t.Helper()
	volumes := filepath.Join(c.state, folder)
	for _, name := range []string{"audit-0", "audit-1", "models"} {
		dir := filepath.Join(volumes, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		// A volume of the host is not handed over to the group of the pod, as others are.
		if err := os.Chown(dir, 65532, 65532); err != nil {
			t.Fatal(err)
		}
	}
	c.kubectl(t, "apply", "-f", "config/namespace/namespace.yaml")
	c.apply(t, file(t, "volumes.yaml", "VOLUMES", volumes))
}

// startAgent makes the namespace of the agents with its policy, and a pod in it.
func (c *cluster) startAgent(t *testing.T) {
	t.Helper()
	c.apply(t, file(t, "agents.yaml"))
	c.apply(t, file(t, "policy.yaml"))
	eventually(t, time.Minute, func() error {
		_, err := c.try(t, "-n", shop, "get", "configmap", "gatewright-ca")
		return err
	})
	start := time.Now()
	c.apply(t, file(t, "agent.yaml"))
	c.kubectl(t, "-n", shop, "wait", "--for=condition=Ready", "pod/"+agent, "--timeout=120s")
	c.note(t, "pod of the agent Ready with the injected address, authority and token: %.1f s", time.Since(start).Seconds())
	c.kubectl(t, "-n", shop, "wait", "--for=condition=Ready", "toolpolicy/shop", "--timeout=60s")
}

func (c *cluster) outcomes(t *testing.T) {
	c.startAgent(t)
	for _, want := range []struct {
		request v1alpha1.Request
		outcome v1alpha1.Outcome
		reason  string
	}{
		{call("orders.read", map[string]any{"order": "A-1"}, "Show me order A-1."), v1alpha1.Allow, ""},
		{call("orders.ship", map[string]any{}, "Ship it."), v1alpha1.Clarify, ""},
		{call("orders.delete", map[string]any{"order": "A-1"}, "Delete order A-1."), v1alpha1.Confirm, ""},
		{call("orders.burn", map[string]any{}, "Burn it all."), v1alpha1.Block, "UnknownTool"},
	} {
		got := c.must(t, time.Minute, want.request, want.outcome, want.reason)
		c.note(t, "`%s`: %s %s by %s", want.request.Tool.Name, got.Outcome, got.Reason, got.By)
	}
}

func (c *cluster) approval(t *testing.T) {
	remove := call("orders.delete", map[string]any{"order": "B-7"}, "Delete order B-7.")
	got := c.must(t, time.Minute, remove, v1alpha1.Confirm, "")
	if got.Approval == nil || got.Approval.Name == "" {
		t.Fatalf("no approval in %+v", got)
	}
	name := got.Approval.Name
	c.note(t, "`kubectl get ta`: %s", strings.Join(strings.Fields(c.kubectl(t, "-n", shop, "get", "ta", name, "--no-headers")), " "))
	decision := `{"spec":{"decision":{"outcome":"Approve","message":"seen"}}}`
	as := func(user string) []string {
		return []string{"--as=" + user, "-n", shop, "patch", "ta", name, "--type=merge", "-p", decision}
	}
	for _, user := range []string{"dave", "system:serviceaccount:shop:assistant"} {
		out, err := c.try(t, as(user)...)
		if err == nil {
			t.Fatalf("%s approved: %s", user, out)
		}
		c.note(t, "%s cannot approve: %s", user, firstLine(err))
	}
	c.approve(t, name)
	allowed := c.must(t, 30*time.Second, remove, v1alpha1.Allow, "")
	c.note(t, "carol approved: the call is allowed by %s", allowed.By)
	again, err := c.review(t, remove)
	if err != nil || again.Outcome == v1alpha1.Allow {
		t.Fatalf("the second call after one approval: %v %+v", err, again)
	}
	c.note(t, "the same call again: %s %s", again.Outcome, again.Reason)
}

// approve decides as carol does: with the plugin, and a certificate of hers.
func (c *cluster) approve(t *testing.T, name string) {
	t.Helper()
	kubeconfig, err := c.run(t.Context(), "", filepath.Join(c.root, "hack/node/pki.sh"), "user", "carol")
	if err != nil {
		t.Fatal(err)
	}
	out := c.kubectl(t, "gatewright", "approve", name, "--namespace", shop, "--kubeconfig", strings.TrimSpace(kubeconfig), "--yes", "--message", "seen")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	c.note(t, "`kubectl gatewright approve` shows carol the call in %d lines and says: %s", len(lines)-1, lines[len(lines)-1])
}

func (c *cluster) doctor(t *testing.T) {
	out, err := c.try(t, "gatewright", "doctor", "--output", "json", "--fail-on", "Error")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var findings []struct{ Severity, Object, Message string }
	if err := json.Unmarshal([]byte(out), &findings); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	c.note(t, "`kubectl gatewright doctor` finds no error")
	for _, f := range findings {
		if f.Severity == "Warning" {
			c.note(t, "it warns: %s: %s", f.Object, f.Message)
		}
	}
}

// firstLine is what a person reads of an error of kubectl.
func firstLine(err error) string {
	message := err.Error()
	if i := strings.Index(message, "exit status 1: "); i >= 0 {
		message = message[i+len("exit status 1: "):]
	}
	message, _, _ = strings.Cut(message, "\n")
	return message
}

func (c *cluster) network(t *testing.T) {
	gate := c.kubectl(t, "-n", system, "get", "pods", "-l", "app.kubernetes.io/component=gate", "-o", "jsonpath={.items[0].status.podIP}")
	manager := c.kubectl(t, "-n", system, "get", "pods", "-l", "app.kubernetes.io/component=manager", "-o", "jsonpath={.items[0].status.podIP}")
	for _, target := range []struct {
		address string
		want    string
	}{
		{gate + ":8443", "connected"}, {gate + ":8081", "no connection"}, {manager + ":8080", "no connection"}, {manager + ":8081", "no connection"},
	} {
		c.reaches(t, target.address, target.want)
	}
	c.note(t, "an agent reaches the gate on 8443; not its status port, and not the manager's metrics and probes")
}

// reaches tries from the agent's pod until the rules of the network say what they should.
func (c *cluster) reaches(t *testing.T, address, want string) {
	t.Helper()
	eventually(t, 30*time.Second, func() error {
		out, err := c.try(t, "-n", shop, "exec", agent, "--", "/agent", "reach", address)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(out, want) {
			return fmt.Errorf("%s: want %s, got %s", address, want, out)
		}
		return nil
	})
}
