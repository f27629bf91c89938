package peers_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// nonced is a request whose question has a name of its own, and whose state gives an answer of its own.
func nonced(nonce int) (id, body string) {
	id = fmt.Sprintf("q%d", nonce)
	return id, fmt.Sprintf(`{"state":"order %d of user %d","questions":{%q:{"type":"noul","instructions":"Is order %d a large one?"}}}`, nonce*7919, nonce, id, nonce)
}

// ask returns the answers of a reply as they are written, bit by bit.
func ask(t *testing.T, url, body string) map[string]json.RawMessage {
	t.Helper()
	for {
		answer, err := http.Post(url+"/v1/systemone", "application/json", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return nil
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusTooManyRequests {
			<-time.After(50 * time.Millisecond) // the queue is full, which is no answer and no crossed one
			continue
		}
		var reply struct {
			Answers map[string]json.RawMessage `json:"answers"`
		}
		if err != nil || answer.StatusCode != http.StatusOK || json.Unmarshal(text, &reply) != nil {
			t.Errorf("HTTP %d %s %v", answer.StatusCode, text, err)
			return nil
		}
		return reply.Answers
	}
}

var residentPattern = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// resident is the memory of a process in MiB.
func resident(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := residentPattern.FindSubmatch(text)
	if m == nil {
		t.Fatal("no VmRSS")
	}
	kib, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

func TestNoAnswerIsCrossedWithSixtyFourClients(t *testing.T) {
	const clients, requests, distinct, growth = 64, 300, 30, 64
	p := startDecider(t)
	alone := map[string]map[string]json.RawMessage{}
	different := map[string]bool{}
	for nonce := range distinct {
		id, body := nonced(nonce)
		alone[id] = ask(t, p.url, body)
		different[string(alone[id][id])] = true
	}
	if len(different) < distinct/2 {
		t.Fatalf("only %d of %d answers differ, so that crossed ones would not show", len(different), distinct)
	}
	before := resident(t, p.pid)
	var next atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for next.Add(1) <= requests {
				id, body := nonced(rand.IntN(distinct))
				if diff := cmp.Diff(alone[id], ask(t, p.url, body)); diff != "" {
					t.Errorf("%s: alone (-), among others (+):\n%s", id, diff)
				}
			}
		})
	}
	all.Wait()
	after := resident(t, p.pid)
	t.Logf("%d requests of %d clients, %d answers that differ; memory %d MiB before, %d MiB after", requests, clients, len(different), before, after)
	if after-before > growth {
		t.Errorf("memory grew by %d MiB, at most %d are wanted", after-before, growth)
	}
}
