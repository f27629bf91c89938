package audit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestQueryApprovals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	f, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Record{
		{ID: "before", Time: noon.Add(-time.Second), Approval: &Approval{Name: "ta-1"}},
		{ID: "at-noon", Time: noon, Approval: &Approval{Name: "ta-1"}},
		{ID: "of-none", Time: noon},
		{ID: `,"approval":{`, Time: noon},
		{ID: "later", Time: noon.Add(time.Hour), Approval: &Approval{Name: "ta-2"}},
	} {
		r.Outcome, r.Reason, r.By, r.Tool = "Confirm", "Irreversible", "rules", "t"
		if err := f.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	ids := func(since time.Time) []string {
		var got []string
		if err := QueryApprovals(t.Context(), path, since, func(e Entry) error { got = append(got, e.ID); return nil }); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if diff := cmp.Diff([]string{"at-noon", "later"}, ids(noon)); diff != "" {
		t.Errorf("since noon (-want +got):\n%s", diff)
	}
	if err := os.Chtimes(path, noon.Add(time.Minute), noon.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got := ids(noon.Add(2 * time.Minute)); got != nil {
		t.Errorf("a file that was not written to since then was read: %v", got)
	}
	stop := errors.New("stop")
	if err := QueryApprovals(t.Context(), path, noon, func(Entry) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v, want what the caller says", err)
	}
	if err := os.WriteFile(path, []byte(`{"v":1,"approval":{`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := QueryApprovals(t.Context(), path, noon, func(Entry) error { return nil }); !errors.Is(err, ErrNotEntry) {
		t.Errorf("a line that is none: %v", err)
	}
}
