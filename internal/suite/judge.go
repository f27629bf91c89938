package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	reviewv1alpha1 "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/manifest"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/questions"
)

func (r *runner) add(p *policy.Compiled, rules *v1alpha1.PolicyRules) {
	r.policies = append(r.policies, p)
	if rules.DeciderRef != nil {
		r.pinned[p.ID.String()] = string(rules.DeciderRef.Fingerprint)
	}
}

func declared(set *manifest.Set) []v1alpha1.Question {
	var all []v1alpha1.Question
	for _, p := range set.ToolPolicies() {
		all = append(all, p.Spec.Questions...)
	}
	for _, p := range set.ClusterToolPolicies() {
		all = append(all, p.Spec.Questions...)
	}
	return all
}

// request is the call of a case as the gate would put it before the engine.
func (r *runner) request(c *Call) *policy.Request {
	arguments, _ := c.Arguments.object()
	facts, _ := c.Facts.object()
	now, _ := clock(cmp.Or(c.Now, r.file.Now))
	q := &policy.Request{
		Caller: policy.Caller{Namespace: c.Caller.Namespace, ServiceAccount: c.Caller.ServiceAccount},
		Tool:   c.Tool, Server: c.Server, Arguments: arguments, Facts: facts,
		OnBehalfOf: c.OnBehalfOf, Session: c.Session, Language: c.Language, Attestation: c.Attestation, Now: now,
	}
	for _, m := range c.Messages {
		q.Heard(reviewv1alpha1.Role(m.Role), m.Content)
	}
	q.Asked(c.UserRequest)
	return q
}

// result is what came of a case.
type result struct {
	verdict policy.Verdict
	class   string
	asked   []string
}

func (r *runner) run(ctx context.Context, c *Case) CaseReport {
	out := CaseReport{Name: c.Name, Line: c.line}
	call := c.Call.over(r.file.Defaults)
	got, err := r.judge(ctx, &call)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	out.Differences = c.Want.compare(got)
	return out
}

// judge takes the way of the gate: rules, decider, ladders; and once more with the approval of a person, if one is given.
func (r *runner) judge(ctx context.Context, c *Call) (result, error) {
	request := r.request(c)
	j := r.set.Judge(ctx, request)
	answered, asked, err := r.answer(j, c.Decider)
	if err != nil {
		return result{}, err
	}
	verdict := j.Settle(answered, nil)
	if c.Approved {
		if verdict.Outcome != policy.Confirm {
			return result{}, fmt.Errorf("approved: without an approval the call is %s (%s), so that nobody is asked: remove approved", verdict.Outcome, verdict.Reason)
		}
		j, asked = r.set.Judge(ctx, request), nil
		verdict = j.Settle(nil, &policy.Approval{Name: "in-suite", Shown: verdict.ConfirmKeys()})
	}
	for _, point := range j.Reached() {
		r.reached[point] = true
	}
	class, _ := j.Class()
	return result{verdict: verdict, class: class, asked: asked}, nil
}

// answer gives the scripted answers to what the ladders ask.
func (r *runner) answer(j *policy.Judgement, s *Script) ([]policy.Answered, []string, error) {
	var all []policy.Answered
	var asked []string
	for _, ask := range j.Asks() {
		if s == nil {
			s = &Script{}
		}
		one, err := r.one(ask, s)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, one)
		for _, q := range ask.Questions {
			asked = append(asked, q.Name)
		}
	}
	slices.Sort(asked)
	return all, slices.Compact(asked), nil
}

func (r *runner) one(ask policy.Ask, s *Script) (policy.Answered, error) {
	if s.Unavailable != "" {
		return policy.Answered{Unavailable: policy.Reason(s.Unavailable)}, nil
	}
	out := policy.Answered{Answers: questions.Answers{}, Fingerprint: s.Fingerprint}
	if out.Fingerprint == "" {
		out.Fingerprint = r.pinned[ask.Policy]
	}
	var missing []string
	for _, q := range ask.Questions {
		reply, ok := s.Answers[q.Name]
		if !ok {
			missing = append(missing, q.Name)
			continue
		}
		a, err := reply.answer(q)
		if err != nil {
			return out, err
		}
		out.Answers[q.Name] = a
	}
	if missing != nil {
		return out, errors.New("decider.answers: " + ask.Policy + " asks what has no answer here: " + strings.Join(missing, ", "))
	}
	return out, nil
}

// compare lists where the wanted verdict differs from the one that came.
func (w *Want) compare(got result) []Difference {
	var all []Difference
	field := func(name, want, got string) {
		if want != "" && want != got {
			all = append(all, Difference{Field: name, Want: want, Got: got})
		}
	}
	list := func(name string, isWanted bool, want, got []string) {
		want, got = slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))
		if isWanted && !slices.Equal(want, got) {
			all = append(all, Difference{Field: name, Want: listed(want), Got: listed(got)})
		}
	}
	field("outcome", w.Outcome, got.verdict.Outcome.String())
	field("reason", w.Reason, string(got.verdict.Reason))
	field("by", w.By, got.verdict.By)
	field("class", w.Class, got.class)
	if w.Asked != nil {
		list("asked", true, *w.Asked, got.asked)
	}
	list("missing", w.Missing != nil, w.Missing, got.verdict.Missing)
	list("wouldBe", w.WouldBe != nil, wanted(w.WouldBe), came(w.WouldBe, got.verdict.WouldBe))
	return all
}

func listed(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// wanted and came write verdicts in mode Audit alike: of one that is wanted without reason or by, these are left out.
func wanted(want []WouldBe) []string {
	var out []string
	for _, w := range want {
		out = append(out, auditText(w.Policy, w.Outcome, w.Reason, w.By))
	}
	return out
}

func came(want []WouldBe, got []policy.AuditVerdict) []string {
	var out []string
	for _, g := range got {
		reason, by := string(g.Reason), g.By
		for _, w := range want {
			if w.Policy == g.Policy {
				if w.Reason == "" {
					reason = ""
				}
				if w.By == "" {
					by = ""
				}
			}
		}
		out = append(out, auditText(g.Policy, g.Outcome.String(), reason, by))
	}
	return out
}

func auditText(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}
