package objects_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approval/objects"
)

func TestTheStateOfAnObject(t *testing.T) {
	at := func(d time.Duration) *time.Time { out := noon.Add(d); return &out }
	decided := func(o v1alpha1.ApprovalOutcome) *v1alpha1.ApprovalDecision {
		decidedAt := metav1.NewTime(noon.Add(time.Minute))
		return &v1alpha1.ApprovalDecision{Outcome: o, By: &v1alpha1.Approver{Type: v1alpha1.ApproverKubernetesUser, Name: "kim"}, At: &decidedAt}
	}
	ended := func(c v1alpha1.ConditionType, d time.Duration) []metav1.Condition {
		return []metav1.Condition{{Type: string(c), Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(d))}}
	}
	unknown := []metav1.Condition{{Type: "Consumed", Status: metav1.ConditionUnknown}, {Type: "Expired", Status: metav1.ConditionFalse}}
	for name, test := range map[string]struct {
		decision   *v1alpha1.ApprovalDecision
		conditions []metav1.Condition
		used       *time.Time
		now        time.Duration
		want       approval.State
		ended      *time.Time
		true       []string
	}{
		"undecided":                                  {now: time.Minute, want: approval.Pending},
		"with a status that says nothing":            {conditions: unknown, now: time.Minute, want: approval.Pending},
		"approved":                                   {decision: decided(v1alpha1.Approve), now: time.Minute, want: approval.Approved, true: []string{"Decided Approved"}},
		"rejected":                                   {decision: decided(v1alpha1.Reject), now: time.Minute, want: approval.Rejected, true: []string{"Decided Rejected"}},
		"with an outcome of another version":         {decision: decided("Maybe"), now: time.Minute, want: approval.Rejected, true: []string{"Decided Rejected"}},
		"in its last moment":                         {decision: decided(v1alpha1.Approve), now: 10*time.Minute - 1, want: approval.Approved, true: []string{"Decided Approved"}},
		"out of time undecided":                      {now: 10 * time.Minute, want: approval.Expired, ended: at(10 * time.Minute), true: []string{"Expired Expired"}},
		"out of time approved":                       {decision: decided(v1alpha1.Approve), now: time.Hour, want: approval.Expired, ended: at(10 * time.Minute), true: []string{"Decided Approved", "Expired Expired"}},
		"out of time rejected":                       {decision: decided(v1alpha1.Reject), now: time.Hour, want: approval.Expired, ended: at(10 * time.Minute), true: []string{"Decided Rejected", "Expired Expired"}},
		"used":                                       {decision: decided(v1alpha1.Approve), used: at(2 * time.Minute), now: 3 * time.Minute, want: approval.Consumed, ended: at(2 * time.Minute), true: []string{"Decided Approved", "Consumed Consumed"}},
		"used and out of time":                       {decision: decided(v1alpha1.Approve), used: at(2 * time.Minute), now: time.Hour, want: approval.Consumed, ended: at(2 * time.Minute), true: []string{"Decided Approved", "Consumed Consumed"}},
		"used by its status, without a lease":        {decision: decided(v1alpha1.Approve), conditions: ended("Consumed", time.Minute), now: 2 * time.Minute, want: approval.Consumed, ended: at(time.Minute), true: []string{"Decided Approved", "Consumed Consumed"}},
		"used though its decision was taken away":    {used: at(2 * time.Minute), now: 3 * time.Minute, want: approval.Consumed, ended: at(2 * time.Minute), true: []string{"Consumed Consumed"}},
		"expired by its status, on a clock set back": {decision: decided(v1alpha1.Approve), conditions: ended("Expired", 10*time.Minute), now: time.Minute, want: approval.Expired, ended: at(10 * time.Minute), true: []string{"Decided Approved", "Expired Expired"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1alpha1.ToolApproval{ObjectMeta: metav1.ObjectMeta{Generation: 4}}
			o.Spec.Call.RaisedAt, o.Spec.Call.ExpiresAt = metav1.NewTime(noon), metav1.NewTime(noon.Add(10*time.Minute))
			o.Spec.Decision, o.Status.Conditions = test.decision, test.conditions
			now := noon.Add(test.now)
			if got := objects.State(o, test.used, now); got != test.want {
				t.Errorf("State = %s, want %s", got, test.want)
			}
			if diff := cmp.Diff(test.ended, objects.EndedAt(o, test.used, now)); diff != "" {
				t.Errorf("EndedAt (-want +got):\n%s", diff)
			}
			if test.ended != nil {
				gone := test.ended.Add(approval.Retention)
				if objects.IsForgotten(o, test.used, gone.Add(-1)) && test.now < time.Hour || !objects.IsForgotten(o, test.used, gone) {
					t.Error("it is not forgotten an hour after its end")
				}
			} else if objects.IsForgotten(o, test.used, now) {
				t.Error("it stands and is forgotten")
			}
			var is, types []string
			for _, c := range objects.Conditions(o, test.used, now) {
				types = append(types, c.Type)
				if c.Status == metav1.ConditionTrue {
					is = append(is, c.Type+" "+c.Reason)
				} else if c.Status != metav1.ConditionUnknown || c.Reason != "Pending" {
					t.Errorf("%s is %s %s", c.Type, c.Status, c.Reason)
				}
				if c.ObservedGeneration != 4 || c.Message == "" || c.LastTransitionTime.IsZero() {
					t.Errorf("%s is not whole: %+v", c.Type, c)
				}
			}
			if diff := cmp.Diff(test.true, is); diff != "" {
				t.Errorf("conditions that hold (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"Decided", "Consumed", "Expired"}, types); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}
