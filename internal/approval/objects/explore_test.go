package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/names"
)

// The explorer runs the stores of two gates on one API server in memory through every order in which their requests, a
// person, the clock, a change of policies, what is put off, and what watching shows can follow one another, up to a number
// of steps. One request of a way may fail, or be done with its answer lost, and one gate may end at any point. What it
// explores are states: of two ways into the same one only the first is followed. Each is reached by replaying its way.

// move is one step of a way.
type move string

const (
	moveApprove move = "the person approves"
	moveReject  move = "the person rejects"
	moveExpire  move = "time passes"
)

// What a gate does, with the gate before it.
const (
	begins  = " begins a call"
	asks    = " sends its request"
	fails   = "'s request fails"
	loses   = "'s answer is lost"
	ends    = " ends and starts again"
	watches = " sees what watching shows"
	puts    = " does what it had put off"
	changes = " gets the other policy"
)

var exploreNoon = time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)

var longAgo = metav1.NewTime(exploreNoon.Add(-time.Hour))

const exploreTTL = 60 * time.Second

var (
	errLost      = errors.New("the connection was lost")
	errAbandoned = errors.New("abandoned")
)

// stillInformer is a cache that shows what it is given.
type stillInformer struct {
	cache.SharedIndexInformer
	indexer cache.Indexer
}

func (i stillInformer) HasSynced() bool           { return true }
func (i stillInformer) GetIndexer() cache.Indexer { return i.indexer }
func (i stillInformer) GetStore() cache.Store     { return i.indexer }

// exploredGate is a store that stops before each request, and the one call that it is at.
type exploredGate struct {
	name   string
	client *Client
	leases leases
	guard  *guard

	world  *exploredWorld
	store  *Store
	starts int
	policy int
	// at is the request that waits; empty: no call is under way. Seen is what the call has learnt so far, put what is put off.
	at, seen, put string
	// isFree lets requests through: those of what was put off.
	isFree bool
	// rejectedFirst and rejectedThen say that a rejection of the call stood when it began, and when it was about to use an approval.
	rejectedFirst, rejectedThen bool
	judgedBy                    int

	stopped chan string
	goOn    chan string
	done    chan string
}

// RoundTrip implements http.RoundTripper.
func (g *exploredGate) RoundTrip(r *http.Request) (*http.Response, error) {
	parts := partsOf(r)
	how := asks
	if parts.isOurs() && !g.isFree {
		g.stopped <- r.Method + " " + parts.kind
		how = <-g.goOn
	}
	switch how {
	case fails:
		return nil, errLost
	case ends:
		return nil, errAbandoned
	}
	answer := g.world.server.answer(parts)
	if !g.isFree {
		g.seen += fmt.Sprintf("%s%d%s;", r.Method, answer.StatusCode, g.world.sight())
	}
	if how == loses {
		return nil, errLost
	}
	return answer, nil
}

// newExploredGate makes the clients once: a world takes them over.
func newExploredGate(t *testing.T, name string) *exploredGate {
	t.Helper()
	g := &exploredGate{name: name}
	config := &rest.Config{Host: "http://explored", Transport: g, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	var err error
	if g.client, err = NewClient(config); err != nil {
		t.Fatal(err)
	}
	if g.leases, err = newLeases(config, names.Namespace); err != nil {
		t.Fatal(err)
	}
	if g.guard, err = newGuard(config, names.Namespace, nil); err != nil {
		t.Fatal(err)
	}
	return g
}

// start makes a store as after a start of the gate: its cache holds what is there.
func (g *exploredGate) start() {
	w := g.world
	s := &Store{
		options: Options{Namespace: names.Namespace, Identity: g.name, Seals: w.seals, Clock: w.clockOf(g), Timeout: time.Minute, Log: slog.New(slog.DiscardHandler)},
		client:  g.client, leases: g.leases, recount: make(chan struct{}, recounts), work: make(chan func(context.Context), maxWork),
	}
	s.guard = &guard{client: g.guard.client, policy: g.guard.policy, binding: g.guard.binding, now: s.now, lag: guardLag}
	approvals := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byCallKey: indexCallKey, byNamespace: cache.MetaNamespaceIndexFunc})
	uses := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byCallKey: indexCallLabel})
	s.seen = &seen{approvals: stillInformer{indexer: approvals}, leases: stillInformer{indexer: uses}, own: map[string]*v1alpha1.ToolApproval{}}
	g.store, g.put = s, ""
	g.catchUp()
}

// catchUp lets the cache hold what the API server does.
func (g *exploredGate) catchUp() {
	var approvals, uses []any
	for _, o := range g.world.server.approvals {
		approvals = append(approvals, o)
	}
	for _, l := range g.world.server.leases {
		uses = append(uses, l)
	}
	err := errors.Join(g.store.seen.approvals.GetIndexer().Replace(approvals, ""), g.store.seen.leases.GetIndexer().Replace(uses, ""))
	if err != nil {
		g.world.t.Fatal(err)
	}
	for _, key := range slices.Sorted(maps.Keys(g.world.server.approvals)) {
		g.store.noticed(g.world.server.approvals[key])
	}
	g.noteWork()
}

// noteWork notes that something was put off since it was last looked.
func (g *exploredGate) noteWork() {
	for strings.Count(g.put, ";") < len(g.store.work) {
		g.put += fmt.Sprintf("%s%s;", g.at, g.world.sight())
	}
}

// explored is one pair of policies, and what was found.
type explored struct {
	t      *testing.T
	seals  *approval.Seals
	gates  [2]*exploredGate
	other  approval.Call
	asks   bool // under the other policy
	faults serverFaults
	// isSlow stops the clock of A.
	isSlow bool
	seeds  [][]move
	depth  int
	// isLeft leaves moves out. Nil: none is.
	isLeft func(move) bool

	states  map[string]bool
	results map[string]int
	found   []string
}

type exploredWorld struct {
	*explored
	server   *exploredServer
	clock    *clocktesting.FakePassiveClock
	slow     *clocktesting.FakePassiveClock
	expired  bool
	hadFault bool
	decided  map[string]approval.State // by id
	uses     map[string]int
	way      []move
}

func (w *exploredWorld) clockOf(g *exploredGate) *clocktesting.FakePassiveClock {
	if w.isSlow && g == w.gates[0] {
		return w.slow
	}
	return w.clock
}

func (e *explored) begin() *exploredWorld {
	w := &exploredWorld{
		explored: e, clock: clocktesting.NewFakePassiveClock(exploreNoon), slow: clocktesting.NewFakePassiveClock(exploreNoon),
		decided: map[string]approval.State{}, uses: map[string]int{},
	}
	w.server = &exploredServer{approvals: map[string]*v1alpha1.ToolApproval{}, leases: map[string]*coordinationv1.Lease{}, now: w.clock.Now, faults: e.faults}
	w.server.policy, w.server.binding = e.gates[0].guard.policy.DeepCopy(), e.gates[0].guard.binding.DeepCopy()
	w.server.policy.CreationTimestamp, w.server.binding.CreationTimestamp = longAgo, longAgo
	for _, g := range e.gates {
		*g = exploredGate{name: g.name, client: g.client, leases: g.leases, guard: g.guard, world: w, stopped: make(chan string), goOn: make(chan string), done: make(chan string)}
		g.start()
	}
	return w
}

// sight is what there is, without what is random.
func (w *exploredWorld) sight() string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(w.server.approvals)) {
		o := w.server.approvals[key]
		fmt.Fprintf(&b, "%s@%s%s", key, o.ResourceVersion, w.decided[o.Spec.Call.ID])
		if w.server.leases[useName(o.Spec.Call.ID)] != nil {
			b.WriteString("used")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.server.leases)) {
		if strings.HasPrefix(name, names.RejectionLeasePrefix) {
			b.WriteString(name)
		}
	}
	return b.String()
}

// key is all of a state that bears on what can follow.
func (w *exploredWorld) key() string {
	var b strings.Builder
	for _, g := range w.gates {
		fmt.Fprintf(&b, "%d %d %d %s %s %s %t %t|", g.starts, g.policy, g.judgedBy, g.at, g.seen, g.put, g.rejectedFirst && g.at != "", g.rejectedThen && g.at != "")
		for _, key := range slices.Sorted(slices.Values(g.store.seen.approvals.GetIndexer().ListKeys())) {
			o, _, _ := g.store.seen.approvals.GetIndexer().GetByKey(key)
			fmt.Fprintf(&b, "%s@%s", key, o.(*v1alpha1.ToolApproval).ResourceVersion)
		}
		fmt.Fprintf(&b, " %d %d|", len(g.store.seen.leases.GetIndexer().ListKeys()), len(g.store.seen.own))
	}
	fmt.Fprintf(&b, "%t %t %s|", w.expired, w.hadFault, w.sight())
	for _, key := range slices.Sorted(maps.Keys(w.server.approvals)) {
		fmt.Fprintf(&b, "%d", w.uses[w.server.approvals[key].Spec.Call.ID])
	}
	return b.String()
}

func (w *exploredWorld) pending() *v1alpha1.ToolApproval {
	for _, key := range slices.Sorted(maps.Keys(w.server.approvals)) {
		if o := w.server.approvals[key]; State(o, nil, w.clock.Now()) == approval.Pending {
			return o
		}
	}
	return nil
}

// rejection says whether what the person rejected stands.
func (w *exploredWorld) rejection() bool {
	for _, o := range w.server.approvals {
		if w.decided[o.Spec.Call.ID] == approval.Rejected && w.clock.Now().Before(o.Spec.Call.ExpiresAt.Time) {
			return true
		}
	}
	return false
}

func (w *exploredWorld) moves() []move {
	var out []move
	for _, g := range w.gates {
		add := func(is bool, what string) {
			if is {
				out = append(out, move(g.name+what))
			}
		}
		isWrite := strings.HasPrefix(g.at, http.MethodPost) || strings.HasPrefix(g.at, http.MethodPut)
		add(g.at == "" && g.starts < 2, begins)
		add(g.at != "", asks)
		add(g.at != "" && !w.hadFault, fails)
		add(isWrite && !w.hadFault, loses)
		add(!w.hadFault && g.starts > 0, ends)
		add(!w.isUpToDate(g), watches)
		add(len(g.store.work) > 0, puts)
		add(g.policy == 0, changes)
	}
	if w.pending() != nil {
		out = append(out, moveApprove, moveReject)
	}
	if !w.expired {
		out = append(out, moveExpire)
	}
	if w.isLeft != nil {
		out = slices.DeleteFunc(out, w.isLeft)
	}
	return out
}

func (w *exploredWorld) isUpToDate(g *exploredGate) bool {
	shown := g.store.seen.approvals.GetIndexer()
	if len(shown.ListKeys()) != len(w.server.approvals) || len(g.store.seen.leases.GetIndexer().ListKeys()) != len(w.server.leases) {
		return false
	}
	for _, o := range shown.List() {
		a := o.(*v1alpha1.ToolApproval) //nolint:forcetypeassert // it holds no other
		if now := w.server.approvals[a.Namespace+"/"+a.Name]; now == nil || now.ResourceVersion != a.ResourceVersion {
			return false
		}
	}
	return true
}

func (w *exploredWorld) do(m move) {
	w.way = append(w.way, m)
	switch m {
	case moveApprove, moveReject:
		o, state, outcome := w.pending().DeepCopy(), approval.Approved, v1alpha1.Approve
		if m == moveReject {
			state, outcome = approval.Rejected, v1alpha1.Reject
		}
		o.Spec.Decision = &v1alpha1.ApprovalDecision{Outcome: outcome, By: &v1alpha1.Approver{Type: v1alpha1.ApproverKubernetesUser, Name: "kim"}}
		o.ResourceVersion = next(o.ResourceVersion)
		w.server.approvals[o.Namespace+"/"+o.Name] = o
		w.decided[o.Spec.Call.ID] = state
	case moveExpire:
		w.expired = true
		w.clock.SetTime(w.clock.Now().Add(exploreTTL))
	default:
		name, what := string(m)[:1], string(m)[1:]
		w.doGate(w.gates[strings.Index("AB", name)], what)
	}
}

func (w *exploredWorld) doGate(g *exploredGate, what string) {
	switch what {
	case begins:
		g.starts++
		g.judgedBy, g.rejectedFirst, g.rejectedThen = g.policy, w.rejection(), false
		go func() { g.done <- g.call() }()
		g.settle()
	case asks, fails, loses:
		w.hadFault = w.hadFault || what != asks
		g.goOn <- what
		g.settle()
	case ends:
		w.hadFault = true
		g.abandon()
		g.start()
	case watches:
		g.catchUp()
	case puts:
		do := <-g.store.work
		_, g.put, _ = strings.Cut(g.put, ";")
		g.isFree = true
		do(context.Background())
		g.isFree = false
	case changes:
		g.policy = 1
	}
}

// settle waits until the call stops again or has come to something.
func (g *exploredGate) settle() {
	select {
	case g.at = <-g.stopped:
	case result := <-g.done:
		g.at = ""
		g.world.results[result]++
		g.seen = ""
	}
	g.noteWork()
}

func (g *exploredGate) abandon() {
	for g.at != "" {
		g.goOn <- ends
		select {
		case g.at = <-g.stopped:
		case <-g.done:
			g.at = ""
		}
	}
	g.seen = ""
}

// call is what a gate does with a store: it looks what stands, uses what was approved, or raises.
func (g *exploredGate) call() string {
	w, c, isAsked := g.world, exploredCall(g.world.clock.Now()), true
	if g.policy == 1 {
		c.Binding, isAsked = w.other.Binding, w.asks
	}
	mayBeLate := !isAsked && !g.store.mayStand(c.Binding, w.clock.Now())
	found, err := g.store.Find(context.Background(), c.Binding)
	if err != nil {
		return "Unavailable"
	}
	for i := range found {
		if found[i].State == approval.Rejected {
			return "Rejected"
		}
	}
	for i := range found {
		a := &found[i]
		isSeen := !slices.ContainsFunc(c.ConfirmReasons, func(r string) bool { return !slices.Contains(a.Call.ConfirmReasons, r) })
		if isAsked && isSeen && a.State == approval.Approved {
			return g.use(a)
		}
	}
	if !isAsked {
		if g.rejectedFirst && w.rejection() && !mayBeLate {
			w.fault("%s let a call through while a rejection of it stood", g.name)
		}
		return "Allowed without a person"
	}
	a, err := g.store.Raise(context.Background(), c)
	switch {
	case err != nil:
		return "Unavailable"
	case a.State != approval.Rejected && g.rejectedFirst && w.rejection():
		w.fault("%s asks a person again who has rejected", g.name)
	}
	return "raised " + string(a.State)
}

func (g *exploredGate) use(a *approval.Approval) string {
	w := g.world
	g.rejectedThen = w.rejection()
	err := g.store.Consume(context.Background(), a.ID)
	if err != nil {
		for _, known := range []error{approval.ErrUsed, approval.ErrExpired, approval.ErrRejected, approval.ErrNotApproved, approval.ErrUnavailable} {
			if errors.Is(err, known) {
				return "not used: " + known.Error()
			}
		}
		return "not used"
	}
	w.uses[a.ID]++
	switch {
	case w.uses[a.ID] > 1:
		w.fault("%s was used twice", a.Name)
	case w.decided[a.ID] != approval.Approved:
		w.fault("%s was used and is %q", a.Name, w.decided[a.ID])
	case !w.clock.Now().Before(a.Call.ExpiresAt):
		w.fault("%s was used after it had expired", a.Name)
	case g.rejectedThen:
		w.fault("%s was used while a rejection of the same call stood", a.Name)
	}
	return "used"
}

func (w *exploredWorld) fault(format string, args ...any) {
	w.found = append(w.found, fmt.Sprintf(format, args...)+" after:\n  "+joinMoves(w.way))
}

func joinMoves(way []move) string {
	var texts []string
	for _, m := range way {
		texts = append(texts, string(m))
	}
	return strings.Join(texts, "\n  ")
}

// check holds what there is against what was seen.
func (w *exploredWorld) check() {
	waits := map[string]string{}
	for _, o := range w.server.approvals {
		isTrue := func(t v1alpha1.ConditionType) bool { return meta.IsStatusConditionTrue(o.Status.Conditions, string(t)) }
		switch {
		case isTrue(v1alpha1.ConditionConsumed) && w.server.leases[useName(o.Spec.Call.ID)] == nil:
			w.fault("%s says that it was used and was not", o.Name)
		case isTrue(v1alpha1.ConditionExpired) && !w.expired:
			w.fault("%s says that it has expired and has not", o.Name)
		case w.uses[o.Spec.Call.ID] > 0 && w.server.leases[useName(o.Spec.Call.ID)] == nil:
			w.fault("%s was used without a Lease", o.Name)
		}
		if State(o, nil, w.clock.Now()) != approval.Pending {
			continue
		}
		a, err := read(o, nil, w.clock.Now())
		if err != nil {
			w.t.Fatal(err)
		}
		if other := waits[a.Call.Digest()]; other != "" {
			w.fault("%s waits beside %s", o.Name, other)
		}
		waits[a.Call.Digest()] = o.Name
	}
}

func (w *exploredWorld) end() {
	for _, g := range w.gates {
		g.abandon()
	}
}

func (e *explored) replay(way []move) *exploredWorld {
	w := e.begin()
	for _, m := range way {
		w.do(m)
	}
	return w
}

// explore goes breadth first, so that the first fault has the shortest way.
func (e *explored) explore() {
	type place struct {
		way, next []move
		left      int
	}
	var places []place
	for _, seed := range e.seeds {
		w := e.replay(seed)
		places = append(places, place{seed, w.moves(), e.depth})
		e.states[w.key()] = true
		w.end()
	}
	for len(places) > 0 && len(e.found) == 0 {
		at := places[0]
		places = places[1:]
		for _, m := range at.next {
			w := e.replay(at.way)
			w.do(m)
			w.check()
			if key := w.key(); !e.states[key] {
				e.states[key] = true
				if at.left > 1 {
					places = append(places, place{append(slices.Clone(at.way), m), w.moves(), at.left - 1})
				}
			}
			w.end()
		}
	}
}

func exploredCall(now time.Time, change ...func(*approval.Call)) approval.Call {
	c := approval.Call{
		Binding: approval.Binding{
			PolicyDigest: "sha256:01", Caller: "shop/agent", Server: "items", Tool: "item.delete", ArgumentsDigest: "sha256:02",
			UserTurnsDigest: "sha256:04", ConfirmReasons: []string{"Irreversible"},
		},
		Class: "Destructive", Base: "Destructive", Message: "Delete item 7?", Arguments: json.RawMessage(`{"id":7}`),
		Approvers: approval.Approvers{Channels: []approval.Channel{approval.ChannelKubernetes}}, RaisedAt: now, ExpiresAt: now.Add(exploreTTL),
	}
	for _, f := range change {
		f(&c)
	}
	c.CallKey = approval.CallKey(c.Caller, c.Server, c.Tool, c.ArgumentsDigest, c.Session, c.OnBehalfOf, c.UserTurnsDigest)
	return c
}

// raisesOne is the way of a gate to a call that waits: it begins, lists, and creates.
func raisesOne(t *testing.T, e *explored, gate string, before []move) []move {
	t.Helper()
	way := append(slices.Clone(before), move(gate+begins))
	for range 20 {
		w := e.replay(way)
		isOver := w.gates[strings.Index("AB", gate)].at == ""
		w.end()
		if isOver {
			return way
		}
		way = append(way, move(gate+asks))
	}
	t.Fatalf("%s comes to no end", gate)
	return nil
}

// newExplored begins with nothing, with one that waits, and with one that was approved; the other policy asks for more
// reasons, or asks nobody.
func newExplored(t *testing.T, asks bool, depth int) *explored {
	t.Helper()
	seals, err := approval.OpenSeals("", clocktesting.NewFakePassiveClock(exploreNoon))
	if err != nil {
		t.Fatal(err)
	}
	e := &explored{
		t: t, seals: seals, asks: asks, depth: depth, states: map[string]bool{}, results: map[string]int{},
		gates: [2]*exploredGate{newExploredGate(t, "A"), newExploredGate(t, "B")},
	}
	e.other = exploredCall(exploreNoon, func(c *approval.Call) {
		c.PolicyDigest, c.ConfirmReasons = "sha256:05", []string{"Irreversible", "Unsure"}
	})
	return e
}

// two raises a call at A, lets the person approve it, and raises the call at B under the other policy.
func (e *explored) two() []move {
	waits := raisesOne(e.t, e, "A", nil)
	second := raisesOne(e.t, e, "B", append(slices.Clone(waits), moveApprove, "B"+changes))
	return append(second, "A"+watches, "B"+watches)
}

// approved raises a call at A and lets the person approve it; both gates have seen so.
func (e *explored) approved() []move {
	return append(raisesOne(e.t, e, "A", nil), moveApprove, "A"+watches, "B"+watches)
}

// only leaves out what gates do but for some of it.
func only(kept ...string) func(move) bool {
	return func(m move) bool {
		isOfPerson := m == moveApprove || m == moveReject || m == moveExpire
		return !isOfPerson && !slices.Contains(kept, string(m)[1:])
	}
}

// explorations are what is explored: everything for a few steps, and single questions to their end.
func explorations(t *testing.T, depth int) map[string]*explored {
	t.Helper()
	out := map[string]*explored{}
	for name, asks := range map[string]bool{"the other policy asks for more reasons": true, "the other policy asks nobody": false} {
		e := newExplored(t, asks, depth)
		waits := append(raisesOne(t, e, "A", nil), "A"+watches, "B"+watches)
		e.seeds = [][]move{nil, waits, append(e.approved(), "A"+begins, "B"+begins)}
		if asks {
			e.seeds = append(e.seeds, append(e.two(), "A"+begins))
		}
		out["everything, "+name] = e
	}
	deep := func(name string, seed func(e *explored) []move, kept ...string) *explored {
		e := newExplored(t, true, unbounded)
		e.seeds, e.isLeft = [][]move{seed(e)}, only(kept...)
		out[name] = e
		return e
	}
	deep("both gates raise one call", func(*explored) []move { return []move{"A" + begins, "B" + begins} }, asks, fails, loses)
	both := []string{asks}
	if depth > quick {
		both = append(both, loses, puts) // ten times as many states
	}
	deep("both gates use one approval", func(e *explored) []move { return append(e.approved(), "A"+begins, "B"+begins) }, both...)
	deep("a gate uses an approval and the person rejects the call elsewhere", func(e *explored) []move { return append(e.two(), "A"+begins) }, asks, loses, puts)
	rejected := func(e *explored) []move {
		return append(raisesOne(e.t, e, "A", nil), moveReject, "A"+watches, "B"+watches, "A"+begins)
	}
	deep("a gate asks again after a rejection", rejected, asks, puts)
	nobody := deep("a gate whose policy asks nobody meets a rejection", func(e *explored) []move {
		seed := rejected(e)
		return append(seed[:len(seed)-1], "A"+changes, "A"+begins)
	}, asks, puts)
	nobody.asks = false
	return out
}

const (
	// unbounded is more steps than any way has.
	unbounded = 1000
	// quick is the depth of what takes seconds.
	quick = 2
)

// TestEveryOrderOfTwoGatesOnOneAPIServer is the invariant that an approval covers one call, with gates that share nothing
// but the API server: whatever requests come between, fail, or are answered to nobody, no approval is used twice, or after
// a rejection, or after it has expired; none waits beside another of its kind; and the status says nothing that is not so.
// GATEWRIGHT_EXPLORE_DEPTH says for how many steps everything is explored, 2 by default; with more, two gates
// that use one approval lose answers and put the status off as well, which takes minutes.
func TestEveryOrderOfTwoGatesOnOneAPIServer(t *testing.T) {
	depth := quick
	if s := os.Getenv("GATEWRIGHT_EXPLORE_DEPTH"); s != "" {
		if _, err := fmt.Sscan(s, &depth); err != nil {
			t.Fatal(err)
		}
	}
	results := map[string]int{}
	for name, e := range explorations(t, depth) {
		start := time.Now()
		e.explore()
		for _, fault := range e.found {
			t.Errorf("%s: %s", name, fault)
		}
		t.Logf("%s: %d states, calls came to %v %s", name, len(e.states), e.results, time.Since(start))
		for result, n := range e.results {
			results[result] += n
		}
	}
	for _, want := range []string{
		"used", "Rejected", "Unavailable", "Allowed without a person", "raised Pending", "raised Approved", "raised Rejected",
		"not used: " + approval.ErrUsed.Error(), "not used: " + approval.ErrExpired.Error(), "not used: " + approval.ErrRejected.Error(),
	} {
		if results[want] == 0 {
			t.Errorf("no call came to %q: %v", want, results)
		}
	}
}

// TestTheExplorerFindsFaults shows that the explorer is not satisfied with everything.
func TestTheExplorerFindsFaults(t *testing.T) {
	isRejected := func(o *v1alpha1.ToolApproval) bool {
		return o.Spec.Decision != nil && o.Spec.Decision.Outcome == v1alpha1.Reject
	}
	for name, test := range map[string]struct {
		explored string
		faults   serverFaults
		isSlow   bool
		want     string
	}{
		"a Lease that two may make":        {"both gates use one approval", serverFaults{takesNamesTwice: true}, false, "was used twice"},
		"a name that two may take":         {"both gates raise one call", serverFaults{takesNamesTwice: true}, false, "waits beside"},
		"a clock that stands still":        {"both gates use one approval", serverFaults{}, true, "was used after it had expired"},
		"rejections that are not in lists": {"a gate uses an approval and the person rejects the call elsewhere", serverFaults{hides: isRejected}, false, "while a rejection of the same call stood"},
		"rejections that nobody finds":     {"a gate whose policy asks nobody meets a rejection", serverFaults{hides: isRejected}, false, "while a rejection of it stood"},
		"rejections that are read as approvals": {"a gate asks again after a rejection", serverFaults{twists: func(o *v1alpha1.ToolApproval) {
			if isRejected(o) {
				o.Spec.Decision.Outcome = v1alpha1.Approve
			}
		}}, false, `was used and is "Rejected"`},
	} {
		t.Run(name, func(t *testing.T) {
			e := explorations(t, quick)[test.explored]
			e.faults, e.isSlow = test.faults, test.isSlow
			e.explore()
			if len(e.found) == 0 || !strings.Contains(e.found[0], test.want) {
				t.Errorf("in %d states found %q, want %q; calls came to %v", len(e.states), e.found, test.want, e.results)
			}
		})
	}
}
