package v1alpha1_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/internal/manifest/structural"
)

const digest = "00000000000000000000000000000000000000000000000000000000000000aa"

func schemas(t *testing.T) map[string]*structural.Schema {
	t.Helper()
	all, err := structural.All()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 5 {
		t.Fatalf("%d kinds, want 5", len(all))
	}
	return all
}

// object is an object of a kind with a spec in YAML.
func object(t *testing.T, kind, spec string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(spec))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, spec)
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	if tree == nil {
		tree = map[string]any{}
	}
	return map[string]any{
		"apiVersion": "gatewright.dev/v1alpha1", "kind": kind, "metadata": map[string]any{"name": "sample"}, "spec": tree,
	}
}

// openAPI is the schema as it stands in the definition.
func openAPI(s *structural.Schema) *apiextensions.JSONSchemaProps {
	return s.Definition.Spec.Validation.OpenAPIV3Schema
}

// walk visits a schema and everything below it. Items are written [] and map values {}.
func walk(path string, p *apiextensions.JSONSchemaProps, visit func(path string, p *apiextensions.JSONSchemaProps)) {
	visit(path, p)
	for name, sub := range p.Properties {
		walk(strings.TrimPrefix(path+"."+name, "."), &sub, visit)
	}
	if p.Items != nil && p.Items.Schema != nil {
		walk(path+"[]", p.Items.Schema, visit)
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		walk(path+"{}", p.AdditionalProperties.Schema, visit)
	}
}

var position = regexp.MustCompile(`\[\d+\]`)

// says tells whether an error with exactly this message stands at this path, in which a list index is written [].
func says(errs field.ErrorList, at, message string) bool {
	for _, err := range errs {
		if position.ReplaceAllString(err.Field, "[]") == at && err.Detail == message {
			return true
		}
	}
	return false
}

func ruleKey(kind, at, message string) string { return fmt.Sprintf("%s %s: %s", kind, at, message) }
