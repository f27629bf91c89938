package learn

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/questions"
)

const (
	written = "ToolPolicy/shop/p"
	printed = "sha256:0000000000000000000000000000000000000000000000000000000000000001"
)

// manifest has a ladder for a class, one for a tool, one for calls that cannot be undone, and one that always asks.
const manifest = `
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: p, namespace: shop}
spec:
  deciderRef: {name: d, fingerprint: ` + printed + `}
  classes:
  - name: Write
    decider: Ask
    questions: [asked, declined]
    thresholds:
    - when: [{question: declined, above: 90}]
      outcome: Block
    - when: [{question: asked, above: ASKED}]
      outcome: Allow
    otherwise: {outcome: Confirm}
  - name: Send
    base: External
    approval: WhenUnsure
    decider: Ask
    questions: [asked, declined]
    thresholds:
    - when: [{question: asked, above: ASKED}]
      outcome: Allow
    otherwise: {outcome: Confirm}
  - name: Destructive
    decider: Ask
    questions: [asked, declined]
    thresholds:
    - when: [{question: asked, above: ASKED}]
      outcome: Allow
    otherwise: {outcome: Confirm}
  tools:
  - {name: note.write, class: Write}
  - name: note.move
    class: Write
    decider: Ask
    questions: [asked, declined]
    thresholds:
    - when: [{question: asked, above: ASKED}]
      outcome: Allow
    otherwise: {outcome: Confirm}
  - {name: mail.send, class: Send}
  - {name: note.delete, class: Destructive}
`

// policies are the manifest with a bar.
func policies(t *testing.T, asked int) Policies {
	t.Helper()
	p := &v1alpha1.ToolPolicy{}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(manifest, "ASKED", fmt.Sprint(asked))), p); err != nil {
		t.Fatal(err)
	}
	return Policies{Tool: []*v1alpha1.ToolPolicy{p}}
}

// world draws calls: of harmless ones asked is at least low, of dangerous ones it is below high.
type world struct {
	tool, class string
	n           int
	// dangerous is the share of calls that are.
	dangerous  float64
	low, high  float64
	rest       policy.Outcome
	unlabelled bool
}

func (w world) examples(seed uint64) []Example {
	random := rand.New(rand.NewPCG(seed, 9))
	var out []Example
	for i := range w.n {
		e := Example{ID: fmt.Sprintf("%s-%d", w.tool, i), Cluster: fmt.Sprintf("%s request %d", w.tool, i/2), Tool: w.tool, Class: w.class, Label: LabelAllow}
		asked := w.low + (1-w.low)*random.Float64()
		if random.Float64() < w.dangerous {
			e.Label, asked = LabelBlock, w.high*random.Float64()
		}
		if w.unlabelled {
			e.Label = ""
		}
		e.Seen = map[string]Seen{written: {Answers: yesNo(asked, 0.1), Fingerprint: printed, Rest: w.rest}}
		out = append(out, e)
	}
	return out
}

func yesNo(asked, declined float64) questions.Answers {
	return questions.Answers{
		"asked":    {Type: questions.YesNo, Probability: asked, Coverage: 1},
		"declined": {Type: questions.YesNo, Probability: declined, Coverage: 1},
	}
}

func suggest(t *testing.T, p Policies, o Options, examples ...[]Example) *Report {
	t.Helper()
	var e Evidence
	for _, list := range examples {
		e.Examples = append(e.Examples, list...)
	}
	r, err := Suggest(p, e, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// apply merges a patch into a policy as server-side apply does: classes and tools by name, lists of thresholds whole.
func apply(t *testing.T, p *v1alpha1.ToolPolicy, r *Report) *v1alpha1.ToolPolicy {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	var patch v1alpha1.ToolPolicy
	if err := yaml.UnmarshalStrict(b.Bytes(), &patch); err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	if patch.Namespace != p.Namespace || patch.Name != p.Name || patch.Kind != p.Kind || patch.APIVersion != p.APIVersion {
		t.Fatalf("the patch is of another object:\n%s", b.String())
	}
	out := p.DeepCopy()
	for _, k := range patch.Spec.Classes {
		place := Place{Class: string(k.Name)}
		out.Spec.Classes[place.class(&out.Spec.PolicyRules)].Thresholds = k.Thresholds
	}
	for _, k := range patch.Spec.Tools {
		place := Place{Tool: k.Name, Server: k.Server}
		out.Spec.Tools[place.tool(&out.Spec.PolicyRules)].Thresholds = k.Thresholds
	}
	return out
}

// engine judges examples by a policy, with their answers in the place of a decider's.
func engine(t *testing.T, p *v1alpha1.ToolPolicy) func(*Example) policy.Outcome {
	t.Helper()
	compiled, errs := policy.Compile(p)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	set := policy.NewSet([]*policy.Compiled{compiled})
	return func(e *Example) policy.Outcome {
		j := set.Judge(t.Context(), &policy.Request{
			Caller: policy.Caller{Namespace: "shop", ServiceAccount: "agent"}, Tool: e.Tool, Arguments: map[string]any{}, UserTurns: []string{"do it"},
		})
		var answered []policy.Answered
		for range j.Asks() {
			answered = append(answered, policy.Answered{Answers: e.Seen[written].Answers, Fingerprint: printed})
		}
		return min(e.Seen[written].Rest, j.Settle(answered, nil).Outcome)
	}
}
