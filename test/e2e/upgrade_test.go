//go:build e2e

package e2e

import (
	"testing"
	"time"

	"gatewright.dev/gatewright/api/review/v1alpha1"
)

// upgrade changes every pod while reads are asked about, and an approval that was given before is used after.
func (c *cluster) upgrade(t *testing.T) {
	remove := call("orders.delete", map[string]any{"order": "U-1"}, "Delete order U-1.")
	waiting := c.must(t, time.Minute, remove, v1alpha1.Confirm, "")
	c.approve(t, waiting.Approval.Name)
	load := c.load(t, call("orders.read", map[string]any{"order": "U-2"}, "Show me order U-2."), 60, 2, 100)
	before := c.pods(t)
	start := time.Now()
	c.helm(t, "upgrade", "gatewright", "charts/gatewright", "--namespace", system, "--values", "test/e2e/values.yaml", "--set-json", `commonLabels={"upgraded":"yes"}`, "--wait", "--timeout", "3m")
	c.kubectl(t, "-n", system, "rollout", "status", "statefulset/gatewright-gate", "--timeout=120s")
	c.note(t, "`helm upgrade` with new pods of managers and gates: %.1f s", time.Since(start).Seconds())
	if after := c.pods(t); after == before {
		t.Fatal("no pod is a new one")
	}
	lost := map[string]int{}
	all := load.answers(t)
	for _, a := range all {
		if a.Response.Outcome != v1alpha1.Allow {
			lost[string(a.Response.Outcome)+" "+a.Response.Reason]++
		}
	}
	if len(lost) > 0 || len(all) < 100 {
		t.Errorf("of %d calls during the upgrade these were not allowed: %v", len(all), lost)
	}
	c.note(t, "%d calls during it, each allowed", len(all))
	allowed := c.must(t, time.Minute, remove, v1alpha1.Allow, "")
	c.note(t, "an approval from before it: allowed by %s", allowed.By)
}

func (c *cluster) pods(t *testing.T) string {
	t.Helper()
	return c.kubectl(t, "-n", system, "get", "pods", "-l", "app.kubernetes.io/component in (gate,manager)", "-o", "jsonpath={.items[*].metadata.uid}")
}
