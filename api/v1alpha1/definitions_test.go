package v1alpha1_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
)

// Names and columns that people type and look at.
func TestDefinitions(t *testing.T) {
	type facts struct {
		Plural, ShortName string
		Scope             apiextensions.ResourceScope
		Columns           []string
	}
	want := map[string]facts{
		"ToolPolicy":        {"toolpolicies", "tp", apiextensions.NamespaceScoped, []string{"Mode", "Ready", "Reason", "Decider", "Age"}},
		"ClusterToolPolicy": {"clustertoolpolicies", "ctp", apiextensions.ClusterScoped, []string{"Mode", "Ready", "Reason", "Age"}},
		"DeciderModel":      {"decidermodels", "dm", apiextensions.ClusterScoped, []string{"Runtime", "Ready", "Reason", "Fingerprint", "Age"}},
		"ToolApproval":      {"toolapprovals", "ta", apiextensions.NamespaceScoped, []string{"Tool", "Caller", "Message", "Decision", "By", "Used", "Expires", "User", "Arguments", "Class", "Age"}},
		"DeciderEvaluation": {"deciderevaluations", "de", apiextensions.ClusterScoped, []string{"Decider", "Complete", "Passed", "Reason", "Age"}},
	}
	got := map[string]facts{}
	for kind, s := range schemas(t) {
		names := s.Definition.Spec.Names
		f := facts{Plural: names.Plural, Scope: s.Definition.Spec.Scope}
		if len(names.ShortNames) == 1 {
			f.ShortName = names.ShortNames[0]
		}
		for _, c := range s.Definition.Spec.AdditionalPrinterColumns {
			f.Columns = append(f.Columns, c.Name)
		}
		got[kind] = f
		if !slices.Equal(names.Categories, []string{"gatewright"}) {
			t.Errorf("%s: categories = %v, want gatewright", kind, names.Categories)
		}
		if sub := s.Definition.Spec.Subresources; sub == nil || sub.Status == nil {
			t.Errorf("%s: status is no subresource: whoever may write spec could write status", kind)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
}

// An API server checks structure, defaults and the estimated cost of CEL rules, and takes no definition that fails.
func TestAnAPIServerTakesTheDefinitions(t *testing.T) {
	for kind, s := range schemas(t) {
		t.Run(kind, func(t *testing.T) {
			def := s.Definition.DeepCopy()
			def.Status.StoredVersions = []string{def.Spec.Versions[0].Name}
			for _, err := range validation.ValidateCustomResourceDefinition(t.Context(), def) {
				t.Error(err)
			}
		})
	}
}

// The check above sees what it should see.
func TestADefinitionWithACostlyRuleIsRefused(t *testing.T) {
	def := schemas(t)["ToolPolicy"].Definition.DeepCopy()
	def.Status.StoredVersions = []string{"v1alpha1"}
	spec := def.Spec.Validation.OpenAPIV3Schema.Properties["spec"]
	spec.XValidations = append(spec.XValidations, apiextensions.ValidationRule{
		Rule:    "!has(self.tools) || self.tools.all(a, self.tools.all(b, self.tools.all(c, a.name != b.name || b.name != c.name)))",
		Message: "costs too much",
	})
	def.Spec.Validation.OpenAPIV3Schema.Properties["spec"] = spec
	if errs := validation.ValidateCustomResourceDefinition(t.Context(), def); len(errs) == 0 {
		t.Error("a rule of cubic cost was accepted")
	}
}

// Everything is bounded: the cost of rules, of a snapshot and of one object depends on it. What the core types bring
// along has the bound of a request only, and so have the values of a node selector, which no rule looks at.
func TestEveryTextAndListIsBounded(t *testing.T) {
	for kind, s := range schemas(t) {
		walk("", openAPI(s), func(path string, p *apiextensions.JSONSchemaProps) {
			if isForeign(path) || path == "spec.pod.nodeSelector{}" {
				return
			}
			switch {
			case p.Type == "array" && p.MaxItems == nil:
				t.Errorf("%s: list %s has no maxItems", kind, path)
			case p.Type == "string" && p.MaxLength == nil && len(p.Enum) == 0 && p.Format == "":
				t.Errorf("%s: text %s has no maxLength", kind, path)
			case p.Type == "integer" && (p.Minimum == nil || p.Maximum == nil) && p.Default != nil:
				t.Errorf("%s: number %s has a default and no bounds", kind, path)
			case p.Type == "array" && p.XListType == nil:
				t.Errorf("%s: list %s has no list type", kind, path)
			}
		})
	}
}
