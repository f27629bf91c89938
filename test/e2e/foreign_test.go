//go:build e2e

package e2e

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatewright.dev/gatewright/internal/pki"
)

// judgeCertificate is one for the server outside, by an authority that nobody trusts unless a DeciderModel names it.
func (c *cluster) judgeCertificate(t *testing.T) map[string][]byte {
	t.Helper()
	now := time.Now()
	authority, err := pki.NewAuthority(now)
	if err != nil {
		t.Fatal(err)
	}
	data, err := authority.Issue(now, pki.Request{Name: "judge", DNSNames: []string{"judge.outside.svc"}, Usage: x509.ExtKeyUsageServerAuth})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// foreign has llama-server decide, which is no software of ours: as an image behind our front.
func (c *cluster) foreign(t *testing.T) {
	digest := c.digest(t, "foreign")
	apply := func(name, digest, model string) {
		c.apply(t, file(t, "foreign.yaml", "NAME", name, "IMAGE", "localhost/foreign@"+digest, "MODEL", model))
	}
	apply("foreign", digest, "smollm2")
	took := c.ready(t, "foreign")
	got := c.decides(t, "foreign", ship("E-1"))
	c.note(t, "llama-server as an image by digest behind our front: Ready after %.1f s, Verified is %s", took.Seconds(), c.condition(t, "foreign", "Verified"))
	c.note(t, "`parcels.ship`: %s by %s", got.Outcome, got.By)
	pod := c.kubectl(t, "-n", system, "get", "pods", "-l", "gatewright.dev/decider-model=foreign", "-o", "jsonpath={.items[0].status.podIP}")
	c.reaches(t, pod+":8443", "no connection")
	c.reaches(t, pod+":8000", "no connection")

	other := "sha256:" + strings.Repeat("1", 64)
	apply("other-digest", other, "smollm2")
	c.refused(t, "other-digest", "Available", "Unavailable", other)
	c.note(t, "a digest that no image has: %s", c.condition(t, "other-digest", "Available"))
	apply("other-name", digest, "gpt")
	c.refused(t, "other-name", "Available", "DeciderMismatch", `"gpt"`)
	c.note(t, "another model than it names: %s", c.condition(t, "other-name", "Available"))
	c.unpinned(t)
	c.decides(t, "smol", ship("E-2"))
	c.kubectl(t, "delete", "decidermodel", "foreign", "other-digest", "other-name", "--wait=true")
}

// unpinned asks for an image by its tag.
func (c *cluster) unpinned(t *testing.T) {
	t.Helper()
	out, err := c.run(t.Context(), file(t, "foreign.yaml", "NAME", "by-tag", "IMAGE", "localhost/foreign:e2e", "MODEL", "smollm2"), c.bin+"/kubectl", "apply", "-f", "-")
	if err == nil {
		t.Fatalf("an image by its tag is taken: %s", out)
	}
	c.note(t, "an image by its tag: %s", firstLine(err))
}

// external has the same software decide as a server outside.
func (c *cluster) external(t *testing.T) {
	authority := c.kubectl(t, "-n", "outside", "get", "configmap", "judge-authority", "-o", `jsonpath={.data.ca\.crt}`)
	quoted, err := json.Marshal(authority)
	if err != nil {
		t.Fatal(err)
	}
	apply := func(name, protocol, model, authority string) {
		c.apply(t, file(t, "external.yaml", "NAME", name, "PROTOCOL", protocol, "MODEL", model, "CABUNDLE", authority))
	}
	for _, protocol := range []string{"SystemOne", "LlamaServer"} {
		name := "external-" + strings.ToLower(protocol)
		apply(name, protocol, "smollm2", string(quoted))
		c.ready(t, name)
		got := c.decides(t, name, ship("E-"+protocol))
		c.note(t, "a server outside, protocol %s: `parcels.ship` is %s by %s, fingerprint %s", protocol, got.Outcome, got.By, got.Decision.Fingerprint)
	}
	apply("external-other", "SystemOne", "gpt", string(quoted))
	c.refused(t, "external-other", "Available", "DeciderMismatch", `"gpt"`)
	c.note(t, "another model than it names: %s", c.condition(t, "external-other", "Available"))
	apply("external-stranger", "SystemOne", "smollm2", `""`)
	c.refused(t, "external-stranger", "Available", "Unavailable", "certificate")
	c.note(t, "without its authority: %s", c.condition(t, "external-stranger", "Available"))
	c.moved(t)
	c.decides(t, "smol", ship("E-3"))
	c.kubectl(t, "delete", "decidermodel", "external-systemone", "external-llamaserver", "external-other", "external-stranger", "--wait=true")
}

// moved lets the policy expect another fingerprint than the server has.
func (c *cluster) moved(t *testing.T) {
	t.Helper()
	c.apply(t, decided(t, "external-systemone", "sha256:"+strings.Repeat("2", 64), 0, "Allow"))
	eventually(t, time.Minute, func() error {
		got, err := c.review(t, ship("E-4"))
		if err != nil {
			return err
		}
		if got.Reason != "DeciderMismatch" || got.Outcome == "Allow" {
			return fmt.Errorf("got %s %s by %s", got.Outcome, got.Reason, got.By)
		}
		return nil
	})
	c.note(t, "a policy for another fingerprint than the server has: Block DeciderMismatch, ToolPolicy %s",
		c.kubectl(t, "-n", shop, "get", "toolpolicy", "shop", "-o", `jsonpath={.status.conditions[?(@.type=="ResolvedRefs")].reason}: {.status.conditions[?(@.type=="ResolvedRefs")].message}`))
}
