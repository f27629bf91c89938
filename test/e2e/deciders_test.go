//go:build e2e

package e2e

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatewright.dev/gatewright/api/review/v1alpha1"
)

const modelFile = "SmolLM2-135M-Instruct.Q4_1.gguf"

// ship is the call that only the decider settles.
func ship(order string) v1alpha1.Request {
	return call("parcels.ship", map[string]any{"order": order}, "Ship order "+order+" today.")
}

func (c *cluster) decider(t *testing.T) {
	pinned := c.putModel(t, modelFile, func(b []byte) []byte { return b })
	c.model(t, "smol", claimed(modelFile), pinned)
	c.note(t, "DeciderModel with SmolLM2 135M from a volume claim Ready: %.1f s", c.ready(t, "smol").Seconds())
	got := c.decides(t, "smol", ship("C-1"))
	c.note(t, "`parcels.ship`: %s by %s, %s", got.Outcome, got.By, v1alpha1.AnswersText(got.Decision.Answers))

	pod := c.kubectl(t, "-n", system, "get", "pods", "-l", "app.kubernetes.io/component=decider", "-o", "jsonpath={.items[0].status.podIP}")
	c.reaches(t, pod+":8443", "no connection")
	c.note(t, "the agent's pod does not reach the decider's, from which the gate got the answer")
}

// model applies a DeciderModel of runtime LlamaCpp with a file.
func (c *cluster) model(t *testing.T, name, artifact, pinned string) {
	t.Helper()
	c.apply(t, file(t, "decider.yaml", "NAME", name, "SHA256", pinned, "ARTIFACT", artifact))
}

// claimed is a file on the volume of models.
func claimed(name string) string {
	return "type: PersistentVolumeClaim, persistentVolumeClaim: {claimName: models, path: " + name + "}"
}

// condition is what a DeciderModel says, as STATUS REASON: MESSAGE.
func (c *cluster) condition(t *testing.T, name, kind string) string {
	t.Helper()
	at := fmt.Sprintf("{.status.conditions[?(@.type==%q)].", kind)
	return c.field(t, "decidermodel/"+name, at+"status} "+at+"reason}: "+at+"message}")
}

// refused waits until a condition is False with a reason and all of the words in its message, and looks that nothing serves.
func (c *cluster) refused(t *testing.T, name, kind, reason string, words ...string) time.Duration {
	t.Helper()
	took := eventually(t, 4*time.Minute, func() error {
		said := c.condition(t, name, kind)
		if !strings.HasPrefix(said, "False "+reason+": ") {
			return fmt.Errorf("want %s False %s, got %s", kind, reason, said)
		}
		for _, word := range words {
			if !strings.Contains(said, word) {
				return fmt.Errorf("%s is not in %s", word, said)
			}
		}
		return nil
	})
	if active := c.field(t, "decidermodel/"+name, "{.status.active.name}"); active != "" {
		t.Fatalf("%s serves as %s", name, active)
	}
	return took
}

// ready waits until a DeciderModel is, and says how long that took.
func (c *cluster) ready(t *testing.T, name string) time.Duration {
	t.Helper()
	start := time.Now()
	c.kubectl(t, "wait", "--for=condition=Available", "decidermodel/"+name, "--timeout=300s")
	c.kubectl(t, "wait", "--for=condition=Ready", "decidermodel/"+name, "--timeout=120s")
	return time.Since(start)
}

// decides has the policy of the agents refer to a decider, whose answer whatever it is allows the call.
func (c *cluster) decides(t *testing.T, name string, r v1alpha1.Request) v1alpha1.Response {
	t.Helper()
	fingerprint := c.field(t, "decidermodel/"+name, "{.status.active.fingerprint}")
	c.apply(t, decided(t, name, fingerprint, 0, v1alpha1.Allow))
	var got v1alpha1.Response
	eventually(t, 2*time.Minute, func() error {
		var err error
		if got, err = c.review(t, r); err != nil {
			return err
		}
		if d := got.Decision; got.Outcome != v1alpha1.Allow || d.Decider != name || d.Fingerprint != fingerprint || len(d.Answers) == 0 {
			return fmt.Errorf("want Allow by an answer of %s %s, got %s %s: %+v", name, fingerprint, got.Outcome, got.Reason, d)
		}
		return nil
	})
	return got
}

// decided is the policy by which a decider's answers from a bar on have an outcome. An empty fingerprint pins none.
func decided(t *testing.T, name, fingerprint string, bar int, outcome v1alpha1.Outcome) string {
	t.Helper()
	pin := ""
	if fingerprint != "" {
		pin = fmt.Sprintf(", fingerprint: %q", fingerprint)
	}
	return file(t, "decided.yaml", "DECIDER PIN", name+pin, "BAR", strconv.Itoa(bar), "OUTCOME", string(outcome))
}

// field reads one field of an object without a namespace.
func (c *cluster) field(t *testing.T, object, path string) string {
	t.Helper()
	return c.kubectl(t, "get", object, "-o", "jsonpath="+path)
}

// putModel writes the model onto the volume of models, changed, and gives the SHA-256 of the original.
func (c *cluster) putModel(t *testing.T, name string, change func([]byte) []byte) string {
	t.Helper()
	model, err := os.ReadFile(filepath.Join(c.root, ".cache/models", modelFile))
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(model)
	if err := os.WriteFile(filepath.Join(c.state, "volumes/models", name), change(model), 0o644); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(digest[:])
}

func (c *cluster) tampered(t *testing.T) {
	var altered string
	pinned := c.putModel(t, "altered.gguf", func(b []byte) []byte {
		b[len(b)/2] ^= 1
		s := sha256.Sum256(b)
		altered = hex.EncodeToString(s[:])
		return b
	})
	c.model(t, "altered", claimed("altered.gguf"), pinned)
	took := c.refused(t, "altered", "Verified", "HashMismatch", pinned, altered)
	c.note(t, "one bit of the file changed: Verified=False with both hashes after %.1f s, nothing is active", took.Seconds())
	c.kubectl(t, "delete", "decidermodel", "altered", "--wait=true")
}

func (c *cluster) candidate(t *testing.T) {
	active := c.field(t, "decidermodel/smol", "{.status.active.name}")
	fingerprint := c.field(t, "decidermodel/smol", "{.status.active.fingerprint}")
	cases, ladder := file(t, "cases.jsonl"), file(t, "ladder.yaml", "FINGERPRINT", fingerprint)
	dir := t.TempDir()
	for name, text := range map[string]string{"cases.jsonl": cases, "ladder.yaml": ladder} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.kubectl(t, "-n", system, "create", "configmap", "cases", "--from-file="+dir)
	start := time.Now()
	c.kubectl(t, "patch", "decidermodel", "smol", "--type=merge", "-p", fmt.Sprintf(
		`{"spec":{"calibration":{"fingerprint":%q,"yesNoMilli":1500},"rollout":{"evaluation":{`+
			`"caseSet":{"type":"ConfigMap","configMapName":"cases","sha256":%q,"ladderSHA256":%q},"floors":{"recallPercent":100}}}}}`,
		fingerprint, sum(cases), sum(ladder)))
	eventually(t, 8*time.Minute, func() error {
		status := c.field(t, "decidermodel/smol", `{.status.conditions[?(@.type=="Evaluated")].status} {.status.conditions[?(@.type=="Evaluated")].reason}`)
		if status != "False FloorMissed" {
			return fmt.Errorf("Evaluated: %s", status)
		}
		return nil
	})
	if now := c.field(t, "decidermodel/smol", "{.status.active.name}"); now != active {
		t.Fatalf("the revision that missed its floors is active: %s instead of %s", now, active)
	}
	got := c.must(t, time.Minute, ship("C-2"), v1alpha1.Allow, "")
	if got.Decision.Fingerprint != fingerprint {
		t.Fatalf("decided by %s, not by %s", got.Decision.Fingerprint, fingerprint)
	}
	c.note(t, "candidate evaluated and refused after %.1f s: %s", time.Since(start).Seconds(),
		c.field(t, "decidermodel/smol", `{.status.conditions[?(@.type=="Evaluated")].message}`))
	c.note(t, "calls are still decided by the active revision %s", active)
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// answer is one line of the agent's load.
type answer struct {
	Started, Ended time.Time
	Response       v1alpha1.Response
}

func answers(t *testing.T, lines string) []answer {
	t.Helper()
	var all []answer
	scanner := bufio.NewScanner(strings.NewReader(lines))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var a answer
		if err := json.Unmarshal(scanner.Bytes(), &a); err != nil {
			t.Fatalf("%v in %q", err, scanner.Text())
		}
		all = append(all, a)
	}
	return all
}

func (c *cluster) killed(t *testing.T) {
	active := c.field(t, "decidermodel/smol", "{.status.active.name}")
	load := c.load(t, ship("C-3"), 40, 4, 100)
	time.Sleep(8 * time.Second) // some calls are allowed before
	dead := c.kill(t, active)
	c.judgeLoad(t, load.answers(t), dead)
	c.kubectl(t, "-n", system, "rollout", "status", "deployment/"+active, "--timeout=180s")
	c.must(t, 2*time.Minute, ship("C-4"), v1alpha1.Allow, "")
	c.note(t, "back: calls are decided again")
}

// interval is the time in which no process of the decider ran.
type interval struct{ from, to time.Time }

// kill ends the decider's process, the node's only one of this revision, and waits until the next one is ready.
func (c *cluster) kill(t *testing.T, revision string) interval {
	t.Helper()
	selector := "gatewright.dev/decider-revision=" + revision
	id := c.kubectl(t, "-n", system, "get", "pods", "-l", selector, "-o", `jsonpath={.items[0].status.containerStatuses[?(@.name=="decider")].containerID}`)
	id = strings.TrimPrefix(strings.TrimSpace(id), "containerd://")
	var dead interval
	out, err := c.run(t.Context(), "", filepath.Join(c.root, "hack/node/kill.sh"), id)
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	dead.from = time.Now()
	eventually(t, 3*time.Minute, func() error {
		status := c.kubectl(t, "-n", system, "get", "pods", "-l", selector, "-o", `jsonpath={.items[0].status.containerStatuses[?(@.name=="decider")]}`)
		if strings.Contains(status, id) && !strings.Contains(status, `"lastState":{"terminated"`) {
			return fmt.Errorf("not restarted: %s", status)
		}
		return nil
	})
	started := c.kubectl(t, "-n", system, "get", "pods", "-l", selector, "-o", `jsonpath={.items[0].status.containerStatuses[?(@.name=="decider")].state.running.startedAt}`)
	if dead.to, err = time.Parse(time.RFC3339, strings.TrimSpace(started)); err != nil {
		dead.to = dead.from
	}
	return dead
}

// judgeLoad checks that every Allow has the model's answers, and that none was given without a process to answer it.
func (c *cluster) judgeLoad(t *testing.T, all []answer, dead interval) {
	t.Helper()
	counts := map[string]int{}
	for _, a := range all {
		counts[string(a.Response.Outcome)+" "+a.Response.Reason]++
		if a.Response.Outcome != v1alpha1.Allow {
			continue
		}
		if len(a.Response.Decision.Answers) == 0 || a.Response.Decision.Fingerprint == "" {
			t.Errorf("allowed without an answer: %+v", a)
		}
		if a.Started.After(dead.from) && a.Ended.Before(dead.to) {
			t.Errorf("allowed while no decider ran: %+v", a)
		}
	}
	allowed, refused := 0, 0
	for what, n := range counts {
		if strings.HasPrefix(what, "Allow") {
			allowed += n
		} else {
			refused += n
		}
	}
	if allowed == 0 || refused == 0 {
		t.Errorf("want calls that were allowed and calls that were refused: %v", counts)
	}
	c.note(t, "4 callers over the death of the decider: %s; each Allow has the model's answers", counted(counts))
}
