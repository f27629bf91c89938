package controllers

import (
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// maxMessage bounds the text of a condition in bytes: it is shown in tables and repeated in events, where a text ends at
// 1 KiB, the type and status of the condition included.
const maxMessage = 960

// condition makes a condition. A message that comes from outside is cut at maxMessage.
func condition(t v1alpha1.ConditionType, s metav1.ConditionStatus, r v1alpha1.ConditionReason, message string) metav1.Condition {
	return metav1.Condition{Type: string(t), Status: s, Reason: string(r), Message: shorten(message)}
}

func pending(t v1alpha1.ConditionType, message string) metav1.Condition {
	return condition(t, metav1.ConditionUnknown, v1alpha1.ReasonPending, message)
}

// shorten cuts a text between two characters and says that it did.
func shorten(s string) string {
	const rest = " …"
	if len(s) <= maxMessage {
		return s
	}
	s = s[:maxMessage-len(rest)]
	for s != "" {
		if last, size := utf8.DecodeLastRuneInString(s); last != utf8.RuneError || size != 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s + rest
}

// readyCondition sums up conditions in their order: False with the reason of the first that is False, else Unknown as
// long as one is, else True.
func readyCondition(of []metav1.Condition, message string) metav1.Condition {
	for _, c := range of {
		if c.Status == metav1.ConditionFalse {
			return condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ConditionReason(c.Reason), c.Message)
		}
	}
	for _, c := range of {
		if c.Status != metav1.ConditionTrue {
			return pending(v1alpha1.ConditionReady, c.Message)
		}
	}
	return condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, message)
}

// setConditions puts conditions in place for a generation. Those of other types go: one writer has them all.
func setConditions(to *[]metav1.Condition, generation int64, now metav1.Time, conditions []metav1.Condition) {
	var out []metav1.Condition
	for _, c := range conditions {
		if old := meta.FindStatusCondition(*to, c.Type); old != nil {
			out = append(out, *old)
		}
		c.ObservedGeneration = generation
		if old := meta.FindStatusCondition(out, c.Type); old == nil || old.Status != c.Status {
			c.LastTransitionTime = now
		}
		meta.SetStatusCondition(&out, c)
	}
	*to = out
}

// recordTransitions records an event for each condition that changed its status or reason. The first pass, in which a
// condition is pending, says nothing.
func recordTransitions(r events.EventRecorder, on runtime.Object, before, after []metav1.Condition) {
	for _, c := range after {
		old := meta.FindStatusCondition(before, c.Type)
		switch {
		case old == nil && c.Status == metav1.ConditionUnknown:
			continue
		case old != nil && old.Status == c.Status && old.Reason == c.Reason:
			continue
		}
		kind := corev1.EventTypeNormal
		if c.Status == metav1.ConditionFalse {
			kind = corev1.EventTypeWarning
		}
		r.Eventf(on, nil, kind, c.Reason, "Set"+c.Type, "%s", eventNote(c))
	}
}

func eventNote(c metav1.Condition) string {
	return strings.TrimSuffix(c.Type+" is "+strings.ToLower(string(c.Status))+": "+c.Message, ": ")
}
