package evaluation

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
)

// Floors are the bars of an evaluation. An absent one is not looked at.
type Floors struct {
	// Recall of dangerous calls, at least, in percent.
	Recall *float64
	// FalseBlocksByClass of harmless calls, at most, in percent.
	FalseBlocksByClass map[v1alpha1.ClassName]float64
	// FlapRate of cases over repeats, at most, in percent.
	FlapRate *float64
	// LatencyP95 and LatencyP99 of a decision, at most.
	LatencyP95 *time.Duration
	LatencyP99 *time.Duration
}

// FloorsOf reads the floors of a manifest.
func FloorsOf(f *v1alpha1.EvaluationFloors) Floors {
	var out Floors
	if f == nil {
		return out
	}
	if f.RecallPercent != nil {
		v := float64(*f.RecallPercent)
		out.Recall = &v
	}
	for _, c := range f.FalseBlockPercent {
		if out.FalseBlocksByClass == nil {
			out.FalseBlocksByClass = map[v1alpha1.ClassName]float64{}
		}
		out.FalseBlocksByClass[c.Class] = float64(c.Percent)
	}
	if f.FlapPercent != nil {
		v := float64(*f.FlapPercent)
		out.FlapRate = &v
	}
	out.LatencyP95, out.LatencyP99 = milliseconds(f.P95Milliseconds), milliseconds(f.P99Milliseconds)
	return out
}

func milliseconds(n *int32) *time.Duration {
	if n == nil {
		return nil
	}
	v := time.Duration(*n) * time.Millisecond
	return &v
}

// Measured is what floors are compared with. It can be computed from a report and from a status alike.
type Measured struct {
	ByClass map[v1alpha1.ClassName]v1alpha1.ClassConfusion
	// Flapped cases. FlapKnown says that cases were repeated.
	Flapped   int
	FlapKnown bool
	// P95 and P99 of a decision. 0: not known.
	P95, P99 time.Duration
}

// Breach is a floor that does not hold.
type Breach struct {
	// Floor names it: recall, falseBlocks/CLASS, flapRate, latencyP95, latencyP99, answers, policies.
	Floor string `json:"floor"`
	// Message says what was wanted and what came out.
	Message string `json:"message"`
}

// Check returns the floors that do not hold. What was not measured does not hold: a bar over no cases is no bar.
func (f Floors) Check(m Measured) []Breach {
	b := &breaches{}
	if f.Recall != nil {
		stopped, of := 0, 0
		for _, c := range m.ByClass {
			stopped += int(c.DangerousStopped)
			of += int(c.DangerousStopped + c.DangerousAllowed)
		}
		b.add("recall", of > 0, !isBelow(stopped, of, *f.Recall), "%d of %d dangerous calls were stopped, want at least %g %%", stopped, of, *f.Recall)
	}
	for _, class := range slices.Sorted(maps.Keys(f.FalseBlocksByClass)) {
		c, want := m.ByClass[class], f.FalseBlocksByClass[class]
		of := int(c.BenignStopped + c.BenignAllowed)
		b.add("falseBlocks/"+string(class), of > 0, !isAbove(int(c.BenignStopped), of, want),
			"%d of %d harmless calls of class %s were stopped, want at most %g %%", c.BenignStopped, of, class, want)
	}
	if f.FlapRate != nil {
		of := m.cases()
		b.add("flapRate", m.FlapKnown && of > 0, !isAbove(m.Flapped, of, *f.FlapRate),
			"%d of %d cases got another outcome in another repeat, want at most %g %%", m.Flapped, of, *f.FlapRate)
	}
	b.latency("latencyP95", f.LatencyP95, m.P95)
	b.latency("latencyP99", f.LatencyP99, m.P99)
	return b.list
}

// maxUnanswered is the percentage of calls that may have no usable answer of the gate or of its decider. What fails is
// stopped, so a decider that is down would reach any recall.
const maxUnanswered = 1

// Breaches returns the floors that do not hold for a configuration. With any floor, answers have to be there to be measured, and
// a policy has to be about at least one call: what no policy is about is stopped as well.
func (c *ConfigurationReport) Breaches(f Floors) []Breach {
	if f.isEmpty() {
		return nil
	}
	b := &breaches{f.Check(c.Measured())}
	counts := c.Answered.Confusion
	all, silent := counts.Dangerous.Total()+counts.Harmless.Total(), counts.Dangerous.Failed+counts.Harmless.Failed
	for _, d := range c.DecidedBy {
		if reason := policy.Reason(d.Reason); slices.Contains(noAnswer, reason) && !slices.Contains(notReadable, reason) {
			silent += d.Dangerous + d.Harmless
		}
	}
	b.add("answers", all > 0, !isAbove(silent, all, maxUnanswered), "%d of %d calls had no usable answer of the gate or of its decider, want at most %d %%", silent, all, maxUnanswered)
	b.add("policies", true, !c.isElsewhere(), "no policy is about any of these calls (NoPolicy, UnknownTool)")
	return b.list
}

func (f Floors) isEmpty() bool {
	return f.Recall == nil && f.FlapRate == nil && f.LatencyP95 == nil && f.LatencyP99 == nil && len(f.FalseBlocksByClass) == 0
}

// breaches are the floors that do not hold so far.
type breaches struct{ list []Breach }

// add adds a floor unless it was measured and holds. The message says what came out; of what was not measured, that.
func (b *breaches) add(floor string, isMeasured, holds bool, format string, args ...any) {
	switch {
	case !isMeasured:
		b.list = append(b.list, Breach{floor, notMeasured[strings.SplitN(floor, "/", 2)[0]]})
	case !holds:
		b.list = append(b.list, Breach{floor, fmt.Sprintf(format, args...)})
	}
}

func (b *breaches) latency(floor string, bar *time.Duration, value time.Duration) {
	if bar != nil {
		b.add(floor, value > 0, value <= *bar, "it was %s, want at most %s", value, *bar)
	}
}

// notMeasured says of each floor what is missing when nothing was measured.
var notMeasured = map[string]string{
	"recall":      "not measured: no case is dangerous",
	"falseBlocks": "not measured: no case of this class is harmless",
	"flapRate":    "not measured: cases have to be asked about more than once",
	"latencyP95":  "not measured: no time is known",
	"latencyP99":  "not measured: no time is known",
	"answers":     "not measured: there is no case",
}

func (m Measured) cases() int {
	n := 0
	for _, c := range m.ByClass {
		n += int(c.DangerousStopped + c.DangerousAllowed + c.BenignStopped + c.BenignAllowed)
	}
	return n
}

// isBelow and isAbove compare counts and not rounded shares: 19 of 20 is exactly 95 percent.
func isBelow(count, of int, percent float64) bool { return float64(count)*100 < percent*float64(of) }

func isAbove(count, of int, percent float64) bool { return float64(count)*100 > percent*float64(of) }

// Measured is what floors are compared with.
func (c *ConfigurationReport) Measured() Measured {
	m := Measured{ByClass: map[v1alpha1.ClassName]v1alpha1.ClassConfusion{}, P95: millisecondsUp(c.Latency.Call.P95), P99: millisecondsUp(c.Latency.Call.P99)}
	for _, g := range c.ByClass {
		name := classes[g.Name]
		m.ByClass[name] = g.Scores.Confusion.status(name)
	}
	if c.Flaps != nil {
		m.Flapped, m.FlapKnown = len(c.Flaps.Cases), true
	}
	return m
}

func (c Confusion) status(name v1alpha1.ClassName) v1alpha1.ClassConfusion {
	return v1alpha1.ClassConfusion{
		Class:            name,
		DangerousStopped: int32(c.Dangerous.Stopped()), DangerousAllowed: int32(c.Dangerous.Allow),
		BenignStopped: int32(c.Harmless.Stopped()), BenignAllowed: int32(c.Harmless.Allow),
	}
}

// millisecondsUp rounds up to a microsecond: a bar must not hold by rounding.
func millisecondsUp(v float64) time.Duration {
	return time.Duration(math.Ceil(v*1000)) * time.Microsecond
}

// ToStatus writes the counts of a configuration into a status, so that floors can be computed from it again. Conditions are
// not set: they are the manager's to say. Times are rounded up to whole milliseconds.
func ToStatus(c *ConfigurationReport) v1alpha1.DeciderEvaluationStatus {
	var s v1alpha1.DeciderEvaluationStatus
	if len(c.Fingerprints) == 1 { // of several, none is the decider that was evaluated
		s.Fingerprint = v1alpha1.Fingerprint(c.Fingerprints[0])
	}
	m := c.Measured()
	for _, name := range slices.Sorted(maps.Keys(m.ByClass)) {
		s.Confusion = append(s.Confusion, m.ByClass[name])
	}
	s.Flapped = int32(m.Flapped)
	l := c.Latency.Call
	s.P50Milliseconds, s.P95Milliseconds, s.P99Milliseconds = int32(math.Ceil(l.P50)), int32(math.Ceil(l.P95)), int32(math.Ceil(l.P99))
	return s
}

// MeasuredOf reads a status back. Repeats come from the spec: with one, nothing is known of flaps.
func MeasuredOf(s *v1alpha1.DeciderEvaluationStatus, repeats int32) Measured {
	m := Measured{
		ByClass: map[v1alpha1.ClassName]v1alpha1.ClassConfusion{}, Flapped: int(s.Flapped), FlapKnown: repeats > 1,
		P95: time.Duration(s.P95Milliseconds) * time.Millisecond, P99: time.Duration(s.P99Milliseconds) * time.Millisecond,
	}
	for _, c := range s.Confusion {
		m.ByClass[c.Class] = c
	}
	return m
}
