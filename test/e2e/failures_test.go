//go:build e2e

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatewright.dev/gatewright/api/review/v1alpha1"
)

func (c *cluster) withoutAPIServer(t *testing.T) {
	// kubectl exec needs the API server, so the load runs on its own and its lines are read afterwards.
	const seconds = 45
	c.inBackground(t, "writes", call("orders.ship", map[string]any{"order": "D-1"}, "Ship order D-1."), seconds)
	c.inBackground(t, "reads", call("orders.read", map[string]any{"order": "D-1"}, "Show me order D-1."), seconds)
	c.inBackground(t, "deletions", call("orders.delete", map[string]any{"order": "D-1"}, "Delete order D-1."), seconds)
	time.Sleep(3 * time.Second)
	stopped := time.Now()
	if out, err := c.run(t.Context(), "", filepath.Join(c.root, "hack/node/apiserver.sh"), "stop"); err != nil {
		t.Fatal(err, out)
	}
	// After maxStaleness of values.yaml, which is 20 s, and the time that it takes to notice.
	time.Sleep(35 * time.Second)
	started := time.Now()
	if out, err := c.run(t.Context(), "", filepath.Join(c.root, "hack/node/apiserver.sh"), "start"); err != nil {
		t.Fatal(err, out)
	}
	c.note(t, "API server away for %.0f s", started.Sub(stopped).Seconds())
	for _, what := range []string{"reads", "writes", "deletions"} {
		c.away(t, what, stopped, started)
	}
	took := eventually(t, 2*time.Minute, func() error {
		_, err := c.try(t, "get", "--raw", "/readyz")
		return err
	})
	c.must(t, 2*time.Minute, call("orders.read", map[string]any{"order": "D-2"}, "Show me order D-2."), v1alpha1.Allow, "")
	c.must(t, 2*time.Minute, ship("D-3"), v1alpha1.Allow, "")
	c.note(t, "API server back: calls are decided as before, %.1f s after it answers", took.Seconds())
}

// away looks at what was answered without the API server.
func (c *cluster) away(t *testing.T, name string, stopped, started time.Time) {
	t.Helper()
	early, late := map[string]int{}, map[string]int{}
	for _, a := range c.loadAnswers(t, name) {
		switch what := string(a.Response.Outcome) + " " + a.Response.Reason; {
		case a.Started.Before(stopped) || a.Ended.After(started):
		case a.Started.Before(stopped.Add(30 * time.Second)):
			early[what]++
		default:
			late[what]++
		}
	}
	c.note(t, "%s: at first %s; after 30 s %s", name, counted(early), counted(late))
	if len(late) == 0 {
		t.Errorf("%s: nothing was asked when the policies were stale", name)
	}
	for what, n := range late {
		if name != "reads" && strings.HasPrefix(what, "Allow") {
			t.Errorf("%s: %d times %s by policies that nobody vouches for", name, n, what)
		}
		if name == "reads" && !strings.HasPrefix(what, "Allow") {
			t.Errorf("%s: %d times %s, though a read is decided by the policies that are known", name, n, what)
		}
	}
	for what, n := range early {
		if name == "deletions" && strings.HasPrefix(what, "Allow") {
			t.Errorf("%s: %d times %s without anybody's approval", name, n, what)
		}
	}
}
