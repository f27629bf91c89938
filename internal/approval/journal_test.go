package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

// written is a journal in which one call was raised, approved and used.
func written(t *testing.T, c *clocktesting.FakePassiveClock) (lines []string, a Approval) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "whole")
	w := openFile(t, path, c)
	a = w.raise(call())
	w.decide(a.Name, Approved)
	w.consume(a.ID)
	w.close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(string(whole))), a
}

// resealed gives the lines anew, as a gate would have sealed them.
func resealed(t *testing.T, lines ...string) string {
	t.Helper()
	f := &File{store: store{seals: testSeals}}
	var events []event
	for _, text := range lines {
		_, e, err := decodeLine([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	data, _, err := f.encode("", events)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestAJournalThatDoesNotFitIsNotOpened(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	lines, a := written(t, c)
	raise, decide, consume := lines[0], lines[1], lines[2]
	for name, journal := range map[string]string{
		"a line that is not JSON":           raise + "x\n" + decide + consume,
		"an empty line":                     raise + "\n",
		"a line is missing":                 raise + consume,
		"the first line is missing":         decide + consume,
		"a line stands twice":               raise + raise,
		"the use stands twice":              raise + decide + consume + consume,
		"two lines changed places":          raise + consume + decide,
		"a line in the middle was changed":  raise + strings.Replace(decide, "kim", "lee", 1) + consume,
		"a sealed event that is unknown":    resealed(t, raise, strings.Replace(decide, `"op":"decide"`, `"op":"revive"`, 1)),
		"a sealed raise that stands twice":  resealed(t, raise, raise),
		"a sealed use without a raise":      resealed(t, consume),
		"a sealed use without a decision":   resealed(t, raise, consume),
		"a sealed use that stands twice":    resealed(t, raise, decide, consume, consume),
		"a sealed decision stands twice":    resealed(t, raise, decide, decide),
		"a sealed decision after the use":   resealed(t, raise, decide, consume, decide),
		"a sealed use of what was rejected": resealed(t, raise, strings.Replace(decide, `"Approved"`, `"Rejected"`, 1), consume),
		"a sealed decision of no outcome":   resealed(t, raise, strings.Replace(decide, `"Approved"`, `"Consumed"`, 1)),
		"a sealed decision by nobody":       resealed(t, raise, strings.Replace(decide, `"kim"`, `""`, 1)),
		"a sealed decision by the caller":   resealed(t, raise, strings.Replace(decide, `"kim"`, `"shop/agent"`, 1)),
		"a sealed use after expiry":         resealed(t, raise, decide, strings.Replace(consume, "2026-01-02T12:00", "2026-01-02T12:10", 1)),
		"a sealed expiry before its time":   resealed(t, raise, strings.Replace(consume, `"consume"`, `"expire"`, 1)),
		"a sealed call of another name":     resealed(t, strings.Replace(raise, `"refund"`, `"delete"`, 1)),
		"a sealed name without its number":  resealed(t, strings.Replace(raise, a.Name, strings.TrimSuffix(a.Name, "1"), 1)),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "approvals")
			if err := os.WriteFile(path, []byte(journal), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := OpenFile(path, c, testSeals)
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("OpenFile: %v, want ErrCorrupt", err)
			}
			if f != nil || strings.Contains(err.Error(), "amount") {
				t.Errorf("OpenFile gives a store, or tells arguments: %v", err)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != journal {
				t.Errorf("the journal was changed: %v", err)
			}
		})
	}
}

// Whoever can write to the journal and has no key can make nobody's decision.
func TestAForgedLineIsIgnoredAndReported(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	foreign, err := OpenSeals("", c)
	if err != nil {
		t.Fatal(err)
	}
	pending := filepath.Join(t.TempDir(), "pending")
	w := openFile(t, pending, c)
	a := w.raise(call())
	w.close()
	data, err := os.ReadFile(pending)
	if err != nil {
		t.Fatal(err)
	}
	genuine := string(data)
	_, raised, err := decodeLine([]byte(genuine))
	if err != nil {
		t.Fatal(err)
	}
	approve := event{Prev: headOf(sealOf(t, genuine)), Op: opDecide, At: noon, ID: a.ID, Decision: &Decision{Outcome: Approved, By: kim}}
	another := raised
	another.ID = strings.Repeat("0", 32)
	another.Name = strings.TrimSuffix(a.Name, "1") + "2"
	for name, test := range map[string]struct {
		line string
		want IgnoredReason
	}{
		"a decision without a seal":           {lineOf(t, "", approve), IgnoredUnsealed},
		"a decision with an empty signature":  {lineOf(t, testSeals.Keys().KeyIDs()[0]+".", approve), IgnoredBadSeal},
		"a decision with another line's seal": {lineOf(t, sealOf(t, genuine), approve), IgnoredBadSeal},
		"a decision by another key":           {lineOf(t, sealBy(t, foreign, approve), approve), IgnoredUnknownKey},
		"an approval without a seal":          {lineOf(t, "", another), IgnoredUnsealed},
		"an approval by another key":          {lineOf(t, sealBy(t, foreign, another), another), IgnoredUnknownKey},
		"a decision as it once was written":   {fmt.Sprintf(`{"v":1,"op":"decide","at":"2026-01-02T12:00:00Z","id":%q,"decision":{"outcome":"Approved","by":"kim"}}`+"\n", a.ID), IgnoredUnsealed},
		"an object of another kind":           {"{}\n", IgnoredUnsealed},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "approvals")
			if err := os.WriteFile(path, []byte(genuine+test.line), 0o600); err != nil {
				t.Fatal(err)
			}
			w := openFile(t, path, c)
			if got := w.file().Ignored(); len(got) != 1 || got[0].Line != 2 || got[0].Reason != test.want {
				t.Errorf("ignored %+v, want line 2 as %s", got, test.want)
			}
			all, err := w.List(t.Context())
			if diff := cmp.Diff([]Approval{a}, all); err != nil || diff != "" {
				t.Errorf("List: %v (-want +got):\n%s", err, diff)
			}
			w.wantErr(w.Consume(t.Context(), a.ID), ErrNotApproved)
			w.decide(a.Name, Approved)
			w.close()
			w = openFile(t, path, c)
			if got := w.file().Ignored(); len(got) != 0 {
				t.Errorf("reported again: %+v", got)
			}
			w.consume(a.ID)
			w.close()
			kept, err := filepath.Glob(path + ".unsealed-*")
			if err != nil || len(kept) != 1 {
				t.Fatalf("kept for whoever looks into it: %v %v", kept, err)
			}
			if got, err := os.ReadFile(kept[0]); err != nil || string(got) != genuine+test.line {
				t.Errorf("what was kept is not the journal as it was found: %v", err)
			}
		})
	}
}

// A forged line in the middle does not keep the lines behind it from being read, while the disk is too full to tidy up.
func TestAForgedLineStaysHarmlessWhereItCannotBeRemoved(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	foreign, err := OpenSeals("", c)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "approvals")
	w := openFile(t, path, c)
	a := w.raise(call())
	w.close()
	forged := event{Op: opConsume, At: noon, ID: a.ID}
	appendTo(t, path, lineOf(t, sealBy(t, foreign, forged), forged)+lineOf(t, "", forged))
	if err := os.Mkdir(leftover(path), 0o700); err != nil { // in the way of a compaction
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(leftover(path), "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(path, c, testSeals); err == nil {
		t.Fatal("opened although what a compaction has left cannot be removed")
	}
	if err := os.RemoveAll(leftover(path)); err != nil {
		t.Fatal(err)
	}
	f := replayed(t, path, c)
	w = &world{T: t, Store: f, clock: c}
	w.decide(a.Name, Approved) // behind the forged lines
	w.close()
	w = openFile(t, path, c)
	if got := w.file().Ignored(); len(got) != 2 {
		t.Errorf("ignored %+v", got)
	}
	w.consume(a.ID)
	w.close()
}

// replayed opens a journal and leaves it as it is.
func replayed(t *testing.T, path string, c *clocktesting.FakePassiveClock) *File {
	t.Helper()
	f, err := OpenFile(filepath.Join(t.TempDir(), "empty"), c, testSeals)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.lines.Close(); err != nil {
		t.Fatal(err)
	}
	if f.lines, err = openLines(path, c); err != nil {
		t.Fatal(err)
	}
	if err := f.replay(); err != nil {
		t.Fatal(err)
	}
	return f
}

// After a rotation everything verifies until nothing of it can count, and then the journal still opens.
func TestJournalsSurviveRotations(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	rotated, err := OpenSeals("", c)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "approvals")
	open := func() *world {
		f, err := OpenFile(path, c, rotated)
		if err != nil {
			t.Fatal(err)
		}
		return &world{T: t, Store: f, clock: c}
	}
	w := open()
	a := w.raise(call(func(c *Call) { c.ExpiresAt = noon.Add(MaxLifetime) }))
	w.decide(a.Name, Approved)
	if err := rotated.Keys().Rotate(0, MaxLifetime+retention-1); err == nil {
		t.Error("a rotation orphans what waits")
	}
	if err := rotated.Keys().Rotate(0, MaxLifetime+retention); err != nil {
		t.Fatal(err)
	}
	c.SetTime(noon.Add(time.Minute))
	b := w.raise(call(withTool("other"), func(c *Call) { c.RaisedAt, c.ExpiresAt = w.clock.Now(), w.clock.Now().Add(MaxLifetime) }))
	if strings.Split(a.Seal, ".")[0] == strings.Split(b.Seal, ".")[0] {
		t.Error("the new key does not seal")
	}
	c.SetTime(noon.Add(MaxLifetime - 1))
	for _, x := range []Approval{a, b} {
		if err := rotated.Verify(&x); err != nil {
			t.Errorf("%s: %v", x.Call.Tool, err)
		}
	}
	w.close()
	c.SetTime(noon.Add(MaxLifetime + retention)) // the old key has ended while nobody looked
	w = open()
	w.wantState(b.Name, Expired)
	if _, err := w.Get(t.Context(), a.Name); !errors.Is(err, ErrNotFound) {
		t.Errorf("what an ended key has sealed is there: %v", err)
	}
	if err := rotated.Verify(&a); !errors.Is(err, ErrNotSealed) {
		t.Errorf("an ended key verifies: %v", err)
	}
	w.close()
}

func TestASealCoversAllThatThePersonSees(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	m := NewMemory(c)
	w := &world{T: t, Store: m, clock: c}
	a := w.raise(call())
	tree := func() map[string]any {
		data, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var out map[string]any
		if err := json.Unmarshal(data, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	verify := func(changed map[string]any) error {
		data, err := json.Marshal(changed)
		if err != nil {
			t.Fatal(err)
		}
		var out Approval
		if err := json.Unmarshal(data, &out); err != nil {
			t.Fatal(err)
		}
		return m.Verify(&out)
	}
	if err := verify(tree()); err != nil {
		t.Fatalf("nothing was changed: %v", err)
	}
	for _, field := range slices.Sorted(maps.Keys(tree()["call"].(map[string]any))) {
		changed := tree()
		inner := changed["call"].(map[string]any)
		switch v := inner[field].(type) {
		case string:
			if at, err := time.Parse(time.RFC3339, v); err == nil {
				inner[field] = at.Add(time.Second)
			} else {
				inner[field] = v + "x"
			}
		default:
			delete(inner, field)
			if field == "approvers" {
				inner[field] = map[string]any{"selfApproval": true}
			}
		}
		if err := verify(changed); !errors.Is(err, ErrNotSealed) {
			t.Errorf("call.%s is not sealed: %v", field, err)
		}
	}
	for _, field := range []string{"name", "id", "seal"} {
		changed := tree()
		changed[field] = changed[field].(string) + "x"
		if err := verify(changed); !errors.Is(err, ErrNotSealed) {
			t.Errorf("%s is not sealed: %v", field, err)
		}
	}
}

func sealOf(t *testing.T, text string) string {
	t.Helper()
	l, _, err := decodeLine([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return l.Seal
}

func sealBy(t *testing.T, s *Seals, e event) string {
	t.Helper()
	body, err := encode(e)
	if err != nil {
		t.Fatal(err)
	}
	seal, err := s.sign(eventMessage(body))
	if err != nil {
		t.Fatal(err)
	}
	return seal
}

func lineOf(t *testing.T, seal string, e event) string {
	t.Helper()
	body, err := encode(e)
	if err != nil {
		t.Fatal(err)
	}
	text, err := encode(line{V: 2, Seal: seal, Event: body})
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Join([][]byte{data, []byte(text)}, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}
