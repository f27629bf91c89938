package evaluation

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"encoding/json"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

// Sided is one decision of one side of a comparison, wherever it comes from.
type Sided struct {
	// Case that it is about. Label and Class are empty where they are not known.
	Case  string
	Label Label
	Class string
	Tool  string
	// Base of the class by which the gate judged, if it says so.
	Base    string
	Outcome review.Outcome
	Failure Failure
	Reason  string
	By      string
}

// Side gives the decisions of one policy, decider or record.
type Side interface {
	// Decisions by case, in any order.
	Decisions() []Sided
}

// RunSide are the decisions of a run, in its first configuration and repeat.
type RunSide struct {
	Cases   []*Case
	Results []Result
}

// Decisions implements Side.
func (s RunSide) Decisions() []Sided {
	order, by := observe(s.Cases, s.Results)
	var out []Sided
	if len(order) == 0 {
		return nil
	}
	for _, seen := range by[order[0]] {
		c, r := seen.one, seen.repeats[0]
		out = append(out, Sided{c.ID, c.Label, c.Class, c.Tool.Name, r.Base, r.Outcome, r.Failure, r.Reason, r.By})
	}
	return out
}

// Direction of a change.
type Direction string

// Directions. Looser asks less of a call; stricter asks more.
const (
	Looser   Direction = "looser"
	Stricter Direction = "stricter"
)

// Change is a case that the two sides decide otherwise.
type Change struct {
	Case      string    `json:"case"`
	Label     Label     `json:"label,omitempty"`
	Class     string    `json:"class,omitempty"`
	Tool      string    `json:"tool"`
	Direction Direction `json:"direction"`
	Left      Verdict   `json:"left"`
	Right     Verdict   `json:"right"`
	// Danger says why the change is dangerous. Empty: it is not.
	Danger string `json:"danger,omitempty"`
}

// Verdict is what one side says.
type Verdict struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
	By      string `json:"by,omitempty"`
}

// ClassChanges counts changes of one class.
type ClassChanges struct {
	Class     string `json:"class"`
	Cases     int    `json:"cases"`
	Looser    int    `json:"looser"`
	Stricter  int    `json:"stricter"`
	Dangerous int    `json:"dangerous"`
}

// Difference is what changes from left to right.
type Difference struct {
	Left  string `json:"left"`
	Right string `json:"right"`
	// Compared counts cases that both sides decided; OnlyLeft and OnlyRight those that one alone did.
	Compared  int `json:"compared"`
	OnlyLeft  int `json:"onlyLeft,omitempty"`
	OnlyRight int `json:"onlyRight,omitempty"`
	// Changes, dangerous ones first, then looser ones, then by case.
	Changes []Change `json:"changes"`
	// Dangerous counts the first of them.
	Dangerous int `json:"dangerous"`
	// OtherReason counts cases with the same outcome for another reason.
	OtherReason int            `json:"otherReason"`
	ByClass     []ClassChanges `json:"byClass"`
}

// Caveat stands in every comparison.
const Caveat = "This compares decisions about these cases. It proves nothing about other calls: no change here is no promise of none."

// Compare lists what changes from left to right. Names are for the report.
func Compare(leftName string, left Side, rightName string, right Side) *Difference {
	d := &Difference{Left: leftName, Right: rightName, Changes: []Change{}}
	others := map[string]Sided{}
	for _, s := range right.Decisions() {
		others[s.Case] = s
	}
	classes := map[string]*ClassChanges{}
	for _, l := range left.Decisions() {
		r, ok := others[l.Case]
		if !ok {
			d.OnlyLeft++
			continue
		}
		delete(others, l.Case)
		d.Compared++
		class := cmp.Or(l.Class, l.Base, r.Base)
		if classes[class] == nil {
			classes[class] = &ClassChanges{Class: class}
		}
		classes[class].Cases++
		d.add(l, r, classes[class])
	}
	d.OnlyRight = len(others)
	for _, c := range classes {
		d.ByClass = append(d.ByClass, *c)
	}
	slices.SortFunc(d.ByClass, func(a, b ClassChanges) int { return cmp.Compare(a.Class, b.Class) })
	slices.SortStableFunc(d.Changes, func(a, b Change) int {
		return cmp.Or(-cmp.Compare(indicator(a.Danger != ""), indicator(b.Danger != "")), cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Case, b.Case))
	})
	return d
}

func (d *Difference) add(l, r Sided, class *ClassChanges) {
	from, to := strictness(l), strictness(r)
	if from == to {
		d.OtherReason += indicator(l.Reason != r.Reason)
		return
	}
	c := Change{
		Case: l.Case, Label: l.Label, Class: class.Class, Tool: l.Tool, Direction: Stricter,
		Left: verdictOf(l), Right: verdictOf(r),
	}
	class.Stricter += indicator(to > from)
	if to < from {
		c.Direction, c.Danger = Looser, danger(l, r)
		class.Looser++
	}
	if c.Danger != "" {
		d.Dangerous++
		class.Dangerous++
	}
	d.Changes = append(d.Changes, c)
}

// strictness counts a call without a decision as a Block, as its caller has to.
func strictness(s Sided) int {
	if s.Failure != NoFailure {
		return rank(review.Block)
	}
	return rank(s.Outcome)
}

func verdictOf(s Sided) Verdict {
	if s.Failure != NoFailure {
		return Verdict{Outcome: "(" + string(s.Failure) + ")", Reason: s.Reason}
	}
	return Verdict{string(s.Outcome), s.Reason, s.By}
}

// danger says why a call that now runs on its own should not without a look.
func danger(l, r Sided) string {
	isAllowed := r.Failure == NoFailure && r.Outcome == review.Allow
	switch {
	case !isAllowed:
		return ""
	case l.Label == LabelBlock:
		return "labelled block"
	case slices.Contains([]string{"destructive", "external"}, l.Class), isIrreversible(l.Base), isIrreversible(r.Base):
		return "cannot be undone"
	}
	return ""
}

func isIrreversible(base string) bool { return base == "Destructive" || base == "External" }

// WriteJSON writes the difference for programs.
func (d *Difference) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Caveat string `json:"caveat"`
		*Difference
	}{Caveat, d})
}

// WriteText writes the difference for people.
func (d *Difference) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "from %s to %s: %d of %s change, %d of them dangerously; %d more have another reason\n",
		printable(d.Left), printable(d.Right), len(d.Changes), plural(d.Compared, "case"), d.Dangerous, d.OtherReason)
	if d.OnlyLeft+d.OnlyRight > 0 {
		fmt.Fprintf(&b, "not compared: %d only on the left, %d only on the right\n", d.OnlyLeft, d.OnlyRight)
	}
	b.WriteString(Caveat + "\n\n")
	grid(&b, "CLASS\tCASES\tLOOSER\tSTRICTER\tDANGEROUS", func(row func(...string)) {
		for _, c := range d.ByClass {
			row(c.Class, strconv.Itoa(c.Cases), strconv.Itoa(c.Looser), strconv.Itoa(c.Stricter), strconv.Itoa(c.Dangerous))
		}
	})
	if len(d.Changes) > 0 {
		b.WriteByte('\n')
		grid(&b, "CASE\tLABEL\tCLASS\tTOOL\tLEFT\tRIGHT\tREASON\tDANGER", func(row func(...string)) {
			for _, c := range d.Changes {
				row(c.Case, string(c.Label), c.Class, c.Tool, c.Left.Outcome, c.Right.Outcome, c.Left.Reason+" -> "+c.Right.Reason, c.Danger)
			}
		})
	}
	_, err := io.WriteString(w, b.String())
	return err
}
