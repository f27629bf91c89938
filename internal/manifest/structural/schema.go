// Package structural checks objects of our kinds against the generated custom resource definitions, in process and in
// the order of an API server: defaults, unknown fields, schema, list types, CEL rules.
package structural

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/config/crd"
	"gatewright.dev/gatewright/internal/strictjson"
)

// Schema is the compiled schema of one kind. It may be used by many goroutines.
type Schema struct {
	// Kind is the kind's name.
	Kind string
	// Namespaced says whether objects of the kind live in a namespace.
	Namespaced bool
	// Version is the apiVersion of the objects.
	Version string
	// Definition is the definition that the schema was read from, with its defaults filled in.
	Definition *apiextensions.CustomResourceDefinition

	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	// rules compiles the CEL rules at first use: a process that loads no object of the kind does not pay for it.
	rules func() *cel.Validator
}

var all = sync.OnceValues(load)

// All returns the schemas by kind. They are read once in the life of the process.
func All() (map[string]*Schema, error) { return all() }

func load() (map[string]*Schema, error) {
	files, err := fs.Glob(crd.Bases, "bases/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing definitions: %w", err)
	}
	schemas := make(map[string]*Schema, len(files))
	for _, name := range files {
		data, err := crd.Bases.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		s, err := compile(data)
		if err != nil {
			return nil, fmt.Errorf("compiling %s: %w", name, err)
		}
		schemas[s.Kind] = s
	}
	return schemas, nil
}

func compile(data []byte) (*Schema, error) {
	def, err := definition(data)
	if err != nil {
		return nil, err
	}
	props, err := apiextensions.GetSchemaForVersion(def, def.Spec.Versions[0].Name)
	if err != nil {
		return nil, fmt.Errorf("finding the schema: %w", err)
	}
	st, err := structuralschema.NewStructural(props.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("reading the structural schema: %w", err)
	}
	if err := defaulting.PruneDefaults(st); err != nil {
		return nil, fmt.Errorf("pruning defaults: %w", err)
	}
	validator, _, err := validation.NewSchemaValidator(props.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("building the validator: %w", err)
	}
	return &Schema{
		Kind:       def.Spec.Names.Kind,
		Namespaced: def.Spec.Scope == apiextensions.NamespaceScoped,
		Version:    def.Spec.Group + "/" + def.Spec.Versions[0].Name,
		Definition: def,
		structural: st,
		validator:  validator,
		rules:      sync.OnceValue(func() *cel.Validator { return cel.NewValidator(st, true, celconfig.PerCallLimit) }),
	}, nil
}

// definition reads one definition as an API server does: v1, defaults, internal form.
func definition(data []byte) (*apiextensions.CustomResourceDefinition, error) {
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &v1); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&v1)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
	var def apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &def, nil); err != nil {
		return nil, fmt.Errorf("converting: %w", err)
	}
	if len(def.Spec.Versions) != 1 {
		return nil, fmt.Errorf("one version is expected, found %d", len(def.Spec.Versions))
	}
	return &def, nil
}

// Admit fills defaults into a new object and checks it. The object is a tree of map[string]any, []any, string, bool,
// int64 and float64, and is changed. Fields that the schema does not know are errors and are removed. Metadata is
// looked at only as far as the schema does.
func (s *Schema) Admit(obj map[string]any) field.ErrorList {
	errs := s.shape(obj)
	errs = append(errs, validation.ValidateCustomResource(nil, obj, s.validator)...)
	return s.finish(errs, obj, nil)
}

// AdmitUpdate is Admit for an object that replaces old, which must have been admitted.
func (s *Schema) AdmitUpdate(obj, old map[string]any) field.ErrorList {
	errs := s.shape(obj)
	errs = append(errs, validation.ValidateCustomResourceUpdate(nil, obj, old, s.validator)...)
	return s.finish(errs, obj, old)
}

// Prune removes the fields that the schema does not know and returns their paths.
func (s *Schema) Prune(obj map[string]any) []string {
	return pruning.PruneWithOptions(obj, s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// Default fills in the defaults of the schema.
func (s *Schema) Default(obj map[string]any) { defaulting.Default(obj, s.structural) }

// shape applies defaults, refuses unknown fields and drops nulls, in the order of an API server.
func (s *Schema) shape(obj map[string]any) field.ErrorList {
	s.Default(obj)
	var errs field.ErrorList
	for _, path := range s.Prune(obj) {
		errs = append(errs, s.unknownField(path))
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, s.structural)
	return errs
}

// finish checks list types and CEL rules. Rules are written for objects of the right shape, so an object without it
// does not reach them; it is refused all the same.
func (s *Schema) finish(errs field.ErrorList, obj, old map[string]any) field.ErrorList {
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, obj)...)
	for _, err := range errs {
		if blocksRules(err.Type) {
			return errs
		}
	}
	// A nil map in an interface would be taken for an old object.
	var before any
	if old != nil {
		before = old
	}
	found, _ := s.rules().Validate(context.Background(), nil, s.structural, obj, before, celconfig.RuntimeCELCostBudget)
	return append(errs, found...)
}

func blocksRules(t field.ErrorType) bool {
	switch t {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	default:
		return false
	}
}

// unknownField names the field, and the one that was probably meant.
func (s *Schema) unknownField(path string) *field.Error {
	known := s.fieldsAt(path)
	at := field.NewPath(strings.TrimPrefix(path, "."))
	name := path[strings.LastIndexByte(path, '.')+1:]
	if meant := strictjson.Near(name, known); len(meant) > 0 {
		return field.Forbidden(at, fmt.Sprintf("unknown field: did you mean %s? It would be dropped, and what it says would not hold", meant[0]))
	}
	return field.Forbidden(at, "unknown field: remove it or correct its name; it would be dropped, and what it says would not hold")
}

// fieldsAt lists the fields that the schema knows beside the one at path, such as spec.tools[0].clas.
func (s *Schema) fieldsAt(path string) []string {
	at := s.structural
	steps := strings.Split(strings.TrimPrefix(path, "."), ".")
	for _, step := range steps[:len(steps)-1] {
		name, rest, isList := strings.Cut(step, "[")
		next, found := at.Properties[name]
		if !found {
			return nil
		}
		at = &next
		if isList {
			for range strings.Count(rest, "[") + 1 {
				if at.Items == nil {
					return nil
				}
				at = at.Items
			}
		}
	}
	names := make([]string, 0, len(at.Properties))
	for name := range at.Properties {
		names = append(names, name)
	}
	return names
}
