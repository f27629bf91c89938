package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// scopeOfObject is the scope of a good object.
func scopeOfObject(object any) Scope {
	switch o := object.(type) {
	case *v1alpha1.ToolPolicy:
		return Scope{Namespaces: []string{o.Namespace}, Subjects: texts(o.Spec.Subjects)}
	case *v1alpha1.ClusterToolPolicy:
		return Scope{Namespaces: texts(o.Spec.Namespaces)}
	default:
		return Scope{Nobody: true}
	}
}

func texts[S ~string](list []S) []string {
	var out []string
	for _, s := range list {
		out = append(out, string(s))
	}
	return out
}

// scopeOfTree reads the scope of a refused object. Each part counts only if it is itself beyond doubt; a doubtful part
// means everybody: a typing error in subjects must not leave those who were meant to the remaining policies.
func scopeOfTree(kind string, tree map[string]any, errs field.ErrorList, textDoubtful bool) Scope {
	switch kind {
	case v1alpha1.KindDeciderModel, v1alpha1.KindToolApproval, v1alpha1.KindDeciderEvaluation:
		return Scope{Nobody: true}
	}
	spec, _ := tree["spec"].(map[string]any)
	var s Scope
	switch {
	case textDoubtful:
	case kind == v1alpha1.KindClusterToolPolicy:
		if !misnamed(errs) {
			s.Namespaces = names(spec["namespaces"], validation.IsDNS1123Label)
		}
	case kind == v1alpha1.KindToolPolicy:
		if namespace := namespaceOf(tree); !doubtful(errs, "metadata") && len(validation.IsDNS1123Label(namespace)) == 0 {
			s.Namespaces = []string{namespace}
		}
		if !misnamed(errs) {
			s.Subjects = names(spec["subjects"], validation.IsDNS1123Subdomain)
		}
	}
	return s
}

// misnamed says whether spec has a field with a wrong name: it may have been meant as the one that selects callers.
func misnamed(errs field.ErrorList) bool {
	for _, err := range errs {
		name, inSpec := strings.CutPrefix(err.Field, "spec.")
		if err.Field == "spec" || inSpec && err.Type == field.ErrorTypeForbidden && !strings.ContainsAny(name, ".[") {
			return true
		}
	}
	return false
}

// doubtful says whether an error is about this part of the object, its name excepted.
func doubtful(errs field.ErrorList, part string) bool {
	for _, err := range errs {
		if err.Field != "metadata.name" && (err.Field == part || strings.HasPrefix(err.Field, part+".")) {
			return true
		}
	}
	return false
}

// names gives a list of names if all of it is one.
func names(v any, check func(string) []string) []string {
	list, _ := v.([]any)
	var out []string
	for _, e := range list {
		name, ok := e.(string)
		if !ok || len(check(name)) > 0 {
			return nil
		}
		out = append(out, name)
	}
	return out
}

// namespaceOf is the namespace of a ToolPolicy, or of what may have been meant as one.
func namespaceOf(tree map[string]any) string {
	meta, _ := tree["metadata"].(map[string]any)
	switch namespace := meta["namespace"].(type) {
	case nil:
		return DefaultNamespace
	case string:
		if namespace == "" {
			return DefaultNamespace
		}
		return namespace
	default:
		return ""
	}
}

func text(tree map[string]any, path ...string) string {
	for _, step := range path[:len(path)-1] {
		tree, _ = tree[step].(map[string]any)
	}
	s, _ := tree[path[len(path)-1]].(string)
	return s
}
