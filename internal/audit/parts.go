package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// CheckpointSuffix is what the file of checkpoints has behind the name of its log.
const CheckpointSuffix = ".checkpoints"

// Parts are the files of a log, oldest first. A folder stands for the log in it, of which there may be one; a single file
// for itself and the full files that it goes on from; several files for themselves, in the order given.
func Parts(paths ...string) ([]string, error) {
	if len(paths) != 1 {
		return paths, nil
	}
	path := filepath.Clean(paths[0])
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return inFolder(path)
	}
	full, fullErr := fullFiles(path)
	if errors.Is(err, os.ErrNotExist) && len(full) > 0 {
		return full, nil // a gate was stopped between two files
	}
	if err != nil || fullErr != nil {
		return nil, cmp.Or(err, fullErr)
	}
	return append(full, path), nil
}

// inFolder finds the files whose first line is one of a log. Two files that begin with the same number are two logs.
func inFolder(dir string) ([]string, error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	byFirst := map[uint64]string{}
	for _, e := range all {
		if !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		head, ok, err := firstHead(path)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if other, twice := byFirst[head.seq]; twice {
			return nil, fmt.Errorf("%s and %s both begin with line %d, so they are of two logs: name the files of one", other, path, head.seq)
		}
		byFirst[head.seq] = path
	}
	if len(byFirst) == 0 {
		return nil, fmt.Errorf("%s holds no file of an audit log", dir)
	}
	firsts := make([]uint64, 0, len(byFirst))
	for first := range byFirst {
		firsts = append(firsts, first)
	}
	slices.Sort(firsts)
	out := make([]string, len(firsts))
	for i, first := range firsts {
		out[i] = byFirst[first]
	}
	return out, nil
}

// QueryParts is Query over the files of a log, oldest first. An error names the file.
func QueryParts(ctx context.Context, parts []string, f Filter, each func(Entry) error) error {
	for i, path := range parts {
		err := queryPart(ctx, path, f, each)
		if errors.Is(err, ErrTorn) && i < len(parts)-1 {
			err = fmt.Errorf("%w, and another file follows", err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func queryPart(ctx context.Context, path string, f Filter, each func(Entry) error) error {
	in, err := os.Open(filepath.Clean(path))
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	return Query(ctx, in, f, each)
}

// errFound ends a search.
var errFound = errors.New("found")

// scan calls each with every whole line of a file.
func scan(ctx context.Context, path string, each func(line []byte) error) error {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	in := bufio.NewReaderSize(f, MaxRecord+1)
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := cmp.Or(ctx.Err(), each(line[:len(line)-1])); err != nil {
			return err
		}
	}
}

// ErrBehind says that a log is not what a checkpoint of it says: lines are gone, or were changed.
var ErrBehind = errors.New("the log is not what its last checkpoint says")

// CheckHead says whether the log at path still has the line that a checkpoint has signed. What retention has removed
// counts as there.
func CheckHead(ctx context.Context, path string, c Checkpoint) error {
	parts, err := Parts(path)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: it is gone, and had %d lines", ErrBehind, c.Seq)
	}
	if err != nil {
		return err
	}
	for _, part := range slices.Backward(parts) {
		first, ok, err := firstHead(part)
		if err != nil {
			return err
		}
		if ok && first.seq <= c.Seq {
			return hasLine(ctx, part, c)
		}
	}
	if len(parts) > 0 {
		if first, ok, err := firstHead(parts[0]); err == nil && ok && first.seq > 1 {
			return nil
		}
	}
	return fmt.Errorf("%w: it is empty, and had %d lines", ErrBehind, c.Seq)
}

func hasLine(ctx context.Context, part string, c Checkpoint) error {
	last := uint64(0)
	err := scan(ctx, part, func(line []byte) error {
		head, ok := parseHead(line)
		last = head.seq
		if !ok || head.seq != c.Seq {
			return nil
		}
		if got := lineDigest(line); got != c.Digest {
			return fmt.Errorf("%w: line %d was changed", ErrBehind, c.Seq)
		}
		return errFound
	})
	if errors.Is(err, errFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: it ends with line %d, and had %d", ErrBehind, last, c.Seq)
}

// LastHead is the head of the last of some whole lines.
func LastHead(lines []byte) (Head, error) {
	if len(lines) == 0 || lines[len(lines)-1] != '\n' {
		return Head{}, ErrTorn
	}
	lines = lines[:len(lines)-1]
	head, _, err := endOf(lines[bytes.LastIndexByte(lines, '\n')+1:])
	return head, err
}
