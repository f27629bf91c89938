package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval/objects"
	"gatewright.dev/gatewright/internal/names"
)

const callID = "0123456789abcdef0123456789abcdef"

// waitingCall was raised at noon and expires ten minutes later.
func waitingCall() *v1alpha1.ToolApproval {
	a := &v1alpha1.ToolApproval{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "call-1", UID: "u", Generation: 1}}
	a.Spec.Call = v1alpha1.PendingCall{
		ID: callID, Caller: "shop/agent", RaisedAt: metav1.NewTime(noon), ExpiresAt: metav1.NewTime(noon.Add(10 * time.Minute)),
	}
	return a
}

func decide(a *v1alpha1.ToolApproval, o v1alpha1.ApprovalOutcome) {
	a.Generation++
	a.Spec.Decision = &v1alpha1.ApprovalDecision{Outcome: o, By: &v1alpha1.Approver{Type: v1alpha1.ApproverKubernetesUser, Name: "jane"}}
}

func useLease(at time.Time, d time.Duration) *coordinationv1.Lease {
	acquired, seconds := metav1.NewMicroTime(at), int32(d/time.Second)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: names.Namespace, Name: objects.UseLease(callID), UID: "l", Labels: map[string]string{names.LeaseLabel: names.LeaseUse},
		},
		Spec: coordinationv1.LeaseSpec{AcquireTime: &acquired, LeaseDurationSeconds: &seconds},
	}
}

func approvalReconciler(b *bench) reconcile.Reconciler {
	b.Registry = prometheus.NewRegistry() // a reconciler for each pass
	return reconcile.AsReconciler(b.Client, newToolApprovalReconciler(b.Client, b.parts))
}

// mirror runs a pass and gives the conditions and when the next is due.
func mirror(t *testing.T, b *bench) ([]string, time.Duration) {
	t.Helper()
	key := client.ObjectKey{Namespace: "shop", Name: "call-1"}
	result, err := approvalReconciler(b).Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		t.Fatal(err)
	}
	var a v1alpha1.ToolApproval
	if err := b.Get(t.Context(), key, &a); apierrors.IsNotFound(err) {
		return []string{"gone"}, result.RequeueAfter
	} else if err != nil {
		t.Fatal(err)
	}
	return states(a.Status.Conditions), result.RequeueAfter
}

// A decision is counted once, whoever made it and wherever, and whatever of it the manager sees first.
func TestADecisionIsCountedOnce(t *testing.T) {
	const both = `
# HELP gatewright_approvals_decided_total Calls that a person has decided, by class and what they said.
# TYPE gatewright_approvals_decided_total counter
gatewright_approvals_decided_total{class="Payments",outcome="Approved"} %d
gatewright_approvals_decided_total{class="Payments",outcome="Rejected"} %d
`
	for name, row := range map[string]struct {
		outcome            v1alpha1.ApprovalOutcome
		conditions         []metav1.Condition
		lease              *coordinationv1.Lease
		at                 time.Duration
		approved, rejected int
	}{
		"approved":               {v1alpha1.Approve, nil, nil, 3 * time.Minute, 1, 0},
		"rejected":               {v1alpha1.Reject, nil, nil, 3 * time.Minute, 0, 1},
		"undecided":              {"", nil, nil, 3 * time.Minute, -1, -1},
		"nobody decided in time": {"", nil, nil, 20 * time.Minute, -1, -1},
		"used, which a gate has mirrored before": {
			v1alpha1.Approve, []metav1.Condition{
				{Type: "Decided", Status: metav1.ConditionTrue, Reason: "Approved"}, {Type: "Consumed", Status: metav1.ConditionTrue, Reason: "Consumed"},
			}, useLease(noon.Add(2*time.Minute), 8*time.Minute), 3 * time.Minute, 1, 0,
		},
		"out of time before the manager saw it": {v1alpha1.Approve, nil, nil, 20 * time.Minute, 1, 0},
		"gone with the first pass":              {v1alpha1.Reject, nil, nil, 2 * time.Hour, 0, 1},
		"counted by the manager before": {
			v1alpha1.Approve, []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Approved"}}, nil, 3 * time.Minute, -1, -1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := waitingCall()
			a.Spec.Call.Class = "Payments"
			if row.outcome != "" {
				decide(a, row.outcome)
				at := metav1.NewTime(noon.Add(time.Minute))
				a.Spec.Decision.At = &at
			}
			a.Status.Conditions = row.conditions
			b := newBench(t, a)
			if row.lease != nil {
				if err := b.Create(t.Context(), row.lease); err != nil {
					t.Fatal(err)
				}
			}
			registry := prometheus.NewRegistry()
			b.Registry = registry
			r := reconcile.AsReconciler(b.Client, newToolApprovalReconciler(b.Client, b.parts))
			b.clock.Step(row.at)
			for range 3 {
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(a)}); err != nil {
					t.Fatal(err)
				}
			}
			want := ""
			if row.approved >= 0 {
				want = fmt.Sprintf(both, row.approved, row.rejected)
			}
			if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "gatewright_approvals_decided_total"); err != nil {
				t.Error(err)
			}
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				if h := f.GetMetric()[0].GetHistogram(); h != nil && (h.GetSampleCount() != 1 || h.GetSampleSum() != 60) {
					t.Errorf("%s: %d samples of %g s in all, want one of 60", f.GetName(), h.GetSampleCount(), h.GetSampleSum())
				}
			}
		})
	}
}

func TestApprovalIsMirrored(t *testing.T) {
	for name, row := range map[string]struct {
		change   func(*v1alpha1.ToolApproval)
		lease    *coordinationv1.Lease
		at       time.Duration // after noon
		want     []string
		wantWait time.Duration
	}{
		"it waits": {
			nil, nil, 0, []string{"Decided=Unknown Pending", "Consumed=Unknown Pending", "Expired=Unknown Pending", "Ready=Unknown Pending"}, 10 * time.Minute,
		},
		"it is approved": {
			func(a *v1alpha1.ToolApproval) { decide(a, v1alpha1.Approve) }, nil, time.Minute,
			[]string{"Decided=True Approved", "Consumed=Unknown Pending", "Expired=Unknown Pending", "Ready=True Approved"}, 9 * time.Minute,
		},
		"it is rejected": {
			func(a *v1alpha1.ToolApproval) { decide(a, v1alpha1.Reject) }, nil, time.Minute,
			[]string{"Decided=True Rejected", "Consumed=Unknown Pending", "Expired=Unknown Pending", "Ready=True Rejected"}, 9 * time.Minute,
		},
		"it is used": {
			func(a *v1alpha1.ToolApproval) { decide(a, v1alpha1.Approve) }, useLease(noon.Add(2*time.Minute), 8*time.Minute), 3 * time.Minute,
			[]string{"Decided=True Approved", "Consumed=True Consumed", "Expired=Unknown Pending", "Ready=True Approved"}, 59 * time.Minute,
		},
		"it is used, and the time is over": {
			func(a *v1alpha1.ToolApproval) { decide(a, v1alpha1.Approve) }, useLease(noon.Add(2*time.Minute), 8*time.Minute), 30 * time.Minute,
			[]string{"Decided=True Approved", "Consumed=True Consumed", "Expired=Unknown Pending", "Ready=True Approved"}, 32 * time.Minute,
		},
		"nobody decides in time": {
			nil, nil, 10 * time.Minute, []string{"Decided=Unknown Pending", "Consumed=Unknown Pending", "Expired=True Expired", "Ready=False Expired"}, time.Hour,
		},
		"it is approved and not used in time": {
			func(a *v1alpha1.ToolApproval) { decide(a, v1alpha1.Approve) }, nil, 20 * time.Minute,
			[]string{"Decided=True Approved", "Consumed=Unknown Pending", "Expired=True Expired", "Ready=True Approved"}, 50 * time.Minute,
		},
		"an hour after its end it goes": {nil, nil, 70 * time.Minute, []string{"gone"}, 0},
		"an hour after its use it goes": {
			func(a *v1alpha1.ToolApproval) { decide(a, v1alpha1.Approve) }, useLease(noon.Add(2*time.Minute), 8*time.Minute), 62 * time.Minute, []string{"gone"}, 0,
		},
		"a moment before it is there": {
			nil, nil, 70*time.Minute - time.Second,
			[]string{"Decided=Unknown Pending", "Consumed=Unknown Pending", "Expired=True Expired", "Ready=False Expired"}, time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := waitingCall()
			if row.change != nil {
				row.change(a)
			}
			b := newBench(t, a)
			if row.lease != nil {
				if err := b.Create(t.Context(), row.lease); err != nil {
					t.Fatal(err)
				}
			}
			b.clock.SetTime(noon.Add(row.at))
			got, wait := mirror(t, b)
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if wait != row.wantWait {
				t.Errorf("next pass in %s, want %s", wait, row.wantWait)
			}
			count := b.count
			b.heard.take()
			if again, _ := mirror(t, b); !cmp.Equal(again, got) || b.count != count || b.heard.take() != nil {
				t.Error("another pass wrote something")
			}
		})
	}
}

// TestApprovalFromRaisedToGone follows one approval, with the time of each transition.
func TestApprovalFromRaisedToGone(t *testing.T) {
	b := newBench(t, waitingCall())
	mirror(t, b)
	var a v1alpha1.ToolApproval
	key := client.ObjectKey{Namespace: "shop", Name: "call-1"}
	if err := b.Get(t.Context(), key, &a); err != nil {
		t.Fatal(err)
	}
	b.clock.SetTime(noon.Add(4 * time.Minute))
	decide(&a, v1alpha1.Approve)
	if err := b.Update(t.Context(), &a); err != nil {
		t.Fatal(err)
	}
	mirror(t, b)
	b.clock.SetTime(noon.Add(6 * time.Minute))
	if err := b.Create(t.Context(), useLease(noon.Add(5*time.Minute), 5*time.Minute)); err != nil {
		t.Fatal(err)
	}
	mirror(t, b)
	if err := b.Get(t.Context(), key, &a); err != nil {
		t.Fatal(err)
	}
	for of, want := range map[v1alpha1.ConditionType]time.Duration{
		v1alpha1.ConditionDecided: 4 * time.Minute, v1alpha1.ConditionReady: 4 * time.Minute, v1alpha1.ConditionConsumed: 5 * time.Minute, v1alpha1.ConditionExpired: 0,
	} {
		if at := meta.FindStatusCondition(a.Status.Conditions, string(of)).LastTransitionTime.Sub(noon); at != want {
			t.Errorf("%s changed %s after it was raised, want %s", of, at, want)
		}
	}
	want := []string{"Normal Approved SetDecided on call-1", "Normal Approved SetReady on call-1", "Normal Consumed SetConsumed on call-1"}
	if diff := cmp.Diff(want, b.heard.take()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	b.clock.SetTime(noon.Add(65 * time.Minute))
	if got, _ := mirror(t, b); got[0] != "gone" {
		t.Errorf("an hour after its use it is there: %v", got)
	}
}

func TestApprovalWhoseWriteFailsIsTriedAgain(t *testing.T) {
	for name, at := range map[string]time.Duration{"status": 0, "deletion": 2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, waitingCall())
			b.clock.SetTime(noon.Add(at))
			b.fail = func(n int) error {
				if n == 1 {
					return errors.New("not now")
				}
				return nil
			}
			if err := b.reconcile(t, approvalReconciler(b), client.ObjectKey{Namespace: "shop", Name: "call-1"}); err == nil {
				t.Fatal("no error")
			}
			if got := b.heard.take(); got != nil {
				t.Errorf("announced what was not written: %v", got)
			}
			if got, _ := mirror(t, b); len(got) == 0 {
				t.Error("nothing was written")
			}
		})
	}
}

func TestLeaseSaysWhichApprovalWasUsed(t *testing.T) {
	used, other := waitingCall(), waitingCall()
	other.Name, other.Spec.Call.ID = "call-2", "ffffffffffffffffffffffffffffffff"
	b := newBench(t, used, other)
	r := newToolApprovalReconciler(b.Client, b.parts)
	rejection := useLease(noon, time.Minute)
	rejection.Labels[names.LeaseLabel] = names.LeaseRejection
	foreign := useLease(noon, time.Minute)
	foreign.Labels = nil
	for name, row := range map[string]struct {
		lease    *coordinationv1.Lease
		want     []reconcile.Request
		wantMade bool
	}{
		"a use":                    {useLease(noon, time.Minute), []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(used)}}, true},
		"a rejection":              {rejection, nil, true},
		"a Lease of somebody else": {foreign, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, r.usedBy(t.Context(), row.lease)); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if got := isMade().Create(event.CreateEvent{Object: row.lease}); got != row.wantMade {
				t.Errorf("looked at: %t, want %t", got, row.wantMade)
			}
		})
	}
}

func TestLeasesGoWhenTheyStandForNothing(t *testing.T) {
	foreign := useLease(noon, time.Minute)
	foreign.Labels = nil
	endless := useLease(noon, time.Minute)
	endless.Spec.LeaseDurationSeconds = nil
	for name, row := range map[string]struct {
		lease    *coordinationv1.Lease
		at       time.Duration
		wantGone bool
		wantWait time.Duration
	}{
		"while it counts":                          {useLease(noon, time.Minute), 0, false, 71 * time.Minute},
		"a moment before the end of its retention": {useLease(noon, time.Minute), 71*time.Minute - time.Second, false, time.Second},
		"at the end of its retention":              {useLease(noon, time.Minute), 71 * time.Minute, true, 0},
		"one that does not say when it ends":       {endless, 1000 * time.Hour, false, 24 * time.Hour},
		"one of somebody else":                     {foreign, 1000 * time.Hour, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := row.lease.DeepCopy()
			b := newBench(t, l)
			b.clock.SetTime(noon.Add(row.at))
			r := reconcile.AsReconciler(b.Client, &LeaseReconciler{client: b.Client, clock: b.clock})
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(l)})
			if err != nil {
				t.Fatal(err)
			}
			if result.RequeueAfter != row.wantWait {
				t.Errorf("next pass in %s, want %s", result.RequeueAfter, row.wantWait)
			}
			err = b.Get(t.Context(), client.ObjectKeyFromObject(l), &coordinationv1.Lease{})
			if apierrors.IsNotFound(err) != row.wantGone {
				t.Errorf("reading it: %v, want it gone: %t", err, row.wantGone)
			}
		})
	}
}

func TestCacheKeepsNoContentOfCalls(t *testing.T) {
	a := waitingCall()
	a.Spec.Call.Arguments, a.Spec.Call.UserRequest, a.Spec.Call.Message = `{"secret":"words"}`, "words", "words"
	a.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "gate"}}
	decide(a, v1alpha1.Approve)
	want := waitingCall()
	decide(want, v1alpha1.Approve)
	got, err := withoutContent(a)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}
