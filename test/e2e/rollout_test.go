//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gatewright.dev/gatewright/api/review/v1alpha1"
	resources "gatewright.dev/gatewright/api/v1alpha1"
)

// bar is between the model's answer to calls of ship and one half, where a high temperature brings it.
const bar = 60

// shadow has candidates compared on live calls: one that decides otherwise, and one that does not.
func (c *cluster) shadow(t *testing.T) {
	active, fingerprint := c.field(t, "decidermodel/smol", "{.status.active.name}"), c.field(t, "decidermodel/smol", "{.status.active.fingerprint}")
	c.apply(t, decided(t, "smol", fingerprint, bar, v1alpha1.Allow))
	c.must(t, time.Minute, ship("S-0"), v1alpha1.Allow, "ModelAnswered")
	c.inBackground(t, "shadow", ship("S-1"), 900)
	c.tries(t, fingerprint, 20000, 20)
	c.kubectl(t, "wait", `--for=jsonpath={.status.conditions[?(@.type=="Evaluated")].reason}=Shadowing`, "decidermodel/smol", "--timeout=180s")
	candidate := c.field(t, "decidermodel/smol", "{.status.candidate.name}")
	c.note(t, "candidate %s with another temperature: Evaluated is %s", candidate, c.condition(t, "smol", "Evaluated"))
	eventually(t, 4*time.Minute, func() error {
		if said := c.condition(t, "smol", "Evaluated"); !strings.HasPrefix(said, "False ShadowDisagreed") {
			return fmt.Errorf("%s", said)
		}
		return nil
	})
	c.note(t, "it decides otherwise: Evaluated is %s", c.condition(t, "smol", "Evaluated"))
	c.disagreed(t, candidate)
	if now := c.field(t, "decidermodel/smol", "{.status.active.name}"); now != active {
		t.Fatalf("the candidate that disagreed is active: %s", now)
	}
	seen, late := onTime(c.stop(t, "shadow"))
	for _, a := range seen {
		if a.Response.Outcome != v1alpha1.Allow || a.Response.Decision.Fingerprint != fingerprint {
			t.Errorf("while the candidate was compared: %s %s by fingerprint %s", a.Response.Outcome, a.Response.Reason, a.Response.Decision.Fingerprint)
		}
	}
	c.note(t, "%d calls meanwhile, each allowed by the active revision %s; %d more blocked because the machine was too busy", len(seen), active, late)
}

// onTime are the answers but for those that say that the machine is too busy: the decider or the API server took too long. Each
// is a Block, and has nothing to do with revisions: who is not there refuses.
func onTime(all []answer) (seen []answer, late int) {
	for _, a := range all {
		if slices.Contains([]string{"DeciderTimeout", "StaleSnapshot"}, a.Response.Reason) && a.Response.Outcome == v1alpha1.Block {
			late++
			continue
		}
		seen = append(seen, a)
	}
	return seen, late
}

// tries asks for a candidate of another temperature, compared on live calls.
func (c *cluster) tries(t *testing.T, fingerprint string, milli, decisions int) {
	t.Helper()
	c.kubectl(t, "patch", "decidermodel", "smol", "--type=merge", "-p", fmt.Sprintf(
		`{"spec":{"calibration":{"fingerprint":%q,"yesNoMilli":%d},"rollout":{"evaluation":null,"shadow":{"decisions":%d,"maxDisagreementPercent":10}}}}`, fingerprint, milli, decisions))
}

// disagreed reads what the gates have counted, by class, and that the status has as many.
func (c *cluster) disagreed(t *testing.T, candidate string) {
	t.Helper()
	var status resources.ShadowResult
	if err := json.Unmarshal([]byte(c.field(t, "decidermodel/smol", "{.status.candidate.shadow}")), &status); err != nil {
		t.Fatal(err)
	}
	want := []resources.ShadowClassResult{{Class: "Judged", Compared: status.Compared, Disagreed: status.Disagreed}}
	if status.Compared < 1 || status.Disagreed*2 < status.Compared || !slices.Equal(status.ByClass, want) {
		t.Fatalf("status has %+v", status)
	}
	var metrics []string
	for gate := range strings.FieldsSeq(c.kubectl(t, "-n", system, "get", "pods", "-l", "app.kubernetes.io/component=gate", "-o", "jsonpath={.items[*].metadata.name}")) {
		for line := range strings.Lines(c.kubectl(t, "get", "--raw", "/api/v1/namespaces/"+system+"/pods/"+gate+":8081/proxy/metrics")) {
			if strings.HasPrefix(line, "gatewright_shadow_compared_total{") && strings.Contains(line, `class="Judged"`) {
				metrics = append(metrics, "`"+strings.TrimSpace(line)+"`")
			}
		}
	}
	if !strings.Contains(strings.Join(metrics, " "), `same="false"`) {
		t.Fatalf("no metric of a disagreement: %v", metrics)
	}
	c.note(t, "status.candidate.shadow of %s: %d compared, %d with another outcome, %d without an answer; by class %+v; metrics of the gates: %s",
		candidate, status.Compared, status.Disagreed, status.Failed, status.ByClass, strings.Join(metrics, ", "))
}

// promoted lets a candidate that decides as the active one take over, and then the one before it again, with calls all the
// while. No fingerprint is pinned, or each change would be a mismatch until the policy follows; so no ladder may allow, and
// Clarify stands for an answer of the model.
func (c *cluster) promoted(t *testing.T) {
	before := c.field(t, "decidermodel/smol", "{.status.active.name}")
	fingerprint := c.field(t, "decidermodel/smol", "{.status.active.fingerprint}")
	c.apply(t, decided(t, "smol", "", bar, v1alpha1.Clarify))
	c.must(t, time.Minute, ship("R-0"), v1alpha1.Clarify, "ModelAnswered")
	c.inBackground(t, "rollback", ship("R-1"), 900)
	start := time.Now()
	c.tries(t, fingerprint, 1010, 10)
	eventually(t, 4*time.Minute, func() error { return c.serves(t, func(name string) bool { return name != before }) })
	after := c.field(t, "decidermodel/smol", "{.status.active.name}")
	c.note(t, "candidate %s, which decides the same, took over after %.1f s: Evaluated is %s", after, time.Since(start).Seconds(), c.condition(t, "smol", "Evaluated"))

	// Only once gates have asked it for a while is there something to roll back: the status is ahead of them.
	asked := 0
	eventually(t, time.Minute, func() error {
		got, err := c.review(t, ship("R-0"))
		if f := got.Decision.Fingerprint; err != nil || f == "" || f == fingerprint {
			return fmt.Errorf("answered by %q: %w", f, err)
		}
		if asked++; asked < 20 {
			return fmt.Errorf("answered %d times by the candidate", asked)
		}
		return nil
	})

	start = time.Now()
	c.note(t, "`kubectl gatewright model rollback smol --to %s`: %s", before, strings.TrimSpace(c.kubectl(t, "gatewright", "model", "rollback", "smol", "--to", before)))
	eventually(t, 4*time.Minute, func() error { return c.serves(t, func(name string) bool { return name == before }) })
	c.note(t, "%s serves again after %.1f s", before, time.Since(start).Seconds())
	start = time.Now()
	eventually(t, 4*time.Minute, func() error {
		out, err := c.try(t, "-n", system, "get", "pods", "-l", "gatewright.dev/decider-revision="+after, "-o", "name")
		if err != nil || strings.TrimSpace(out) != "" {
			return fmt.Errorf("pods of %s: %q %w", after, out, err)
		}
		return nil
	})
	c.note(t, "the pods of %s are gone %.1f s later", after, time.Since(start).Seconds())
	c.noneLost(t, c.stop(t, "rollback"))
	c.decides(t, "smol", ship("R-2"))
}

// serves says whether the active revision is as wanted.
func (c *cluster) serves(t *testing.T, wanted func(string) bool) error {
	t.Helper()
	if name := c.field(t, "decidermodel/smol", "{.status.active.name}"); !wanted(name) {
		return fmt.Errorf("%s serves: %s", name, c.condition(t, "smol", "Ready"))
	}
	return nil
}

// noneLost looks that each call was answered by one of the revisions, and by which.
func (c *cluster) noneLost(t *testing.T, all []answer) {
	t.Helper()
	seen, late := onTime(all)
	by, lost := []string{}, map[string]int{}
	for _, a := range seen {
		if a.Response.Reason != "ModelAnswered" || len(a.Response.Decision.Answers) == 0 {
			lost[string(a.Response.Outcome)+" "+a.Response.Reason]++
			continue
		}
		if f := a.Response.Decision.Fingerprint; len(by) == 0 || by[len(by)-1] != f {
			by = append(by, f)
		}
	}
	if len(lost) > 0 {
		t.Errorf("of %d calls these were lost: %v", len(all), lost)
	}
	distinct := map[string]bool{}
	for _, f := range by {
		distinct[f] = true
	}
	if len(distinct) != 2 || by[0] != by[len(by)-1] {
		t.Fatalf("want calls of one revision, then of another, then of the first: %v", by)
	}
	c.note(t, "%d calls over both changes, none lost: answered by %s, then by %s, then by the first again; %d more blocked because the machine was too busy",
		len(seen), by[0], by[1], late)
}
