package v1alpha1_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// isForeign says whether a path lies in what core types bring along, or in metadata.
func isForeign(path string) bool {
	for _, prefix := range []string{"metadata", "apiVersion", "kind", "spec.pod.affinity", "spec.pod.tolerations", "spec.pod.resources", "status.conditions[]"} {
		if path == prefix || strings.HasPrefix(path, prefix+".") || strings.HasPrefix(path, prefix+"[") {
			return true
		}
	}
	return false
}

var types = map[string]func() runtime.Object{
	"ToolPolicy":        func() runtime.Object { return &v1alpha1.ToolPolicy{} },
	"ClusterToolPolicy": func() runtime.Object { return &v1alpha1.ClusterToolPolicy{} },
	"DeciderModel":      func() runtime.Object { return &v1alpha1.DeciderModel{} },
	"ToolApproval":      func() runtime.Object { return &v1alpha1.ToolApproval{} },
	"DeciderEvaluation": func() runtime.Object { return &v1alpha1.DeciderEvaluation{} },
}

// A field that the schema does not know is dropped by an API server without a word: a requiredScopes that is pruned
// opens the gate. So every field of every type is filled, pruned, and must still be there.
func TestNoFieldIsPruned(t *testing.T) {
	for kind, s := range schemas(t) {
		t.Run(kind, func(t *testing.T) {
			full := types[kind]()
			v := reflect.ValueOf(full).Elem()
			fill(t, v.FieldByName("Spec"), "spec")
			fill(t, v.FieldByName("Status"), "status")
			tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(full)
			if err != nil {
				t.Fatal(err)
			}
			delete(tree, "metadata")
			before := runtime.DeepCopyJSON(tree)
			if pruned := s.Prune(tree); len(pruned) > 0 {
				t.Errorf("pruned: %v", pruned)
			}
			if diff := cmp.Diff(before, tree); diff != "" {
				t.Errorf("changed by pruning (-before +after):\n%s", diff)
			}
			back := types[kind]()
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(tree, back, true); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(full, back); diff != "" {
				t.Errorf("lost on the way (-before +after):\n%s", diff)
			}
		})
	}
}

// The other direction: a property that no type has would be accepted and never looked at.
func TestEveryPropertyHasAField(t *testing.T) {
	for kind, s := range schemas(t) {
		t.Run(kind, func(t *testing.T) {
			fields := map[string]bool{}
			v := reflect.ValueOf(types[kind]()).Elem()
			paths(v.FieldByName("Spec").Type(), "spec", fields)
			paths(v.FieldByName("Status").Type(), "status", fields)
			properties := map[string]bool{}
			walk("", openAPI(s), func(path string, _ *apiextensions.JSONSchemaProps) {
				if path != "" && !isForeign(path) && !strings.HasSuffix(path, "]") && !strings.HasSuffix(path, "}") {
					properties[path] = true
				}
			})
			want := slices.Sorted(maps.Keys(fields))
			if len(want) < 10 {
				t.Fatalf("only %d fields were found", len(want))
			}
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(properties))); diff != "" {
				t.Errorf("fields (-) and properties (+):\n%s", diff)
			}
		})
	}
}

// leaves are the types that are one value in JSON.
var leaves = map[reflect.Type]any{
	reflect.TypeFor[metav1.Time]():          metav1.Unix(1_790_000_000, 0),
	reflect.TypeFor[resource.Quantity]():    resource.MustParse("1Gi"),
	reflect.TypeFor[apiextensionsv1.JSON](): apiextensionsv1.JSON{Raw: []byte(`{"properties":{"a":{"type":"string"}},"type":"object"}`)},
	reflect.TypeFor[intstr.IntOrString]():   intstr.FromInt32(1),
}

// fill gives every field of a value something that JSON does not leave out.
func fill(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	if leaf, found := leaves[v.Type()]; found {
		v.Set(reflect.ValueOf(leaf))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), path+"[]")
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, path)
		fill(t, value, path+"{}")
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	default:
		t.Fatalf("%s has kind %s, which no field of an API type should have", path, v.Kind())
	}
}

// paths collects the JSON paths of the fields of a type, without what core types bring along.
func paths(typ reflect.Type, path string, into map[string]bool) {
	if isForeign(path) {
		return
	}
	if !strings.HasSuffix(path, "]") && !strings.HasSuffix(path, "}") {
		into[path] = true
	}
	if _, leaf := leaves[typ]; leaf {
		return
	}
	switch typ.Kind() {
	case reflect.Pointer:
		paths(typ.Elem(), path, into)
	case reflect.Slice:
		paths(typ.Elem(), path+"[]", into)
	case reflect.Map:
		paths(typ.Elem(), path+"{}", into)
	case reflect.Struct:
		for f := range typ.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case options == "inline":
				paths(f.Type, path, into)
			case name == "":
				panic(fmt.Sprintf("field %s of %s has no JSON name", f.Name, typ))
			default:
				paths(f.Type, path+"."+name, into)
			}
		}
	}
}
