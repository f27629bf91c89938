package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
)

// killsEnv says how often a gate is killed; 10 times by default, which takes seconds.
const killsEnv = "GATEWRIGHT_KILLS"

const killPolicy = `
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: kill, namespace: default}
spec:
  tools: [{name: item.set, class: Write, decider: Skip, otherwise: {outcome: Allow}}]
`

// buildGate builds the binary as it is shipped.
func buildGate(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gatewright")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// killable is a gate in a process of its own.
type killable struct {
	*exec.Cmd
	url  string
	errs bytes.Buffer
}

func startKillable(t *testing.T, binary, work string) *killable {
	t.Helper()
	g := &killable{Cmd: exec.Command(binary, "serve", "--manifests", "policies", "--listen", "127.0.0.1:0", "--audit-rotate-mib", "1")}
	g.Dir, g.Stderr = work, &g.errs
	out, err := g.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	found := regexp.MustCompile(`http://\S+`).FindString(line)
	if err != nil || found == "" {
		_ = g.Wait()
		t.Fatalf("the gate did not start: %s%s", line, &g.errs)
	}
	g.url = found
	return g
}

// load asks until the gate is gone, and returns the decisions by which a call was allowed.
func (g *killable) load(ctx context.Context, callers int) []string {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	var mu sync.Mutex
	var allowed []string
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for {
				id, err := askOnce(ctx, client, g.url)
				if err != nil {
					return
				}
				mu.Lock()
				allowed = append(allowed, id)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	client.CloseIdleConnections()
	return allowed
}

func askOnce(ctx context.Context, client *http.Client, url string) (string, error) {
	body, err := json.Marshal(review.ToolCallReview{APIVersion: review.APIVersion, Kind: review.Kind, Request: &review.Request{
		UID: uuid.Must(uuid.NewV7()).String(), Tool: review.Tool{Name: "item.set"}, Arguments: map[string]any{"id": "7"},
	}})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+review.Path, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var out review.ToolCallReview
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil || out.Response == nil {
		return "", fmt.Errorf("no answer: %w", err)
	}
	if out.Response.Outcome != review.Allow {
		return "", fmt.Errorf("%s %s", out.Response.Outcome, out.Response.Reason)
	}
	return out.Response.Decision.ID, nil
}

// A gate that is killed at any moment under load has every Allow that it answered in its log, and the log is whole.
func TestKilledGatesLoseNoAllow(t *testing.T) {
	kills := 10
	if s := os.Getenv(killsEnv); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		kills = n
	}
	if testing.Short() {
		t.Skip("builds and kills gates")
	}
	binary, work := buildGate(t), t.TempDir()
	if err := os.Mkdir(filepath.Join(work, "policies"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "policies", "kill.yaml"), []byte(killPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	answered := map[string]bool{}
	for range kills {
		g := startKillable(t, binary, work)
		time.AfterFunc(time.Duration(10+rand.IntN(150))*time.Millisecond, func() { _ = g.Process.Kill() })
		for _, id := range g.load(t.Context(), 8) {
			answered[id] = true
		}
		if err := g.Wait(); err == nil {
			t.Fatal("the gate ended by itself")
		}
	}
	g := startKillable(t, binary, work) // sets a torn end aside
	if err := g.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &g.errs)
	}
	log := filepath.Join(work, "gatewright-audit.jsonl")
	out, errs, code := command(t, "", "audit", "verify", log, "--key", filepath.Join(work, "gatewright-audit-key.json"))
	if code != exitOK || !strings.Contains(out, "signed up to") {
		t.Errorf("verify: exit %d\n%s%s", code, out, errs)
	}
	stand := map[string]bool{}
	parts, err := audit.Parts(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := audit.QueryParts(t.Context(), parts, audit.Filter{Kind: audit.KindDecision}, func(e audit.Entry) error { stand[e.ID] = true; return nil }); err != nil {
		t.Fatal(err)
	}
	for id := range answered {
		if !stand[id] {
			t.Errorf("%s was allowed and is not in the log", id)
		}
	}
	if len(answered) < kills {
		t.Errorf("only %d calls were allowed", len(answered))
	}
	t.Logf("%d kills, %d calls allowed, %d recorded, %d files", kills, len(answered), len(stand), len(parts))
}
