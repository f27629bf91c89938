package objects_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approval/objects"
	"gatewright.dev/gatewright/internal/names"
)

// What one gate has raised counts at another, at one that starts later, and for as long as it was told to when the object
// is gone. What no gate has sealed counts nowhere.
func TestGatesShareWhatCallersHaveCaused(t *testing.T) {
	cluster := install(t)
	cluster.clear(t)
	s := seals(t, clock.RealClock{})
	one, two := cluster.open(t, clock.RealClock{}, s), cluster.open(t, clock.RealClock{}, s)
	foreign := cluster.open(t, clock.RealClock{}, seals(t, clock.RealClock{}))
	caller := live("").Caller
	since := time.Now().Add(-time.Hour)
	raise := func(by *objects.Store, tool string, change ...func(*approval.Call)) approval.Raise {
		t.Helper()
		a, err := by.Raise(t.Context(), live(tool, change...))
		if err != nil {
			t.Fatal(err)
		}
		return approval.Raise{ID: a.ID, At: a.Call.RaisedAt}
	}
	want := []approval.Raise{raise(one, "refund.a"), raise(one, "refund.b"), raise(two, "refund.c")}
	raise(one, "refund.d", func(c *approval.Call) { c.Caller += "-other" })
	raise(foreign, "refund.e")
	counts := func(by *objects.Store, what string, want ...approval.Raise) {
		t.Helper()
		var diff string
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
			got, err := by.Raised(t.Context(), caller, since)
			if err != nil {
				t.Fatal(err)
			}
			diff = cmp.Diff(want, got, cmpopts.EquateApproxTime(time.Microsecond), cmpopts.SortSlices(func(a, b approval.Raise) bool { return a.ID < b.ID }))
			if diff == "" {
				return
			}
		}
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
	counts(one, "the gate that has raised most", want...)
	counts(two, "the other gate", want...)
	counts(cluster.open(t, clock.RealClock{}, s), "a gate that starts", want...)
	if got, err := two.Raised(t.Context(), caller, want[2].At); err != nil || len(got) != 0 {
		t.Errorf("since the last: %v, %v", got, err)
	}

	for range 2 { // twice is once
		if err := one.KeepRaise(t.Context(), caller, want[0], want[0].At.Add(approval.RaisesKept)); err != nil {
			t.Fatal(err)
		}
	}
	counts(one, "with one that is kept", want...)
	all := dynamic.NewForConfigOrDie(cluster.manager).Resource(approvals).Namespace(shop)
	list, err := all.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if err := all.Delete(t.Context(), list.Items[i].GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	counts(cluster.open(t, clock.RealClock{}, s), "a gate that starts when the objects are gone", want[0])
	for _, l := range cluster.leases(t) {
		if l.Labels[names.LeaseLabel] != names.LeaseRaise {
			continue
		}
		if stays := objects.LeaseGoesAt(&l).Sub(want[0].At); stays < approval.RaisesKept || stays > approval.RaisesKept+3*time.Hour {
			t.Errorf("the lease stays for %s", stays)
		}
	}
}
