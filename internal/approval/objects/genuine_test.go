package objects

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/lru"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
)

const genuineCaller = "shop/agent"

// unwatched is a store whose cache a test fills itself.
func unwatched(t testing.TB) *Store {
	t.Helper()
	c := clocktesting.NewFakePassiveClock(exploreNoon)
	seals, err := approval.OpenSeals("", c)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := newSeen(nil, leases{}, func(*v1alpha1.ToolApproval) {})
	if err != nil {
		t.Fatal(err)
	}
	return &Store{options: Options{Seals: seals, Clock: c}, genuine: lru.New(maxGenuine), seen: seen}
}

// holds puts an approval that the store's gate has sealed into its cache.
func (s *Store) holds(t testing.TB, n int) *v1alpha1.ToolApproval {
	t.Helper()
	c := approval.Call{
		Binding: approval.Binding{PolicyDigest: "sha256:01", Caller: genuineCaller, Tool: "orders.refund", ArgumentsDigest: fmt.Sprint("sha256:", n), ConfirmReasons: []string{"Irreversible"}},
		Class:   "Payments", Base: "Destructive", Message: "Refund 5 EUR?", Arguments: []byte(`{"amount":5}`), UserRequest: strings.Repeat("Give it back. ", 40),
		RaisedAt: exploreNoon, ExpiresAt: exploreNoon.Add(time.Hour),
	}
	c.CallKey = approval.CallKey(c.Caller, c.Server, c.Tool, c.ArgumentsDigest, "", "", "")
	c, err := normal(c)
	if err != nil {
		t.Fatal(err)
	}
	a := approval.Approval{Name: c.NamePrefix() + "1", ID: fmt.Sprintf("%032d", n), Call: c, State: approval.Pending}
	if a.Seal, err = s.options.Seals.Seal(&a); err != nil {
		t.Fatal(err)
	}
	o := write(&a)
	o.UID, o.ResourceVersion = types.UID(strconv.Itoa(n)), "1"
	s.has(t, o)
	return o
}

func (s *Store) has(t testing.TB, o *v1alpha1.ToolApproval) {
	t.Helper()
	if err := s.seen.approvals.GetStore().Add(o); err != nil {
		t.Fatal(err)
	}
}

// That an object was sealed once says nothing about what somebody has made of it since, or about another that looks like it.
func TestOnlyWhatIsSealedAsItIsNowCounts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *v1alpha1.ToolApproval)
		want   int
	}{
		"as it was":                         {func(*v1alpha1.ToolApproval) {}, 1},
		"written since, with the same call": {func(o *v1alpha1.ToolApproval) { o.ResourceVersion = "2" }, 1},
		"with another call since":           {func(o *v1alpha1.ToolApproval) { o.ResourceVersion, o.Spec.Call.Tool = "2", "orders.list" }, 0},
		"with another time since": {func(o *v1alpha1.ToolApproval) {
			o.ResourceVersion = "2"
			o.Spec.Call.RaisedAt.Time = exploreNoon.Add(time.Second)
		}, 0},
		"deleted, and forged under its name": {func(o *v1alpha1.ToolApproval) { o.UID, o.Spec.Seal = "forged", "forged" }, 0},
		"forged, and nobody says which it is": {func(o *v1alpha1.ToolApproval) {
			o.UID, o.ResourceVersion, o.Spec.Call.Message = "", "", "Refund 500 EUR?"
		}, 0},
		"in another namespace": {func(o *v1alpha1.ToolApproval) { o.ResourceVersion, o.Namespace = "2", "elsewhere" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := unwatched(t)
			o := s.holds(t, 7)
			if got := s.raisedBy(genuineCaller, exploreNoon.Add(-time.Hour)); len(got) != 1 {
				t.Fatalf("%d count, want the one that is sealed", len(got))
			}
			changed := o.DeepCopy()
			c.change(changed)
			if err := s.seen.approvals.GetStore().Replace([]any{changed}, ""); err != nil {
				t.Fatal(err)
			}
			for range 2 { // what was looked at before counts no more than at first
				if got := s.raisedBy(genuineCaller, exploreNoon.Add(-time.Hour)); len(got) != c.want {
					t.Errorf("%d count, want %d", len(got), c.want)
				}
			}
		})
	}
}

func TestACallerIsCountedByItsOwn(t *testing.T) {
	s := unwatched(t)
	s.holds(t, 1)
	other := s.holds(t, 2).DeepCopy()
	other.Name, other.UID, other.Spec.Call.Caller = "other", "another", "shop/another"
	s.has(t, other)
	for caller, want := range map[string]int{genuineCaller: 2, "shop/another": 0, "shop/nobody": 0} {
		if got := s.raisedBy(caller, exploreNoon.Add(-time.Hour)); len(got) != want {
			t.Errorf("%s: %d count, want %d", caller, len(got), want)
		}
	}
	if got := s.raisedBy(genuineCaller, exploreNoon); len(got) != 0 {
		t.Errorf("since they were raised: %v", got)
	}
}

// What one confirmation costs whose caller has caused a thousand, as many as a budget can allow. Anew: when nothing of them
// was looked at before.
func BenchmarkAThousandRaised(b *testing.B) {
	s := unwatched(b)
	for i := range 1000 {
		s.holds(b, i)
	}
	for _, isKnown := range []bool{false, true} {
		b.Run(map[bool]string{false: "anew", true: "known"}[isKnown], func(b *testing.B) {
			for b.Loop() {
				if !isKnown {
					s.genuine = lru.New(maxGenuine)
				}
				if n := len(s.raisedBy(genuineCaller, exploreNoon.Add(-time.Hour))); n != 1000 {
					b.Fatalf("%d count", n)
				}
			}
		})
	}
}
