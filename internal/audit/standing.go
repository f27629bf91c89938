package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ErrUnsigned says that nothing signed with a known key vouches for a log.
var ErrUnsigned = errors.New("nothing that is signed with its key vouches for the log")

// CheckStanding says whether a log may be gone on with by a gate with these keys: whether it has the line that the last
// checkpoint outside has signed, and, where none was kept outside (last.Seq is 0), whether all of it holds together up to
// signatures of its own. The error is an ErrBehind or an ErrUnsigned; a log without lines is fine. How long ago the last
// signature is does not count: a gate may have been stopped for long.
func CheckStanding(ctx context.Context, path string, keys PublicKeys, last Checkpoint) error {
	if last.Seq == 0 {
		return checkOwn(ctx, path, keys)
	}
	if err := CheckHead(ctx, path, last); err != nil {
		return err
	}
	switch known, good := last.check(keys); {
	case !known:
		return fmt.Errorf("%w: the last checkpoint is signed with key %s, which is not known", ErrUnsigned, last.KID)
	case !good:
		return fmt.Errorf("%w: the last checkpoint has a signature that is not that of key %s", ErrUnsigned, last.KID)
	}
	return nil
}

// checkOwn goes by what the log itself holds.
func checkOwn(ctx context.Context, path string, keys PublicKeys) error {
	parts, err := Parts(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	v, err := NewVerifier(Evidence{Keys: keys})
	if err != nil {
		return err
	}
	for i, part := range parts {
		err := v.file(ctx, part)
		if b, ok := errors.AsType[*Break](err); ok {
			if b.What == BreakTorn && i == len(parts)-1 {
				break // opening the log sets it aside
			}
			return fmt.Errorf("%w: %s: %w", ErrUnsigned, part, err)
		}
		if err != nil {
			return err
		}
	}
	return v.endAsLeft()
}

// endAsLeft is End at the time of the last record. A process that signs does so with its first record, so that a log in
// which nothing is signed is not its own.
func (v *Verifier) endAsLeft() error {
	if v.total.Records == 0 {
		return nil
	}
	if v.total.Signed == 0 {
		return fmt.Errorf("%w: there is no checkpoint in it, and none beside it", ErrUnsigned)
	}
	last, err := Decode(v.last)
	if err != nil {
		return err
	}
	v.evidence.Now = last.Time
	if _, err := v.End(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsigned, err)
	}
	return nil
}

func (v *Verifier) file(ctx context.Context, path string) error {
	in, err := os.Open(filepath.Clean(path))
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	_, err = v.Part(&whileWanted{ctx.Err, in})
	return err
}

// whileWanted is a reader that ends with its context.
type whileWanted struct {
	err func() error
	io.Reader
}

// Read implements io.Reader.
func (r *whileWanted) Read(p []byte) (int, error) {
	if err := r.err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// EndOf is the head of the last whole line of the log at path, whether or not its chain holds. Zero: it has none.
func EndOf(ctx context.Context, path string) (Head, error) {
	parts, err := Parts(path)
	if errors.Is(err, os.ErrNotExist) {
		return Head{}, nil
	}
	if err != nil {
		return Head{}, err
	}
	var end Head
	for _, part := range parts {
		err := scan(ctx, part, func(line []byte) error {
			head, ok := parseHead(line)
			if !ok {
				return fmt.Errorf("%s: %w", part, ErrNotEntry)
			}
			end = Head{Seq: head.seq}
			end.Digest = lineDigest(line)
			return nil
		})
		if err != nil {
			return Head{}, err
		}
	}
	return end, nil
}
