package gate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
)

var noon = time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)

// thing is a key of a test.
type thing struct {
	of string
	n  int
}

func (t thing) owner() string { return t.of }

// left says how many entries each caller still has.
func left(e *expiring[thing, int]) map[string]int {
	out := map[string]int{}
	for k := range e.entries {
		out[k.of]++
	}
	return out
}

func TestWhoFillsAMemoryPushesOutTheirOwn(t *testing.T) {
	type fill struct {
		of string
		n  int
	}
	for name, c := range map[string]struct {
		fills []fill
		want  map[string]int
		// oldest of the last to fill that is left
		oldest int
	}{
		"there is room for all":                            {[]fill{{"a/x", 4}, {"b/x", 6}}, map[string]int{"a/x": 4, "b/x": 6}, 0},
		"alone, the oldest go":                             {[]fill{{"a/x", 25}}, map[string]int{"a/x": 10}, 15},
		"another namespace keeps what it has":              {[]fill{{"a/x", 3}, {"b/x", 1000}}, map[string]int{"a/x": 3, "b/x": 7}, 993},
		"who has all makes room for who comes":             {[]fill{{"a/x", 10}, {"b/x", 5}}, map[string]int{"a/x": 5, "b/x": 5}, 0},
		"nobody gets more than half of two":                {[]fill{{"a/x", 10}, {"b/x", 100}}, map[string]int{"a/x": 5, "b/x": 5}, 95},
		"many callers of one namespace share":              {[]fill{{"a/x", 5}, {"b/1", 50}, {"b/2", 50}, {"b/3", 50}}, map[string]int{"a/x": 5, "b/1": 1, "b/2": 2, "b/3": 2}, 48},
		"beside one that is there already":                 {[]fill{{"a/x", 2}, {"a/y", 100}}, map[string]int{"a/x": 2, "a/y": 8}, 92},
		"a name that begins alike is another":              {[]fill{{"a/x", 5}, {"aa/x", 50}}, map[string]int{"a/x": 5, "aa/x": 5}, 45},
		"a caller without a namespace is one of its own":   {[]fill{{"", 5}, {"b/x", 50}}, map[string]int{"": 5, "b/x": 5}, 45},
		"a large namespace loses before a small one does":  {[]fill{{"a/x", 6}, {"b/1", 2}, {"b/2", 2}, {"c/x", 1}}, map[string]int{"a/x": 5, "b/1": 2, "b/2": 2, "c/x": 1}, 0},
		"of a namespace, who has most loses, not who came": {[]fill{{"a/x", 7}, {"a/y", 2}, {"b/x", 3}}, map[string]int{"a/x": 5, "a/y": 2, "b/x": 3}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExpiring[thing, int](10, time.Hour)
			last := ""
			for _, f := range c.fills {
				for i := range f.n {
					e.put(thing{f.of, i}, i, noon)
				}
				last = f.of
			}
			if diff := cmp.Diff(c.want, left(e)); diff != "" {
				t.Errorf("who has how many (-want +got):\n%s", diff)
			}
			oldest := 1 << 30
			for k := range e.entries {
				if k.of == last {
					oldest = min(oldest, k.n)
				}
			}
			if oldest != c.oldest {
				t.Errorf("the oldest that is left is %d, want %d", oldest, c.oldest)
			}
		})
	}
}

func TestEntriesEnd(t *testing.T) {
	e := newExpiring[thing, int](10, time.Minute)
	e.put(thing{"a/x", 1}, 1, noon)
	e.put(thing{"a/x", 1}, 2, noon.Add(30*time.Second)) // keeps its end
	e.put(thing{"a/x", 2}, 3, noon.Add(30*time.Second))
	for after, want := range map[time.Duration][2]bool{59 * time.Second: {true, true}, time.Minute: {false, true}, 90 * time.Second: {false, false}} {
		_, one := e.get(thing{"a/x", 1}, noon.Add(after))
		_, two := e.get(thing{"a/x", 2}, noon.Add(after))
		if got := [2]bool{one, two}; got != want {
			t.Errorf("after %v: %v, want %v", after, got, want)
		}
	}
	if v, _ := e.get(thing{"a/x", 1}, noon); v != 2 {
		t.Errorf("the value is %d, want the last that was put", v)
	}
	e.put(thing{"b/x", 1}, 4, noon.Add(2*time.Minute))
	if diff := cmp.Diff(map[string]int{"b/x": 1}, left(e)); diff != "" {
		t.Errorf("what has ended is kept (-want +got):\n%s", diff)
	}
	e.put(thing{"b/x", 1}, 5, noon.Add(4*time.Minute))
	if _, ok := e.get(thing{"b/x", 1}, noon.Add(4*time.Minute+59*time.Second)); !ok {
		t.Error("what is put again after its end does not last its time")
	}
}

// Against a plain count: whatever comes in whatever order, nobody with no more than a fair part loses anything, there are
// never more than may be, and the books agree.
func TestAMemoryIsFairWhateverComes(t *testing.T) {
	const most = 24
	random := rand.New(rand.NewPCG(7, 9))
	owners := []string{"a/1", "a/2", "a/3", "b/1", "b/2", "c/1"}
	e := newExpiring[thing, int](most, time.Hour)
	now := noon
	for i := range 20_000 {
		if i%500 == 0 {
			now = now.Add(time.Duration(random.IntN(3)) * 40 * time.Minute)
		}
		of := owners[min(random.IntN(len(owners)), random.IntN(len(owners)))]
		before := left(e)
		k := thing{of, random.IntN(200)}
		isNew, hadEnded := !e.has(k), e.size() > 0 && !now.Before(e.entries[e.byEnd.Front().Value.(thing)].until)
		e.put(k, i, now)
		after := left(e)
		if e.size() > most || e.byEnd.Len() != e.size() {
			t.Fatalf("step %d: %d entries, %d of them in order", i, e.size(), e.byEnd.Len())
		}
		if hadEnded || !isNew {
			continue
		}
		before[of]++
		for caller, n := range before {
			if after[caller] == n {
				continue
			}
			namespace, _, _ := strings.Cut(caller, "/")
			for other, m := range before {
				otherNamespace, _, _ := strings.Cut(other, "/")
				if otherNamespace == namespace && m > n || sum(before, otherNamespace) > sum(before, namespace) {
					t.Fatalf("step %d: %s lost one of %d, and there were %v", i, caller, n, before)
				}
			}
		}
		checkOwners(t, &e.owners, after)
	}
}

func sum(counts map[string]int, namespace string) (n int) {
	for caller, m := range counts {
		if strings.HasPrefix(caller, namespace+"/") {
			n += m
		}
	}
	return n
}

func checkOwners(t *testing.T, o *owners, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for i, in := range o.heap {
		if in.place != i || o.byName[in.name] != in {
			t.Fatalf("namespace %s is out of place", in.name)
		}
		for j, own := range in.callers.heap {
			if own.place != j || own.keys.Len() != own.count || in.callers.byName[own.name] != own {
				t.Fatalf("caller %s is out of place", own.name)
			}
			got[own.name] = own.count
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the counts (-want +got):\n%s", diff)
	}
}

// A tenant that is refused again and again makes the gate forget nothing of what it has refused another.
func TestATenantCannotPushOutWhatAnotherWasRefused(t *testing.T) {
	f := newFixture(t)
	f.decider.answers["matches_request"] = yes(0.1)
	denied := f.call("item.update", func(r *review.Request) { r.Arguments["note"] = "the first" })
	f.want(t, denied, review.Block, "NotAsked")
	asked := f.decider.count()
	r := f.gate.repeats
	for i := range 2 * maxRemembered {
		flood := fmt.Sprintf("elsewhere/%d", i%500)
		r.denials.put(denialKey{flood, "", fmt.Sprint(i)}, denial{}, f.clock.Now())
		r.refused.put(callKey{flood, "item.get", fmt.Sprint(i)}, true, f.clock.Now())
		r.clarifys.put(clarifyKey{caller: flood, arguments: fmt.Sprint(i)}, 1, f.clock.Now())
	}
	denied.UID = uid(f.clock.Now())
	f.want(t, denied, review.Block, "NotAsked")
	if f.decider.count() != asked {
		t.Error("the decider was asked again: another tenant has pushed out the denial")
	}
	own := slices.ContainsFunc(keysOf(r.refused), func(k callKey) bool {
		return k.caller == policy.Caller{Namespace: "shop", ServiceAccount: "agent"}.String()
	})
	if !own {
		t.Error("what the caller was refused is forgotten")
	}
	if n := r.refused.size(); n != maxRemembered {
		t.Errorf("%d are remembered, want %d", n, maxRemembered)
	}
}

func keysOf[K owned, V any](e *expiring[K, V]) (out []K) {
	for k := range e.entries {
		out = append(out, k)
	}
	return out
}

func BenchmarkPutIntoAFullMemory(b *testing.B) {
	e := newExpiring[thing, int](maxRemembered, time.Hour)
	for i := range maxRemembered {
		e.put(thing{fmt.Sprintf("n%d/a", i%1000), i}, i, noon)
	}
	i := maxRemembered
	for b.Loop() {
		i++
		e.put(thing{"flood/a", i}, i, noon)
	}
}
