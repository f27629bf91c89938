package v1alpha1_test

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/manifest/structural"
)

// admit admits the spec as a new object, or as a change of the old one.
func (r ruleRow) admit(t *testing.T, all map[string]*structural.Schema, kind, spec string) field.ErrorList {
	t.Helper()
	s, obj := all[kind], object(t, kind, spec)
	if r.old == "" {
		return s.Admit(obj)
	}
	old := object(t, kind, r.old)
	if errs := s.Admit(old); len(errs) > 0 {
		t.Fatalf("the old object is refused: %v", errs)
	}
	return s.AdmitUpdate(obj, old)
}

func ruleRows() map[string]ruleRow {
	all := map[string]ruleRow{}
	for _, rows := range []map[string]ruleRow{specRules(), classAndToolRules(), classLadderRules(), toolLadderRules(), modelRules(), changeRules()} {
		maps.Copy(all, rows)
	}
	return all
}

// specRules are those of a policy as a whole and of its questions.
func specRules() map[string]ruleRow {
	return map[string]ruleRow{
		"attestors are named where their word counts": {
			kinds: policies, at: "spec",
			message: "attestors is required when contextTrust is Attested: name the front door's key",
			good: []string{
				`{}`,
				`{contextTrust: Caller}`,
				`{contextTrust: Attested, attestors: [{name: door, publicKey: k}]}`,
			},
			bad: []string{
				`{contextTrust: Attested}`,
			},
		},
		"a grant of a namespace stays in it": {
			kinds: []string{v1alpha1.KindToolPolicy}, at: "spec",
			message: "grants in a ToolPolicy are for its own namespace: remove namespace",
			good: []string{
				`{grants: [{serviceAccount: a, scopes: [s]}]}`,
			},
			bad: []string{
				`{grants: [{serviceAccount: a, scopes: [s]}, {serviceAccount: a, namespace: b, scopes: [s]}]}`,
			},
		},
		"a grant of the cluster names its namespace": {
			kinds: []string{v1alpha1.KindClusterToolPolicy}, at: "spec",
			message: "grants in a ClusterToolPolicy need a namespace: set grants[].namespace",
			good: []string{
				`{grants: [{serviceAccount: a, namespace: b, scopes: [s]}]}`,
			},
			bad: []string{
				`{grants: [{serviceAccount: a, namespace: b, scopes: [s]}, {serviceAccount: a, scopes: [s]}]}`,
			},
		},
		"yes and no are described for YesNo only": {
			kinds: policies, at: "spec.questions[]",
			message: "yesNo is only for type YesNo: remove it or change type",
			good: []string{
				`{questions: [{name: q, instructions: i, type: YesNo}]}`,
				`{questions: [{name: q, instructions: i, type: YesNo, yesNo: {whenTrue: a, whenFalse: b}}]}`,
			},
			bad: []string{
				`{questions: [{name: q, instructions: i, type: Score, score: {levels: [a, b]}, yesNo: {whenTrue: a, whenFalse: b}}]}`,
			},
		},
		"options belong to Choice": {
			kinds: policies, at: "spec.questions[]",
			message: "choice is required for type Choice and only allowed there: set choice.options, or change type",
			good: []string{
				`{questions: [{name: q, instructions: i, type: Choice, choice: {options: [{name: a}, {name: b}]}}]}`,
			},
			bad: []string{
				`{questions: [{name: q, instructions: i, type: Choice}]}`,
				`{questions: [{name: q, instructions: i, type: YesNo, choice: {options: [{name: a}, {name: b}]}}]}`,
			},
		},
		"levels belong to Score": {
			kinds: policies, at: "spec.questions[]",
			message: "score is required for type Score and only allowed there: set score.levels, or change type",
			good: []string{
				`{questions: [{name: q, instructions: i, type: Score, score: {levels: [a, b]}}]}`,
			},
			bad: []string{
				`{questions: [{name: q, instructions: i, type: Score}]}`,
				`{questions: [{name: q, instructions: i, type: YesNo, score: {levels: [a, b]}}]}`,
			},
		},
	}
}

// classAndToolRules are those of classes and tools.
func classAndToolRules() map[string]ruleRow {
	return map[string]ruleRow{
		"a base is for own classes": {
			kinds: policies, at: "spec.classes[]",
			message: "base is required for a class that is not built in, and fixed for ReadOnly, Write, External and Destructive: set base, or remove it",
			good: []string{
				`{classes: [{name: Write}]}`,
				`{classes: [{name: Write, base: Write}]}`,
				`{classes: [{name: Payments, base: External}]}`,
			},
			bad: []string{
				`{classes: [{name: Payments}]}`,
				`{classes: [{name: Destructive, base: ReadOnly}]}`,
			},
		},
		"who asks says what happens otherwise": {
			kinds: policies, at: "spec.classes[]",
			message: "otherwise is required when decider is Ask: say what happens when no threshold matches",
			good: []string{
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}}]}`,
				`{classes: [{name: Write, decider: Skip}]}`,
			},
			bad: []string{
				`{classes: [{name: Write, decider: Ask, questions: [asked]}]}`,
			},
		},
		"who asks names a question": {
			kinds: policies, at: "spec.classes[]",
			message: "questions is required when decider is Ask: name at least one question",
			good: []string{
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}}]}`,
			},
			bad: []string{
				`{classes: [{name: Write, decider: Ask, otherwise: {outcome: Block}}]}`,
			},
		},
		"a ladder of a class needs a decider": {
			kinds: policies, at: "spec.classes[]",
			message: "thresholds and questions need decider: Ask",
			good: []string{
				`{classes: [{name: Write, decider: Ask, questions: [asked], thresholds: [{when: [{question: asked, below: 9}], outcome: Block}], otherwise: {outcome: Block}}]}`,
			},
			bad: []string{
				`{classes: [{name: Write, questions: [asked]}]}`,
				`{classes: [{name: Write, decider: Skip, thresholds: [{when: [{question: asked, below: 9}], outcome: Block}]}]}`,
			},
		},
		"a permit has an audience": {
			kinds: policies, at: "spec.tools[]",
			message: "permitAudience is required when permit is Required: name the tool server",
			good: []string{
				`{tools: [{name: t, class: Write, permit: None}]}`,
				`{tools: [{name: t, class: Write, permit: Required, permitAudience: db}]}`,
			},
			bad: []string{
				`{tools: [{name: t, class: Write, permit: Required}]}`,
			},
		},
		"a tool that asks is complete": {
			kinds: policies, at: "spec.tools[]",
			message: "questions and otherwise are required when decider is Ask",
			good: []string{
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}}]}`,
			},
			bad: []string{
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked]}]}`,
				`{tools: [{name: t, class: Write, decider: Ask, otherwise: {outcome: Block}}]}`,
			},
		},
		"a ladder of a tool needs a decider": {
			kinds: policies, at: "spec.tools[]",
			message: "thresholds and questions need decider: Ask",
			good: []string{
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, below: 9}], outcome: Block}]}]}`,
			},
			bad: []string{
				`{tools: [{name: t, class: Write, questions: [asked]}]}`,
				`{tools: [{name: t, class: Write, decider: Skip, thresholds: [{when: [{question: asked, below: 9}], outcome: Block}]}]}`,
			},
		},
	}
}

// classLadderRules are those of the ladder of a class.
func classLadderRules() map[string]ruleRow {
	return map[string]ruleRow{
		"a step of a class has one form": {
			kinds: policies, at: "spec.classes[].thresholds[]",
			message: "exactly one of when and confidenceBelow is needed",
			good: []string{
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, below: 9}], outcome: Block}]}]}`,
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{confidenceBelow: {percent: 60, questions: [asked]}, outcome: Block}]}]}`,
			},
			bad: []string{
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{outcome: Block}]}]}`,
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, below: 9}], confidenceBelow: {percent: 60, questions: [asked]}, outcome: Block}]}]}`,
			},
		},
		"a condition of a class has one comparison": {
			kinds: policies, at: "spec.classes[].thresholds[].when[]",
			message: "exactly one of above, atLeast, below, atMost and is is needed",
			good: []string{
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, above: 0}], outcome: Block}]}]}`,
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, atLeast: 9}], outcome: Block}]}]}`,
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, below: 9}], outcome: Block}]}]}`,
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, atMost: 9}], outcome: Block}]}]}`,
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, is: a}], outcome: Block}]}]}`,
			},
			bad: []string{
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked}], outcome: Block}]}]}`,
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, atLeast: 9, below: 20}], outcome: Block}]}]}`,
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, is: a, above: 9}], outcome: Block}]}]}`,
			},
		},
		"a condition of a class looks at an option or a level": {
			kinds: policies, at: "spec.classes[].thresholds[].when[]",
			message: "option is for a Choice and level is for a Score: set at most one",
			good: []string{
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, option: a, below: 9}], outcome: Block}]}]}`,
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, level: 0, below: 9}], outcome: Block}]}]}`,
			},
			bad: []string{
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, option: a, level: 0, below: 9}], outcome: Block}]}]}`,
			},
		},
		"what was chosen by a class is compared alone": {
			kinds: policies, at: "spec.classes[].thresholds[].when[]",
			message: "is compares the chosen option: remove option and level",
			good: []string{
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, is: a}], outcome: Block}]}]}`,
			},
			bad: []string{
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, is: a, option: a}], outcome: Block}]}]}`,
				`{classes: [{name: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, is: a, level: 0}], outcome: Block}]}]}`,
			},
		},
	}
}

// toolLadderRules are those of the ladder of a tool.
func toolLadderRules() map[string]ruleRow {
	return map[string]ruleRow{
		"a step of a tool has one form": {
			kinds: policies, at: "spec.tools[].thresholds[]",
			message: "exactly one of when and confidenceBelow is needed",
			good: []string{
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, below: 9}], outcome: Block}]}]}`,
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{confidenceBelow: {percent: 60, questions: [asked]}, outcome: Block}]}]}`,
			},
			bad: []string{
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{outcome: Block}]}]}`,
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, below: 9}], confidenceBelow: {percent: 60, questions: [asked]}, outcome: Block}]}]}`,
			},
		},
		"a condition of a tool has one comparison": {
			kinds: policies, at: "spec.tools[].thresholds[].when[]",
			message: "exactly one of above, atLeast, below, atMost and is is needed",
			good: []string{
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, above: 0}], outcome: Block}]}]}`,
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, atLeast: 9}], outcome: Block}]}]}`,
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, below: 9}], outcome: Block}]}]}`,
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, atMost: 9}], outcome: Block}]}]}`,
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, is: a}], outcome: Block}]}]}`,
			},
			bad: []string{
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked}], outcome: Block}]}]}`,
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, atLeast: 9, below: 20}], outcome: Block}]}]}`,
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, is: a, above: 9}], outcome: Block}]}]}`,
			},
		},
		"a condition of a tool looks at an option or a level": {
			kinds: policies, at: "spec.tools[].thresholds[].when[]",
			message: "option is for a Choice and level is for a Score: set at most one",
			good: []string{
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, option: a, below: 9}], outcome: Block}]}]}`,
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, level: 0, below: 9}], outcome: Block}]}]}`,
			},
			bad: []string{
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, option: a, level: 0, below: 9}], outcome: Block}]}]}`,
			},
		},
		"what was chosen by a tool is compared alone": {
			kinds: policies, at: "spec.tools[].thresholds[].when[]",
			message: "is compares the chosen option: remove option and level",
			good: []string{
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, is: a}], outcome: Block}]}]}`,
			},
			bad: []string{
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, is: a, option: a}], outcome: Block}]}]}`,
				`{tools: [{name: t, class: Write, decider: Ask, questions: [asked], otherwise: {outcome: Block}, thresholds: [{when: [{question: asked, is: a, level: 0}], outcome: Block}]}]}`,
			},
		},
	}
}
