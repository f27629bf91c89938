package objects

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
)

// normal gives a call as an object can hold it: times of whole seconds in UTC, and nothing where there is nothing. The
// time to decide gets shorter by less than a second.
func normal(c approval.Call) (approval.Call, error) {
	c.RaisedAt, c.ExpiresAt = c.RaisedAt.UTC().Truncate(time.Second), c.ExpiresAt.UTC().Truncate(time.Second)
	c, err := approval.NormalCall(c)
	if err != nil {
		return approval.Call{}, err
	}
	if c.CallKey == "" || len(c.Arguments) == 0 {
		return approval.Call{}, fmt.Errorf("%w: it has no key or no arguments", approval.ErrBadCall)
	}
	c.EarlierTurns, c.Sensitive, c.InbandClaims = orNil(c.EarlierTurns), orNil(c.Sensitive), orNil(c.InbandClaims)
	c.Reasons, c.Policies = orNil(c.Reasons), orNil(c.Policies)
	c.Approvers.Channels, c.Approvers.Attestors, c.Approvers.Issuers = orNil(c.Approvers.Channels), orNil(c.Approvers.Attestors), orNil(c.Approvers.Issuers)
	if len(c.Sources) == 0 {
		c.Sources = nil
	}
	if len(c.Answers) == 0 {
		c.Answers = nil
	}
	if len(c.Probabilities) == 0 {
		c.Probabilities = nil
	}
	return c, nil
}

func orNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// write gives the object of an approval. read gives the same approval again.
func write(a *approval.Approval) *v1alpha1.ToolApproval {
	namespace, _ := a.Call.Namespace()
	o := &v1alpha1.ToolApproval{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindToolApproval},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: a.Name},
		Spec:       v1alpha1.ToolApprovalSpec{Call: writeCall(a.ID, &a.Call), Seal: a.Seal},
	}
	if a.Decision != nil {
		o.Spec.Decision = writeDecision(a.Decision)
	}
	return o
}

func writeCall(id string, c *approval.Call) v1alpha1.PendingCall {
	return v1alpha1.PendingCall{
		ID: id, CallKey: v1alpha1.Digest(c.CallKey), Caller: c.Caller, OnBehalfOf: c.OnBehalfOf, AttestedBy: c.AttestedBy, Session: c.Session,
		Tool: c.Tool, Server: c.Server, ToolDescription: c.ToolDescription, Class: v1alpha1.ClassName(c.Class), Base: v1alpha1.Base(c.Base),
		ArgumentsDigest: v1alpha1.Digest(c.ArgumentsDigest), Arguments: string(c.Arguments), Sensitive: c.Sensitive,
		Sources:     listOf(c.Sources, func(k, v string) v1alpha1.ShownSource { return v1alpha1.ShownSource{Argument: k, Source: v} }),
		UserRequest: c.UserRequest, EarlierTurns: c.EarlierTurns, OmittedTurns: int32(c.OmittedTurns),
		UserTurnsDigest: v1alpha1.Digest(c.UserTurnsDigest), InbandClaims: c.InbandClaims, Message: c.Message, ConfirmReasons: c.ConfirmReasons,
		Reasons: each(c.Reasons, func(r approval.Reason) v1alpha1.ShownReason { return v1alpha1.ShownReason(r) }),
		Answers: listOf(c.Answers, func(k, v string) v1alpha1.ShownAnswer {
			return v1alpha1.ShownAnswer{Question: v1alpha1.QuestionName(k), Answer: v}
		}),
		Numbers: listOf(c.Probabilities, func(k string, v float64) v1alpha1.ShownNumber {
			return v1alpha1.ShownNumber{Question: v1alpha1.QuestionName(k), Number: strconv.FormatFloat(v, 'g', -1, 64)}
		}),
		PolicyDigest: v1alpha1.Digest(c.PolicyDigest), Policies: c.Policies, Fingerprint: v1alpha1.Fingerprint(c.Fingerprint),
		CaptureState: v1alpha1.CaptureState(c.CaptureState), Approvers: writeApprovers(&c.Approvers),
		RaisedAt: metav1.NewTime(c.RaisedAt), ExpiresAt: metav1.NewTime(c.ExpiresAt),
	}
}

func writeApprovers(a *approval.Approvers) v1alpha1.AllowedApprovers {
	self := v1alpha1.SelfApprovalForbid
	if a.SelfApproval {
		self = v1alpha1.SelfApprovalAllow
	}
	return v1alpha1.AllowedApprovers{
		SelfApproval: self, Issuers: a.Issuers,
		Channels: each(a.Channels, func(c approval.Channel) v1alpha1.ApprovalChannel { return v1alpha1.ApprovalChannel(c) }),
		Attestors: each(a.Attestors, func(d approval.Attestor) v1alpha1.AllowedAttestor {
			return v1alpha1.AllowedAttestor{Name: d.Name, PublicKey: string(d.Key)}
		}),
	}
}

func writeDecision(d *approval.Decision) *v1alpha1.ApprovalDecision {
	outcome := v1alpha1.Reject
	if d.Outcome == approval.Approved {
		outcome = v1alpha1.Approve
	}
	out := &v1alpha1.ApprovalDecision{
		Outcome: outcome, Message: d.Message, Evidence: d.Evidence,
		By: &v1alpha1.Approver{Type: v1alpha1.ApproverType(d.By.Type), Issuer: d.By.Issuer, Name: d.By.Name},
	}
	if !d.At.IsZero() {
		at := metav1.NewTime(d.At.UTC())
		out.At = &at
	}
	return out
}

func readCall(c *v1alpha1.PendingCall) (approval.Call, error) {
	numbers := make(map[string]float64, len(c.Numbers))
	for _, n := range c.Numbers {
		number, err := strconv.ParseFloat(n.Number, 64)
		if err != nil {
			return approval.Call{}, fmt.Errorf("%w: a number is none", approval.ErrBadCall)
		}
		numbers[string(n.Question)] = number
	}
	if len(numbers) == 0 {
		numbers = nil
	}
	return approval.Call{
		Binding: approval.Binding{
			PolicyDigest: string(c.PolicyDigest), Caller: c.Caller, Server: c.Server, Tool: c.Tool, ArgumentsDigest: string(c.ArgumentsDigest),
			OnBehalfOf: c.OnBehalfOf, Session: c.Session, UserTurnsDigest: string(c.UserTurnsDigest), AttestedBy: c.AttestedBy,
			CallKey: string(c.CallKey), ConfirmReasons: c.ConfirmReasons,
		},
		Class: string(c.Class), Base: string(c.Base), Message: c.Message, ToolDescription: c.ToolDescription, UserRequest: c.UserRequest,
		EarlierTurns: c.EarlierTurns, OmittedTurns: int(c.OmittedTurns), Arguments: json.RawMessage(c.Arguments), Sensitive: c.Sensitive,
		Sources:       mapOf(c.Sources, func(s v1alpha1.ShownSource) (string, string) { return s.Argument, s.Source }),
		Answers:       mapOf(c.Answers, func(a v1alpha1.ShownAnswer) (string, string) { return string(a.Question), a.Answer }),
		Probabilities: numbers, Reasons: each(c.Reasons, func(r v1alpha1.ShownReason) approval.Reason { return approval.Reason(r) }),
		InbandClaims: c.InbandClaims, Fingerprint: string(c.Fingerprint), Policies: c.Policies, CaptureState: string(c.CaptureState),
		Approvers: readApprovers(&c.Approvers), RaisedAt: c.RaisedAt.UTC(), ExpiresAt: c.ExpiresAt.UTC(),
	}, nil
}

func readApprovers(a *v1alpha1.AllowedApprovers) approval.Approvers {
	return approval.Approvers{
		SelfApproval: a.SelfApproval == v1alpha1.SelfApprovalAllow, Issuers: a.Issuers,
		Channels: each(a.Channels, func(c v1alpha1.ApprovalChannel) approval.Channel { return approval.Channel(c) }),
		Attestors: each(a.Attestors, func(d v1alpha1.AllowedAttestor) approval.Attestor {
			return approval.Attestor{Name: d.Name, Key: json.RawMessage(d.PublicKey)}
		}),
	}
}

// readDecision gives a decision. Whatever is not an approval is a rejection.
func readDecision(o *v1alpha1.ToolApproval) *approval.Decision {
	d := o.Spec.Decision
	if d == nil {
		return nil
	}
	out := &approval.Decision{Outcome: approval.Rejected, Message: d.Message, Evidence: d.Evidence}
	if d.Outcome == v1alpha1.Approve {
		out.Outcome = approval.Approved
	}
	if d.By != nil {
		out.By = approval.Approver{Type: approval.ApproverType(d.By.Type), Issuer: d.By.Issuer, Name: d.By.Name}
	}
	if d.At != nil {
		out.At = d.At.UTC()
	} else if c := condition(o, v1alpha1.ConditionDecided); c != nil && c.Status == metav1.ConditionTrue {
		out.At = c.LastTransitionTime.UTC()
	}
	return out
}

func each[A, B any](list []A, of func(A) B) []B {
	var out []B
	for _, a := range list {
		out = append(out, of(a))
	}
	return out
}

// listOf gives the entries of a map in the order of their keys.
func listOf[V, T any](m map[string]V, of func(string, V) T) []T {
	var out []T
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, of(k, m[k]))
	}
	return out
}

func mapOf[T any](list []T, of func(T) (key, value string)) map[string]string {
	if len(list) == 0 {
		return nil
	}
	out := make(map[string]string, len(list))
	for _, t := range list {
		k, v := of(t)
		out[k] = v
	}
	return out
}
