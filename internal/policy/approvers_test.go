package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/testkit"
)

func TestWhoMayApprove(t *testing.T) {
	approvers := func(self v1alpha1.SelfApproval, channels ...v1alpha1.ApprovalChannel) testkit.ClassOption {
		return func(c *v1alpha1.ClassPolicy) { c.SelfApproval, c.Channels = self, channels }
	}
	key, _ := newFrontDoor(t)
	chat := testkit.Attestors(key)
	kubernetes := []v1alpha1.ApprovalChannel{v1alpha1.ChannelKubernetes}
	attested := []v1alpha1.ApprovalChannel{v1alpha1.ChannelAttested}
	door := []Attestor{{Name: "front-door-a", PublicKey: []byte(key)}}
	for name, c := range map[string]struct {
		policies []*Compiled
		want     Approvers
	}{
		"what is destructive forbids self approval":      {[]*Compiled{with(t, "p", destructive)}, Approvers{Channels: kubernetes}},
		"a write allows it":                              {[]*Compiled{with(t, "p", write)}, Approvers{SelfApproval: true, Channels: kubernetes}},
		"a class may allow it":                           {[]*Compiled{with(t, "p", destructive, testkit.WithClass(destructive, approvers("Allow")))}, Approvers{SelfApproval: true, Channels: kubernetes}},
		"a class may forbid it":                          {[]*Compiled{with(t, "p", write, testkit.WithClass(write, approvers("Forbid")))}, Approvers{Channels: kubernetes}},
		"of two policies the one that forbids wins":      {[]*Compiled{with(t, "p", write), with(t, "q", write, testkit.WithClass(write, approvers("Forbid")))}, Approvers{Channels: kubernetes}},
		"an unlisted tool is like the worst":             {[]*Compiled{compiled(t, "p", testkit.UnknownTools("Confirm"))}, Approvers{Channels: kubernetes}},
		"a policy in mode Audit has no say":              {[]*Compiled{with(t, "p", write), with(t, "q", destructive, testkit.InAudit())}, Approvers{SelfApproval: true, Channels: kubernetes}},
		"nobody where nothing is in force":               {[]*Compiled{with(t, "p", write, testkit.InAudit())}, Approvers{}},
		"a front door where its channel is open":         {[]*Compiled{with(t, "p", write, chat, testkit.WithClass(write, approvers("", attested...)))}, Approvers{SelfApproval: true, Channels: attested, Attestors: door}},
		"no front door where its channel is closed":      {[]*Compiled{with(t, "p", write, chat)}, Approvers{SelfApproval: true, Channels: kubernetes}},
		"channels that two policies do not share":        {[]*Compiled{with(t, "p", write, testkit.WithClass(write, approvers("", attested...))), with(t, "q", write)}, Approvers{SelfApproval: true}},
		"a front door that the other policy knows not":   {[]*Compiled{with(t, "p", write, chat, testkit.WithClass(write, approvers("", attested...))), with(t, "q", write, testkit.WithClass(write, approvers("", attested...)))}, Approvers{SelfApproval: true, Channels: attested}},
		"a front door that both policies know":           {[]*Compiled{with(t, "p", write, chat, testkit.WithClass(write, approvers("", attested...))), with(t, "q", write, chat, testkit.WithClass(write, approvers("", attested...)))}, Approvers{SelfApproval: true, Channels: attested, Attestors: door}},
		"channels that a cluster policy has not as well": {[]*Compiled{with(t, "p", write, testkit.WithClass(write, approvers("", attested...))), compiledCluster(t, "c", testkit.WithTool("act", write))}, Approvers{SelfApproval: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(request("act", nil), c.policies...).Approvers()
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatAToolIsSaidToDo(t *testing.T) {
	described := func(s string) testkit.ToolOption { return func(r *v1alpha1.ToolRule) { r.Description = s } }
	silent := compiled(t, "p", testkit.WithTool("act", write))
	speaking := compiled(t, "q", testkit.WithTool("act", write, described("acts")))
	if got := judge(request("act", nil), silent, speaking).ToolDescription(); got != "acts" {
		t.Errorf("description %q", got)
	}
	if got := judge(request("act", nil), silent).ToolDescription(); got != "" {
		t.Errorf("description %q of nobody", got)
	}
}
