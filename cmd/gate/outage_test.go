package main

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
)

// A gate whose API server is away goes on for a while, then judges only reads, and is as before once it is back.
func TestAnAPIServerThatIsAway(t *testing.T) {
	for name, state := range map[string]string{"refuses connections": isCut, "is silent": isSilent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, kubetest.Start(t))
			way, config := newWay(t, w.server.ServiceAccount(t, names.Namespace, names.GateServiceAccount))
			g := w.run(t, "-kubeconfig", w.server.KubeconfigOf(t, config), "-max-staleness", "12s", "-token-ttl", "1s")
			outage(t, w, g, way, state)
		})
	}
}

func outage(t *testing.T, w *world, g *running, way *way, state string) {
	namespace := w.server.Namespace(t)
	w.policy(t, namespace, "shop", shop)
	token := w.server.Token(t, namespace, "assistant", names.Audience)
	unseen := w.server.Token(t, namespace, "another", names.Audience)
	read, write, remove := call{tool: "orders.read"}, call{tool: "orders.note"}, call{tool: "orders.delete", user: "delete it"}
	g.wants(t, token, write, review.Allow, "RulesPassed")

	way.set(state)
	eventually(t, "the gate notices", func() error {
		s := g.metric(t, "gatewright_snapshot_age_seconds")
		if age, err := strconv.ParseFloat(s, 64); err != nil || age < 4 { // two beats were missed
			return fmt.Errorf("age %q", s)
		}
		return nil
	})
	g.is(t, unseen, write, review.Allow, "RulesPassed") // known by its signature
	g.is(t, unseen, remove, review.Block, "ApprovalUnavailable")
	if status, _ := g.ask(t, unseen[:len(unseen)-6]+"AAAAAA", read); status != http.StatusUnauthorized {
		t.Errorf("a token with a bad signature: status %d", status)
	}
	if g.metric(t, `gatewright_callers_total{result="offline"}`) == "" {
		t.Error("no caller was known by signature alone")
	}

	g.wants(t, token, write, review.Block, "StaleSnapshot")
	g.is(t, token, remove, review.Block, "StaleSnapshot")
	start := time.Now()
	g.is(t, token, read, review.Allow, "RulesPassed")
	if took := time.Since(start); took > time.Second {
		t.Errorf("a read took %s: it waited for an API server that is known to be away", took)
	}
	if code, _ := g.about(t, "/readyz"); code != http.StatusOK {
		t.Errorf("readyz %d: a gate that judges reads is ready", code)
	}
	w.policy(t, namespace, "shop", shop+"unknownTools: Confirm\n")
	w.deleteAccount(t, namespace, "another")

	way.set(isOpen)
	g.wants(t, token, write, review.Allow, "RulesPassed")
	eventually(t, "what changed meanwhile is in force", func() error {
		if status, r := g.ask(t, token, call{tool: "orders.pay"}); status != http.StatusOK || r.Outcome != review.Confirm {
			return fmt.Errorf("status %d, %+v", status, r)
		}
		if status, _ := g.ask(t, unseen, read); status != http.StatusUnauthorized {
			return fmt.Errorf("a service account that was deleted: status %d", status)
		}
		return nil
	})
}
