package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/questions"
)

const laddered = `
deciderRef: {name: d, fingerprint: f}
classes:
- name: Write
  decider: Ask
  questions: [asked]
  thresholds: [{when: [{question: asked, above: 80}], outcome: Allow}]
  otherwise: {outcome: Confirm}
- name: Destructive
  decider: Ask
  questions: [asked, deletes_data]
  thresholds: [{when: [{question: asked, below: 20}], outcome: Block}]
  otherwise: {outcome: Allow}
tools:
- {name: note.write, class: Write}
- {name: note.end, class: Write, otherwise: {outcome: Clarify}}
- {name: note.quiet, class: Write, decider: Skip}
- name: note.own
  server: store
  class: Write
  decider: Ask
  questions: [asked]
  thresholds: [{when: [{question: asked, above: 50}], outcome: Allow}]
  otherwise: {outcome: Block}
- {name: note.drop, class: Destructive, effects: [DeletesData], lowerTo: [{class: Write, when: 'args.soft == true'}]}
- {name: note.read, class: ReadOnly}
`

func TestLaddersAreThoseThatTheGateApplies(t *testing.T) {
	p := &v1alpha1.ToolPolicy{}
	if err := yaml.UnmarshalStrict([]byte(laddered), &p.Spec); err != nil {
		t.Fatal(err)
	}
	c, errs := Compile(p)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	type found struct {
		OK     bool
		Tool   string
		Class  string
		Always bool
		Yes    string // what a sure yes comes to, and a half
		Half   string
	}
	tests := map[string]struct {
		tool, server, class string
		want                found
	}{
		"the class's": {"note.write", "", "Write", found{true, "", "Write", false, "Allow", "Confirm"}},
		"the class's with an end of the tool's own": {"note.end", "", "Write", found{true, "", "Write", false, "Allow", "Clarify"}},
		"the tool's own":                                 {"note.own", "store", "Write", found{true, "note.own", "Write", false, "Allow", "Block"}},
		"the only class needs no name":                   {"note.write", "", "other", found{true, "", "Write", false, "Allow", "Confirm"}},
		"the worst class of a tool":                      {"note.drop", "", "Destructive", found{true, "", "Destructive", true, "Allow", "Allow"}},
		"the class that its arguments lower it to":       {"note.drop", "", "Write", found{true, "", "Write", false, "Allow", "Confirm"}},
		"a class that a tool with several does not have": {"note.drop", "", "other", found{}},
		"a tool that asks nobody":                        {"note.quiet", "", "Write", found{}},
		"a class that asks nobody":                       {"note.read", "", "ReadOnly", found{}},
		"another server":                                 {"note.own", "elsewhere", "Write", found{}},
		"a tool that is not listed":                      {"note.gone", "", "Write", found{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l, ok := c.LadderFor(test.tool, test.server, test.class)
			got := found{OK: ok, Tool: l.Tool, Class: l.Class, Always: l.AlwaysConfirm}
			if ok {
				got.Yes, got.Half = l.Decide(askedYes(0.99)).String(), l.Decide(askedYes(0.5)).String()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := c.FromCode("note.drop", ""); got["deletes_data"].Probability != 1 || len(got) != 1 || c.FromCode("note.gone", "") != nil {
		t.Errorf("got %+v", got)
	}
}

func askedYes(p float64) questions.Answers {
	return questions.Answers{"asked": {Type: questions.YesNo, Probability: p, Coverage: 1}}
}
