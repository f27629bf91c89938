package suite

import (
	"fmt"
	"regexp"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// Words by which a question gives itself away as arithmetic or as a look at the calendar. Small models compare numbers
// and dates badly, and code does it for nothing.
var (
	comparesAmounts = regexp.MustCompile(`(?i)\b(more|less|greater|smaller|higher|lower|fewer|larger|at least|at most|over|under|above|below|exceeds?)\b( than)?( or equal to)?\W{0,3}(\p{Sc}|[0-9]|the (amount|total|price|limit|balance|budget|sum|number)\b)`)
	comparesDates   = regexp.MustCompile(`(?i)\b(before|after|within|older than|newer than|earlier than|later than|until|since)\b\W{0,3}((the )?(date|deadline|day|week|month|year|today|yesterday|tomorrow|last|next)\b|[0-9])`)
)

// Lint says what of a question is for code and not for a decider.
func Lint(q v1alpha1.Question) []string {
	var out []string
	if comparesAmounts.MatchString(q.Instructions) {
		out = append(out, fmt.Sprintf("question %s compares amounts: do that in a rule over arguments and facts", q.Name))
	}
	if comparesDates.MatchString(q.Instructions) {
		out = append(out, fmt.Sprintf("question %s compares dates: do that in code, and state the result as a fact", q.Name))
	}
	return out
}

// lint warns about questions that are for code, with the file that they stand in.
func lint(file string, q v1alpha1.Question) []string {
	out := Lint(q)
	for i := range out {
		out[i] = file + ": " + out[i]
	}
	return out
}
