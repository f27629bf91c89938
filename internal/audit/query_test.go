package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

// decided is a decision with an id, n minutes after noon.
func decided(id string, n int, change func(r *Record)) *Record {
	r := &Record{
		Time: noon.Add(time.Duration(n) * time.Minute), ID: id, UID: "u-" + id, Caller: Caller{"shop", "agent"},
		Tool: "db.read", Class: "ReadOnly", Base: "ReadOnly", Outcome: review.Allow, Reason: "RulesPassed", By: "rules",
		Policies: []string{"ToolPolicy/shop/starter@3", "ClusterToolPolicy/floor@12"},
	}
	change(r)
	return r
}

// searched is a log that Open wrote.
func searched(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.log")
	f := openLog(t, path)
	for _, r := range []*Record{
		decided("a", 0, func(*Record) {}),
		decided("b", 1, func(r *Record) { r.Outcome, r.Reason, r.By = review.Block, "PathNotAllowed", "rule:path-escape" }),
		decided("c", 2, func(r *Record) { r.Outcome, r.Tool, r.By = review.Confirm, "db.", "policy:irreversible" }),
		decided("d", 3, func(r *Record) {
			r.Caller, r.Policies = Caller{"shop", "agent2"}, []string{"ToolPolicy/shop/starter@4"}
		}),
		decided("e", 4, func(r *Record) { r.Outcome, r.Tool, r.Policies = "", "", nil }),
	} {
		if err := f.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	closeLog(t, f)
	return path
}

// query gives the ids that a filter selects.
func query(t *testing.T, log []byte, f Filter) (string, error) {
	t.Helper()
	var got strings.Builder
	err := Query(t.Context(), bytes.NewReader(log), f, func(e Entry) error {
		got.WriteString(e.ID)
		return nil
	})
	return got.String(), err
}

func TestQuery(t *testing.T) {
	log := read(t, searched(t))
	for name, tc := range map[string]struct {
		filter Filter
		want   string
	}{
		"nothing selects all": {Filter{}, "abcde"},
		"one outcome":         {Filter{Outcomes: []review.Outcome{review.Block}}, "b"},
		"two outcomes":        {Filter{Outcomes: []review.Outcome{review.Block, review.Confirm}}, "bc"},
		"a tool by name":      {Filter{Tool: "db.read"}, "abd"},
		"a tool by prefix, but not the prefix alone": {Filter{Tool: "db.*"}, "abd"},
		"every tool, but not a record without one":   {Filter{Tool: "*"}, "abcd"},
		"a tool in other case":                       {Filter{Tool: "DB.read"}, ""},
		"a caller whose name only starts the same":   {Filter{Caller: "shop/agent"}, "abce"},
		"a reason":                                      {Filter{Reason: "PathNotAllowed"}, "b"},
		"a part of a reason is none":                    {Filter{Reason: "Path"}, ""},
		"what decided, by prefix":                       {Filter{By: "rule"}, "abde"},
		"what decided, by longer prefix":                {Filter{By: "rule:"}, "b"},
		"a policy by name":                              {Filter{Policy: "starter"}, "abcd"},
		"a policy by a part of its name":                {Filter{Policy: "arter"}, ""},
		"a policy by namespace and name":                {Filter{Policy: "shop/starter"}, "abcd"},
		"a policy in another namespace":                 {Filter{Policy: "hop/starter"}, ""},
		"a policy by generation":                        {Filter{Policy: "starter@3"}, "abc"},
		"a generation that only starts the same":        {Filter{Policy: "floor@1"}, ""},
		"a policy of the cluster with all":              {Filter{Policy: "ClusterToolPolicy/floor@12"}, "abc"},
		"the id of a decision":                          {Filter{ID: "c"}, "c"},
		"the uid of a request":                          {Filter{ID: "u-d"}, "d"},
		"since an instant, that instant included":       {Filter{Since: noon.Add(3 * time.Minute)}, "de"},
		"until an instant, that instant excluded":       {Filter{Until: noon.Add(time.Minute)}, "a"},
		"between two instants":                          {Filter{Since: noon.Add(time.Minute), Until: noon.Add(3 * time.Minute)}, "bc"},
		"two conditions that hold together":             {Filter{Reason: "RulesPassed", Outcomes: []review.Outcome{review.Confirm}}, "c"},
		"two conditions that do not hold in one record": {Filter{Reason: "PathNotAllowed", ID: "a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := query(t, log, tc.filter)
			if got != tc.want || err != nil {
				t.Errorf("selects %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestQueryRefuses(t *testing.T) {
	log := read(t, searched(t))
	for name, tc := range map[string]struct {
		filter Filter
		want   string
	}{
		"an outcome that is none":            {Filter{Outcomes: []review.Outcome{"block"}}, "Allow, Clarify, Confirm or Block"},
		"a star in the middle":               {Filter{Tool: "db.*.read"}, "last character"},
		"two stars":                          {Filter{Tool: "db**"}, "last character"},
		"a caller without a namespace":       {Filter{Caller: "agent"}, "NAMESPACE/NAME"},
		"a caller without a name":            {Filter{Caller: "shop/"}, "NAMESPACE/NAME"},
		"an end that is before the start":    {Filter{Since: noon, Until: noon.Add(-1)}, "nothing lies between"},
		"an end that is the same as a start": {Filter{Since: noon, Until: noon}, "nothing lies between"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := query(t, log, tc.filter)
			if got != "" || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("selects %q, %v; want an error with %q", got, err, tc.want)
			}
		})
	}
}

func TestQueryOfALogThatIsNotWhole(t *testing.T) {
	lines := bytes.SplitAfter(read(t, searched(t)), []byte("\n"))
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, tc := range map[string]struct {
		log  []byte
		want string
		err  error
		text string
	}{
		"an empty log":                            {nil, "", nil, ""},
		"a torn last line is said":                {join(lines[0], lines[1][:40]), "a", ErrTorn, "line 2: the last line is not finished: 40 bytes without a line feed"},
		"a whole last line without its line feed": {join(lines[0], bytes.TrimSuffix(lines[1], []byte("\n"))), "a", ErrTorn, "line 2"},
		"a line that is no entry ends it":         {join(lines[0], []byte("{}\n"), lines[1]), "a", ErrNotEntry, "line 2"},
		"an empty line ends it":                   {join(lines[0], []byte("\n"), lines[1]), "a", ErrNotEntry, "line 2"},
		"a line without end":                      {join(lines[0], bytes.Repeat([]byte("x"), 2*MaxRecord)), "a", ErrNotEntry, "line 2: not a line of this log: it has more than 262144 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := query(t, tc.log, Filter{})
			if got != tc.want || !errors.Is(err, tc.err) || tc.err != nil && !strings.Contains(err.Error(), tc.text) {
				t.Errorf("selects %q, %v; want %q and %q", got, err, tc.want, tc.text)
			}
		})
	}
}

func TestQueryStops(t *testing.T) {
	log := read(t, searched(t))
	enough := errors.New("enough")
	n := 0
	err := Query(t.Context(), bytes.NewReader(log), Filter{}, func(Entry) error {
		if n++; n == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || n != 2 {
		t.Errorf("after %d records: %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n = 0
	err = Query(ctx, bytes.NewReader(log), Filter{}, func(Entry) error { n++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || n != 1 {
		t.Errorf("with a context that ended: %d records, %v", n, err)
	}
}

// following queries a file that grows, and gives ids as they come and the error at the end.
func following(ctx context.Context, t *testing.T, path string) (<-chan string, <-chan error) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	found, ended := make(chan string), make(chan error, 1)
	go func() {
		defer file.Close()
		ended <- Query(ctx, Follow(ctx, file, time.Millisecond), Filter{}, func(e Entry) error {
			select {
			case found <- e.ID:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return found, ended
}

func next[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came")
	}
	panic("not reached")
}

func TestFollowSeesWhatTheGateWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	f := openLog(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	found, ended := following(ctx, t, path)
	for i := range 30 {
		mustAppend(t, f, fmt.Sprint(i))
		if got := next(t, found); got != fmt.Sprint(i) {
			t.Fatalf("record %d comes as %s", i, got)
		}
	}
	closeLog(t, f)
	cancel()
	if err := next(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the end: %v", err)
	}
}

// A line that is half there is waited for, and one that was torn off and set aside was never seen.
func TestFollowWaitsForTheEndOfALine(t *testing.T) {
	whole := read(t, searched(t))
	first := bytes.IndexByte(whole, '\n') + 1
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, whole[:first+50], 0o600); err != nil {
		t.Fatal(err)
	}
	found, _ := following(t.Context(), t, path)
	if got := next(t, found); got != "a" {
		t.Fatalf("first comes %q", got)
	}
	f := openLog(t, path) // sets the 50 bytes aside and writes a record of kind recovered, without an id
	mustAppend(t, f, "new")
	closeLog(t, f)
	if got := next(t, found) + next(t, found); got != "new" {
		t.Errorf("then comes %q", got)
	}
}

func TestFollowEndsWithTheFile(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"a file that is moved away":   func(path string) error { return os.Rename(path, path+".1") },
		"a file that is removed":      os.Remove,
		"a file that becomes shorter": func(path string) error { return os.Truncate(path, 3) },
		"a file that is replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := searched(t)
			found, ended := following(t.Context(), t, path)
			for range 5 {
				next(t, found)
			}
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			if err := next(t, ended); !errors.Is(err, ErrReplaced) {
				t.Errorf("the end: %v", err)
			}
		})
	}
}

// Whatever the sizes of reads, lines arrive whole and in order; one that is too long is given on, to be refused.
func TestFollowGivesAllBytes(t *testing.T) {
	lines := strings.Repeat("some line\n", 2*MaxRecord/10)
	path := filepath.Join(t.TempDir(), "audit.log")
	long := strings.Repeat("x", MaxRecord+1)
	if err := os.WriteFile(path, []byte(lines+long), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got := make([]byte, len(lines)+len(long))
	if _, err := io.ReadFull(Follow(t.Context(), file, 0), got); err != nil {
		t.Fatal(err)
	}
	if string(got) != lines+long {
		t.Error("other bytes than the file has")
	}
}

func TestVerifyKept(t *testing.T) {
	log := read(t, searched(t))
	all := entries(t, log)
	heads := make([]Head, 5) // of each line: the next line has its digest
	for i := range heads[:4] {
		heads[i] = Head{all[i].Seq, all[i+1].Prev}
	}
	sound, err := Verify(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	heads[4] = sound.Head
	for _, kept := range heads {
		if got, err := VerifyKept(bytes.NewReader(log), Head{}, kept); err != nil || got != sound {
			t.Errorf("kept %s: %+v, %v", kept, got, err)
		}
		kept.Digest = noDigest
		got, err := VerifyKept(bytes.NewReader(log), Head{}, kept)
		var b *Break
		if !errors.As(err, &b) || b.What != "head" || b.Line != int64(kept.Seq) || got.Head.Seq != kept.Seq-1 {
			t.Errorf("another digest of line %d: %+v, %v", kept.Seq, got, err)
		}
	}
}

func TestParseHead(t *testing.T) {
	want := Head{Seq: 18446744073709551615, Digest: digest}
	got, err := ParseHead(want.String())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, text := range map[string]string{
		"nothing":               "",
		"a number alone":        "7",
		"a digest alone":        digest,
		"number zero":           "0:" + digest,
		"a number below zero":   "-1:" + digest,
		"a number too large":    "18446744073709551616:" + digest,
		"a digest too short":    "7:" + digest[:len(digest)-1],
		"a digest too long":     "7:" + digest + "0",
		"a digest in capitals":  "7:" + strings.ToUpper(digest),
		"another hash":          "7:sha999:" + strings.Repeat("0a", 32),
		"a space":               "7: " + digest,
		"something at the end":  "7:" + digest + "\n",
		"text before the digit": "x7:" + digest,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := ParseHead(text); err == nil {
				t.Errorf("ParseHead = %v", got)
			}
		})
	}
}
