package webhook

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// index is the place of an entry in a list. It moves when an entry is put before it, and what is wrong stays the same.
var index = regexp.MustCompile(`\[[0-9]+\]`)

// ratchet parts what is wrong with an object into what an update brings and what was there before. One old error excuses
// one new one.
func ratchet(was, is field.ErrorList) (refused, tolerated field.ErrorList) {
	old := make(map[string]int, len(was))
	for _, e := range was {
		old[sameness(e)]++
	}
	for _, e := range is {
		if key := sameness(e); old[key] > 0 {
			old[key]--
			tolerated = append(tolerated, e)
			continue
		}
		refused = append(refused, e)
	}
	return refused, tolerated
}

func sameness(e *field.Error) string {
	return strings.Join([]string{string(e.Type), index.ReplaceAllString(e.Field, "[]"), fmt.Sprintf("%v", e.BadValue), e.Detail}, "\x00")
}

// mostWarnings and longestWarning keep within what an API server hands on: it cuts a text at 256 characters, and cuts
// all texts once they have 4096 together.
const (
	mostWarnings   = 14
	longestWarning = 250
)

// atMost bounds warnings, and says how many it left out.
func atMost(warnings []string) []string {
	var out []string
	for i, w := range warnings {
		if i == mostWarnings {
			return append(out, fmt.Sprintf("%d more warnings are not shown", len(warnings)-i))
		}
		if r := []rune(w); len(r) > longestWarning {
			w = string(r[:longestWarning-3]) + "..."
		}
		out = append(out, w)
	}
	return out
}
