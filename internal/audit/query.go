package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

var (
	// ErrTorn says that the last line has no line feed: it is being written, or a crash tore it off.
	ErrTorn = errors.New("the last line is not finished")
	// ErrReplaced says that a file that is followed is no longer what was read.
	ErrReplaced = errors.New("the file was moved, replaced or made shorter")
)

// Filter selects entries. What is empty selects all; what is not must hold together.
type Filter struct {
	Outcomes []review.Outcome
	// Tool is a name, or a prefix followed by a star.
	Tool string
	// Caller is NAMESPACE/NAME of the service account.
	Caller string
	Reason string
	// Kind of record, and Class of the call.
	Kind, Class string
	// By is a prefix, as in rule: or approval:ta-.
	By string
	// Policy is KIND/NAMESPACE/NAME@GENERATION as in the record; generation, and kind and namespace, may be left out.
	Policy string
	// ID of the decision, or uid of the request.
	ID string
	// Since is the first instant, Until the first one after.
	Since, Until time.Time
}

// Validate says what is wrong with a filter, so that a mistake does not look like a log without such entries.
func (f *Filter) Validate() error {
	for _, o := range f.Outcomes {
		switch o {
		case review.Allow, review.Clarify, review.Confirm, review.Block:
		default:
			return fmt.Errorf("outcome %q: want Allow, Clarify, Confirm or Block", o)
		}
	}
	if i := strings.IndexByte(f.Tool, '*'); i >= 0 && i != len(f.Tool)-1 {
		return fmt.Errorf("tool %q: a star may only be the last character", f.Tool)
	}
	if namespace, name, ok := strings.Cut(f.Caller, "/"); f.Caller != "" && (!ok || namespace == "" || name == "") {
		return fmt.Errorf("caller %q: want NAMESPACE/NAME", f.Caller)
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return errors.New("nothing lies between since and until")
	}
	return nil
}

// Matches says whether the filter selects an entry.
func (f *Filter) Matches(e *Entry) bool {
	return (len(f.Outcomes) == 0 || slices.Contains(f.Outcomes, e.Outcome)) &&
		(f.Tool == "" || matchesTool(f.Tool, e.Tool)) &&
		(f.Caller == "" || f.Caller == e.Caller.Namespace+"/"+e.Caller.ServiceAccount) &&
		(f.Reason == "" || f.Reason == e.Reason) &&
		(f.Kind == "" || f.Kind == e.Kind) && (f.Class == "" || f.Class == e.Class) &&
		strings.HasPrefix(e.By, f.By) &&
		(f.Policy == "" || slices.ContainsFunc(e.Policies, func(p string) bool { return matchesPolicy(f.Policy, p) })) &&
		(f.ID == "" || f.ID == e.ID || f.ID == e.UID || e.Label != nil && f.ID == e.Label.Decision) &&
		(f.Since.IsZero() || !e.Time.Before(f.Since)) &&
		(f.Until.IsZero() || e.Time.Before(f.Until))
}

// matchesTool: a prefix alone is no tool below it, as in policies.
func matchesTool(pattern, tool string) bool {
	prefix, ok := strings.CutSuffix(pattern, "*")
	if !ok {
		return pattern == tool
	}
	return len(tool) > len(prefix) && strings.HasPrefix(tool, prefix)
}

func matchesPolicy(wanted, policy string) bool {
	if !strings.Contains(wanted, "@") {
		policy, _, _ = strings.Cut(policy, "@")
	}
	return policy == wanted || strings.HasSuffix(policy, "/"+wanted)
}

// Query reads a log line by line and calls each with the entries that the filter selects, oldest first. It holds one
// line at a time. It stops at the first line that is none of this log's lines, and returns an error that wraps
// ErrNotEntry, or ErrTorn for a last line without a line feed. It does not look at the chain; Verify does.
func Query(ctx context.Context, r io.Reader, f Filter, each func(Entry) error) error {
	if err := f.Validate(); err != nil {
		return err
	}
	in := bufio.NewReaderSize(r, MaxRecord+1)
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		e, err := readEntry(line, err)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if !f.Matches(&e) {
			continue
		}
		if err := each(e); err != nil {
			return err
		}
	}
}

func readEntry(line []byte, err error) (Entry, error) {
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return Entry{}, fmt.Errorf("%w: it has more than %d bytes", ErrNotEntry, MaxRecord)
	case errors.Is(err, io.EOF):
		return Entry{}, fmt.Errorf("%w: %d bytes without a line feed", ErrTorn, len(line))
	case err != nil:
		return Entry{}, fmt.Errorf("reading: %w", err)
	}
	return Decode(line[:len(line)-1])
}
