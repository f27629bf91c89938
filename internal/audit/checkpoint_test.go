package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

// signedLog are the lines of a log of five decisions with a checkpoint behind each second one, and what was kept outside.
func signedLog(t *testing.T, keys *Keys) (lines []string, outside []Checkpoint) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	f := mustOpen(t, path, Options{
		Clock: clocktesting.NewFakePassiveClock(noon), Signer: keys, SignEvery: time.Hour, SignRecords: 2,
		Signed: func(c Checkpoint) { outside = append(outside, c) },
	})
	for i := range 5 {
		mustAppend(t, f, fmt.Sprint(i))
	}
	closeLog(t, f)
	return slices.Collect(strings.Lines(string(read(t, path)))), outside
}

// forge writes a log anew from line n on, as somebody does who knows how the chain works and has no key: with signer nil
// it leaves out the checkpoints, else it signs with another key.
func forge(t *testing.T, lines []string, n int, signer *Keys) []string {
	t.Helper()
	out := slices.Clone(lines[:n])
	head := Head{Digest: noDigest}
	if n > 0 {
		var err error
		if head, err = LastHead([]byte(strings.Join(out, ""))); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range lines[n:] {
		e, err := Decode([]byte(strings.TrimSuffix(l, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		e.Tool = "forged"
		if e.Checkpoint != nil {
			if signer == nil {
				continue
			}
			c := signer.Checkpoint(head, noon)
			e.Checkpoint = &c
		}
		var enc encoder
		if err := enc.record(&e.Record); err != nil {
			t.Fatal(err)
		}
		forged := append(appendHead(nil, head.Seq+1, head.Digest), enc.buf...)
		head = Head{Seq: head.Seq + 1, Digest: lineDigest(forged)}
		out = append(out, string(forged)+"\n")
	}
	return out
}

func TestVerifierSaysWhereALogIsNotWhole(t *testing.T) {
	keys, other := testKeys(t), testKeys(t)
	l, outside := signedLog(t, keys)
	if len(l) != 8 || len(outside) != 3 { // 2 decisions, checkpoint, 2, checkpoint, 1, checkpoint
		t.Fatalf("%d lines and %d checkpoints", len(l), len(outside))
	}
	swapped := slices.Clone(l)
	swapped[3], swapped[4] = swapped[4], swapped[3]
	altered := slices.Clone(l)
	altered[3] = strings.Replace(altered[3], `"id":"2"`, `"id":"9"`, 1)
	copied := slices.Clone(forge(t, l, 3, nil)) // with the checkpoints of the real log put where they were
	copied = append(copied, l[7])
	public := keys.Public()
	all := Evidence{Keys: public, Checkpoints: outside}
	for name, test := range map[string]struct {
		log      []string
		evidence Evidence
		want     *Break
	}{
		"a whole log":                                               {l, all, nil},
		"a whole log, by its keys alone":                            {l, Evidence{Keys: public}, nil},
		"a log that went on behind its checkpoints":                 {l[:7], Evidence{Keys: public, Checkpoints: outside[:2], Now: noon}, nil},
		"the same, ten minutes later":                               {l[:7], Evidence{Keys: public, Checkpoints: outside[:2], Now: noon.Add(MaxUnsignedFor + time.Second)}, &Break{What: BreakUnsigned, From: 7}},
		"rewritten whole, and no copy of a checkpoint":              {forge(t, l, 0, nil), Evidence{Keys: public}, &Break{What: BreakUnsigned, From: 1}},
		"records of this minute, before the first checkpoint":       {l[:2], Evidence{Keys: public, Now: noon.Add(time.Minute)}, nil},
		"the same, from a time that is yet to come":                 {l[:2], Evidence{Keys: public, Now: noon.Add(-time.Hour)}, &Break{What: BreakUnsigned, From: 1}},
		"no checkpoint but one outside":                             {l[:2], Evidence{Keys: public, Checkpoints: outside[:1]}, nil},
		"an altered line":                                           {altered, all, &Break{Line: 5, What: BreakPrevious}},
		"lines that change places":                                  {swapped, all, &Break{Line: 4, What: BreakSequence}},
		"a line that is missing":                                    {slices.Delete(slices.Clone(l), 3, 4), all, &Break{Line: 4, What: BreakSequence}},
		"lines that were cut off":                                   {l[:4], all, &Break{What: BreakCut, Expected: "at least 7", Found: "4"}},
		"everything cut off":                                        {nil, all, &Break{What: BreakCut, Expected: "at least 7", Found: "0"}},
		"rewritten from line 4, without checkpoints":                {forge(t, l, 3, nil), all, &Break{Line: 5, What: BreakCheckpoint, From: 4}},
		"rewritten whole, without checkpoints":                      {forge(t, l, 0, nil), all, &Break{Line: 2, What: BreakCheckpoint, From: 1}},
		"rewritten from line 4 and signed with another key":         {forge(t, l, 3, other), Evidence{Keys: public}, &Break{Line: 6, What: BreakKey, From: 4}},
		"rewritten, and a checkpoint of the real log put behind":    {copied, Evidence{}, &Break{Line: 7, What: BreakSequence}},
		"a log of another gate":                                     {l, Evidence{Keys: other.Public()}, &Break{Line: 3, What: BreakKey, From: 1}},
		"a log without its beginning":                               {l[3:], Evidence{Keys: public}, &Break{Line: 1, What: BreakSequence, Expected: "1", Found: "4"}},
		"a log without its beginning, which is vouched for outside": {l[2:], all, nil},
		"a head that was noted down and is another line":            {l, Evidence{Heads: []Head{{Seq: 4, Digest: digest}}}, &Break{Line: 4, What: BreakHead, From: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := NewVerifier(test.evidence)
			if err != nil {
				t.Fatal(err)
			}
			_, err = v.Part(strings.NewReader(strings.Join(test.log, "")))
			if err == nil {
				_, err = v.End()
			}
			var got *Break
			if err != nil && !errors.As(err, &got) {
				t.Fatal(err)
			}
			if got != nil && test.want != nil {
				got.Offset = 0
				if test.want.Expected == "" {
					got.Expected, got.Found = "", ""
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A signature that is changed shows, whatever byte of the checkpoint it is, although the chain was mended behind it.
func TestASignatureCoversItsCheckpoint(t *testing.T) {
	keys := testKeys(t)
	_, outside := signedLog(t, keys)
	for name, change := range map[string]func(c *Checkpoint){
		"the number":    func(c *Checkpoint) { c.Seq++ },
		"the digest":    func(c *Checkpoint) { c.Digest = digest },
		"the time":      func(c *Checkpoint) { c.Time = c.Time.Add(time.Nanosecond) },
		"the signature": func(c *Checkpoint) { c.Signature = "A" + c.Signature[1:] + "" },
		"no signature":  func(c *Checkpoint) { c.Signature = "" },
		"the key":       func(c *Checkpoint) { c.KID = "0011223344556677" },
	} {
		t.Run(name, func(t *testing.T) {
			c := outside[0]
			change(&c)
			if c == outside[0] {
				c.Signature = "B" + c.Signature[1:]
			}
			if _, err := NewVerifier(Evidence{Keys: keys.Public(), Checkpoints: []Checkpoint{c}}); err == nil {
				t.Error("it is taken")
			}
		})
	}
	if _, err := NewVerifier(Evidence{Checkpoints: []Checkpoint{outside[0], {Head: Head{Seq: outside[0].Seq, Digest: digest}}}}); err == nil {
		t.Error("two checkpoints that contradict each other are taken")
	}
}

func TestALogMayNotEndInManyUnsignedRecords(t *testing.T) {
	keys := testKeys(t)
	path := filepath.Join(t.TempDir(), "audit.log")
	fill(t, path, Options{Signer: keys, Clock: clocktesting.NewFakePassiveClock(noon)}, 0, 3)
	late := mustOpen(t, path, Options{}) // without a key
	if err := late.Append(t.Context(), &Record{Time: noon.Add(MaxUnsignedFor + time.Second)}); err != nil {
		t.Fatal(err)
	}
	closeLog(t, late)
	var b *Break
	if _, err := verifyParts(t, path, Evidence{Keys: keys.Public()}); !errors.As(err, &b) || b.What != BreakUnsigned || b.From != 5 {
		t.Errorf("records long after the last signature: %v", err)
	}
	if _, err := verifyParts(t, path, Evidence{}); err != nil {
		t.Errorf("without a key to check by: %v", err)
	}
}

func TestWhatNothingFollowsIsSignedAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		f := start(d, Options{Signer: stubSigner{}, SignEvery: 10 * time.Second})
		mustAppend(t, f, "1")
		time.Sleep(5 * time.Second)
		if got := len(entries(t, d.written())); got != 1 {
			t.Errorf("%d records after 5 s, want 1", got)
		}
		time.Sleep(20 * time.Second)
		all := entries(t, d.written())
		if len(all) != 2 || all[1].Kind != KindCheckpoint || all[1].Checkpoint.Seq != 1 {
			t.Errorf("after 25 s the log holds %+v", all)
		}
		time.Sleep(time.Hour)
		closeLog(t, f)
		if got := len(entries(t, d.written())); got != 2 {
			t.Errorf("%d records at last: a log that nobody writes to is signed again and again", got)
		}
	})
}

// stubSigner signs with nothing.
type stubSigner struct{}

func (stubSigner) Checkpoint(h Head, now time.Time) Checkpoint {
	return Checkpoint{Head: h, Time: now, KID: "k", Signature: "s"}
}

func TestKeysRotate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.json")
	clock := clocktesting.NewFakePassiveClock(noon)
	first, err := LoadOrCreateKeys(path, clock)
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "audit.log")
	fill(t, log, Options{Signer: first, Clock: clock}, 0, 2)
	kid, err := RotateKeys(path, clock)
	if err != nil || kid == first.KID() {
		t.Fatalf("%s, %v", kid, err)
	}
	second, err := LoadKeys(path)
	if err != nil || second.KID() != kid || len(second.Public()) != 2 {
		t.Fatalf("%+v, %v", second, err)
	}
	fill(t, log, Options{Signer: second, Clock: clock}, 2, 2)
	if s, err := verifyParts(t, log, Evidence{Keys: second.Public()}); err != nil || s.Checkpoints != 2 {
		t.Errorf("with both keys: %+v, %v", s, err)
	}
	if _, err := verifyParts(t, log, Evidence{Keys: first.Public()}); err == nil {
		t.Error("with the old key alone it is whole")
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || bytes.Count(read(t, path), []byte(`"seed"`)) != 1 {
		t.Errorf("mode %v, %v: the file holds %s", info.Mode(), err, read(t, path))
	}
	var public bytes.Buffer
	if err := second.WritePublic(&public); err != nil || strings.Contains(public.String(), "seed") {
		t.Errorf("public keys: %s, %v", &public, err)
	}
	shared := filepath.Join(t.TempDir(), "public.json")
	if err := os.WriteFile(shared, public.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadPublicKeys(shared); err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestKeysAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.json")
	if _, err := LoadOrCreateKeys(path, clocktesting.NewFakePassiveClock(noon)); err != nil {
		t.Fatal(err)
	}
	good := read(t, path)
	for name, test := range map[string]struct {
		content string
		mode    os.FileMode
		want    string
	}{
		"that others can read":                 {string(good), 0o644, "chmod 600"},
		"that are none":                        {"{}", 0o600, "holds no key"},
		"that are something else":              {"hello", 0o600, "no file of audit keys"},
		"whose id is not theirs":               {strings.Replace(string(good), `"kid": "`, `"kid": "0`, 1), 0o600, "with its own id"},
		"without a private one":                {strings.Replace(string(good), `"seed"`, `"none"`, 1), 0o600, "cannot sign"},
		"whose private one is that of another": {otherSeed(t, good), 0o600, "not that of its public key"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "key.json")
			if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(file, test.mode); err != nil {
				t.Fatal(err)
			}
			if _, err := LoadKeys(file); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("LoadKeys: %v, want %q", err, test.want)
			}
		})
	}
}

func otherSeed(t *testing.T, good []byte) string {
	t.Helper()
	var set keySet
	if err := json.Unmarshal(good, &set); err != nil {
		t.Fatal(err)
	}
	set.Keys[0].Seed[0] ^= 1
	out, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestCheckpointsAreKeptOutside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoints")
	clock := clocktesting.NewFakePassiveClock(noon)
	keys := testKeys(t)
	_, want := signedLog(t, keys)
	warn := func(err error) { t.Errorf("warned: %v", err) }
	for i := range want { // over restarts, the last one after a crash in the middle of a line
		o, err := OpenOutside(path, clock, warn)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && o.Last() != want[i-1] {
			t.Errorf("last is %+v, want %+v", o.Last(), want[i-1])
		}
		o.Keep(want[i])
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		o.Keep(want[i]) // is ignored
		if i == 1 {
			if err := os.WriteFile(path, append(read(t, path), `{"seq":`...), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := ReadCheckpoints(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheckHead(t *testing.T) {
	keys := testKeys(t)
	path := filepath.Join(t.TempDir(), "audit.log")
	var outside []Checkpoint
	fill(t, path, small(Options{Signer: keys, SignEvery: time.Hour, Signed: func(c Checkpoint) { outside = append(outside, c) }}), 0, 20)
	last := outside[len(outside)-1]
	whole := read(t, path)
	for name, test := range map[string]struct {
		leave func(t *testing.T)
		c     Checkpoint
		want  string
	}{
		"a whole log":                 {func(*testing.T) {}, last, ""},
		"a checkpoint of a full file": {func(*testing.T) {}, outside[0], ""},
		"a log that was cut off":      {func(t *testing.T) { write(t, path, whole[:bytes.IndexByte(whole, '\n')+1]) }, last, "it ends with line"},
		"a log that was changed":      {func(*testing.T) {}, Checkpoint{Head: Head{Seq: last.Seq, Digest: digest}}, "was changed"},
		"a log that went back to the file before": {func(t *testing.T) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, last, "it ends with line"},
		"a log that is gone": {func(t *testing.T) {
			all, _ := filepath.Glob(path + "*")
			for _, p := range all {
				if err := os.Remove(p); err != nil {
					t.Fatal(err)
				}
			}
		}, last, "it is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			saved := map[string][]byte{}
			all, _ := filepath.Glob(path + "*")
			for _, p := range all {
				saved[p] = read(t, p)
			}
			defer func() {
				for p, data := range saved {
					write(t, p, data)
				}
			}()
			test.leave(t)
			err := CheckHead(t.Context(), path, test.c)
			if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, ErrBehind) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("CheckHead: %v, want %q", err, test.want)
			}
		})
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
