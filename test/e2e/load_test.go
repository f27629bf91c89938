//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gatewright.dev/gatewright/api/review/v1alpha1"
)

// load is calls of the agent's pod while other things happen.
type load struct {
	done   chan loaded
	cancel context.CancelFunc
}

type loaded struct {
	out string
	err error
}

// load lets the agent's pod send one call again and again, for so many seconds at most, with so many callers, each with a pause
// of so many milliseconds between its calls.
func (c *cluster) load(t *testing.T, r v1alpha1.Request, seconds, callers, pause int) load {
	t.Helper()
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l := load{make(chan loaded, 1), cancel}
	go func() {
		out, err := c.run(ctx, string(body), filepath.Join(c.bin, "kubectl"), "-n", shop, "exec", "-i", agent, "--",
			"/agent", "load", strconv.Itoa(seconds), strconv.Itoa(callers), strconv.Itoa(pause))
		l.done <- loaded{out, err}
	}()
	return l
}

// answers waits for the end of the load.
func (l load) answers(t *testing.T) []answer {
	t.Helper()
	r := <-l.done
	if r.err != nil {
		t.Fatal(r.err)
	}
	return answers(t, r.out)
}

// stop ends the load, which must not have ended before.
func (l load) stop(t *testing.T) []answer {
	t.Helper()
	select {
	case r := <-l.done:
		t.Fatalf("the load ended before what it was to accompany: %v", r.err)
	default:
	}
	l.cancel()
	r := <-l.done
	return answers(t, r.out[:strings.LastIndex(r.out, "\n")+1]) // the last line may be cut off
}
