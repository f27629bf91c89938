package main

import (
	"fmt"
	"net/http"
	"testing"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/served"
)

const shop = `
tools:
- {name: orders.read, class: ReadOnly}
- {name: orders.note, class: Noted}
- {name: orders.delete, class: Destructive}
classes:
- {name: Noted, base: Write, otherwise: {outcome: Allow}}
`

// The steps of a gate's life share two gates: starting one takes a while.
func TestTwoGatesOnARealAPIServer(t *testing.T) {
	w := newWorld(t, kubetest.Start(t))
	one, two := w.run(t), w.run(t)
	namespace, other := w.server.Namespace(t), w.server.Namespace(t)
	token := w.server.Token(t, namespace, "assistant", names.Audience)
	stranger := w.server.Token(t, other, "assistant", names.Audience)

	t.Run("who is not known is told 401 and no more", func(t *testing.T) {
		for name, bad := range map[string]string{
			"no token":                    "",
			"no token of a cluster":       "x.y.z",
			"a token for the API server":  w.server.Token(t, namespace, "assistant"),
			"a token for somebody else":   w.server.Token(t, namespace, "assistant", "vault"),
			"a token with another ending": token[:len(token)-6] + "AAAAAA",
		} {
			if status, r := one.ask(t, bad, call{tool: "orders.read"}); status != http.StatusUnauthorized || r != nil {
				t.Errorf("%s: status %d, %+v", name, status, r)
			}
		}
	})
	t.Run("a caller without a policy may do nothing", func(t *testing.T) {
		one.is(t, token, call{tool: "orders.read"}, review.Block, "NoPolicy")
	})
	t.Run("a policy comes into force at every gate, for its namespace alone", func(t *testing.T) {
		w.policy(t, namespace, "shop", shop)
		for _, g := range []*running{one, two} {
			g.wants(t, token, call{tool: "orders.read"}, review.Allow, "RulesPassed")
			g.is(t, token, call{tool: "orders.note"}, review.Allow, "RulesPassed")
			g.is(t, token, call{tool: "orders.pay"}, review.Block, "UnknownTool")
			g.is(t, stranger, call{tool: "orders.read"}, review.Block, "NoPolicy")
		}
	})
	t.Run("an edit is served as the next generation", func(t *testing.T) {
		key := served.PolicyKey(namespace, "shop")
		before := one.served(t).Policies[key]
		w.policy(t, namespace, "shop", shop+"unknownTools: Confirm\n")
		for _, g := range []*running{one, two} {
			eventually(t, "the next generation is served", func() error {
				if now := g.served(t).Policies[key]; now != before+1 {
					return fmt.Errorf("generation %d, was %d", now, before)
				}
				return nil
			})
		}
		one.is(t, token, call{tool: "orders.pay"}, review.Confirm, "UnknownTool")
	})
	t.Run("a policy that does not compile blocks its own scope", func(t *testing.T) {
		w.policy(t, other, "good", shop)
		one.wants(t, stranger, call{tool: "orders.read"}, review.Allow, "RulesPassed")
		w.policy(t, namespace, "bad", `tools: [{name: orders.read, class: ReadOnly, rules: [{name: r, when: "args.x ==", outcome: Block, message: m}]}]`)
		one.wants(t, token, call{tool: "orders.read"}, review.Block, "PolicyInvalid")
		one.is(t, stranger, call{tool: "orders.read"}, review.Allow, "RulesPassed")
		if got := one.metric(t, "gatewright_policies_invalid"); got != "1" {
			t.Errorf("gatewright_policies_invalid %q", got)
		}
		w.server.DeleteObjects(t, object(t, fmt.Sprintf("{apiVersion: gatewright.dev/v1alpha1, kind: ToolPolicy, metadata: {name: bad, namespace: %s}}", namespace)))
		one.wants(t, token, call{tool: "orders.read"}, review.Allow, "RulesPassed")
	})
	t.Run("the embedded judge answers once its revision is active", func(t *testing.T) { testEmbedded(t, w, other, stranger, one) })
	t.Run("a call that a person approved runs once, at one of the gates", func(t *testing.T) { testApproval(t, w, namespace, token, one, two) })
	t.Run("the user of a front door decides by its signature", func(t *testing.T) { testFrontDoor(t, w, one, two) })
	t.Run("a certificate of somebody else is shown without a restart", func(t *testing.T) { testForeignCertificate(t, w, one, token) })
	t.Run("the end is announced, and the log holds every decision", func(t *testing.T) {
		if err := two.stop(); err != nil {
			t.Fatal(err)
		}
		verifyLog(t, two)
	})
}
