package gate

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/strictjson"
)

const (
	// denialMemory is how long a denial is remembered. After it the same call is judged anew.
	denialMemory = 10 * time.Minute
	// refusalMemory is how long a call that did not run is kept from counting as one that did.
	refusalMemory = 6 * time.Hour
	// maxRemembered bounds how many of each kind are remembered. Who has most of them makes room: see expiring.
	maxRemembered = 16384
)

// repeats remembers denials by decider, so that asking again does not cost the decider again, and counts clarifications.
type repeats struct {
	mu       sync.Mutex
	denials  *expiring[denialKey, denial]
	clarifys *expiring[clarifyKey, int]
	outcomes *expiring[outcomeKey, policy.Outcome]
	refused  *expiring[callKey, bool]
}

// callKey is a call of a caller, whatever was said before it.
type callKey struct{ caller, tool, arguments string }

// outcomeKey is a whole state that one decider was asked about. Which calls of it were refused is known to this gate alone,
// and is part of what the decider was asked.
type outcomeKey struct {
	denialKey
	fingerprint, marked string
}

// denialKey is a whole state in which a call was denied. An answered question is another state.
type denialKey struct{ caller, policies, state string }

type denial struct {
	verdict     policy.Verdict
	decider     string
	fingerprint string
	count       int
}

// clarifyKey is a call and all that the user has said.
type clarifyKey struct{ caller, policies, tool, server, arguments, userTurns string }

func (k callKey) owner() string    { return k.caller }
func (k denialKey) owner() string  { return k.caller }
func (k clarifyKey) owner() string { return k.caller }

func newRepeats() *repeats {
	return &repeats{
		denials:  newExpiring[denialKey, denial](maxRemembered, denialMemory),
		clarifys: newExpiring[clarifyKey, int](maxRemembered, time.Hour),
		outcomes: newExpiring[outcomeKey, policy.Outcome](maxRemembered, time.Hour),
		refused:  newExpiring[callKey, bool](maxRemembered, refusalMemory),
	}
}

func (d *decision) denialKey() denialKey {
	if d.decided == "" {
		d.decided = d.in.stateDigest()
	}
	return denialKey{d.in.caller.String(), d.digest, d.decided}
}

// isRepeated says whether a decider has denied this very call in this very state, and if so gives the same verdict.
func (d *decision) isRepeated() bool {
	if d.gate.options.NoReuse || len(d.judgement.Asks()) == 0 {
		return false
	}
	r := d.gate.repeats
	key, now := d.denialKey(), d.in.request.Now
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.denials.get(key, now)
	if !ok {
		return false
	}
	found.count++
	r.denials.put(key, found, now)
	d.verdict, d.decider, d.fingerprint, d.repeats = found.verdict, found.decider, found.fingerprint, found.count
	d.gate.metrics.repeated.Inc()
	return true
}

// compareWithLast says whether a decider has answered about this very state before, and whether the outcome was another. It
// counts for metrics only: a decider that changes its mind cannot be tested.
func (d *decision) compareWithLast() (again, changed bool) {
	if !d.deciderAnswered() || d.repeats > 0 || d.gate.options.NoReuse {
		return false, false
	}
	r := d.gate.repeats
	key := outcomeKey{d.denialKey(), d.fingerprint, string(d.marked)}
	r.mu.Lock()
	defer r.mu.Unlock()
	last, again := r.outcomes.get(key, d.in.request.Now)
	r.outcomes.put(key, d.verdict.Outcome, d.in.request.Now)
	return again, again && last != d.verdict.Outcome
}

// remember keeps what a decider has denied, and ends a row of clarifications that lead nowhere.
func (d *decision) remember() {
	if d.gate.options.NoReuse {
		return
	}
	switch d.verdict.Outcome {
	case policy.Block:
		if d.deciderAnswered() && !d.retryable() && d.repeats == 0 {
			r := d.gate.repeats
			r.mu.Lock()
			defer r.mu.Unlock()
			r.denials.put(d.denialKey(), denial{verdict: d.verdict, decider: d.decider, fingerprint: d.fingerprint}, d.in.request.Now)
		}
	case policy.Clarify:
		d.countClarify()
	case policy.Confirm, policy.Allow:
	}
}

// rememberRefused notes that this call is not to run, for whatever reason the gate gave, or that it is after all. An equal call
// may have run before one that was blocked for the moment: until it is allowed again both count as refused, which errs on
// the safe side.
func (d *decision) rememberRefused() {
	if d.in.review.DryRun || d.gate.options.NoReuse {
		return
	}
	r := d.gate.repeats
	key := callKey{d.in.caller.String(), d.in.request.Tool, d.in.argumentsDigest}
	r.mu.Lock()
	defer r.mu.Unlock()
	if refused := d.verdict.Outcome != policy.Allow; refused || r.refused.has(key) {
		r.refused.put(key, refused, d.in.request.Now)
	}
}

// markRefused marks the calls that this gate has refused. A call that ran may be why the next one has its values; one that
// was refused is only what the agent has tried, and trying it again in other words must not make it look as if somebody had
// asked for it. They stay in their places, because what came back stays too and would else look like the result of another
// call.
func (d *decision) markRefused() {
	r, q := d.gate.repeats, &d.in.request
	if d.gate.options.NoReuse || r.hasNoRefused() {
		return
	}
	for i := range q.Messages {
		m := &q.Messages[i]
		key, ok := d.earlierCall(m)
		if !ok || !r.isRefused(key, q.Now) {
			continue
		}
		m.Refused = true
		d.marked = fmt.Appendf(d.marked, "%d ", i)
	}
}

func (r *repeats) isRefused(key callKey, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	refused, found := r.refused.get(key, now)
	return found && refused
}

func (r *repeats) hasNoRefused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused.size() == 0
}

// earlierCall reads a message that states a call, as "[tool call] NAME {arguments}".
func (d *decision) earlierCall(m *questions.Message) (callKey, bool) {
	call, ok := strings.CutPrefix(m.Text, questions.CallPrefix)
	if !ok || m.Role != questions.RoleAssistant {
		return callKey{}, false
	}
	name, arguments, _ := strings.Cut(call, " ")
	tree, err := strictjson.Parse([]byte(arguments), d.gate.options.Limits)
	if err != nil {
		return callKey{}, false
	}
	digest, err := strictjson.Digest(tree)
	if err != nil {
		return callKey{}, false
	}
	return callKey{d.in.caller.String(), name, digest}, true
}

func (d *decision) deciderAnswered() bool { return d.fingerprint != "" && d.deciderErr == "" }

func (d *decision) countClarify() {
	q := &d.in.request
	key := clarifyKey{d.in.caller.String(), d.digest, q.Tool, q.Server, d.in.argumentsDigest, d.words.digest}
	r := d.gate.repeats
	r.mu.Lock()
	defer r.mu.Unlock()
	n, _ := r.clarifys.get(key, q.Now)
	d.repeats = n
	r.clarifys.put(key, n+1, q.Now)
	if n >= d.terms.ClarifyLimit {
		d.block(ReasonClarifyExhausted, "the same call was answered Clarify before and the user has said nothing new: ask the user first", false)
		d.verdict.Remedy = policy.RemedyAskUser
	}
}
