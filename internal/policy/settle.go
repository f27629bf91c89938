package policy

import (
	"maps"
	"math"
	"slices"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy/sources"
	"gatewright.dev/gatewright/internal/questions"
)

// effectQuestions are answered by what the policy says about a tool.
var effectQuestions = map[v1alpha1.Effect]string{
	v1alpha1.EffectDeletesData:     "deletes_data",
	v1alpha1.EffectMovesMoney:      "moves_money",
	v1alpha1.EffectLeavesTheSystem: "leaves_the_system",
}

// prepareAsks lists what deciders have to answer: nothing when rules have settled the call.
func (j *Judgement) prepareAsks() {
	if j.IsSettled() {
		return
	}
	for i := range j.evaluations {
		e := &j.evaluations[i]
		if e.settled || !e.ladder().asks() {
			continue
		}
		e.answerFromCode()
		if e.policy.NeedsFingerprint() {
			e.failed = ReasonFingerprintRequired
			continue
		}
		e.asked = j.ask(e, e.ladder().questions, false)
		e.askedResults = j.ask(e, e.ladder().withResults, true)
	}
}

// answerFromCode answers what the policy's table of effects already says.
func (e *evaluation) answerFromCode() {
	for _, effect := range e.tool.effects {
		if e.code == nil {
			e.code = make(questions.Answers, len(e.tool.effects))
		}
		e.code[effectQuestions[effect]] = questions.Answer{Type: questions.YesNo, Probability: 1, Coverage: 1}
	}
}

// open returns the questions that code has not answered.
func (e *evaluation) open(list []questions.Question) []questions.Question {
	open := make([]questions.Question, 0, len(list))
	for _, q := range list {
		if _, known := e.code[q.Name]; !known {
			open = append(open, q)
		}
	}
	return open
}

// ask adds one request for the questions that code has not answered. -1: there is none.
func (j *Judgement) ask(e *evaluation, list []questions.Question, withResults bool) int {
	open := e.open(list)
	if len(open) == 0 {
		return -1
	}
	j.asks = append(j.asks, Ask{
		Decider: e.policy.Decider(), Policy: e.policy.label, Namespace: j.request.Caller.Namespace,
		Audit: !e.enforced, Timeout: e.policy.timeout, State: e.state(withResults), Questions: open,
	})
	return len(j.asks) - 1
}

// state is what a decider is shown. Tool results only reach questions that ask for them: what a web page says must not
// argue with the judge.
func (e *evaluation) state(withResults bool) questions.State {
	r := e.request
	s := questions.State{
		Tool: questions.Tool{
			Name: r.Tool, Server: r.Server, Description: e.tool.rule.Description, Note: e.tool.rule.Note, Class: e.class.name,
		},
		Arguments: r.Arguments, UserTurns: e.userTurns(), Language: r.Language,
		Facts: questions.Facts{ScopesHeld: e.scopes(), ScopesRequired: e.tool.scopes, SchemaValid: e.schema, Stated: e.trustedFacts()},
	}
	s.Messages = e.messages()
	if e.policy.trust != v1alpha1.TrustAttested {
		s.System = r.System
	}
	for _, effect := range e.tool.effects {
		s.Tool.Effects = append(s.Tool.Effects, string(effect))
	}
	for _, f := range e.trace() {
		source := questions.ArgumentSource{Pointer: f.Pointer, Source: shownSource(f)}
		if f.IsPartial() {
			source.PartOf = string(f.Source)
		}
		s.Facts.ArgumentSources = append(s.Facts.ArgumentSources, source)
	}
	if withResults {
		s.ToolResults = append([]string{}, r.ToolResults...)
	}
	return s
}

// messages are what others than the user said before the call. Of words that nobody has signed only those of tools are
// left: they can only raise suspicion.
func (e *evaluation) messages() []questions.Message {
	if e.policy.trust != v1alpha1.TrustAttested {
		return e.request.Messages
	}
	var out []questions.Message
	for _, m := range e.request.Messages {
		if m.Role == questions.RoleTool {
			out = append(out, m)
		}
	}
	return out
}

// shownSource is what a decider is told about a value: one of which only a part was found is in doubt.
func shownSource(f sources.Finding) string {
	if f.IsPartial() {
		return questions.SourcePartly
	}
	return string(f.Source)
}

// Asks returns the requests to deciders that the ladders need. With a valid approval none of them is made.
func (j *Judgement) Asks() []Ask { return j.asks }

// Settle applies the ladders to the answers, in the order of Asks, adds what irreversible calls need and joins it all.
// A missing answer is a decider that gave none. With an approval the ladders that ask are skipped, rules hold as
// before, and of the reasons to confirm those are discharged that the person saw; an approval that shows none is none.
// It may be called again with other answers: nothing of an earlier call stays.
func (j *Judgement) Settle(answered []Answered, approval *Approval) Verdict {
	if approval != nil && len(approval.Shown) == 0 {
		approval = nil
	}
	settled := j.IsSettled()
	for i := range j.evaluations {
		e := &j.evaluations[i]
		e.obligations = e.obligations[:e.fromRules]
		e.answers, e.unanswered, e.skipped = nil, reasonNotUnavailable, false
		if e.settled || settled && e.ladder().asks() {
			continue
		}
		if approval != nil && e.ladder().asks() {
			e.skipped = true
		} else {
			e.climb(answered)
		}
		e.requirePerson()
	}
	v := j.join(approval)
	v.WouldBe = j.wouldBe(settled)
	return v
}

// requirePerson adds what no answer can take away: irreversible classes, and classes that always ask, need a person.
func (e *evaluation) requirePerson() {
	if !e.class.always {
		return
	}
	o := Obligation{Outcome: Confirm, Reason: ReasonIrreversible, By: byIrreversible, Policy: e.policy.label, Remedy: RemedyWaitForApproval,
		Message: "calls of class " + e.class.name + " cannot be undone, so a person has to confirm them"}
	if !isIrreversible(e.class.base) {
		o.Reason, o.By = ReasonApprovalRequired, byApprovalAlways
		o.Message = "calls of class " + e.class.name + " always need a person"
	}
	e.obligations = append(e.obligations, o)
}

// climb runs the ladder and adds its obligation, unless it ends in Allow.
func (e *evaluation) climb(answered []Answered) {
	l := e.ladder()
	if l.asks() {
		if reason := e.gather(answered); reason != reasonNotUnavailable {
			e.answers, e.unanswered = nil, reason // some of the answers are no answer
			e.obligations = append(e.obligations, e.unavailable(reason))
			return
		}
	}
	o := l.decide(e.answers)
	o.Policy = e.policy.label
	if o.Outcome != Allow {
		e.obligations = append(e.obligations, o)
	}
}

// gather collects the answers of code and deciders. Whatever is not exactly what was asked is no answer at all.
func (e *evaluation) gather(answered []Answered) Reason {
	if e.failed != "" {
		return e.failed
	}
	e.answers = make(questions.Answers, len(e.code)+4)
	maps.Copy(e.answers, e.code)
	l := e.ladder()
	for _, part := range []struct {
		index int
		list  []questions.Question
	}{{e.asked, l.questions}, {e.askedResults, l.withResults}} {
		if part.index < 0 {
			continue
		}
		if reason := e.take(answered, part.index, part.list); reason != reasonNotUnavailable {
			return reason
		}
	}
	return reasonNotUnavailable
}

func (e *evaluation) take(answered []Answered, index int, list []questions.Question) Reason {
	if index >= len(answered) {
		return ReasonDeciderUnavailable
	}
	a := answered[index]
	if a.Unavailable != reasonNotUnavailable {
		return a.Unavailable
	}
	if want := e.policy.decider.fingerprint; want != "" && a.Fingerprint != want {
		return ReasonDeciderMismatch
	}
	open := e.open(list)
	if questions.CheckAll(open, a.Answers) != nil {
		return ReasonDeciderBadReply
	}
	for _, q := range open {
		if a.Answers[q.Name].Verdict && q.Name != verdictQuestion {
			return ReasonDeciderBadReply // a bare verdict has no number to compare
		}
		e.answers[q.Name] = a.Answers[q.Name]
	}
	return reasonNotUnavailable
}

// unavailable is what happens when the decider was needed and gave no usable answer. A request in a language that the
// decider does not read is shown to a person: it is no fault of anybody's.
func (e *evaluation) unavailable(reason Reason) Obligation {
	o := Obligation{Outcome: e.class.unavailable, Reason: reason, By: byDecider, Policy: e.policy.label, Remedy: RemedyRetry,
		Message: "the decider gave no usable answer, and what it was needed for fails closed"}
	if reason == ReasonLanguageNotSupported {
		o.Outcome = Confirm
	}
	if o.Outcome == Confirm {
		o.Remedy, o.Message = RemedyWaitForApproval, "the decider gave no usable answer, so a person has to confirm the call"
	}
	return o
}

// decide tries the steps in order; the first that matches decides.
func (l *ladder) decide(answers questions.Answers) Obligation {
	for i := range l.steps {
		if l.steps[i].matches(answers) {
			return l.steps[i].obligation
		}
	}
	return l.end
}

func (s *step) matches(answers questions.Answers) bool {
	if len(s.floorOf) > 0 {
		return slices.ContainsFunc(s.floorOf, func(name string) bool {
			confidence, known := answers[name].Confidence()
			return !known || confidence < s.floor
		})
	}
	for i := range s.when {
		if !s.when[i].holds(answers[s.when[i].question.Name]) {
			return false
		}
	}
	return len(s.when) > 0
}

func (k *comparison) holds(a questions.Answer) bool {
	if k.operator == is {
		return a.Choice == k.is
	}
	v := k.value(a)
	switch k.operator {
	case above:
		return v > k.number
	case atLeast:
		return v >= k.number
	case below:
		return v < k.number
	case atMost:
		return v <= k.number
	case is:
	}
	return false
}

// value is the number that is compared. NaN compares false with everything, but answers were checked to be finite.
func (k *comparison) value(a questions.Answer) float64 {
	switch {
	case a.Type == questions.YesNo:
		return a.Probability
	case a.Type == questions.Choice:
		return a.Probabilities[k.option]
	case a.Type == questions.Score && k.level != "":
		return a.Probabilities[k.level]
	case a.Type == questions.Score:
		return a.Score
	}
	return math.NaN()
}

// join puts the obligations of all policies in force together.
func (j *Judgement) join(approval *Approval) Verdict {
	all := slices.Clone(j.extra)
	used := false
	for i := range j.evaluations {
		e := &j.evaluations[i]
		if !e.enforced {
			continue
		}
		used = used || e.skipped
		for _, o := range e.obligations {
			if approval != nil && o.Outcome == Confirm && slices.Contains(approval.Shown, o.Key()) {
				used = true
				continue
			}
			all = append(all, o)
		}
	}
	if len(all) > 0 {
		return join(all, Verdict{})
	}
	return j.allowance(approval, used)
}

// allowance is the verdict where no obligation is left. What an approval took part in says so, so that it is consumed.
func (j *Judgement) allowance(approval *Approval, used bool) Verdict {
	v := Verdict{Outcome: Allow, Reason: ReasonRulesPassed, By: byRules, Message: "the call may run"}
	switch {
	case approval != nil && used:
		v.Reason, v.By, v.Message = ReasonApproved, "approval:"+approval.Name, "the call may run: a person approved it"
	case j.auditOnly:
		v.Reason, v.By, v.Message = ReasonAuditOnly, byAudit, "the call may run: every policy that applies is in mode Audit"
	default:
		for i := range j.evaluations {
			if e := &j.evaluations[i]; e.enforced && e.answers != nil {
				o := e.ladder().decide(e.answers)
				v.Reason, v.By = o.Reason, byDecider
			}
		}
	}
	return v
}

// wouldBe says what each policy in mode Audit would have said. One whose decider was not asked, because the call was
// settled by others or by an approval, has no verdict.
func (j *Judgement) wouldBe(settled bool) []AuditVerdict {
	var out []AuditVerdict
	for i := range j.evaluations {
		e := &j.evaluations[i]
		if e.enforced || e.skipped || settled && !e.settled && e.ladder().asks() {
			continue
		}
		v := join(e.obligations, Verdict{Outcome: Allow, Reason: ReasonRulesPassed, By: byRules})
		out = append(out, AuditVerdict{Policy: e.policy.label, Outcome: v.Outcome, Reason: v.Reason, By: v.By})
	}
	return out
}

// Answers returns all answers by question, of all policies in force. For records.
func (j *Judgement) Answers() (answers questions.Answers, fromCode map[string]bool) {
	for i := range j.evaluations {
		e := &j.evaluations[i]
		if !e.enforced || e.answers == nil {
			continue
		}
		if answers == nil {
			answers, fromCode = make(questions.Answers, len(e.answers)), map[string]bool{}
		}
		for name, a := range e.answers {
			answers[name] = a
			_, fromCode[name] = e.code[name]
		}
	}
	return answers, fromCode
}

// Sources says where each value of the arguments came from, by the first policy in force that lists the tool.
func (j *Judgement) Sources() []sources.Finding {
	for i := range j.evaluations {
		if e := &j.evaluations[i]; e.enforced && e.class != nil {
			return e.trace()
		}
	}
	return nil
}
