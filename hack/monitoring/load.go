package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"sigs.k8s.io/yaml"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/serve"
)

// Shares of what happens. People answer most questions in some seconds here, where real ones take minutes, so that a run
// of a minute has answers.
const (
	sampleShare   = 0.3  // of calls that are samples; the others are public cases
	answeredShare = 0.85 // of questions that somebody answers
	slipShare     = 0.06 // of answers that are not what the label says
	labelShare    = 0.35 // of decisions about public cases that are labelled
	strangerShare = 0.02 // of requests without a valid token
	brokenShare   = 0.01 // of requests that are no JSON
	meanAnswer    = 4 * time.Second
	longestAnswer = 20 * time.Second
)

// item is a call and who makes it.
type item struct {
	call      *review.ToolCallReview
	caller    string
	dangerous bool
	labelled  bool
}

// traffic is what agents, people and strangers send. The same seed sends the same calls in the same order.
type traffic struct {
	items   []item
	samples int // how many of items are samples; they come first
	tokens  map[string]string
	random  *rand.Rand
	counts
}

type counts struct {
	sent, confirmed, answered, labelled, refused, failed atomic.Int64
	// first is what went wrong first.
	first atomic.Pointer[string]
}

func (c *counts) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.first.CompareAndSwap(nil, &text)
	c.failed.Add(1)
}

func newTraffic(index string, cases []*evaluation.Case) (*traffic, error) {
	t := &traffic{tokens: map[string]string{}, random: rand.New(rand.NewPCG(1, 2))}
	data, err := os.ReadFile(index)
	if err != nil {
		return nil, err
	}
	var file struct {
		Calls []struct {
			File   string `json:"file"`
			Caller struct {
				Namespace      string `json:"namespace"`
				ServiceAccount string `json:"serviceAccount"`
			} `json:"caller"`
		} `json:"calls"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", index, err)
	}
	for _, e := range file.Calls {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(index), e.File))
		if err != nil {
			return nil, err
		}
		var call review.ToolCallReview
		if err := json.Unmarshal(data, &call); err != nil || call.Request == nil {
			return nil, fmt.Errorf("%s is no ToolCallReview: %w", e.File, err)
		}
		t.items = append(t.items, item{call: &call, caller: e.Caller.Namespace + "/" + e.Caller.ServiceAccount})
	}
	t.samples = len(t.items)
	for _, c := range cases { // each benchmark is an agent of its own
		t.items = append(t.items, item{
			call: c.Review(), caller: publicNamespace + "/" + strings.ToLower(c.Source), dangerous: c.IsDangerous(), labelled: true,
		})
	}
	if t.samples == 0 || len(cases) == 0 {
		return nil, fmt.Errorf("%s or the public cases hold no calls", index)
	}
	return t, nil
}

// plan is what will happen to one call, drawn before it is sent.
type plan struct {
	*item
	answered, slips, labels bool
	after                   time.Duration
}

func (t *traffic) next() plan {
	p := plan{
		answered: t.random.Float64() < answeredShare, slips: t.random.Float64() < slipShare, labels: t.random.Float64() < labelShare,
		after: min(longestAnswer, time.Duration(t.random.ExpFloat64()*float64(meanAnswer))),
	}
	if t.random.Float64() < sampleShare {
		p.item = &t.items[t.random.IntN(t.samples)]
	} else {
		p.item = &t.items[t.samples+t.random.IntN(len(t.items)-t.samples)]
	}
	return p
}

// maxAtOnce bounds the calls in flight, and maxFailed the calls that may go wrong before the run is worth nothing.
const maxAtOnce, maxFailed = 32, 5

// send sends calls at a rate that swings by half, and lets people answer. It returns once all answers are given.
func (t *traffic) send(ctx context.Context, g *gateProcess, duration time.Duration, rate float64) (string, error) {
	var wait sync.WaitGroup
	slots := make(chan struct{}, maxAtOnce)
	start := time.Now()
	for time.Since(start) < duration {
		swing := 1 + 0.5*math.Sin(2*math.Pi*time.Since(start).Seconds()/30)
		if err := pause(ctx, time.Duration(t.random.ExpFloat64()/(rate*swing)*float64(time.Second))); err != nil {
			return "", err
		}
		p, stranger, broken := t.next(), t.random.Float64() < strangerShare, t.random.Float64() < brokenShare
		slots <- struct{}{}
		wait.Go(func() {
			release := sync.OnceFunc(func() { <-slots })
			defer release()
			switch {
			case stranger:
				t.refuse(ctx, g, "a-token-that-nobody-has", []byte("{}"))
			case broken:
				t.refuse(ctx, g, t.tokens[p.caller], []byte("{"))
			default:
				t.one(ctx, g, p, release)
			}
		})
	}
	wait.Wait()
	if n := t.failed.Load(); n > maxFailed {
		return "", fmt.Errorf("%d requests went wrong, the first: %s", n, *t.first.Load())
	}
	return fmt.Sprintf("%d calls, %d put before a person, %d of them answered, %d labels, %d requests refused, %d went wrong",
		t.sent.Load(), t.confirmed.Load(), t.answered.Load(), t.labelled.Load(), t.refused.Load(), t.failed.Load()), nil
}

// one sends a call. If a person approves it, the agent sends it again, as agents do.
func (t *traffic) one(ctx context.Context, g *gateProcess, p plan, release func()) {
	r := t.ask(ctx, g, p.item)
	release() // people think elsewhere
	if r == nil {
		return
	}
	if p.labels && p.labelled {
		t.label(ctx, g, &p, r.Decision.ID)
	}
	if r.Outcome != review.Confirm || r.Approval == nil {
		return
	}
	t.confirmed.Add(1)
	if !p.answered || pause(ctx, p.after) != nil {
		return
	}
	outcome := "Approve"
	if p.dangerous != p.slips {
		outcome = "Reject"
	}
	if !t.decide(ctx, g, r.Approval.Name, outcome) {
		return
	}
	t.answered.Add(1)
	if outcome == "Approve" {
		t.ask(ctx, g, p.item)
	}
}

// label says what the case's authors said. What did not run may be answered before its record is in the file, and a person
// who is faster than the disk tries again.
func (t *traffic) label(ctx context.Context, g *gateProcess, p *plan, decision string) {
	label := serve.Label{Decision: decision, Outcome: review.Allow}
	if p.dangerous {
		label.Outcome = review.Block
	}
	body, err := json.Marshal(label)
	if err != nil {
		t.fail("%v", err)
		return
	}
	status, data := http.StatusNotFound, []byte(nil)
	for try := 0; try < 10 && status == http.StatusNotFound; try++ {
		if pause(ctx, time.Second) != nil {
			return
		}
		status, data = exchange(ctx, g.url+serve.LabelsPath, g.secret, body)
	}
	if status != http.StatusOK {
		t.fail("label %s: HTTP %d %s", body, status, data)
		return
	}
	t.labelled.Add(1)
}

// decide says what a person says of a call that waits. Somebody else may have decided it before: that is no failure.
func (t *traffic) decide(ctx context.Context, g *gateProcess, name, outcome string) bool {
	body, err := json.Marshal(serve.Verdict{Outcome: outcome})
	if err != nil {
		t.fail("%v", err)
		return false
	}
	status, data := exchange(ctx, g.url+serve.ApprovalsPath+"/"+name, g.secret, body)
	if status != http.StatusOK && status != http.StatusConflict {
		t.fail("%s of %s: HTTP %d %s", outcome, name, status, data)
	}
	return status == http.StatusOK
}

func (t *traffic) ask(ctx context.Context, g *gateProcess, i *item) *review.Response {
	call, request := *i.call, *i.call.Request
	request.UID = uuid.Must(uuid.NewV7()).String()
	call.Request = &request
	body, err := json.Marshal(call)
	if err != nil {
		t.fail("%s: %v", request.Tool.Name, err)
		return nil
	}
	t.sent.Add(1)
	status, data := exchange(ctx, g.url+review.Path, t.tokens[i.caller], body)
	var out review.ToolCallReview
	if json.Unmarshal(data, &out) != nil || status != http.StatusOK || out.Response == nil {
		t.fail("%s of %s: HTTP %d %s", request.Tool.Name, i.caller, status, data)
		return nil
	}
	return out.Response
}

// refuse sends what the gate has to refuse.
func (t *traffic) refuse(ctx context.Context, g *gateProcess, token string, body []byte) {
	if status, data := exchange(ctx, g.url+review.Path, token, body); status < 400 || status >= 500 {
		t.fail("%q was not refused: HTTP %d %s", body, status, data)
		return
	}
	t.refused.Add(1)
}

// exchange returns status and body of an answer, 0 if there is none.
func exchange(ctx context.Context, url, token string, body []byte) (int, []byte) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, nil
	}
	return answer.StatusCode, data
}
