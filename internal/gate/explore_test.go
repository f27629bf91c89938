package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/policy"
)

// The explorer runs two real gates on one real store through every order in which their looks at the store, a person, the
// clock and changes of policies can follow one another, up to a number of steps. What it explores are states: of two
// ways into the same one only the first is followed. A state cannot be copied, so each is reached by replaying its way.

// action is one step of a way.
type action string

const (
	startA  action = "A begins a call"
	startB  action = "B begins a call"
	stepA   action = "A looks at the store"
	stepB   action = "B looks at the store"
	approve action = "the person approves"
	reject  action = "the person rejects"
	expire  action = "time passes"
	changeA action = "A gets the other policy"
	changeB action = "B gets the other policy"
)

var actions = []action{startA, startB, stepA, stepB, approve, reject, expire, changeA, changeB}

// errAbandoned ends calls of a world that is no longer looked at.
var errAbandoned = errors.New("abandoned")

// player is a gate that stops before it looks at the store.
type player struct {
	gate   *Gate
	starts int
	policy int
	// at is where the call under way has stopped; empty: none is. Seen is what it has learnt so far.
	at, seen string
	// wasRejected says that a rejection stood when the call looked for one, wasAsked by which policy it is judged.
	wasRejected bool
	judgedBy    int

	stopped chan string
	goOn    chan bool
	done    chan *decision
}

// stops is the store as a player sees it.
type stops struct {
	*player
	inner Approvals
}

func (s stops) wait(at string) error {
	s.stopped <- at
	if !<-s.goOn {
		return errAbandoned
	}
	return nil
}

func (s stops) Find(ctx context.Context, b approval.Binding) ([]approval.Approval, error) {
	if err := s.wait("find"); err != nil {
		return nil, err
	}
	all, err := s.inner.Find(ctx, b)
	for i := range all {
		s.seen += all[i].Name + string(all[i].State) + " "
	}
	return all, err
}

func (s stops) Raise(ctx context.Context, c approval.Call) (approval.Approval, error) {
	if err := s.wait("raise"); err != nil {
		return approval.Approval{}, err
	}
	return s.inner.Raise(ctx, c)
}

func (s stops) Consume(ctx context.Context, id string) error {
	if err := s.wait("consume"); err != nil {
		return err
	}
	return s.inner.Consume(ctx, id)
}

// anySeal takes every seal: what is forged is looked at elsewhere, and signatures take most of the time.
type anySeal struct{}

func (anySeal) Verify(*approval.Approval) error { return nil }

// explorer explores one store under one pair of policies.
type explorer struct {
	t         *testing.T
	open      func(c clock.PassiveClock) (approval.Store, func())
	snapshots [2]*Snapshot
	bodies    []byte
	gates     [2]*Gate
	// seeds are ways to begin with. From the first depth steps are taken, from each other one less than from the one
	// before it.
	seeds [][]action
	depth int

	states  map[string]bool
	reasons map[string]int
	faults  []string
}

// world is a state that is being looked at, and what was seen on the way to it.
type exploredWorld struct {
	*explorer
	store   approval.Store
	close   func()
	clock   *clocktesting.FakePassiveClock
	players [2]*player
	expired bool
	// decided is what the person said, by name; uses how often an approval let a call through, by ID.
	decided map[string]approval.State
	uses    map[string]int
	way     []action
}

var exploreNoon = time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)

const exploreTTL = 60 * time.Second

func (e *explorer) begin() *exploredWorld {
	w := &exploredWorld{explorer: e, clock: clocktesting.NewFakePassiveClock(exploreNoon), decided: map[string]approval.State{}, uses: map[string]int{}}
	w.store, w.close = e.open(w.clock)
	for i := range w.players {
		p := &player{gate: e.gates[i], stopped: make(chan string), goOn: make(chan bool), done: make(chan *decision)}
		p.gate.options.Approvals, p.gate.options.Seals, p.gate.options.Clock = stops{p, w.store}, anySeal{}, w.clock
		p.gate.repeats, p.gate.budgets = newRepeats(), newBudgets()
		p.gate.SetSnapshot(e.snapshots[0])
		w.players[i] = p
	}
	return w
}

// end lets what is under way come to nothing.
func (w *exploredWorld) end() {
	for _, p := range w.players {
		for p.at != "" {
			p.goOn <- false
			p.settle(w, true)
		}
	}
	w.close()
}

// settle waits until a call stops again or is decided.
func (p *player) settle(w *exploredWorld, isAbandoned bool) {
	select {
	case p.at = <-p.stopped:
	case d := <-p.done:
		p.at = ""
		if !isAbandoned {
			w.judge(p, d)
		}
		p.seen = ""
	}
}

func (w *exploredWorld) isEnabled(a action) bool {
	p := w.players[0]
	if a == startB || a == stepB || a == changeB {
		p = w.players[1]
	}
	switch a {
	case startA, startB:
		return p.at == "" && p.starts < 2
	case stepA, stepB:
		return p.at != ""
	case changeA, changeB:
		return p.policy == 0
	case expire:
		return !w.expired
	case approve, reject:
		return w.pending() != ""
	}
	return false
}

func (w *exploredWorld) all() []approval.Approval {
	all, err := w.store.List(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

func (w *exploredWorld) pending() string {
	for _, a := range w.all() {
		if a.State == approval.Pending {
			return a.Name
		}
	}
	return ""
}

// rejection says whether what the person rejected stands.
func (w *exploredWorld) rejection() bool {
	return slices.ContainsFunc(w.all(), func(a approval.Approval) bool {
		return w.decided[a.Name] == approval.Rejected && w.clock.Now().Before(a.Call.ExpiresAt)
	})
}

func (w *exploredWorld) do(a action) {
	w.way = append(w.way, a)
	p := w.players[0]
	if a == startB || a == stepB || a == changeB {
		p = w.players[1]
	}
	switch a {
	case startA, startB:
		w.start(p)
	case stepA, stepB:
		if p.at == "find" {
			p.wasRejected = w.rejection()
		}
		p.goOn <- true
		p.settle(w, false)
	case changeA, changeB:
		p.policy = 1
		p.gate.SetSnapshot(w.snapshots[1])
	case expire:
		w.expired = true
		w.clock.SetTime(w.clock.Now().Add(exploreTTL))
	case approve, reject:
		name, outcome := w.pending(), map[action]approval.State{approve: approval.Approved, reject: approval.Rejected}[a]
		if err := w.store.Decide(w.t.Context(), name, approval.Decision{Outcome: outcome, By: approver}); err != nil {
			w.t.Fatal(err)
		}
		w.decided[name] = outcome
	}
}

func (w *exploredWorld) start(p *player) {
	p.starts++
	p.judgedBy = p.policy
	in, bad := p.gate.decode(w.bodies, policy.Caller{Namespace: "shop", ServiceAccount: "agent"}, exploreNoon)
	if bad != nil {
		w.t.Fatal(bad)
	}
	in.request.Now = w.clock.Now()
	go func() { p.done <- p.gate.decide(context.Background(), in, "id") }()
	p.settle(w, false)
}

// judge holds what a call came to against what was seen.
func (w *exploredWorld) judge(p *player, d *decision) {
	v := d.verdict
	w.reasons[string(v.Reason)]++
	fault := func(format string, args ...any) {
		w.faults = append(w.faults, fmt.Sprintf(format, args...)+" after:\n  "+joined(w.way))
	}
	if p.wasRejected && (v.Outcome != policy.Block || v.Reason != ReasonApprovalRejected) {
		fault("a rejection stood and the call came to %s %s", v.Outcome, v.Reason)
	}
	if v.Outcome != policy.Allow {
		return
	}
	if v.Reason != policy.ReasonApproved {
		if p.judgedBy == 0 {
			fault("allowed by %s without a person", v.Reason)
		}
		return
	}
	a := d.approval
	w.uses[a.ID]++
	switch {
	case w.uses[a.ID] > 1:
		fault("%s was used twice", a.Name)
	case w.decided[a.Name] != approval.Approved:
		fault("%s was used and is %q", a.Name, w.decided[a.Name])
	case !w.clock.Now().Before(a.Call.ExpiresAt):
		fault("%s was used after it had expired", a.Name)
	case w.rejection():
		fault("%s was used while a rejection of the same call stood", a.Name)
	}
}

// check holds the store against what was seen.
func (w *exploredWorld) check() {
	bindings := map[string]string{}
	for _, a := range w.all() {
		if a.State == approval.Consumed && w.uses[a.ID] == 0 && w.players[0].at == "" && w.players[1].at == "" {
			w.faults = append(w.faults, a.Name+" was used by nobody after:\n  "+joined(w.way))
		}
		if a.State == approval.Pending {
			if other := bindings[a.Call.Digest()]; other != "" {
				w.faults = append(w.faults, a.Name+" waits beside "+other+" after:\n  "+joined(w.way))
			}
			bindings[a.Call.Digest()] = a.Name
		}
	}
}

func joined(way []action) string {
	var texts []string
	for _, a := range way {
		texts = append(texts, string(a))
	}
	return strings.Join(texts, ", ")
}

// key is all of a state that bears on what can follow.
func (w *exploredWorld) key() string {
	var b strings.Builder
	for _, p := range w.players {
		fmt.Fprintf(&b, "%d %d %d %s %s %t|", p.starts, p.policy, p.judgedBy, p.at, p.seen, p.wasRejected && p.at != "")
	}
	fmt.Fprintf(&b, "%t|", w.expired)
	for _, a := range w.all() {
		fmt.Fprintf(&b, "%s %s %s %d|", a.Name, a.State, w.decided[a.Name], w.uses[a.ID])
	}
	return b.String()
}

// replay gives the world at the end of a way.
func (e *explorer) replay(way []action) *exploredWorld {
	w := e.begin()
	for _, a := range way {
		w.do(a)
	}
	return w
}

func (w *exploredWorld) enabled() []action {
	return slices.DeleteFunc(slices.Clone(actions), func(a action) bool { return !w.isEnabled(a) })
}

// explore goes breadth first, so that the first fault has the shortest way.
func (e *explorer) explore() {
	type place struct {
		way  []action
		next []action
		left int
	}
	var places []place
	for i, seed := range e.seeds {
		w := e.replay(seed)
		places = append(places, place{seed, w.enabled(), e.depth - i})
		e.states[w.key()] = true
		w.end()
	}
	for len(places) > 0 && len(e.faults) == 0 {
		at := places[0]
		places = places[1:]
		for _, next := range at.next {
			w := e.replay(at.way)
			w.do(next)
			w.check()
			if key := w.key(); !e.states[key] {
				e.states[key] = true
				if at.left > 1 {
					places = append(places, place{append(slices.Clone(at.way), next), w.enabled(), at.left - 1})
				}
			}
			w.end()
		}
	}
}

func after(way []action, more ...action) []action { return append(slices.Clone(way), more...) }

// waiting is the way to one call that waits for the person.
var waiting = []action{startA, stepA, stepA}

const explorePolicy = `
metadata: {name: shop, namespace: shop}
spec:
  approvals: {ttlSeconds: 60}
  tools: [{name: item.delete, class: Destructive}]
`

func newExplorer(t *testing.T, other string, depth int, open func(c clock.PassiveClock) (approval.Store, func())) *explorer {
	t.Helper()
	e := &explorer{t: t, open: open, seeds: [][]action{after(waiting, approve), waiting, nil}, depth: depth, states: map[string]bool{}, reasons: map[string]int{}}
	for i, text := range []string{explorePolicy, other} {
		var p v1alpha1.ToolPolicy
		if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		c, errs := policy.Compile(&p)
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		e.snapshots[i] = &Snapshot{Policies: policy.NewSet([]*policy.Compiled{c})}
	}
	r := &review.Request{UID: uid(exploreNoon), Tool: review.Tool{Name: "item.delete"}, Arguments: map[string]any{"id": "7"},
		Context: review.Context{UserRequest: "delete item 7", Session: "s"}}
	e.bodies = body(t, r)
	for i := range e.gates {
		e.gates[i] = newFixture(t).gate
	}
	return e
}

func inMemory(c clock.PassiveClock) (approval.Store, func()) { return approval.NewMemory(c), func() {} }

// inFile keeps journals in memory where the system has a place for that: no crash is looked at here.
func inFile(t *testing.T) func(c clock.PassiveClock) (approval.Store, func()) {
	t.Helper()
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm")
	}
	dir := t.TempDir()
	seals, err := approval.OpenSeals("", clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	return func(c clock.PassiveClock) (approval.Store, func()) {
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		f, err := approval.OpenFile(path, c, seals)
		if err != nil {
			t.Fatal(err)
		}
		return f, func() {
			if err := errors.Join(f.Close(), os.Remove(path)); err != nil {
				t.Error(err)
			}
		}
	}
}

var otherPolicies = map[string]string{
	"one that asks nobody":           strings.Replace(explorePolicy, "Destructive", "ReadOnly", 1),
	"one that asks for more reasons": strings.Replace(explorePolicy, "class: Destructive", "class: Destructive, rules: [{name: r, when: 'true', outcome: Confirm, message: m}]", 1),
	"one that knows no such tool":    strings.Replace(explorePolicy, "item.delete", "item.other", 1),
}

// TestEveryOrderOfTwoGatesAPersonTheClockAndAPolicy is the invariant that an approval covers one call: in no order is one
// used twice, or after a rejection, or after it has expired, and a rejection holds whatever becomes of the policies.
// GATEWRIGHT_EXPLORE_DEPTH says how many steps, after a call was approved (6 in memory, 4 in a file); one less while it
// waits, two less with nothing to begin with.
func TestEveryOrderOfTwoGatesAPersonTheClockAndAPolicy(t *testing.T) {
	depth := func(otherwise int) int {
		n := otherwise
		if raceEnabled {
			n-- // each step takes ten times as long
		}
		if s := os.Getenv("GATEWRIGHT_EXPLORE_DEPTH"); s != "" {
			if _, err := fmt.Sscan(s, &n); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	total := 0
	for name, other := range otherPolicies {
		for store, e := range map[string]*explorer{
			"Memory": newExplorer(t, other, depth(6), inMemory),
			"File":   newExplorer(t, other, depth(4), inFile(t)),
		} {
			e.explore()
			for _, fault := range e.faults {
				t.Errorf("%s, %s: %s", store, name, fault)
			}
			total += len(e.states)
			t.Logf("%s, %s: %d states, calls came to %v", store, name, len(e.states), e.reasons)
			if store == "Memory" && (e.reasons[string(policy.ReasonApproved)] == 0 || e.reasons[string(ReasonApprovalRejected)] == 0 || e.reasons[string(ReasonApprovalPending)] == 0) {
				t.Errorf("%s: not every end was reached: %v", name, e.reasons)
			}
		}
	}
	t.Logf("%d states explored", total)
}

// broken is a store with a fault.
type broken struct {
	*approval.Memory
	consume func(ctx context.Context, m *approval.Memory, id string) error
	find    func(all []approval.Approval) []approval.Approval
}

func (b broken) Consume(ctx context.Context, id string) error {
	if b.consume != nil {
		return b.consume(ctx, b.Memory, id)
	}
	return b.Memory.Consume(ctx, id)
}

func (b broken) Find(ctx context.Context, x approval.Binding) ([]approval.Approval, error) {
	all, err := b.Memory.Find(ctx, x)
	if b.find != nil {
		all = b.find(all)
	}
	return all, err
}

// TestTheExplorerFindsFaults shows that the explorer is not satisfied with everything.
func TestTheExplorerFindsFaults(t *testing.T) {
	for name, test := range map[string]struct {
		store broken
		seed  []action
		want  string
	}{
		"a use that does not use up": {broken{consume: func(ctx context.Context, m *approval.Memory, id string) error {
			all, err := m.List(ctx)
			if slices.ContainsFunc(all, func(a approval.Approval) bool { return a.ID == id && a.State == approval.Approved }) {
				return err
			}
			return m.Consume(ctx, id)
		}}, after(waiting, approve), "used twice"},
		"a use that is lost when two are at it": {broken{consume: func(ctx context.Context, m *approval.Memory, id string) error {
			if err := m.Consume(ctx, id); errors.Is(err, approval.ErrUsed) {
				return nil
			} else {
				return err
			}
		}}, after(waiting, approve, startA, stepA), "used twice"},
		"a use of what has expired": {broken{consume: func(ctx context.Context, m *approval.Memory, id string) error {
			if err := m.Consume(ctx, id); !errors.Is(err, approval.ErrExpired) {
				return err
			}
			return nil
		}}, after(waiting, approve), "expired"},
		"a use that looks past a rejection": {broken{consume: func(ctx context.Context, m *approval.Memory, id string) error {
			if err := m.Consume(ctx, id); !errors.Is(err, approval.ErrRejected) {
				return err
			}
			return nil
		}}, after(waiting, approve, startA, stepA, changeB, startB, stepB), "rejection of the same call"},
		"a look-up without rejections": {broken{find: func(all []approval.Approval) []approval.Approval {
			return slices.DeleteFunc(all, func(a approval.Approval) bool { return a.State == approval.Rejected })
		}}, waiting, "a rejection stood"},
	} {
		t.Run(name, func(t *testing.T) {
			other := otherPolicies["one that asks nobody"]
			if strings.Contains(test.want, "same call") {
				other = otherPolicies["one that asks for more reasons"]
			}
			e := newExplorer(t, other, 7, func(c clock.PassiveClock) (approval.Store, func()) {
				s := test.store
				s.Memory = approval.NewMemory(c)
				return s, func() {}
			})
			e.seeds = [][]action{test.seed}
			e.explore()
			if len(e.faults) == 0 || !strings.Contains(e.faults[0], test.want) {
				t.Errorf("in %d states found %q, want %q", len(e.states), e.faults, test.want)
			}
		})
	}
}
