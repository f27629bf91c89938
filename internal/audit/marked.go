package audit

import (
	"bytes"
	"context"
	"slices"
)

// MaxLabels is how many labels of one decision Marked has at most.
const MaxLabels = 50

// Marked is a decision with what people have said of it.
type Marked struct {
	Entry
	// Labels are records of kind label about it, oldest first: the last MaxLabels.
	Labels []Entry
}

// FindDecision finds the record of a decision in the log at path, of several with its id the last. It reads the files
// newest first.
func FindDecision(ctx context.Context, path, id string) (found Entry, ok bool, err error) {
	m, ok, err := FindMarked(ctx, path, id)
	return m.Entry, ok, err
}

// FindMarked is FindDecision with the labels of the decision. They stand behind it, so that they cost nothing more: whatever
// is behind a decision is read to find it.
func FindMarked(ctx context.Context, path, id string) (m Marked, ok bool, err error) {
	parts, err := Parts(path)
	if err != nil {
		return Marked{}, false, err
	}
	needle := []byte(`"` + id + `"`)
	for _, part := range slices.Backward(parts) {
		var labels []Entry
		err := scan(ctx, part, func(line []byte) error {
			if !bytes.Contains(line, needle) {
				return nil
			}
			e, err := Decode(line)
			switch {
			case err != nil: // another line is not what is looked for
			case e.Kind == KindDecision && e.ID == id:
				m.Entry, ok = e, true
			case e.Kind == KindLabel && e.Label != nil && e.Label.Decision == id:
				labels = append(labels[max(0, len(labels)+1-MaxLabels):], e)
			}
			return nil
		})
		labels = append(labels, m.Labels...)
		m.Labels = labels[max(0, len(labels)-MaxLabels):]
		if ok || err != nil {
			return m, ok, err
		}
	}
	return Marked{}, false, nil
}
