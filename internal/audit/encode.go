package audit

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

// MaxRecord is the longest line in bytes.
const MaxRecord = 256 << 10

var (
	// ErrBadRecord says that a record cannot be written as it is: a number that
	// is not finite, or text where a digest or a constant belongs.
	ErrBadRecord = errors.New("record cannot be written")
	// ErrTooLarge says that a record is longer than MaxRecord.
	ErrTooLarge = fmt.Errorf("%w: too large", ErrBadRecord)
)

// encoder writes the members of a record behind those of the writer, so that
// callers encode in parallel and the writer only puts seq and prev in front.
type encoder struct {
	buf  []byte
	keys []string
	err  error
}

var encoders = sync.Pool{New: func() any { return &encoder{buf: make([]byte, 0, 2<<10)} }}

func (e *encoder) release() {
	if cap(e.buf) > 32<<10 {
		return
	}
	clear(e.keys[:cap(e.keys)])
	e.buf, e.keys, e.err = e.buf[:0], e.keys[:0], nil
	encoders.Put(e)
}

// record appends `"kind":"decision",...}`.
func (e *encoder) record(r *Record) error {
	e.check(r)
	kind := r.Kind
	if kind == "" {
		kind = KindDecision
	}
	e.buf = append(e.buf, `"kind":`...)
	e.quote(kind)
	e.time(r.Time)
	e.identity(r)
	e.verdict(r)
	e.provenance(r)
	e.answers(r.Answers)
	e.circumstances(r)
	e.ofTheLog(r)
	e.buf = append(e.buf, '}')
	if e.err == nil && len(e.buf)+maxHead > MaxRecord {
		e.err = ErrTooLarge
	}
	return e.err
}

func (e *encoder) identity(r *Record) {
	e.text("id", r.ID)
	e.text("uid", r.UID)
	e.text("requestDigest", r.RequestDigest)
	e.buf = append(e.buf, `,"caller":{`...)
	mark := len(e.buf)
	e.text("namespace", r.Caller.Namespace)
	e.text("serviceAccount", r.Caller.ServiceAccount)
	e.closeObject(mark)
	e.text("onBehalfOf", r.OnBehalfOf)
	e.text("session", r.Session)
	e.text("tool", r.Tool)
	e.text("server", r.Server)
	e.text("class", r.Class)
	e.text("base", r.Base)
}

func (e *encoder) verdict(r *Record) {
	e.text("outcome", string(r.Outcome))
	e.text("reason", r.Reason)
	e.text("by", r.By)
	for i, o := range r.Obligations {
		mark := e.element("obligations", i)
		e.judgement(o.Outcome, o.Reason, o.By)
		e.text("policy", o.Policy)
		e.closeObject(mark)
	}
	e.closeList(len(r.Obligations))
	for i, w := range r.WouldBe {
		mark := e.element("wouldBe", i)
		e.always("policy", w.Policy)
		e.judgement(w.Outcome, w.Reason, w.By)
		e.closeObject(mark)
	}
	e.closeList(len(r.WouldBe))
}

func (e *encoder) judgement(outcome review.Outcome, reason, by string) {
	e.always("outcome", string(outcome))
	e.always("reason", reason)
	e.always("by", by)
}

func (e *encoder) provenance(r *Record) {
	for i, p := range r.Policies {
		if i == 0 {
			e.name("policies")
			e.buf = append(e.buf, '[')
		} else {
			e.buf = append(e.buf, ',')
		}
		e.quote(p)
	}
	e.closeList(len(r.Policies))
	e.text("policyDigest", r.PolicyDigest)
	e.text("argumentsDigest", r.ArgumentsDigest)
	e.text("stateDigest", r.StateDigest)
	e.text("userTurnsDigest", r.UserTurnsDigest)
	e.text("decider", r.Decider)
	e.text("fingerprint", r.Fingerprint)
	e.text("modelHash", r.ModelHash)
	e.text("promptVersion", r.PromptVersion)
	for i := range r.Deciders {
		e.asked(i, &r.Deciders[i])
	}
	e.closeList(len(r.Deciders))
	e.text("captured", r.Captured)
}

func (e *encoder) circumstances(r *Record) {
	if a := r.Approval; a != nil {
		e.buf = append(e.buf, `,"approval":{`...)
		mark := len(e.buf)
		e.always("name", a.Name)
		e.text("by", a.By)
		e.text("outcome", a.Outcome)
		e.closeObject(mark)
	}
	if r.DryRun {
		e.buf = append(e.buf, `,"dryRun":true`...)
	}
	e.number("ms", r.Milliseconds)
	if r.DeciderMilliseconds != 0 {
		e.number("deciderMs", r.DeciderMilliseconds)
	}
	e.text("deciderError", r.DeciderError)
	e.text("engineSemantics", r.EngineSemantics)
	e.text("gateVersion", r.GateVersion)
	if r.SnapshotAgeSeconds != 0 {
		e.integer("snapshotAgeSeconds", r.SnapshotAgeSeconds)
	}
}

// answers writes questions and options in the order of their names, so that
// the same decision gives the same bytes.
func (e *encoder) answers(answers map[string]review.Answer) {
	if len(answers) == 0 {
		return
	}
	e.buf = append(e.buf, `,"answers":{`...)
	mark := len(e.buf)
	first := len(e.keys)
	e.keys = slices.AppendSeq(e.keys, maps.Keys(answers))
	slices.Sort(e.keys[first:])
	for _, k := range e.keys[first:] {
		e.key(k)
		e.buf = append(e.buf, '{')
		e.answer(answers[k])
	}
	e.keys = e.keys[:first]
	e.closeObject(mark)
}

func (e *encoder) answer(a review.Answer) {
	mark := len(e.buf)
	if a.Probability != nil {
		e.number("probability", *a.Probability)
	}
	e.text("choice", a.Choice)
	if len(a.Probabilities) > 0 {
		e.name("probabilities")
		e.buf = append(e.buf, '{')
		e.options(a.Probabilities)
	}
	if a.Score != nil {
		e.number("score", *a.Score)
	}
	if a.FromCode {
		e.buf = append(e.buf, `,"fromCode":true`...)
	}
	e.closeObject(mark)
}

func (e *encoder) options(probabilities map[string]float64) {
	mark := len(e.buf)
	first := len(e.keys)
	e.keys = slices.AppendSeq(e.keys, maps.Keys(probabilities))
	slices.Sort(e.keys[first:])
	for _, k := range e.keys[first:] {
		e.key(k)
		e.float("probabilities", probabilities[k])
	}
	e.keys = e.keys[:first]
	e.closeObject(mark)
}

// closeObject ends an object whose first member may stand behind a comma at mark.
func (e *encoder) closeObject(mark int) {
	if len(e.buf) > mark && e.buf[mark] == ',' {
		e.buf = slices.Delete(e.buf, mark, mark+1)
	}
	e.buf = append(e.buf, '}')
}

// element starts element i of a list of objects.
func (e *encoder) element(list string, i int) (mark int) {
	if i == 0 {
		e.name(list)
		e.buf = append(e.buf, '[', '{')
	} else {
		e.buf = append(e.buf, ',', '{')
	}
	return len(e.buf)
}

func (e *encoder) closeList(n int) {
	if n > 0 {
		e.buf = append(e.buf, ']')
	}
}

// name starts a member whose name stands in this file, and needs no quoting.
func (e *encoder) name(name string) {
	e.buf = append(e.buf, ',', '"')
	e.buf = append(e.buf, name...)
	e.buf = append(e.buf, '"', ':')
}

// key starts a member whose name came from outside.
func (e *encoder) key(key string) {
	e.buf = append(e.buf, ',')
	e.quote(key)
	e.buf = append(e.buf, ':')
}

// text writes a member unless it is empty.
func (e *encoder) text(name, value string) {
	if value != "" {
		e.always(name, value)
	}
}

func (e *encoder) always(name, value string) {
	e.name(name)
	e.quote(value)
}

// quote replaces what is not UTF-8, as the quoting says on its own.
func (e *encoder) quote(s string) { e.buf, _ = jsontext.AppendQuote(e.buf, s) }

func (e *encoder) number(name string, x float64) {
	e.name(name)
	e.float(name, x)
}

func (e *encoder) float(name string, x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		e.fail("%s is not finite", name)
		return
	}
	format := byte('f')
	if abs := math.Abs(x); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	e.buf = strconv.AppendFloat(e.buf, x, format, -1, 64)
}

func (e *encoder) time(t time.Time) {
	t = t.UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		e.fail("year %d", y)
		return
	}
	e.buf = append(e.buf, `,"time":"`...)
	e.buf = append(t.AppendFormat(e.buf, time.RFC3339Nano), '"')
}

func (e *encoder) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf("%w: "+format, append([]any{ErrBadRecord}, args...)...)
	}
}

// check keeps text out of the places of digests and constants. Its errors name
// the member and never what stood there.
func (e *encoder) check(r *Record) {
	for _, d := range [...]struct{ name, value string }{
		{"requestDigest", r.RequestDigest}, {"session", r.Session}, {"policyDigest", r.PolicyDigest},
		{"argumentsDigest", r.ArgumentsDigest}, {"stateDigest", r.StateDigest}, {"userTurnsDigest", r.UserTurnsDigest},
	} {
		if d.value != "" && !isDigest(d.value) {
			e.fail("%s is not a digest", d.name)
		}
	}
	if !isConstant(r.Reason) {
		e.fail("reason is not a constant")
	}
	if !isConstant(r.DeciderError) {
		e.fail("deciderError is not a constant")
	}
	e.checkOfTheLog(r)
}

// isDigest takes "algorithm:hexadecimal" of 128 bits and more.
func isDigest(s string) bool {
	colon := 0
	for colon < len(s) && s[colon] != ':' {
		if c := s[colon]; !isDigit(c) && !(c >= 'a' && c <= 'z') && c != '-' {
			return false
		}
		colon++
	}
	digits := len(s) - colon - 1
	if colon == 0 || colon > 32 || digits < 32 || digits > 128 {
		return false
	}
	for _, c := range []byte(s[colon+1:]) {
		if !isDigit(c) && !(c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isConstant(s string) bool {
	for _, c := range []byte(s) {
		if !isDigit(c) && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') {
			return false
		}
	}
	return len(s) <= 64
}
