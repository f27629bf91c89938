package testkit

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// Policy is the part of a ToolPolicy or ClusterToolPolicy that an option changes. What a kind does not have is discarded.
type Policy struct {
	*v1alpha1.PolicyRules
	Meta         *metav1.ObjectMeta
	Subjects     []v1alpha1.ObjectName
	Namespaces   []v1alpha1.Namespace
	UnknownTools v1alpha1.UnknownTools
	MinimumMode  v1alpha1.PolicyMode
}

// Option changes one thing of a policy.
type Option func(*Policy)

// ToolPolicy builds a policy of Namespace with the defaults of the API and no tools.
func ToolPolicy(name string, options ...Option) *v1alpha1.ToolPolicy {
	p := &v1alpha1.ToolPolicy{}
	p.APIVersion, p.Kind = v1alpha1.GroupVersion.String(), v1alpha1.KindToolPolicy
	p.Name, p.Namespace, p.Generation = name, Namespace, 1
	parts := defaults(&p.Spec.PolicyRules, &p.ObjectMeta)
	parts.UnknownTools = v1alpha1.UnknownToolsBlock
	for _, o := range options {
		o(&parts)
	}
	p.Spec.Subjects, p.Spec.UnknownTools = parts.Subjects, parts.UnknownTools
	return p
}

// ClusterToolPolicy builds a cluster policy with the defaults of the API and no tools.
func ClusterToolPolicy(name string, options ...Option) *v1alpha1.ClusterToolPolicy {
	p := &v1alpha1.ClusterToolPolicy{}
	p.APIVersion, p.Kind = v1alpha1.GroupVersion.String(), v1alpha1.KindClusterToolPolicy
	p.Name, p.Generation = name, 1
	parts := defaults(&p.Spec.PolicyRules, &p.ObjectMeta)
	parts.UnknownTools, parts.MinimumMode = v1alpha1.UnknownToolsDefer, v1alpha1.ModeAudit
	for _, o := range options {
		o(&parts)
	}
	p.Spec.Namespaces, p.Spec.UnknownTools, p.Spec.MinimumMode = parts.Namespaces, parts.UnknownTools, parts.MinimumMode
	return p
}

func defaults(r *v1alpha1.PolicyRules, meta *metav1.ObjectMeta) Policy {
	r.Mode, r.ContextTrust = v1alpha1.ModeEnforce, v1alpha1.TrustCaller
	r.TimeoutMilliseconds, r.ClarifyLimit = 2000, 2
	return Policy{PolicyRules: r, Meta: meta}
}

// InNamespace moves a ToolPolicy.
func InNamespace(namespace string) Option { return func(p *Policy) { p.Meta.Namespace = namespace } }

// ForSubjects limits a ToolPolicy to service accounts.
func ForSubjects(names ...v1alpha1.ObjectName) Option {
	return func(p *Policy) { p.Subjects = names }
}

// ForNamespaces limits a ClusterToolPolicy to namespaces.
func ForNamespaces(names ...v1alpha1.Namespace) Option {
	return func(p *Policy) { p.Namespaces = names }
}

// InAudit sets mode Audit.
func InAudit() Option { return func(p *Policy) { p.Mode = v1alpha1.ModeAudit } }

// MinimumMode sets the minimumMode of a ClusterToolPolicy.
func MinimumMode(m v1alpha1.PolicyMode) Option { return func(p *Policy) { p.MinimumMode = m } }

// UnknownTools says what happens to tools that the policy does not list.
func UnknownTools(u v1alpha1.UnknownTools) Option { return func(p *Policy) { p.UnknownTools = u } }

// Attested trusts only what one of the keys has signed, given as JSON Web Keys.
func Attested(keys ...string) Option {
	return func(p *Policy) { p.ContextTrust = v1alpha1.TrustAttested; Attestors(keys...)(p) }
}

// Attestors names front doors by their keys, without asking for attested context.
func Attestors(keys ...string) Option {
	return func(p *Policy) {
		for i, k := range keys {
			name := v1alpha1.ObjectName("front-door-" + string(rune('a'+i)))
			p.Attestors = append(p.Attestors, v1alpha1.Attestor{Name: name, PublicKey: k})
		}
	}
}

// WithDecider refers to a decider, pinned to Fingerprint.
func WithDecider(name v1alpha1.ObjectName) Option { return WithUnpinnedDecider(name, Fingerprint) }

// WithUnpinnedDecider refers to a decider with any fingerprint, also none.
func WithUnpinnedDecider(name v1alpha1.ObjectName, fingerprint v1alpha1.Fingerprint) Option {
	return func(p *Policy) { p.DeciderRef = &v1alpha1.DeciderReference{Name: name, Fingerprint: fingerprint} }
}

// WithQuestion declares a question.
func WithQuestion(q v1alpha1.Question) Option {
	return func(p *Policy) { p.Questions = append(p.Questions, q) }
}

// WithFact lists a fact.
func WithFact(name string, from v1alpha1.ContextTrust, presence v1alpha1.FactPresence) Option {
	return func(p *Policy) {
		p.FactsFrom = append(p.FactsFrom, v1alpha1.FactSource{Name: name, From: from, Presence: presence})
	}
}

// Grant gives scopes to ServiceAccount; in a ClusterToolPolicy to that of Namespace.
func Grant(scopes ...v1alpha1.Scope) Option {
	return func(p *Policy) {
		g := v1alpha1.Grant{ServiceAccount: ServiceAccount, Scopes: scopes}
		if p.Meta.Namespace == "" {
			g.Namespace = Namespace
		}
		p.Grants = append(p.Grants, g)
	}
}

// GrantUntil gives scopes that end.
func GrantUntil(until time.Time, scopes ...v1alpha1.Scope) Option {
	return func(p *Policy) {
		Grant(scopes...)(p)
		end := metav1.NewTime(until)
		p.Grants[len(p.Grants)-1].Until = &end
	}
}

// WithRules changes anything that both kinds have.
func WithRules(change func(*v1alpha1.PolicyRules)) Option {
	return func(p *Policy) { change(p.PolicyRules) }
}
