package linefile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func options() Options {
	return Options{
		Valid:   func(line []byte) bool { return bytes.HasPrefix(line, []byte("line ")) },
		MaxTorn: 1 << 10,
		Now:     func() time.Time { return noon },
	}
}

func TestOpenSetsTheTornEndAside(t *testing.T) {
	for name, tc := range map[string]struct {
		content  string
		wantFile string
		wantTorn string
		wantErr  error
	}{
		"an empty file stays empty":                      {"", "", "", nil},
		"whole lines stay":                               {"line 1\nline 2\n", "line 1\nline 2\n", "", nil},
		"half a line goes":                               {"line 1\nline 2\nli", "line 1\nline 2\n", "li", nil},
		"half a line alone goes":                         {"line", "", "line", nil},
		"a complete line that is not ours goes":          {"line 1\n\x00\x00\n", "line 1\n", "\x00\x00\n", nil},
		"several of them go with the half line behind":   {"line 1\n\x00\n\n\x00", "line 1\n", "\x00\n\n\x00", nil},
		"a bad line in front of a good one is not ours":  {"bad\nline 1\n", "bad\nline 1\n", "", nil},
		"more than one append can leave is not touched":  {"line 1\n" + strings.Repeat("x", 1025), "", "", ErrCorrupt},
		"many bad lines are not eaten up one by one":     {"line 1\n" + strings.Repeat("x\n", 600), "", "", ErrCorrupt},
		"a half line longer than a block is found whole": {"line 1\nline 2" + strings.Repeat("y", 1000), "line 1\n", "line 2" + strings.Repeat("y", 1000), nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			write(t, path, tc.content)
			f, torn, err := Open(path, options())
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("Open: %v, want %v", err, tc.wantErr)
			}
			if err != nil {
				tc.wantFile = tc.content
			} else {
				defer closeFile(t, f)
			}
			if diff := cmp.Diff(tc.wantFile, read(t, path)); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
			if tc.wantTorn == "" {
				if torn != (Torn{}) {
					t.Errorf("torn = %+v, want none", torn)
				}
				return
			}
			if want := (Torn{Path: path + ".torn-20260102T120000.000000000Z", Bytes: int64(len(tc.wantTorn))}); torn != want {
				t.Errorf("torn = %+v, want %+v", torn, want)
			}
			if diff := cmp.Diff(tc.wantTorn, read(t, torn.Path)); diff != "" {
				t.Errorf("set aside (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOpenNeverOverwritesWhatWasSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	want := map[string]string{}
	for _, half := range []string{"a", "b", "c"} {
		write(t, path, half)
		f, torn, err := Open(path, options())
		if err != nil {
			t.Fatal(err)
		}
		want[torn.Path] = half
		closeFile(t, f)
	}
	for name, content := range want {
		if got := read(t, name); got != content {
			t.Errorf("%s holds %q, want %q", name, got, content)
		}
	}
	if len(want) != 3 {
		t.Errorf("%d names for 3 torn ends", len(want))
	}
}

func TestOpenKeepsOthersOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := open(t, path)
	if _, _, err := Open(path, options()); !errors.Is(err, ErrLocked) {
		t.Errorf("second Open: %v, want ErrLocked", err)
	}
	closeFile(t, f)
	again, _, err := Open(path, options())
	if err != nil {
		t.Fatalf("Open after Close: %v", err)
	}
	closeFile(t, again)
}

func TestOpenRestrictsTheMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("line 1\nhalf"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, torn, err := Open(path, options())
	if err != nil {
		t.Fatal(err)
	}
	defer closeFile(t, f)
	for _, p := range []string{path, torn.Path} {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("%s has mode %o, want 600", filepath.Base(p), got)
		}
	}
}

// failing is a handle whose next calls fail as scripted.
type failing struct {
	handle
	write, truncate, sync error
	short                 int // bytes that a failing write leaves behind
}

func (f *failing) Write(p []byte) (int, error) {
	if f.write != nil {
		n, err := f.handle.Write(p[:min(f.short, len(p))])
		return n, errors.Join(f.write, err)
	}
	return f.handle.Write(p)
}

func (f *failing) Truncate(n int64) error {
	if f.truncate != nil {
		return f.truncate
	}
	return f.handle.Truncate(n)
}

func (f *failing) datasync() error {
	if f.sync != nil {
		return f.sync
	}
	return f.handle.datasync()
}

func TestAppendHappensOrDoesNot(t *testing.T) {
	for name, tc := range map[string]struct {
		fault         failing
		wantMeanwhile string // in the file while the fault lasts
		wantDirty     bool
		wantErr       error
	}{
		"the disk is full at once":               {failing{write: syscall.ENOSPC}, "line 1\n", false, ErrUnavailable},
		"the disk is full after some bytes":      {failing{write: syscall.ENOSPC, short: 3}, "line 1\n", false, ErrUnavailable},
		"the file system turns read-only":        {failing{write: syscall.EROFS, short: 3, truncate: syscall.EROFS}, "line 1\nlin", true, ErrUnavailable},
		"the sync fails":                         {failing{sync: syscall.EIO}, "line 1\n", true, ErrUnavailable},
		"the sync fails and nothing can be cut":  {failing{sync: syscall.EIO, truncate: syscall.EIO}, "line 1\nline 2\n", true, ErrUnavailable},
		"the write fails and nothing can be cut": {failing{write: syscall.EIO, short: 7, truncate: syscall.EIO}, "line 1\nline 2\n", true, ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			f := open(t, path)
			defer closeFile(t, f)
			mustAppend(t, f, "line 1\n")
			sound := f.handle
			fault := tc.fault
			fault.handle = sound
			f.handle = &fault
			for range 2 {
				if err := f.Append([]byte("line 2\n")); !errors.Is(err, tc.wantErr) {
					t.Fatalf("Append: %v, want ErrUnavailable", err)
				}
			}
			if diff := cmp.Diff(tc.wantMeanwhile, read(t, path)); diff != "" {
				t.Errorf("while the fault lasts (-want +got):\n%s", diff)
			}
			if f.dirty != tc.wantDirty {
				t.Errorf("dirty = %t, want %t", f.dirty, tc.wantDirty)
			}
			f.handle = sound
			mustAppend(t, f, "line 3\n")
			if diff := cmp.Diff("line 1\nline 3\n", read(t, path)); diff != "" {
				t.Errorf("after it (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAppendRefusesAFileThatChangedBehindIt(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"deleted":          os.Remove,
		"moved away":       func(p string) error { return os.Rename(p, p+".1") },
		"cut by another":   func(p string) error { return os.Truncate(p, 3) },
		"longer by others": func(p string) error { return appendTo(p, "line x\n") },
		"replaced":         func(p string) error { return errors.Join(os.Remove(p), os.WriteFile(p, []byte("line 1\n"), 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			f := open(t, path)
			defer closeFile(t, f)
			mustAppend(t, f, "line 1\n")
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			if err := f.Append([]byte("line 2\n")); !errors.Is(err, ErrUnavailable) {
				t.Errorf("Append: %v, want ErrUnavailable", err)
			}
		})
	}
}

func TestAppendWorksAgainAfterTheFileIsBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := open(t, path)
	defer closeFile(t, f)
	mustAppend(t, f, "line 1\n")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := f.Append([]byte("line 2\n")); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("Append: %v, want ErrUnavailable", err)
	}
	if err := os.Rename(path+".1", path); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, f, "line 3\n")
	if diff := cmp.Diff("line 1\nline 3\n", read(t, path)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAppendAfterClose(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "log"))
	closeFile(t, f)
	closeFile(t, f)
	err := f.Append([]byte("line 1\n"))
	if !errors.Is(err, ErrClosed) || !errors.Is(err, ErrUnavailable) {
		t.Errorf("Append: %v, want ErrClosed", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		path string
		want error
	}{
		"a folder that is missing": {filepath.Join(dir, "no", "log"), fs.ErrNotExist},
		"a folder":                 {dir, syscall.EISDIR},
		"a device":                 {"/dev/null", ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := Open(tc.path, options()); !cmp.Equal(err, tc.want, cmpopts.EquateErrors()) {
				t.Errorf("Open: %v, want %v", err, tc.want)
			}
		})
	}
}

func TestLinesAndLast(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := open(t, path)
	defer closeFile(t, f)
	if last, err := f.Last(); last != nil || err != nil {
		t.Errorf("Last of an empty file = %q, %v", last, err)
	}
	long := "line " + strings.Repeat("z", 200<<10)
	mustAppend(t, f, "line 1\nline 2\n")
	mustAppend(t, f, long+"\n")
	var got []string
	if err := f.Lines(func(line []byte) error { got = append(got, string(line)); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"line 1", "line 2", long}, got); diff != "" {
		t.Errorf("Lines (-want +got):\n%s", diff)
	}
	last, err := f.Last()
	if err != nil || string(last) != long {
		t.Errorf("Last = %d bytes, %v; want %d", len(last), err, len(long))
	}
}

func open(t *testing.T, path string) *File {
	t.Helper()
	f, torn, err := Open(path, options())
	if err != nil || torn != (Torn{}) {
		t.Fatalf("Open: %+v, %v", torn, err)
	}
	return f
}

func closeFile(t *testing.T, f *File) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func mustAppend(t *testing.T, f *File, data string) {
	t.Helper()
	if err := f.Append([]byte(data)); err != nil {
		t.Fatalf("Append: %v", err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func appendTo(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
