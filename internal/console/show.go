package console

import (
	"fmt"
	"time"

	"gatewright.dev/gatewright/internal/approval"
)

// at writes an instant for people, in UTC as all records do.
func at(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// left is the time between two instants as it is told to a person.
func left(d time.Duration) string {
	switch {
	case d <= 0:
		return "over"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h", int(d.Hours()))
}

func percent(share float64) string { return fmt.Sprintf("%.1f", share*100) }

// compactLength is how many characters of arguments are enough to tell calls apart in a list.
const compactLength = 140

// compact is the beginning of a text for a list, with a mark that there is more.
func compact(s string) []span {
	head := beginning(s, compactLength)
	out := prose(head)
	if len(head) < len(s) {
		out = append(out, span{Text: " …", Kind: "more", Note: "the page of the call shows all of it"})
	}
	return out
}

// lastChange is when something last became of an approval.
func (r *row) lastChange() time.Time {
	switch {
	case r.EndedAt != nil:
		return *r.EndedAt
	case r.Decision != nil:
		return r.Decision.At
	}
	return r.Call.RaisedAt
}

// IsPending says that a person can still decide.
func (r row) IsPending() bool { return r.State == approval.Pending }

// Raw is the arguments as the canonical text that is bound to the approval.
func (r row) Raw() string { return string(r.Call.Arguments) }
