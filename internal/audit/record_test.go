package audit

import (
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite golden files")

var (
	noon   = time.Date(2026, 1, 2, 12, 0, 0, 123456789, time.UTC)
	digest = "sha256:" + strings.Repeat("0a", 32)
)

// full has every member, so that the golden file shows all of them.
func full() *Record {
	return &Record{
		Kind: KindDecision, Time: noon, ID: "d-1", UID: "019b0000-0000-7000-8000-000000000000", RequestDigest: digest,
		Caller: Caller{Namespace: "shop", ServiceAccount: "agent"}, OnBehalfOf: "jo \"x\"\n\u2028é", Session: digest,
		Tool: "refund", Server: "payments", Class: "Payments", Base: "Destructive",
		Outcome: review.Confirm, Reason: "Irreversible", By: "policy:irreversible",
		Obligations: []review.Obligation{
			{Outcome: review.Confirm, Reason: "Irreversible", By: "policy:irreversible", Policy: "shop/p"},
			{Outcome: review.Clarify, Reason: "Unclear", By: "decider"},
		},
		WouldBe:  []review.WouldBe{{Policy: "shop/new", Outcome: review.Block, Reason: "NoScope", By: "rule:missing-scope"}},
		Policies: []string{"shop/p@3", "all@1"}, PolicyDigest: digest, ArgumentsDigest: digest, StateDigest: digest, UserTurnsDigest: digest,
		Answers: map[string]review.Answer{
			"asked":    {Probability: new(0.25)},
			"severity": {Score: new(2.5)},
			"verdict":  {Choice: "allow", Probabilities: map[string]float64{"block": 1e-9, "allow": 0.75, "confirm": 0.25}},
			"moves":    {Probability: new(float64(1)), FromCode: true},
		},
		Decider: "small", Fingerprint: "f:1", ModelHash: digest, PromptVersion: "p1",
		Approval: &Approval{Name: "ta-0123-1", By: "kim", Outcome: "Approved"},
		DryRun:   true, Milliseconds: 1.5, DeciderMilliseconds: 0.75, DeciderError: "Timeout",
		EngineSemantics: "e1", GateVersion: "v0.1.0", SnapshotAgeSeconds: 20, Torn: &Torn{File: "log.torn-1", Bytes: 7},
		Deciders: []Asked{
			{Policy: "ToolPolicy/shop/p", Decider: "small", Answers: map[string]review.Answer{"asked": {Probability: new(0.25)}}, Fingerprint: "f:1", ModelHash: digest, PromptVersion: "p1", Milliseconds: 0.5},
			{Policy: "ClusterToolPolicy/all", Decider: "large", Audit: true, PromptVersion: "p1", Milliseconds: 0.75, Error: "Timeout"},
		},
		Captured: "Encrypted", Checkpoint: &Checkpoint{Head: Head{Seq: 7, Digest: digest}, Time: noon, KID: "k1", Signature: "c2ln"},
		Rotated:    &Rotated{File: "log.1", Through: Head{Seq: 7, Digest: digest}},
		Dropped:    &Dropped{File: "log.1", Bytes: 9, First: 1, Through: Head{Seq: 7, Digest: digest}, Why: "age"},
		Label:      &Label{Decision: "d-1", Outcome: review.Block, By: "kim", MessageDigest: digest},
		Unrecorded: 3,
	}
}

func line(t *testing.T, r *Record) string {
	t.Helper()
	var e encoder
	if err := e.record(r); err != nil {
		t.Fatal(err)
	}
	return string(append(appendHead(nil, 1, noDigest), e.buf...))
}

func TestRecordGolden(t *testing.T) {
	got := line(t, full()) + "\n" + line(t, &Record{}) + "\n"
	golden := filepath.Join("testdata", "records.jsonl")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeGivesBackWhatWasEncoded(t *testing.T) {
	empty := func(change func(r *Record)) *Record {
		r := &Record{Kind: KindDecision, Time: noon}
		change(r)
		return r
	}
	for name, r := range map[string]*Record{
		"a record with everything":     full(),
		"an empty record":              empty(func(*Record) {}),
		"numbers of all sizes":         empty(func(r *Record) { r.Milliseconds, r.DeciderMilliseconds = 1e300, 1e-300 }),
		"a negative zero":              empty(func(r *Record) { r.Answers = map[string]review.Answer{"q": {Score: new(math.Copysign(0, -1))}} }),
		"an answer that says nothing":  empty(func(r *Record) { r.Answers = map[string]review.Answer{"q": {}, "": {}} }),
		"names that need quoting":      empty(func(r *Record) { r.Answers = map[string]review.Answer{"a\"\\\x00": {Choice: "\t"}} }),
		"an approval without decision": empty(func(r *Record) { r.Approval = &Approval{} }),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode([]byte(line(t, r)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Entry{V: 1, Seq: 1, Prev: noDigest, Record: *r}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEncodeIsTheSameEveryTime(t *testing.T) {
	want := line(t, full())
	for range 100 {
		if got := line(t, full()); got != want {
			t.Fatalf("two encodings differ:\n%s\n%s", want, got)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(r *Record)
		want   string
	}{
		"text as the digest of arguments":  {func(r *Record) { r.ArgumentsDigest = `{"to":"eve"}` }, "argumentsDigest is not a digest"},
		"text as the digest of the state":  {func(r *Record) { r.StateDigest = "please" }, "stateDigest is not a digest"},
		"text as the digest of user turns": {func(r *Record) { r.UserTurnsDigest = "sha256:send it" }, "userTurnsDigest is not a digest"},
		"a session as it came":             {func(r *Record) { r.Session = "abc" }, "session is not a digest"},
		"a request as it came":             {func(r *Record) { r.RequestDigest = ":" + digest }, "requestDigest is not a digest"},
		"a short digest":                   {func(r *Record) { r.PolicyDigest = "sha256:0a" }, "policyDigest is not a digest"},
		"upper case digits":                {func(r *Record) { r.PolicyDigest = "sha256:" + strings.Repeat("0A", 32) }, "policyDigest is not a digest"},
		"prose as a reason":                {func(r *Record) { r.Reason = "because he said so" }, "reason is not a constant"},
		"the text of an error":             {func(r *Record) { r.DeciderError = "dial tcp: refused" }, "deciderError is not a constant"},
		"a probability that is no number":  {func(r *Record) { r.Answers = map[string]review.Answer{"q": {Probability: new(math.NaN())}} }, "probability is not finite"},
		"an infinite time":                 {func(r *Record) { r.Milliseconds = math.Inf(1) }, "ms is not finite"},
		"a year that RFC 3339 cannot hold": {func(r *Record) { r.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, "year 10000"},
		"a record that is too long":        {func(r *Record) { r.Policies = []string{strings.Repeat("p", MaxRecord)} }, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			r := full()
			tc.change(r)
			var e encoder
			err := e.record(r)
			if !errors.Is(err, ErrBadRecord) || !strings.HasSuffix(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := line(t, &Record{})
	for name, bad := range map[string]string{
		"nothing":                       "",
		"half a line":                   good[:len(good)-1],
		"another version":               strings.Replace(good, `"v":1`, `"v":2`, 1),
		"a number that is not plain":    strings.Replace(good, `"seq":1`, `"seq":01`, 1),
		"number zero":                   strings.Replace(good, `"seq":1`, `"seq":0`, 1),
		"a previous that is no digest":  strings.Replace(good, noDigest, strings.Repeat("z", len(noDigest)), 1),
		"members in another order":      strings.Replace(good, `"v":1,"seq":1`, `"seq":1,"v":1`, 1),
		"a number that stands twice":    good[:len(good)-1] + `,"seq":9}`,
		"a previous that stands twice":  good[:len(good)-1] + `,"prev":"` + digest + `"}`,
		"members of the writer missing": `{"kind":"decision"}`,
		"something behind":              good + "x",
	} {
		t.Run(name, func(t *testing.T) {
			if e, err := Decode([]byte(bad)); !errors.Is(err, ErrNotEntry) {
				t.Errorf("Decode = %+v, %v; want ErrNotEntry", e, err)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	var e encoder
	if err := e.record(full()); err != nil {
		f.Fatal(err)
	}
	f.Add(append(appendHead(nil, 1, noDigest), e.buf...))
	f.Add([]byte(`{"v":1,"seq":1,"prev":"","kind":""}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		entry, err := Decode(data)
		if err != nil {
			return
		}
		var again encoder
		if again.record(&entry.Record) != nil {
			return // such as text where a digest belongs: readable, and never written by us
		}
		back, err := Decode(append(appendHead(nil, entry.Seq, entry.Prev), again.buf...))
		if err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		if entry.Kind == "" {
			entry.Kind = KindDecision
		}
		opt := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
		if diff := cmp.Diff(entry, back, opt, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-first +again):\n%s", diff)
		}
	})
}
