package evaluation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

// scriptedGate answers Allow and notes what it was asked; nothing it says is an error.
type scriptedGate struct {
	mu     sync.Mutex
	asked  []string
	failed map[string]Failure
	// onCall, if set, is called before an answer with how many there were.
	onCall func(n int)
}

func (g *scriptedGate) Review(_ context.Context, c *Case) Result {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, c.ID)
	if g.onCall != nil {
		g.onCall(len(g.asked))
	}
	if f := g.failed[c.ID]; f != NoFailure {
		return Result{Case: c.ID, Failure: f}
	}
	return Result{Case: c.ID, Outcome: review.Allow, Judged: review.Allow}
}

func threeCases() []*Case {
	var out []*Case
	for _, id := range []string{"a", "b", "c"} {
		out = append(out, &Case{ID: id, Label: LabelAllow})
	}
	return out
}

func TestRunAsksEveryGateAboutEveryCaseOnce(t *testing.T) {
	rules, stacked := &scriptedGate{}, &scriptedGate{failed: map[string]Failure{"b": TimedOut}}
	var told []string
	results, err := Run(t.Context(), RunOptions{
		Cases: threeCases(), Gates: []NamedGate{{RulesOnly, rules}, {Stacked, stacked}}, Repeats: 2, Concurrency: 3,
		Progress: func(done, total int) { told = append(told, fmt.Sprintf("%d/%d", done, total)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range results {
		got = append(got, fmt.Sprintf("%d %s %s%s%v", r.Repeat, r.Configuration, r.Case, r.Failure, r.First))
	}
	want := []string{
		"1 rules-only atrue", "1 rules-only bfalse", "1 rules-only cfalse", "1 stacked atrue", "1 stacked btimeoutfalse", "1 stacked cfalse",
		"2 rules-only afalse", "2 rules-only bfalse", "2 rules-only cfalse", "2 stacked afalse", "2 stacked btimeoutfalse", "2 stacked cfalse",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	slices.Sort(stacked.asked)
	if diff := cmp.Diff([]string{"a", "a", "b", "b", "c", "c"}, stacked.asked); diff != "" {
		t.Errorf("a time-out was asked about again: %s", diff)
	}
	if len(told) != 13 || told[0] != "0/12" || told[12] != "12/12" {
		t.Errorf("progress was %v", told)
	}
}

func TestRunGoesOn(t *testing.T) {
	gate := &scriptedGate{}
	done := []Result{{Configuration: Stacked, Case: "b", Repeat: 1, Outcome: review.Block}}
	var kept []string
	results, err := Run(t.Context(), RunOptions{
		Cases: threeCases(), Gates: []NamedGate{{Stacked, gate}}, Done: done, Keep: func(r Result) error { kept = append(kept, r.Case); return nil },
	})
	if err != nil || results[1].Outcome != review.Block {
		t.Fatalf("%v %v", results, err)
	}
	if diff := cmp.Diff([]string{"a", "c"}, gate.asked); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(gate.asked, kept); diff != "" {
		t.Error(diff)
	}
}

func TestRunEnds(t *testing.T) {
	full := errors.New("disk full")
	for name, test := range map[string]struct {
		keep   error
		cancel bool
		want   error
		kept   int
	}{
		"when it is interrupted, without the call that was cut off": {nil, true, context.Canceled, 1},
		"when a result cannot be kept":                              {full, false, full, 1},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			gate := &scriptedGate{onCall: func(n int) {
				if test.cancel && n == 2 {
					cancel()
				}
			}}
			kept := 0
			results, err := Run(ctx, RunOptions{
				Cases: threeCases(), Gates: []NamedGate{{Stacked, gate}}, Keep: func(Result) error { kept++; return test.keep },
			})
			if !errors.Is(err, test.want) || results != nil || kept != test.kept {
				t.Errorf("%v, %v, %d kept", results, err, kept)
			}
		})
	}
}

func header() Header {
	return Header{CasesDigest: "sha256:c", PoliciesDigest: "sha256:p", Caller: "a/b", Configurations: []Configuration{Stacked}, Repeats: 2, Concurrency: 1, Version: "v"}
}

func keepTwo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kept.jsonl")
	j, done, err := OpenJournal(path, header(), threeCases())
	if err != nil || len(done) != 0 {
		t.Fatalf("%v %v", done, err)
	}
	p := 0.25
	for _, r := range []Result{
		{Configuration: Stacked, Case: "a", Repeat: 1, Outcome: review.Allow, Answers: map[string]review.Answer{"asked": {Probability: &p}}, Milliseconds: 1.5},
		{Configuration: Stacked, Case: "b", Repeat: 1, Failure: TimedOut},
	} {
		if err := j.Keep(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheJournalGoesOn(t *testing.T) {
	path := keepTwo(t)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"configuration":"stacked","case":"c","rep`); err != nil { // cut off
		t.Fatal(err)
	}
	f.Close()
	j, done, err := OpenJournal(path, header(), threeCases())
	if err != nil {
		t.Fatal(err)
	}
	if len(done) != 2 || *done[0].Answers["asked"].Probability != 0.25 || done[1].Failure != TimedOut {
		t.Errorf("%+v", done)
	}
	if err := errors.Join(j.Keep(Result{Configuration: Stacked, Case: "c", Repeat: 2}), j.Close()); err != nil {
		t.Fatal(err)
	}
	if _, done, err := OpenJournal(path, header(), threeCases()); err != nil || len(done) != 3 || done[2].Case != "c" {
		t.Errorf("%+v %v", done, err)
	}
}

func TestTheJournalRefusesAnotherRun(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Header)
		want   string
	}{
		"other cases":          {func(h *Header) { h.CasesDigest = "sha256:d" }, "casesDigest was sha256:c and is sha256:d"},
		"other policies":       {func(h *Header) { h.PoliciesDigest = "sha256:q" }, "policiesDigest"},
		"another caller":       {func(h *Header) { h.Caller = "a/c" }, "caller was a/b"},
		"other configurations": {func(h *Header) { h.Configurations = []Configuration{RulesOnly} }, "configurations"},
		"more repeats":         {func(h *Header) { h.Repeats = 3 }, "repeats was 2 and is 3"},
		"another temperature":  {func(h *Header) { h.Temperature = 0.7 }, "temperature was 0 and is 0.7"},
		"another version":      {func(h *Header) { h.Version = "w" }, "version"},
	} {
		t.Run(name, func(t *testing.T) {
			path := keepTwo(t)
			before, _ := os.ReadFile(path)
			h := header()
			test.change(&h)
			if _, _, err := OpenJournal(path, h, threeCases()); !errors.Is(err, errOtherRun) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestTheJournalRefusesWhatItDidNotWrite(t *testing.T) {
	write := func(content string) string {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	kept, err := os.ReadFile(keepTwo(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ content, want string }{
		"another file":                {"precious\n", "no file of kept results"},
		"a line that is no result":    {strings.Replace(string(kept), `{"configuration":"stacked","case":"b"`, `"case":"b"`, 1), "line 3"},
		"a case that is not there":    {strings.Replace(string(kept), `"case":"b"`, `"case":"z"`, 1), `case "z"`},
		"a repeat that was not asked": {strings.Replace(string(kept), `"case":"b","repeat":1`, `"case":"b","repeat":7`, 1), "repeat 7"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := OpenJournal(write(test.content), header(), threeCases()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	if _, _, err := OpenJournal(filepath.Join(t.TempDir(), "none", "file"), header(), nil); err == nil {
		t.Error("a folder that is not there")
	}
}

func TestProgress(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	var out bytes.Buffer
	p := NewProgress(&out, clock)
	step := func(d time.Duration, done int) {
		clock.SetTime(clock.Now().Add(d))
		p.Update(done, 110)
	}
	step(0, 10)
	step(time.Second, 12)
	step(4*time.Second, 20) // 10 in 5 s, so 90 in 45 s
	step(time.Second, 30)
	step(5*time.Second, 110)
	want := "going on: 10 of 110 calls are there\n20 of 110 calls, about 45s left\n110 of 110 calls, in 11s\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	p = NewProgress(&out, clock)
	step(0, 0)
	step(time.Second, 110)
	if out.Len() > 0 {
		t.Errorf("a short run says %q", out.String())
	}
}
