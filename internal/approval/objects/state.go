package objects

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
)

// errForeign says that an object is not where the gate has put it.
var errForeign = errors.New("approval is not in the namespace of its caller")

// State says what has become of an approval: used is when its Lease was made, nil if there is none. What its status says
// has ended stays ended, whatever the time.
func State(o *v1alpha1.ToolApproval, used *time.Time, now time.Time) approval.State {
	isTrue := func(t v1alpha1.ConditionType) bool {
		c := condition(o, t)
		return c != nil && c.Status == metav1.ConditionTrue
	}
	switch {
	case used != nil, isTrue(v1alpha1.ConditionConsumed):
		return approval.Consumed
	case isTrue(v1alpha1.ConditionExpired), !now.Before(o.Spec.Call.ExpiresAt.Time):
		return approval.Expired
	case o.Spec.Decision == nil:
		return approval.Pending
	case o.Spec.Decision.Outcome == v1alpha1.Approve:
		return approval.Approved
	}
	return approval.Rejected
}

// EndedAt says when an approval was used or expired, and nothing for one that stands.
func EndedAt(o *v1alpha1.ToolApproval, used *time.Time, now time.Time) *time.Time {
	switch State(o, used, now) {
	case approval.Consumed:
		if used != nil {
			return used
		}
		at := condition(o, v1alpha1.ConditionConsumed).LastTransitionTime.UTC()
		return &at
	case approval.Expired:
		at := o.Spec.Call.ExpiresAt.UTC()
		return &at
	case approval.Pending, approval.Approved, approval.Rejected:
	}
	return nil
}

// IsForgotten says whether an approval ended so long ago that its object goes.
func IsForgotten(o *v1alpha1.ToolApproval, used *time.Time, now time.Time) bool {
	ended := EndedAt(o, used, now)
	return ended != nil && !now.Before(ended.Add(approval.Retention))
}

// Conditions gives the conditions of an approval. Their transition times are those of what happened.
func Conditions(o *v1alpha1.ToolApproval, used *time.Time, now time.Time) []metav1.Condition {
	state := State(o, used, now)
	out := []metav1.Condition{
		pending(v1alpha1.ConditionDecided, o), pending(v1alpha1.ConditionConsumed, o), pending(v1alpha1.ConditionExpired, o),
	}
	settle := func(c *metav1.Condition, reason v1alpha1.ConditionReason, message string, at time.Time) {
		c.Status, c.Reason, c.Message, c.LastTransitionTime = metav1.ConditionTrue, string(reason), message, metav1.NewTime(at)
	}
	if d := readDecision(o); d != nil {
		at, reason := d.At, v1alpha1.ReasonRejected
		if at.IsZero() {
			at = now
		}
		if d.Outcome == approval.Approved {
			reason = v1alpha1.ReasonApproved
		}
		settle(&out[0], reason, "decided by "+d.By.String(), at)
	}
	if ended := EndedAt(o, used, now); ended != nil {
		if state == approval.Consumed {
			settle(&out[1], v1alpha1.ReasonConsumed, "the call was let through", *ended)
		} else {
			settle(&out[2], v1alpha1.ReasonExpired, "the time to decide or to use it is over", *ended)
		}
	}
	return out
}

func pending(t v1alpha1.ConditionType, o *v1alpha1.ToolApproval) metav1.Condition {
	return metav1.Condition{
		Type: string(t), Status: metav1.ConditionUnknown, Reason: string(v1alpha1.ReasonPending), Message: "not yet",
		ObservedGeneration: o.Generation, LastTransitionTime: o.Spec.Call.RaisedAt,
	}
}

func condition(o *v1alpha1.ToolApproval, t v1alpha1.ConditionType) *metav1.Condition {
	return meta.FindStatusCondition(o.Status.Conditions, string(t))
}

// read gives the approval that an object stands for. Whether it bears a seal is not looked at.
func read(o *v1alpha1.ToolApproval, used *time.Time, now time.Time) (approval.Approval, error) {
	c, err := readCall(&o.Spec.Call)
	if err != nil {
		return approval.Approval{}, err
	}
	if namespace, ok := c.Namespace(); !ok || namespace != o.Namespace {
		return approval.Approval{}, errForeign
	}
	return approval.Approval{
		Name: o.Name, ID: o.Spec.Call.ID, Call: c, Seal: o.Spec.Seal, State: State(o, used, now),
		Decision: readDecision(o), EndedAt: EndedAt(o, used, now),
	}, nil
}

// stands says whether a state still stands for its call.
func stands(s approval.State) bool {
	return s == approval.Pending || s == approval.Approved || s == approval.Rejected
}
