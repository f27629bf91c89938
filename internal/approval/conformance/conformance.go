// Package conformance holds a store of approvals to what a gate relies on. Every store passes it, whatever it keeps them in.
package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/approval"
)

// Subject is an empty store, and what tells by which key it seals.
type Subject struct {
	approval.Store
	// Verify says whether what the store gives away is sealed.
	Verify func(*approval.Approval) error
	// TellsTime says that the store dates decisions by a clock of its own.
	TellsTime bool
	// People is how the store knows those who decide, LocalSecret if empty.
	People approval.ApproverType
}

// Run runs the whole suite. Each row opens a store of its own, whose time is that of the clock.
func Run(t *testing.T, open func(t *testing.T, c *clocktesting.FakePassiveClock) Subject) {
	t.Helper()
	for _, suite := range []map[string]func(w *world){lifecycle, deciding, rejecting} {
		for name, run := range suite {
			t.Run(name, func(t *testing.T) {
				c := clocktesting.NewFakePassiveClock(noon)
				subject := open(t, c)
				if subject.People == "" {
					subject.People = approval.LocalSecret
				}
				run(&world{T: t, Subject: subject, clock: c})
			})
		}
	}
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const ttl = 10 * time.Minute

// person is somebody whom the store knows by name.
func (w *world) person(name string) approval.Approver {
	return approval.Approver{Type: w.People, Name: name}
}

// world is a store with its clock, and calls that must work.
type world struct {
	*testing.T
	Subject
	clock *clocktesting.FakePassiveClock
}

func (w *world) pass(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

func (w *world) raise(c approval.Call) approval.Approval {
	w.Helper()
	a, err := w.Raise(w.Context(), c)
	if err != nil {
		w.Fatalf("Raise: %v", err)
	}
	if err := w.Verify(&a); err != nil {
		w.Fatalf("what was raised is not sealed: %v", err)
	}
	return a
}

func (w *world) decide(name string, outcome approval.State) {
	w.Helper()
	if err := w.Decide(w.Context(), name, approval.Decision{Outcome: outcome, By: w.person("kim")}); err != nil {
		w.Fatalf("Decide: %v", err)
	}
}

func (w *world) consume(id string) {
	w.Helper()
	if err := w.Consume(w.Context(), id); err != nil {
		w.Fatalf("Consume: %v", err)
	}
}

func (w *world) wantState(name string, want approval.State) {
	w.Helper()
	a, err := w.Get(w.Context(), name)
	if err != nil || a.State != want {
		w.Fatalf("%s is %q (%v), want %s", name, a.State, err, want)
	}
	if ended := want == approval.Consumed || want == approval.Expired; ended != (a.EndedAt != nil) {
		w.Fatalf("%s is %s and ended at %v", name, want, a.EndedAt)
	}
}

func (w *world) wantErr(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("error %v, want %v", err, want)
	}
}

func (w *world) wantFound(b approval.Binding, want ...string) {
	w.Helper()
	found, err := w.Find(w.Context(), b)
	var names []string
	for i := range found {
		names = append(names, found[i].Name)
		if err := w.Verify(&found[i]); err != nil {
			w.Fatalf("what was found is not sealed: %v", err)
		}
	}
	if err != nil || !cmp.Equal(want, names) {
		w.Fatalf("Find = %v, %v; want %v", names, err, want)
	}
}

func call(change ...func(c *approval.Call)) approval.Call {
	c := approval.Call{
		Binding: approval.Binding{
			PolicyDigest: "sha256:01", Caller: "shop/agent", Server: "payments", Tool: "refund", ArgumentsDigest: "sha256:02",
			OnBehalfOf: "jo", Session: "sha256:03", UserTurnsDigest: "sha256:04", ConfirmReasons: []string{"Irreversible"},
		},
		Class: "Payments", Base: "Destructive", Message: "a person has to approve", UserRequest: "refund <the> order & \u2028",
		EarlierTurns: []string{"hello"}, OmittedTurns: 2, ToolDescription: "gives money back",
		Arguments: json.RawMessage(`{"amount":5,"note":"<b>&"}`), Sensitive: []string{"/card"}, Sources: map[string]string{"/amount": "User"},
		Answers: map[string]string{"asked": "0.2"}, Probabilities: map[string]float64{"asked": 0.2}, Fingerprint: "f:1",
		Reasons: []approval.Reason{{Key: "Irreversible", Reason: "Irreversible", Message: "cannot be undone"}}, InbandClaims: []string{"tool"},
		Policies: []string{"shop/p@3"}, Approvers: approval.Approvers{Channels: []approval.Channel{approval.ChannelKubernetes}}, RaisedAt: noon, ExpiresAt: noon.Add(ttl),
	}
	for _, f := range change {
		f(&c)
	}
	c.CallKey = approval.CallKey(c.Caller, c.Server, c.Tool, c.ArgumentsDigest, c.Session, "", c.UserTurnsDigest)
	return c
}

// later is the same call after a while.
func later(c *approval.Call) { c.RaisedAt, c.ExpiresAt = noon.Add(ttl), noon.Add(2*ttl) }

func withTool(tool string) func(*approval.Call) { return func(c *approval.Call) { c.Tool = tool } }

func withReasons(reasons ...string) func(*approval.Call) {
	return func(c *approval.Call) { c.ConfirmReasons = reasons }
}

func underAnotherPolicy(c *approval.Call) { c.PolicyDigest = "sha256:0c" }

func withApprovers(a approval.Approvers) func(*approval.Call) {
	return func(c *approval.Call) { c.Approvers = a }
}

// prefix is what the names of a call's approvals have before their number.
func prefix(c approval.Call) string {
	return "ta-" + strings.TrimPrefix(c.Digest(), "sha256:")[:20] + "-"
}

// encode writes a call as stores measure it.
func encode(c approval.Call) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(c)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}
