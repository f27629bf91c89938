package gate

import (
	"context"
	"errors"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/policy"
	report "gatewright.dev/gatewright/internal/served"
)

// Candidate is a revision that may take a decider's place. It is asked what the decider was asked, after the answer to the
// caller has left, and decides nothing.
type Candidate struct {
	// Revision names it.
	Revision string
	Decider  inference.Decider
	// Tally counts how its outcomes compare.
	Tally *Tally
}

// Tally counts comparisons. Its methods are safe for concurrent use; the zero value is empty.
type Tally struct {
	mu    sync.Mutex
	count report.Shadow
}

// Count is what was counted so far.
func (t *Tally) Count() report.Shadow {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.count
	out.ByClass = maps.Clone(out.ByClass)
	return out
}

func (t *Tally) failed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count.Failed++
}

func (t *Tally) compared(class string, isSame bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count.ByClass == nil {
		t.count.ByClass = map[string]report.ShadowClass{}
	}
	c := t.count.ByClass[class]
	c.Compared++
	t.count.Compared++
	if !isSame {
		c.Disagreed++
		t.count.Disagreed++
	}
	t.count.ByClass[class] = c
}

// maxShadows bounds comparisons at a time. One more is not made: what is only observed must not cost memory without end.
const maxShadows = 16

// shadows are the comparisons under way.
type shadows struct {
	slots    chan struct{}
	compared *prometheus.CounterVec
	failures *prometheus.CounterVec
	dropped  prometheus.Counter
}

func newShadows() *shadows {
	return &shadows{
		slots: make(chan struct{}, maxShadows),
		compared: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_shadow_compared_total", Help: "Decisions that a candidate was compared on, by class and whether it came to the same outcome.",
		}, []string{"decider", "class", "same"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatewright_shadow_failures_total", Help: "Decisions that a candidate gave no answer on, by reason.",
		}, []string{"decider", "reason"}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatewright_shadow_dropped_total", Help: "Decisions that no candidate was compared on because too many comparisons were under way.",
		}),
	}
}

func (s *shadows) register(r prometheus.Registerer) error {
	return errors.Join(r.Register(s.compared), r.Register(s.failures), r.Register(s.dropped))
}

// shadowing is a decision to compare with what candidates would have made of it.
type shadowing struct {
	answered   []policy.Answered
	approved   *policy.Approval
	verdict    policy.Verdict
	candidates map[string]*Candidate // by decider
}

// noteShadow keeps what is needed to compare, if a decider that has a candidate answered. What it did not answer cannot be
// compared, and a dry run is no live call.
func (d *decision) noteShadow(s *Snapshot, approved *policy.Approval) {
	if d.in.review.DryRun || len(d.answered) == 0 {
		return
	}
	candidates := map[string]*Candidate{}
	asks := d.judgement.Asks()
	for i := range asks {
		served := s.Deciders[asks[i].Decider]
		if served != nil && served.Candidate != nil && d.answered[i].Unavailable == "" {
			candidates[asks[i].Decider] = served.Candidate
		}
	}
	if len(candidates) > 0 {
		d.shadow = &shadowing{answered: d.answered, approved: approved, verdict: d.verdict, candidates: candidates}
	}
}

// compare asks candidates in the background. The decision belongs to that from here on: its judgement is settled anew.
func (g *Gate) compare(ctx context.Context, d *decision) {
	if d.shadow == nil {
		return
	}
	select {
	case g.shadows.slots <- struct{}{}:
	default:
		g.shadows.dropped.Inc()
		return
	}
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer func() { <-g.shadows.slots }()
		defer func() {
			if p := recover(); p != nil {
				g.options.Log.ErrorContext(ctx, "panic", "decision", d.id, "panic", panicText(p), "stack", string(debug.Stack()))
			}
		}()
		for name, c := range d.shadow.candidates {
			d.compareOne(ctx, name, c)
		}
	}()
}

// compareOne settles the call with the candidate's answers in the place of the decider's, and compares what comes of it. A
// policy may pin the decider's fingerprint, and what is compared is what its ladders make of the numbers: the candidate's
// answers stand under the pinned one.
func (d *decision) compareOne(ctx context.Context, name string, c *Candidate) {
	s, m := d.shadow, d.gate.shadows
	answered := slices.Clone(s.answered)
	for i, a := range d.judgement.Asks() {
		if a.Decider != name || answered[i].Unavailable != "" {
			continue
		}
		ask, cancel := context.WithTimeout(ctx, a.Timeout)
		result, err := c.Decider.Decide(ask, inference.Request{Tenant: a.Namespace, State: a.State, Questions: a.Questions})
		cancel()
		if err != nil {
			c.Tally.failed()
			m.failures.WithLabelValues(name, string(inference.ReasonOf(err))).Inc()
			return
		}
		answered[i].Answers = result.Answers
	}
	other := d.judgement.Settle(answered, s.approved)
	isSame := isSameOutcome(&s.verdict, &other)
	class, _ := d.judgement.Class()
	c.Tally.compared(class, isSame)
	m.compared.WithLabelValues(name, class, strconv.FormatBool(isSame)).Inc()
}

// isSameOutcome compares what callers would have seen, and what policies that are only observed would have said.
func isSameOutcome(a, b *policy.Verdict) bool {
	return a.Outcome == b.Outcome && slices.EqualFunc(a.WouldBe, b.WouldBe, func(x, y policy.AuditVerdict) bool {
		return x.Policy == y.Policy && x.Outcome == y.Outcome
	})
}
