package policy

import (
	"bytes"
	"encoding/json"
	"slices"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// Approvers says who may approve a call: only those whom every policy in force accepts.
type Approvers struct {
	// SelfApproval lets the user on whose behalf the call is made approve it.
	SelfApproval bool
	// Channels that an approval may come through. Empty: none does, since the policies name no channel in common.
	Channels []v1alpha1.ApprovalChannel
	// Attestors are the front doors whose users may approve, where ChannelAttested is open.
	Attestors []Attestor
}

// Attestor is a front door with its Ed25519 public key, as a JSON Web Key.
type Attestor struct {
	Name      string
	PublicKey []byte
}

// Approvers returns who may approve this call.
func (j *Judgement) Approvers() Approvers {
	out := Approvers{SelfApproval: true, Channels: []v1alpha1.ApprovalChannel{v1alpha1.ChannelKubernetes, v1alpha1.ChannelOIDC, v1alpha1.ChannelAttested}}
	first := true
	for i := range j.evaluations {
		e := &j.evaluations[i]
		if !e.enforced || e.policy.Invalid {
			continue
		}
		selfApproval, channels := e.class.approvers()
		out.SelfApproval = out.SelfApproval && selfApproval
		out.Channels = slices.DeleteFunc(out.Channels, func(c v1alpha1.ApprovalChannel) bool { return !slices.Contains(channels, c) })
		own := e.policy.publicAttestors()
		if first {
			out.Attestors = own
		} else {
			out.Attestors = slices.DeleteFunc(out.Attestors, func(a Attestor) bool {
				return !slices.ContainsFunc(own, func(o Attestor) bool { return bytes.Equal(o.PublicKey, a.PublicKey) })
			})
		}
		first = false
	}
	if first {
		return Approvers{}
	}
	if !slices.Contains(out.Channels, v1alpha1.ChannelAttested) {
		out.Attestors = nil
	}
	return out
}

// approvers of a class. A tool without a class, which nobody lists, is like the worst.
func (k *class) approvers() (selfApproval bool, channels []v1alpha1.ApprovalChannel) {
	if k == nil {
		return false, defaultChannels
	}
	return k.selfApproval, k.channels
}

var defaultChannels = []v1alpha1.ApprovalChannel{v1alpha1.ChannelKubernetes}

// setApprovers takes over who may approve, with the defaults of the base.
func (k *class) setApprovers(p *v1alpha1.ClassPolicy) {
	k.selfApproval = p.SelfApproval == v1alpha1.SelfApprovalAllow || p.SelfApproval == "" && k.base != v1alpha1.BaseDestructive
	k.channels = p.Channels
	if len(k.channels) == 0 {
		k.channels = defaultChannels
	}
}

func (p *Compiled) publicAttestors() []Attestor {
	out := make([]Attestor, 0, len(p.attestors))
	for i := range p.attestors {
		key, err := json.Marshal(p.attestors[i].key)
		if err != nil {
			continue // cannot be: it was read from JSON. One that cannot be named attests nothing
		}
		out = append(out, Attestor{Name: p.attestors[i].name, PublicKey: key})
	}
	return out
}

// AttestedBy names the front door that has signed what Attested returns; empty if none has.
func (j *Judgement) AttestedBy() string {
	for i := range j.evaluations {
		if e := &j.evaluations[i]; e.enforced && e.context != nil {
			return e.context.By
		}
	}
	return ""
}

// ToolDescription is what the first policy in force that describes the tool says that it does.
func (j *Judgement) ToolDescription() string {
	for i := range j.evaluations {
		if e := &j.evaluations[i]; e.enforced && e.tool != nil && e.tool.rule.Description != "" {
			return e.tool.rule.Description
		}
	}
	return ""
}
