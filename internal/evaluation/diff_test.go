package evaluation

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

type sided []Sided

func (s sided) Decisions() []Sided { return s }

func TestCompare(t *testing.T) {
	for name, test := range map[string]struct {
		left, right Sided
		want        string
	}{
		"nothing changes":                                {Sided{Outcome: review.Allow, Reason: "A"}, Sided{Outcome: review.Allow, Reason: "A"}, "0 changes, 0 reasons"},
		"the reason alone changes":                       {Sided{Outcome: review.Block, Reason: "A"}, Sided{Outcome: review.Block, Reason: "B"}, "0 changes, 1 reasons"},
		"a dangerous call would run":                     {Sided{Outcome: review.Block, Label: LabelBlock, Class: "write"}, Sided{Outcome: review.Allow}, "looser: labelled block"},
		"a dangerous call would be asked about":          {Sided{Outcome: review.Block, Label: LabelBlock, Class: "write"}, Sided{Outcome: review.Confirm}, "looser: "},
		"a harmless write would run":                     {Sided{Outcome: review.Confirm, Label: LabelAllow, Class: "write"}, Sided{Outcome: review.Allow}, "looser: "},
		"a harmless deletion would run":                  {Sided{Outcome: review.Confirm, Label: LabelAllow, Class: "destructive"}, Sided{Outcome: review.Allow}, "looser: cannot be undone"},
		"a message would go out":                         {Sided{Outcome: review.Clarify, Label: LabelAllow, Class: "external"}, Sided{Outcome: review.Allow}, "looser: cannot be undone"},
		"a call of an unlabelled record would run":       {Sided{Outcome: review.Block, Base: "External"}, Sided{Outcome: review.Allow}, "looser: cannot be undone"},
		"a call that the right takes for a deletion":     {Sided{Outcome: review.Block, Base: "ReadOnly"}, Sided{Outcome: review.Allow, Base: "Destructive"}, "looser: cannot be undone"},
		"a read that is not known to be one":             {Sided{Outcome: review.Block, Base: "ReadOnly"}, Sided{Outcome: review.Allow, Base: "ReadOnly"}, "looser: "},
		"a dangerous call would be stopped":              {Sided{Outcome: review.Allow, Label: LabelBlock, Class: "write"}, Sided{Outcome: review.Confirm}, "stricter: "},
		"a gate that gives no answer is a block":         {Sided{Outcome: review.Allow}, Sided{Failure: TimedOut}, "stricter: "},
		"an answer where there was none before":          {Sided{Failure: TimedOut, Label: LabelBlock}, Sided{Outcome: review.Allow}, "looser: labelled block"},
		"no answer instead of a block":                   {Sided{Outcome: review.Block}, Sided{Failure: Unreachable}, "0 changes, 0 reasons"},
		"an outcome is not trusted beside a failure":     {Sided{Outcome: review.Block, Label: LabelBlock}, Sided{Outcome: review.Allow, Failure: Malformed}, "0 changes, 0 reasons"},
		"an outcome that nobody knows counts as a block": {Sided{Outcome: "Perhaps"}, Sided{Outcome: review.Block}, "0 changes, 0 reasons"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Compare("l", sided{test.left}, "r", sided{test.right})
			got := fmt.Sprintf("%d changes, %d reasons", len(d.Changes), d.OtherReason)
			if len(d.Changes) == 1 {
				got = string(d.Changes[0].Direction) + ": " + d.Changes[0].Danger
			}
			if got != test.want || (d.Dangerous == 1) != strings.Contains(test.want, ": l") && (d.Dangerous == 1) != strings.Contains(test.want, ": c") {
				t.Errorf("%s with %d dangerous, want %s", got, d.Dangerous, test.want)
			}
		})
	}
}

func several() *Difference {
	one := func(id string, l Label, class string, o review.Outcome) Sided {
		return Sided{Case: id, Label: l, Class: class, Tool: "<tool>", Outcome: o, Reason: "R" + string(o), By: "decider"}
	}
	left := sided{
		one("a", LabelAllow, "write", review.Allow), one("b", LabelAllow, "write", review.Block), one("c", LabelBlock, "write", review.Block),
		one("d", LabelAllow, "external", review.Confirm), one("e", LabelAllow, "read-only", review.Allow), one("gone", LabelAllow, "write", review.Allow),
	}
	right := sided{
		one("a", LabelAllow, "write", review.Confirm), one("b", LabelAllow, "write", review.Confirm), one("c", LabelBlock, "write", review.Allow),
		one("d", LabelAllow, "external", review.Allow), one("e", LabelAllow, "read-only", review.Allow), one("new", LabelAllow, "write", review.Allow),
	}
	return Compare("now", left, "to come", right)
}

func TestDangerousChangesComeFirst(t *testing.T) {
	d := several()
	var order []string
	for _, c := range d.Changes {
		order = append(order, c.Case+" "+string(c.Direction))
	}
	if diff := cmp.Diff([]string{"c looser", "d looser", "b looser", "a stricter"}, order); diff != "" {
		t.Error(diff)
	}
	want := []ClassChanges{{"external", 1, 1, 0, 1}, {"read-only", 1, 0, 0, 0}, {"write", 3, 2, 1, 1}}
	if diff := cmp.Diff(want, d.ByClass); diff != "" {
		t.Error(diff)
	}
	if d.Compared != 5 || d.OnlyLeft != 1 || d.OnlyRight != 1 || d.Dangerous != 2 {
		t.Errorf("%+v", d)
	}
}

func TestDifferencesStayAsTheyAre(t *testing.T) {
	d := several()
	golden(t, "diff.txt", d.WriteText)
	golden(t, "diff.json", d.WriteJSON)
	golden(t, "diff.html.golden", d.WriteHTML)
	var page bytes.Buffer
	if err := d.WriteHTML(&page); err != nil || strings.Contains(page.String(), "<tool>") || !strings.Contains(page.String(), "proves nothing") {
		t.Errorf("%v", err)
	}
}

func TestARunIsASide(t *testing.T) {
	s := &set{}
	s.add(1, LabelBlock, "write", map[Configuration]review.Outcome{RulesOnly: review.Block, Stacked: review.Allow})
	got := RunSide{s.cases, s.results}.Decisions()
	want := []Sided{{Case: "case-001", Label: LabelBlock, Class: "write", Tool: "tool", Outcome: review.Block, Reason: "Threshold", By: "decider"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := (RunSide{}).Decisions(); got != nil {
		t.Errorf("%v", got)
	}
}
