//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"gatewright.dev/gatewright/api/review/v1alpha1"
)

// kustomized installs without Helm, as the guide says, and takes it away again.
func (c *cluster) kustomized(t *testing.T) {
	overlay := filepath.Join(c.root, ".cache/e2e/overlay") // beside config/, by a path of this tree
	if err := os.MkdirAll(overlay, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(file(t, "kustomization.yaml")), 0o644); err != nil {
		t.Fatal(err)
	}
	c.prepare(t, "volumes-kustomize")
	start := time.Now()
	c.kubectl(t, "apply", "--server-side", "-k", overlay)
	c.kubectl(t, "-n", system, "rollout", "status", "deployment/gatewright-manager", "--timeout=240s")
	c.kubectl(t, "-n", system, "rollout", "status", "statefulset/gatewright-gate", "--timeout=240s")
	c.note(t, "`kubectl apply --server-side -k` of an overlay over config/default, until managers and gates are ready: %.1f s", time.Since(start).Seconds())
	c.startAgent(t)
	got := c.must(t, time.Minute, call("orders.read", map[string]any{"order": "A-1"}, "Show me order A-1."), v1alpha1.Allow, "")
	c.note(t, "`orders.read`: %s %s by %s", got.Outcome, got.Reason, got.By)
	c.kubectl(t, "delete", "-k", overlay, "--wait=true", "--timeout=240s")
	c.kubectl(t, "delete", "namespace", system, "--ignore-not-found", "--wait=true", "--timeout=120s")
	took := eventually(t, 2*time.Minute, func() error { return c.leftovers(t) })
	c.kubectl(t, "delete", "namespace", shop, "--wait=true", "--timeout=120s")
	c.kubectl(t, "delete", "persistentvolumes", "audit-0", "audit-1", "models")
	c.note(t, "`kubectl delete -k`: nothing is left, %.1f s after it", took.Seconds())
}
