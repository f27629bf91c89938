package v1alpha1

import (
	"fmt"
	"slices"
	"strings"
)

// String writes an answer as a person reads it: a probability, a level or the chosen option.
func (a Answer) String() string {
	switch {
	case a.Probability != nil:
		return fmt.Sprintf("%.2f", *a.Probability)
	case a.Score != nil:
		return fmt.Sprintf("%.2f", *a.Score)
	}
	return a.Choice
}

// AnswersText writes answers in one line, by question; empty if there are none.
func AnswersText(answers map[string]Answer) string {
	parts := make([]string, 0, len(answers))
	for name, a := range answers {
		parts = append(parts, name+" "+a.String())
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
