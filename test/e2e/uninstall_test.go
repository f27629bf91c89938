//go:build e2e

package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatewright.dev/gatewright/api/review/v1alpha1"
)

func (c *cluster) uninstall(t *testing.T) {
	key := c.auditKey(t)
	start := time.Now()
	c.helm(t, "uninstall", "gatewright", "--namespace", system, "--wait", "--timeout", "3m")
	c.note(t, "`helm uninstall`: %.1f s", time.Since(start).Seconds())
	got, err := c.review(t, call("orders.read", map[string]any{"order": "A-1"}, "Show me order A-1."))
	if err != nil || got.Outcome == v1alpha1.Allow {
		t.Fatalf("without a gate: %v %+v", err, got)
	}
	c.note(t, "a call without a gate: %s %s by %s", got.Outcome, got.Reason, got.By)
	c.kubectl(t, "-n", system, "wait", "--for=delete", "pod", "-l", "app.kubernetes.io/component=gate", "--timeout=60s")
	for _, name := range []string{"audit-0", "audit-1"} {
		out, err := c.run(t.Context(), "", filepath.Join(c.root, ".cache/e2e/kubectl-gatewright"), "audit", "verify", "--key", key, filepath.Join(c.state, "volumes", name, "audit.jsonl"))
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if !strings.Contains(out, " 0 records behind that") {
			t.Errorf("a gate that ended has not signed the end of its log: %s", out)
		}
		c.note(t, "the log on volume %s, which stays: %s", name, strings.Join(strings.Fields(strings.ReplaceAll(out, c.state, "")), " "))
	}
	// Nothing that is left may be in the way of a namespace, a pod, or another installation.
	c.kubectl(t, "delete", "namespace", system, "--wait=true", "--timeout=120s")
	took := eventually(t, 2*time.Minute, func() error { return c.leftovers(t) })
	c.kubectl(t, "delete", "namespace", "outside", "--ignore-not-found", "--wait=true", "--timeout=120s")
	c.kubectl(t, "delete", "namespace", shop, "--wait=true", "--timeout=120s")
	c.kubectl(t, "delete", "persistentvolumes", "audit-0", "audit-1", "models")
	c.note(t, "no object of Gatewright in any namespace, those of agents included, %.1f s after the namespace was deleted", took.Seconds())
}

// auditKey keeps the key of the audit log, which goes with the namespace.
func (c *cluster) auditKey(t *testing.T) string {
	t.Helper()
	encoded := c.kubectl(t, "-n", system, "get", "secret", "gatewright-gate-keys", "-o", `jsonpath={.data.audit\.json}`)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "audit.json")
	if err := os.WriteFile(path, key, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// leftovers looks at every object of every kind for the product's name.
func (c *cluster) leftovers(t *testing.T) error {
	t.Helper()
	kinds := strings.Fields(c.kubectl(t, "api-resources", "--verbs=list", "-o", "name"))
	kinds = slices.DeleteFunc(kinds, func(kind string) bool {
		// Events tell what was; volumes are those of the node.
		return strings.HasPrefix(kind, "events") || kind == "persistentvolumes" || kind == "nodes" ||
			kind == "csinodes.storage.k8s.io" || kind == "componentstatuses" || kind == "leases.coordination.k8s.io"
	})
	out, err := c.try(t, "get", strings.Join(kinds, ","), "-A", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}`)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "gatewright") {
			return fmt.Errorf("left: %s", strings.TrimSpace(line))
		}
	}
	return nil
}
