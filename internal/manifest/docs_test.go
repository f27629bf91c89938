package manifest

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/manifest/structural"
	engine "gatewright.dev/gatewright/internal/policy"
)

var update = flag.Bool("update", false, "write the tables of fields into docs/spec")

const docsDir = "../../docs"

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// Whoever copies an example from the documentation gets a manifest that is taken.
func TestExamplesInTheDocumentationLoad(t *testing.T) {
	kinds := map[string]bool{}
	err := filepath.WalkDir(docsDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, block := range yamlBlock.FindAllSubmatch(data, -1) {
			if !strings.Contains(string(block[1]), "apiVersion: gatewright.dev/") {
				continue
			}
			objects, err := Load(fmt.Sprintf("%s, block %d", path, i+1), block[1])
			if err != nil {
				t.Error(err)
			}
			for _, o := range objects {
				kinds[o.Kind] = true
				if errs := compiles(o); errs != nil {
					t.Errorf("%s, block %d: %v", path, i+1, errs)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ClusterToolPolicy", "DeciderEvaluation", "DeciderModel", "ToolApproval", "ToolPolicy"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(kinds))); diff != "" {
		t.Errorf("kinds that have an example (-want +got):\n%s", diff)
	}
}

// compiles says what the policy engine has against an object.
func compiles(o Object) error {
	var errs field.ErrorList
	switch p := o.Object.(type) {
	case *v1alpha1.ToolPolicy:
		_, errs = engine.Compile(p)
	case *v1alpha1.ClusterToolPolicy:
		_, errs = engine.CompileCluster(p)
	}
	return errs.ToAggregate()
}

const (
	tableStart = "<!-- fields of the schema; written by go test ./internal/manifest -run Fields -update -->\n"
	tableEnd   = "<!-- end of fields -->\n"
)

func TestFieldsInTheDocumentationAreThoseOfTheSchema(t *testing.T) {
	schemas, err := structural.All()
	if err != nil {
		t.Fatal(err)
	}
	for kind, s := range schemas {
		t.Run(kind, func(t *testing.T) {
			path := filepath.Join(docsDir, "spec", "v1alpha1", strings.ToLower(kind)+".md")
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			before, rest, foundStart := strings.Cut(string(data), tableStart)
			have, after, foundEnd := strings.Cut(rest, tableEnd)
			if !foundStart || !foundEnd {
				t.Fatalf("%s has no place for the table of fields", path)
			}
			want := fieldTable(s)
			if *update {
				if err := os.WriteFile(path, []byte(before+tableStart+want+tableEnd+after), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("%s is not up to date, run with -update (-want +got):\n%s", path, diff)
			}
		})
	}
}

// Every condition and every reason that a kind may have stands on its page.
func TestConditionsInTheDocumentation(t *testing.T) {
	tests := map[string][]v1alpha1.ConditionType{
		"ToolPolicy":        {v1alpha1.ConditionAccepted, v1alpha1.ConditionResolvedRefs, v1alpha1.ConditionProgrammed, v1alpha1.ConditionReady},
		"ClusterToolPolicy": {v1alpha1.ConditionAccepted, v1alpha1.ConditionResolvedRefs, v1alpha1.ConditionProgrammed, v1alpha1.ConditionReady},
		"DeciderModel":      {v1alpha1.ConditionAccepted, v1alpha1.ConditionVerified, v1alpha1.ConditionEvaluated, v1alpha1.ConditionAvailable, v1alpha1.ConditionReady},
		"ToolApproval":      {v1alpha1.ConditionDecided, v1alpha1.ConditionConsumed, v1alpha1.ConditionExpired},
		"DeciderEvaluation": {v1alpha1.ConditionComplete, v1alpha1.ConditionPassed},
	}
	for kind, want := range tests {
		t.Run(kind, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(docsDir, "spec", "v1alpha1", strings.ToLower(kind)+".md"))
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range want {
				if !strings.Contains(string(data), "| `"+string(c)+"` |") {
					t.Errorf("condition %s has no row", c)
				}
			}
		})
	}
}

// fieldTable lists the fields of a kind with their defaults and meanings.
func fieldTable(s *structural.Schema) string {
	var b strings.Builder
	b.WriteString("| field | value | meaning |\n| --- | --- | --- |\n")
	root := s.Definition.Spec.Validation.OpenAPIV3Schema
	for _, name := range []string{"spec", "status"} {
		p := root.Properties[name]
		fieldRows(&b, name, &p)
	}
	return b.String()
}

// foreign are fields of core types: their own documentation says what is in them.
var foreign = []string{"spec.pod.affinity", "spec.pod.tolerations", "spec.pod.resources", "status.conditions"}

func fieldRows(b *strings.Builder, path string, p *apiextensions.JSONSchemaProps) {
	if slices.Contains(foreign, path) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		sub := p.Properties[name]
		at := path + "." + name
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", at, fieldValue(p, name, &sub), cell(sub.Description))
		fieldRows(b, at, &sub)
		if sub.Items != nil && !slices.Contains(foreign, at) {
			fieldRows(b, at+"[]", sub.Items.Schema)
		}
	}
}

func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}

// fieldValue says what may stand there, whether it must, and what it is when nothing does.
func fieldValue(parent *apiextensions.JSONSchemaProps, name string, p *apiextensions.JSONSchemaProps) string {
	value := plainValue(p)
	if slices.Contains(parent.Required, name) && p.Default == nil {
		value += ", required"
	}
	if p.Default != nil {
		value += fmt.Sprintf(", default `%v`", quoted(*p.Default))
	}
	return value
}

func quoted(v any) any {
	if v == "" {
		return `""`
	}
	return v
}

func plainValue(p *apiextensions.JSONSchemaProps) string {
	switch {
	case len(p.Enum) > 0:
		return options(p.Enum)
	case p.Type == "array":
		return fmt.Sprintf("list%s of %s", bounds(p.MinItems, p.MaxItems), plainValue(p.Items.Schema))
	case p.Type == "string" && p.Format == "date-time":
		return "time"
	case p.Type == "string":
		return "text" + bounds(p.MinLength, p.MaxLength)
	case p.Type == "integer" && p.Minimum != nil && p.Maximum != nil:
		return fmt.Sprintf("number, %.0f to %.0f", *p.Minimum, *p.Maximum)
	case p.Type == "integer":
		return "number"
	case p.XIntOrString:
		return "quantity"
	default:
		return "object"
	}
}

func options(enum []apiextensions.JSON) string {
	names := make([]string, len(enum))
	for i, e := range enum {
		names[i] = fmt.Sprintf("`%v`", e)
	}
	return strings.Join(names, ", ")
}

func bounds(least, most *int64) string {
	switch {
	case most == nil:
		return ""
	case least == nil || *least == 0:
		return fmt.Sprintf(" (at most %d)", *most)
	default:
		return fmt.Sprintf(" (%d to %d)", *least, *most)
	}
}
