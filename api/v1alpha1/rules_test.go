package v1alpha1_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// ruleRow is one validation rule of the schema with specs that it accepts and specs that it refuses.
type ruleRow struct {
	kinds   []string
	at      string
	message string
	// old is the spec before, for rules about changes.
	old  string
	good []string
	bad  []string
}

var (
	policies  = []string{v1alpha1.KindToolPolicy, v1alpha1.KindClusterToolPolicy}
	models    = []string{v1alpha1.KindDeciderModel}
	approvals = []string{v1alpha1.KindToolApproval}
	evals     = []string{v1alpha1.KindDeciderEvaluation}
)

func TestEveryRuleAcceptsAndRefuses(t *testing.T) {
	all := schemas(t)
	for name, row := range ruleRows() {
		for _, kind := range row.kinds {
			t.Run(name+" in "+kind, func(t *testing.T) {
				for _, spec := range row.good {
					if errs := row.admit(t, all, kind, spec); len(errs) > 0 {
						t.Errorf("refused: %v\n%s", errs, spec)
					}
				}
				for _, spec := range row.bad {
					if errs := row.admit(t, all, kind, spec); !says(errs, row.at, row.message) {
						t.Errorf("errors = %v\nwant %s: %s\n%s", errs, row.at, row.message, spec)
					}
				}
				if len(row.good) == 0 || len(row.bad) == 0 {
					t.Error("the row needs a spec that passes and one that fails")
				}
			})
		}
	}
}

func TestEveryRuleOfTheSchemaHasARow(t *testing.T) {
	var want, got []string
	for kind, s := range schemas(t) {
		walk("", openAPI(s), func(path string, p *apiextensions.JSONSchemaProps) {
			for _, rule := range p.XValidations {
				want = append(want, ruleKey(kind, path, rule.Message))
			}
		})
	}
	for _, row := range ruleRows() {
		for _, kind := range row.kinds {
			got = append(got, ruleKey(kind, row.at, row.message))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("rules of the schema (-) and of the table (+):\n%s", diff)
	}
}
