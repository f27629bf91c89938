package webhook

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
)

// AgentBy names the policy that makes a service account an agent: a ToolPolicy that selects it, or a ClusterToolPolicy
// that lists its namespace or grants it something. A ClusterToolPolicy for all namespaces is a floor for agents and makes
// none: otherwise the controllers of the cluster and those who deploy to it were agents too. Empty: it is none.
func AgentBy(caller policy.Caller, policies []v1alpha1.ToolPolicy, floors []v1alpha1.ClusterToolPolicy) string {
	for i := range policies {
		p := &policies[i]
		selects := len(p.Spec.Subjects) == 0 || slices.Contains(p.Spec.Subjects, v1alpha1.ObjectName(caller.ServiceAccount))
		if p.Namespace == caller.Namespace && selects {
			return policy.PolicyID{Kind: v1alpha1.KindToolPolicy, Namespace: p.Namespace, Name: p.Name}.String()
		}
	}
	for i := range floors {
		p := &floors[i]
		isNamed := slices.ContainsFunc(p.Spec.Grants, func(g v1alpha1.Grant) bool {
			return string(g.Namespace) == caller.Namespace && string(g.ServiceAccount) == caller.ServiceAccount
		})
		if isNamed || slices.Contains(p.Spec.Namespaces, v1alpha1.Namespace(caller.Namespace)) {
			return policy.PolicyID{Kind: v1alpha1.KindClusterToolPolicy, Name: p.Name}.String()
		}
	}
	return ""
}

// protector refuses that an agent writes Gatewright's kinds: it would decide about itself. What RBAC gives it does not
// matter, since a role that was meant for something else may cover these kinds with a star.
type protector struct {
	reader client.Reader
	// exempt are the service accounts of the installation itself, as user names.
	exempt []string
}

// Handle implements admission.Handler. What cannot be looked up is refused.
func (p *protector) Handle(ctx context.Context, req admission.Request) admission.Response {
	user := req.UserInfo.Username
	if !strings.HasPrefix(user, serviceaccount.ServiceAccountUsernamePrefix) || slices.Contains(p.exempt, user) {
		return admission.Allowed("")
	}
	namespace, name, err := serviceaccount.SplitUsername(user)
	if err != nil {
		return admission.Denied("the user name of this service account cannot be read, so it is not known whether it is an agent: " + err.Error())
	}
	var policies v1alpha1.ToolPolicyList
	if err := p.reader.List(ctx, &policies, client.InNamespace(namespace)); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("listing tool policies: %w", err))
	}
	var floors v1alpha1.ClusterToolPolicyList
	if err := p.reader.List(ctx, &floors); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("listing cluster tool policies: %w", err))
	}
	by := AgentBy(policy.Caller{Namespace: namespace, ServiceAccount: name}, policies.Items, floors.Items)
	if by == "" {
		return admission.Allowed("")
	}
	return admission.Denied(fmt.Sprintf("SelfProtection: %s/%s is an agent by %s, and an agent may not %s %s: let a person or a service account that no policy selects do it",
		namespace, name, by, strings.ToLower(string(req.Operation)), req.Resource.Resource))
}
