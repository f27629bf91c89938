package audit

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"
)

// QueryApprovals calls each with the records of decisions in the log at path that name an approval, from a time on, oldest
// first. It looks only into files that were written to since then, and reads only lines that speak of an approval.
func QueryApprovals(ctx context.Context, path string, since time.Time, each func(Entry) error) error {
	parts, err := Parts(path)
	if err != nil {
		return err
	}
	needle := []byte(`,"approval":{`)
	for _, part := range parts {
		if info, err := os.Stat(part); err != nil {
			return err
		} else if info.ModTime().Before(since) {
			continue
		}
		err := scan(ctx, part, func(line []byte) error {
			if !bytes.Contains(line, needle) {
				return nil
			}
			e, err := Decode(line)
			if err != nil {
				return err
			}
			if e.Kind != KindDecision || e.Approval == nil || e.Time.Before(since) {
				return nil
			}
			return each(e)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return nil
}
