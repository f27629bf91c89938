package policy

import (
	"context"
	"strconv"
	"testing"
	"time"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/testkit"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

type args = map[string]any

type answerOf = questions.Answer

// compiled compiles a ToolPolicy that has to be valid.
func compiled(t testing.TB, name string, options ...testkit.Option) *Compiled {
	t.Helper()
	p, errs := Compile(testkit.ToolPolicy(name, options...))
	if len(errs) > 0 {
		t.Fatalf("policy %s does not compile: %v", name, errs.ToAggregate())
	}
	return p
}

// compiledCluster compiles a ClusterToolPolicy that has to be valid.
func compiledCluster(t testing.TB, name string, options ...testkit.Option) *Compiled {
	t.Helper()
	p, errs := CompileCluster(testkit.ClusterToolPolicy(name, options...))
	if len(errs) > 0 {
		t.Fatalf("policy %s does not compile: %v", name, errs.ToAggregate())
	}
	return p
}

// request is a call by the caller of testkit.
func request(tool string, arguments args, changes ...func(*Request)) *Request {
	r := &Request{
		Caller: Caller{Namespace: testkit.Namespace, ServiceAccount: testkit.ServiceAccount},
		Tool:   tool, Arguments: arguments, Now: noon,
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

func userSaid(turns ...string) func(*Request) { return func(r *Request) { r.UserTurns = turns } }

// shown is what a verdict shows first.
type shown struct {
	Outcome string
	Reason  Reason
	By      string
}

func show(v Verdict) shown { return shown{v.Outcome.String(), v.Reason, v.By} }

func judge(r *Request, policies ...*Compiled) *Judgement {
	return NewSet(policies).Judge(context.Background(), r)
}

// decide judges by rules alone: every question stays without an answer.
func decide(r *Request, policies ...*Compiled) Verdict { return judge(r, policies...).Settle(nil, nil) }

// replying answers every Ask of a judgement with those of the answers that it asks for.
func replying(j *Judgement, answers questions.Answers) []Answered {
	var all []Answered
	for _, ask := range j.Asks() {
		one := Answered{Answers: questions.Answers{}, Fingerprint: testkit.Fingerprint}
		for _, q := range ask.Questions {
			if a, ok := answers[q.Name]; ok {
				one.Answers[q.Name] = a
			}
		}
		all = append(all, one)
	}
	return all
}

// answer judges with a decider that says this.
func answer(r *Request, answers questions.Answers, policies ...*Compiled) Verdict {
	j := judge(r, policies...)
	return j.Settle(replying(j, answers), nil)
}

func yes(p float64) questions.Answer {
	return questions.Answer{Type: questions.YesNo, Probability: p, Coverage: 1}
}

func score(p ...float64) questions.Answer {
	a := questions.Answer{Type: questions.Score, Probabilities: map[string]float64{}, Coverage: 1}
	for i, v := range p {
		a.Probabilities[strconv.Itoa(i)] = v
	}
	a.Score = questions.Expectation(a.Probabilities, len(p))
	return a
}

func choice(chosen string, p map[string]float64) questions.Answer {
	return questions.Answer{Type: questions.Choice, Choice: chosen, Probabilities: p, Coverage: 1}
}

func bareVerdict(chosen string) questions.Answer {
	return questions.Answer{Type: questions.Choice, Choice: chosen, Verdict: true, Coverage: 1}
}

const (
	read        = v1alpha1.ClassName(v1alpha1.BaseReadOnly)
	write       = v1alpha1.ClassName(v1alpha1.BaseWrite)
	external    = v1alpha1.ClassName(v1alpha1.BaseExternal)
	destructive = v1alpha1.ClassName(v1alpha1.BaseDestructive)

	toAllow   = v1alpha1.OutcomeAllow
	toClarify = v1alpha1.OutcomeClarify
	toConfirm = v1alpha1.OutcomeConfirm
	toBlock   = v1alpha1.OutcomeBlock

	orClarify = v1alpha1.StricterOutcome(toClarify)
	orConfirm = v1alpha1.StricterOutcome(toConfirm)
	orBlock   = v1alpha1.StricterOutcome(toBlock)
)

var (
	allowed   = shown{"Allow", ReasonRulesPassed, byRules}
	byDefault = shown{"Confirm", ReasonClassDefault, byClassDefault}
)
