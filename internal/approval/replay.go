package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"gatewright.dev/gatewright/internal/keyring"
)

// Ignored is a line of a journal that no known key has sealed.
type Ignored struct {
	// Line is its number, from 1.
	Line int
	// Op, ID and Name are what it says of itself. Nothing of it was believed.
	Op, ID, Name string
	// Reason is Unsealed, BadSeal or UnknownKey.
	Reason IgnoredReason
}

// IgnoredReason says why an approval or a line of a journal does not count.
type IgnoredReason string

// Reasons to ignore.
const (
	// IgnoredUnsealed carries no seal, as journals did before approvals were sealed.
	IgnoredUnsealed IgnoredReason = "Unsealed"
	// IgnoredBadSeal carries a seal that does not fit what it says: it was forged or changed.
	IgnoredBadSeal IgnoredReason = "BadSeal"
	// IgnoredUnknownKey was sealed by a key that this gate does not hold, or one that has ended.
	IgnoredUnknownKey IgnoredReason = "UnknownKey"
)

// WhyIgnored says what Verify has found.
func WhyIgnored(a *Approval, err error) IgnoredReason { return whyIgnored(a.Seal, err) }

func whyIgnored(seal string, err error) IgnoredReason {
	switch {
	case seal == "":
		return IgnoredUnsealed
	case errors.Is(err, keyring.ErrUnknownKey):
		return IgnoredUnknownKey
	}
	return IgnoredBadSeal
}

func headOf(seal string) string {
	sum := sha256.Sum256([]byte(seal))
	return hex.EncodeToString(sum[:16])
}

// replayer reads a journal.
type replayer struct {
	file *File
	// heads are the lines that the next sealed one may follow: the last that was sealed, and those after it that a key
	// has sealed that has ended since, and so cannot be told from forged ones.
	heads []string
	// unknown are approvals of which an event was ignored: what follows for them means nothing.
	unknown map[string]bool
}

func (f *File) replay() error {
	r := &replayer{file: f, heads: []string{""}, unknown: map[string]bool{}}
	if err := f.lines.Lines(r.line); err != nil {
		return err
	}
	f.head = r.heads[len(r.heads)-1]
	return nil
}

func (r *replayer) line(text []byte) error {
	r.file.count++
	l, e, err := decodeLine(text)
	if err != nil {
		return err
	}
	if err := r.file.seals.verify(l.Seal, eventMessage(l.Event)); err != nil {
		return r.ignore(text, &l, &e, whyIgnored(l.Seal, err))
	}
	if !slices.Contains(r.heads, e.Prev) {
		return fmt.Errorf("%w: a line before it was removed or changed", ErrCorrupt)
	}
	r.heads = append(r.heads[:0], headOf(l.Seal))
	if e.Op != opRaise && r.unknown[e.ID] && r.file.book.byID[e.ID] == nil {
		return nil
	}
	if err := r.file.book.apply(e); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// ignore believes nothing of a line. What it says of itself is kept for the report.
func (r *replayer) ignore(text []byte, l *line, e *event, why IgnoredReason) error {
	if why == IgnoredUnknownKey {
		r.heads = append(r.heads, headOf(l.Seal))
	}
	if e.Op == "" { // before lines were sealed, the event was the line
		if err := json.Unmarshal(text, e); err != nil {
			*e = event{Op: "unreadable"}
		}
	}
	r.unknown[e.ID] = true
	r.file.ignored = append(r.file.ignored, Ignored{Line: r.file.count, Op: string(e.Op), ID: e.ID, Name: e.Name, Reason: why})
	return nil
}
