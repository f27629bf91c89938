package evaluation

import (
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// Configuration says which parts of a gate decide.
type Configuration string

// Configurations.
const (
	// RulesOnly asks no decider: what no rule objects to is allowed where a ladder would have been asked.
	RulesOnly Configuration = "rules-only"
	// DeciderOnly has no rules: the ladders alone decide, and what asks no decider is allowed.
	DeciderOnly Configuration = "decider-only"
	// Stacked is the policies as they are written: rules first, then ladders.
	Stacked Configuration = "stacked"
	// AsServed is a gate at an address, with whatever it has.
	AsServed Configuration = "as-served"
)

// Policies are what a gate is started from.
type Policies struct {
	Tool    []*v1alpha1.ToolPolicy
	Cluster []*v1alpha1.ClusterToolPolicy
	Models  []*v1alpha1.DeciderModel
}

// Variant returns the policies changed so that only the parts of the configuration decide. The given ones stay as they
// are. In each, numbers are disclosed: a report without them could say little.
func (p Policies) Variant(c Configuration) (Policies, error) {
	out := Policies{Models: p.Models}
	if c == RulesOnly { // a decider that nobody asks need not be there
		out.Models = nil
	}
	for _, one := range p.Tool {
		changed := one.DeepCopy()
		if err := vary(&changed.Spec.PolicyRules, c); err != nil {
			return Policies{}, fmt.Errorf("ToolPolicy %s/%s: %w", one.Namespace, one.Name, err)
		}
		out.Tool = append(out.Tool, changed)
	}
	for _, one := range p.Cluster {
		changed := one.DeepCopy()
		if err := vary(&changed.Spec.PolicyRules, c); err != nil {
			return Policies{}, fmt.Errorf("ClusterToolPolicy %s: %w", one.Name, err)
		}
		out.Cluster = append(out.Cluster, changed)
	}
	return out, nil
}

func vary(r *v1alpha1.PolicyRules, c Configuration) error {
	r.Disclose = v1alpha1.DiscloseFull
	switch c {
	case RulesOnly:
		withoutDecider(r)
	case DeciderOnly:
		return withoutRules(r)
	case Stacked, AsServed:
	}
	return nil
}

// letThrough ends a ladder, or what is left of it, in Allow.
func letThrough() *v1alpha1.Fallback {
	return &v1alpha1.Fallback{Outcome: v1alpha1.OutcomeAllow, Reason: "NothingObjects"}
}

func withoutDecider(r *v1alpha1.PolicyRules) {
	r.DeciderRef = nil
	asking := map[v1alpha1.ClassName]bool{}
	for i := range r.Classes {
		k := &r.Classes[i]
		if k.Decider == v1alpha1.DeciderAsk {
			asking[k.Name] = true
			k.Decider, k.Questions, k.Thresholds, k.Otherwise = v1alpha1.DeciderSkip, nil, nil, letThrough()
		}
	}
	for i := range r.Tools {
		t := &r.Tools[i]
		if t.Decider == v1alpha1.DeciderAsk || t.Decider == "" && asking[t.Class] {
			t.Decider, t.Questions, t.Thresholds, t.Otherwise = v1alpha1.DeciderSkip, nil, nil, letThrough()
		}
	}
}

// builtIn are the classes that a policy need not list.
var builtIn = []v1alpha1.ClassName{"ReadOnly", "Write", "External", "Destructive"}

func withoutRules(r *v1alpha1.PolicyRules) error {
	listed := map[v1alpha1.ClassName]bool{}
	for i := range r.Classes {
		k := &r.Classes[i]
		listed[k.Name] = true
		k.Approval = v1alpha1.ApprovalWhenUnsure
		if k.Decider != v1alpha1.DeciderAsk {
			k.Otherwise = letThrough()
		}
	}
	for _, name := range builtIn {
		if !listed[name] {
			r.Classes = append(r.Classes, v1alpha1.ClassPolicy{
				Name: name, Decider: v1alpha1.DeciderSkip, Otherwise: letThrough(), Approval: v1alpha1.ApprovalWhenUnsure,
			})
		}
	}
	asking := map[v1alpha1.ClassName]bool{}
	for i := range r.Classes {
		asking[r.Classes[i].Name] = r.Classes[i].Decider == v1alpha1.DeciderAsk
	}
	for i := range r.FactsFrom {
		r.FactsFrom[i].Presence = v1alpha1.FactOptional
	}
	for i := range r.Tools {
		t := &r.Tools[i]
		t.RequiredScopes, t.Paths, t.Hosts, t.ArgumentSources, t.Rules = nil, nil, nil, nil, nil
		if t.Decider == v1alpha1.DeciderSkip || t.Decider == "" && !asking[t.Class] {
			t.Otherwise = letThrough()
		}
		if err := relax(t); err != nil {
			return fmt.Errorf("tool %s: argumentsSchema: %w", t.Name, err)
		}
	}
	return nil
}

// relax makes a schema that every call fits and that still shows what the tool offers: enum members, constants and
// defaults are sources of arguments, and a decider is told about sources.
func relax(t *v1alpha1.ToolRule) error {
	if t.ArgumentsSchema == nil {
		return nil
	}
	var schema map[string]any
	if err := json.Unmarshal(t.ArgumentsSchema.Raw, &schema); err != nil {
		return err
	}
	whole := map[string]any{}
	for _, key := range []string{"$schema", "$id", "$defs", "definitions"} { // references are found from the top
		if v, ok := schema[key]; ok {
			whole[key] = v
			delete(schema, key)
		}
	}
	whole["anyOf"] = []any{map[string]any{}, schema}
	raw, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	t.ArgumentsSchema = &apiextensionsv1.JSON{Raw: raw}
	return nil
}

// Account is a service account that holds exactly the scopes of some cases.
type Account struct {
	Name   string
	Scopes []string
}

// accountPrefix begins the names of accounts that stand for scopes.
const accountPrefix = "evaluated-"

// Accounts returns the accounts that the cases need, and which case is sent by which: -1 is the caller itself, whose
// scopes are those that the policies grant.
func Accounts(cases []*Case) (accounts []Account, of map[string]int) {
	of = make(map[string]int, len(cases))
	place := map[string]int{}
	for _, c := range cases {
		if c.Scopes == nil {
			of[c.ID] = -1
			continue
		}
		scopes := slices.Compact(slices.Sorted(slices.Values(c.Scopes)))
		key := fmt.Sprintf("%q", scopes)
		at, ok := place[key]
		if !ok {
			at = len(accounts)
			place[key] = at
			accounts = append(accounts, Account{Name: fmt.Sprintf("%s%d", accountPrefix, at), Scopes: scopes})
		}
		of[c.ID] = at
	}
	return accounts, of
}

// Grant lets the accounts be judged as the caller is, with scopes of their own. The given policies stay as they are.
func (p Policies) Grant(namespace, caller string, accounts []Account) Policies {
	out := Policies{Models: p.Models}
	for _, one := range p.Tool {
		changed := one.DeepCopy()
		if changed.Namespace == namespace {
			changed.Spec.Subjects = alsoFor(changed.Spec.Subjects, caller, accounts)
			changed.Spec.Grants = append(changed.Spec.Grants, grants("", accounts)...)
		}
		out.Tool = append(out.Tool, changed)
	}
	for _, one := range p.Cluster {
		changed := one.DeepCopy()
		changed.Spec.Grants = append(changed.Spec.Grants, grants(v1alpha1.Namespace(namespace), accounts)...)
		out.Cluster = append(out.Cluster, changed)
	}
	return out
}

func alsoFor(subjects []v1alpha1.ObjectName, caller string, accounts []Account) []v1alpha1.ObjectName {
	if !slices.Contains(subjects, v1alpha1.ObjectName(caller)) {
		return subjects // everybody, or others
	}
	for _, a := range accounts {
		subjects = append(subjects, v1alpha1.ObjectName(a.Name))
	}
	return subjects
}

func grants(namespace v1alpha1.Namespace, accounts []Account) []v1alpha1.Grant {
	var out []v1alpha1.Grant
	for _, a := range accounts {
		if len(a.Scopes) == 0 {
			continue
		}
		g := v1alpha1.Grant{ServiceAccount: v1alpha1.ObjectName(a.Name), Namespace: namespace}
		for _, s := range a.Scopes {
			g.Scopes = append(g.Scopes, v1alpha1.Scope(s))
		}
		out = append(out, g)
	}
	return out
}
