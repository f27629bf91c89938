package records

import (
	"context"
	"errors"
	"fmt"
	"os"

	"gatewright.dev/gatewright/internal/audit"
)

// isMissing says that a file is not there yet, and nothing else.
func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}

// known is what a gate can hold a log against when it starts.
type known struct {
	keys  audit.PublicKeys
	isNew bool // the key was made just now, so nothing can be signed with it
	last  audit.Checkpoint
	path  string // of the file of checkpoints
}

// knowAgain refuses a log that nothing signed vouches for, since signing it would make a forgery good. What is there is
// taken over only where the key is new, as at the first start with one, or where an operator named its very end; the log
// then says so.
func (r *Records) knowAgain(ctx context.Context, k known) (adopted bool, err error) {
	err = audit.CheckStanding(ctx, r.options.File, k.keys, k.last)
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, audit.ErrBehind):
		return false, fmt.Errorf("--audit-log %s: %w: find out what happened; to begin a new log, move %s away as well", r.options.File, err, k.path)
	case !errors.Is(err, audit.ErrUnsigned):
		return false, fmt.Errorf("--audit-log %s: %w", r.options.File, err)
	}
	end, endErr := audit.EndOf(ctx, r.options.File)
	if endErr != nil {
		return false, fmt.Errorf("--audit-log %s: %w", r.options.File, errors.Join(err, endErr))
	}
	if k.isNew || r.options.Adopt == end.String() {
		r.log.Warn("the audit log is taken over as it is: nothing signed vouches for what it holds", "through", end.String(), "cause", err)
		return true, nil
	}
	return false, fmt.Errorf("--audit-log %s: %w: its checkpoints may have been taken out and its records changed, so it is not signed further. "+
		"If it was written without a key until now, or its checkpoints are lost for a reason you know, take it over as it is with "+
		"--audit-adopt %s; to begin a new log, move it away, and %s with it", r.options.File, err, end, k.path)
}
