//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatewright.dev/gatewright/api/review/v1alpha1"
)

// load is calls of the agent's pod while other things happen.
type load chan loaded

type loaded struct {
	out string
	err error
}

// load lets the agent's pod send one call again and again, for so many seconds, with so many callers, each with a pause of so
// many milliseconds between its calls.
func (c *cluster) load(t *testing.T, r v1alpha1.Request, seconds, callers, pause int) load {
	t.Helper()
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	l := make(load, 1)
	go func() {
		out, err := c.run(t.Context(), string(body), filepath.Join(c.bin, "kubectl"), "-n", shop, "exec", "-i", agent, "--",
			"/agent", "load", strconv.Itoa(seconds), strconv.Itoa(callers), strconv.Itoa(pause))
		l <- loaded{out, err}
	}()
	return l
}

// answers waits for the end of the load.
func (l load) answers(t *testing.T) []answer {
	t.Helper()
	r := <-l
	if r.err != nil {
		t.Fatal(r.err)
	}
	return answers(t, r.out)
}

// inBackground lets a pod of its own, injected like the agent's, send one call again and again: nothing hangs on a connection
// to the API server then.
func (c *cluster) inBackground(t *testing.T, name string, r v1alpha1.Request, seconds int) {
	t.Helper()
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	c.apply(t, file(t, "load.yaml", "NAME", name, "SECONDS", strconv.Itoa(seconds), "CALL", strconv.Quote(string(body))))
	c.kubectl(t, "-n", shop, "wait", "--for=condition=Ready", "pod/load-"+name, "--timeout=60s")
}

// stop ends the load of such a pod before its time, and gives the answers that it got, from the first that came from a gate:
// the rules of the network take a moment to know a new pod.
func (c *cluster) stop(t *testing.T, name string) []answer {
	t.Helper()
	id := c.kubectl(t, "-n", shop, "get", "pod", "load-"+name, "-o", "jsonpath={.status.containerStatuses[0].containerID}")
	if out, err := c.run(t.Context(), "", filepath.Join(c.root, "hack/node/kill.sh"), strings.TrimPrefix(id, "containerd://"), "SIGTERM"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	all := c.loadAnswers(t, name)
	first := slices.IndexFunc(all, func(a answer) bool { return a.Response.By != "client" })
	return all[max(first, 0):]
}

// loadAnswers are the answers that such a pod got.
func (c *cluster) loadAnswers(t *testing.T, name string) []answer {
	t.Helper()
	eventually(t, 2*time.Minute, func() error {
		phase, err := c.try(t, "-n", shop, "get", "pod", "load-"+name, "-o", "jsonpath={.status.phase}")
		if err != nil || phase != "Succeeded" {
			return fmt.Errorf("pod load-%s is %q: %w", name, phase, err)
		}
		return nil
	})
	return answers(t, c.kubectl(t, "-n", shop, "logs", "load-"+name))
}
