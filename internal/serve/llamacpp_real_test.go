package serve

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/inference/llama"
	"gatewright.dev/gatewright/internal/testkit"
)

// realModels lets tests run that take a minute and need what hack/llama/fetch.sh fetches: make test-peers sets it.
const realModels = "GATEWRIGHT_REAL_MODELS"

const (
	smollm2     = "SmolLM2-135M-Instruct.Q4_1.gguf"
	smollm2Hash = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
)

// realManifests allow by any answer at all, so that an Allow without one would be seen.
const realManifests = `
apiVersion: gatewright.dev/v1alpha1
kind: DeciderModel
metadata: {name: real}
spec:
  runtime: LlamaCpp
  artifact: {type: Bundled, bundled: {name: ` + smollm2 + `}, sha256: ` + smollm2Hash + `}
  contextTokens: 1024
  threads: 1
---
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: good, namespace: good}
spec:
  deciderRef: {name: real, fingerprint: %q}
  timeoutMilliseconds: 10000
  questions:
  - {name: red, type: YesNo, instructions: "Is it red?"}
  classes:
  - name: Write
    decider: Ask
    questions: [red]
    thresholds: [{when: [{question: red, atLeast: 0}], outcome: Allow, reason: Answered}]
    otherwise: {outcome: Confirm, reason: Unsure}
  tools: [{name: item.get, class: Write}]
`

// startReal serves with the real decider program and the real model.
func startReal(t *testing.T) *served {
	t.Helper()
	if os.Getenv(realModels) == "" {
		t.Skipf("takes a minute: set %s=1 once hack/llama/fetch.sh has run", realModels)
	}
	cache, err := filepath.Abs("../../.cache")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "decider")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/decider").CombinedOutput(); err != nil {
		t.Fatalf("building the decider: %v\n%s", err, out)
	}
	folder := t.TempDir()
	write(t, folder, "a.yaml", fmt.Sprintf(realManifests, llama.Fingerprint(smollm2Hash, llama.LabelLogits, nil)))
	return startWith(t, folder, &testkit.Log{}, func(c *Config) {
		c.Llama = LlamaConfig{Models: filepath.Join(cache, "models"), Decider: program, Library: filepath.Join(cache, "llama")}
	})
}

// processes returns the process IDs that became ready so far.
func (s *served) processes() []int {
	var all []int
	for line := range strings.SplitSeq(s.log.String(), "\n") {
		var entry struct {
			Message string `json:"msg"`
			PID     int    `json:"pid"`
		}
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Message == "decider process is ready" {
			all = append(all, entry.PID)
		}
	}
	return all
}

// load sends calls that were never sent before from several clients, until it is told to stop.
type load struct {
	stop              atomic.Bool
	allowed, withheld atomic.Int64
	clients           sync.WaitGroup
	// since is when the last call began that was allowed, in Unix nanoseconds.
	since atomic.Int64
}

func (l *load) run(t *testing.T, s *served, clients int) {
	for range clients {
		l.clients.Go(func() {
			for !l.stop.Load() {
				began := time.Now()
				got := s.askAnew(t)
				if got.Outcome == review.Allow {
					l.allowed.Add(1)
					l.since.Store(began.UnixNano())
					continue
				}
				l.withheld.Add(1)
				<-time.After(100 * time.Millisecond) // an agent that was refused does not take the processor from the decider
			}
		})
	}
}

// killAndRecover kills the process at a random moment and returns how long it was until a call that began after that was answered by a model.
func (l *load) killAndRecover(t *testing.T, s *served) time.Duration {
	t.Helper()
	before := s.processes()
	<-time.After(time.Duration(rand.Int64N(int64(3 * time.Second)))) // less and more than a start takes
	if err := syscall.Kill(before[len(before)-1], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	s.eventually(t, "another process", func() bool { return len(s.processes()) > len(before) })
	s.eventually(t, "an answer", func() bool { return l.since.Load() >= killed.UnixNano() })
	return time.Since(killed)
}

// Each kill is followed by one start, which succeeds, and by answers again. How long that takes is for the log: what it is
// on a quiet machine, no test on a busy one can tell.
func TestKillingTheDeciderProcessUnderLoadAllowsNothingWithoutAnAnswer(t *testing.T) {
	const kills = 20
	s := startReal(t)
	s.eventually(t, "the first answer", func() bool { return s.askAnew(t).Outcome == review.Allow })
	var l load
	l.run(t, s, 2)
	var took []time.Duration
	for range kills {
		took = append(took, l.killAndRecover(t, s))
	}
	l.stop.Store(true)
	l.clients.Wait()
	slices.Sort(took)
	t.Logf("%d kills: %d calls allowed, %d withheld; serving again after %v at least, %v in the median, %v at most", kills, l.allowed.Load(), l.withheld.Load(),
		took[0].Round(time.Millisecond), took[kills/2].Round(time.Millisecond), took[kills-1].Round(time.Millisecond))
	ended := strings.Count(s.log.String(), "decider process ended")
	if ready := len(s.processes()); ready != kills+1 || ended != kills {
		t.Errorf("%d processes became ready and %d ended, want %d and %d: one start for each kill", ready, ended, kills+1, kills)
	}
	if l.withheld.Load() == 0 || l.allowed.Load() == 0 {
		t.Error("the load has not met both a process and the lack of one")
	}
	answered, unanswered := countAllowed(t, s)
	if unanswered != 0 || answered < int(l.allowed.Load()) {
		t.Errorf("of the allowed calls %d records have an answer and %d have none; %d were allowed to the load", answered, unanswered, l.allowed.Load())
	}
}

// countAllowed counts the records of allowed calls by whether the model's answer and its fingerprint stand in them.
func countAllowed(t *testing.T, s *served) (answered, unanswered int) {
	t.Helper()
	for _, line := range s.records(t) {
		var r struct {
			Outcome     review.Outcome           `json:"outcome"`
			Answers     map[string]review.Answer `json:"answers"`
			Fingerprint string                   `json:"fingerprint"`
			ModelHash   string                   `json:"modelHash"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		switch {
		case r.Outcome != review.Allow:
		case r.Answers["red"].Probability != nil && r.Fingerprint != "" && r.ModelHash == smollm2Hash:
			answered++
		default:
			unanswered++
			t.Log(line)
		}
	}
	return answered, unanswered
}
