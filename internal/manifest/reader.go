package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/manifest/structural"
)

// reader takes the objects of one document into a set.
type reader struct {
	set      *Set
	file     string
	document int
}

// take sorts out what a document is: nothing, a list, an object of ours, or another's. textErr is what was wrong with
// the text; the tree is then a guess and is never good.
func (r reader) take(tree any, textErr error, mayBeList bool) {
	object, isObject := tree.(map[string]any)
	if !isObject {
		if tree == nil && textErr == nil {
			return
		}
		r.refuse(nil, nil, errors.Join(textErr, notAnObject(tree, textErr)))
		return
	}
	kind, group := text(object, "kind"), group(object)
	switch {
	case mayBeList && strings.HasSuffix(kind, "List") && isList(object):
		r.takeList(object, textErr)
	case group != v1alpha1.GroupVersion.Group && textErr == nil && !isOurs(kind) && kind != "" && text(object, "apiVersion") != "":
		r.set.ignore(r.file, r.document, identity(kind, text(object, "metadata", "namespace"), text(object, "metadata", "name"))+
			" is not of the group "+v1alpha1.GroupVersion.Group)
	default:
		r.takeObject(object, textErr)
	}
}

func notAnObject(tree any, textErr error) error {
	if textErr != nil {
		return nil
	}
	return fmt.Errorf("a manifest is an object with apiVersion and kind, found %s: is the indentation right?", short(tree))
}

func isList(object map[string]any) bool {
	_, found := object["items"].([]any)
	return found
}

// takeList takes the items of a list, as kubectl get -o yaml prints it.
func (r reader) takeList(list map[string]any, textErr error) {
	for _, item := range list["items"].([]any) {
		if item == nil {
			r.refuse(nil, nil, errors.Join(textErr, errors.New("items: an item is empty: remove it")))
			continue
		}
		r.take(item, textErr, false)
	}
}

// takeObject admits one object of our group, or of one that was meant to be.
func (r reader) takeObject(object map[string]any, textErr error) {
	schema, err := schemaOf(object)
	if err != nil {
		r.refuse(object, nil, errors.Join(textErr, err))
		return
	}
	raw := runtime.DeepCopyJSON(object)
	errs := admit(schema, object)
	if textErr != nil || len(errs) > 0 {
		r.refuse(raw, errs, textErr)
		return
	}
	typed, err := convert(schema.Kind, object)
	if err != nil {
		r.refuse(raw, nil, err)
		return
	}
	r.set.Objects = append(r.set.Objects, Object{File: r.file, Document: r.document, Kind: schema.Kind, Object: typed})
}

// refuse notes a problem with all that could be read.
func (r reader) refuse(tree map[string]any, errs field.ErrorList, err error) {
	kind := text(tree, "kind")
	p := Problem{
		File: r.file, Document: r.document, Kind: kind,
		Namespace: text(tree, "metadata", "namespace"), Name: text(tree, "metadata", "name"),
		Scope: scopeOfTree(kind, tree, errs, err != nil),
		Err:   errors.Join(err, errs.ToAggregate()),
	}
	if kind == v1alpha1.KindToolPolicy {
		p.Namespace = namespaceOf(tree)
	}
	r.set.Problems = append(r.set.Problems, p)
}

func group(object map[string]any) string {
	g, _, _ := strings.Cut(text(object, "apiVersion"), "/")
	return g
}

func isOurs(kind string) bool {
	schemas, err := structural.All()
	_, found := schemas[kind]
	return err != nil || found
}

// schemaOf finds the schema of an object, or says which apiVersion and kind to write.
func schemaOf(object map[string]any) (*structural.Schema, error) {
	schemas, err := structural.All()
	if err != nil {
		return nil, fmt.Errorf("loading schemas: %w", err)
	}
	version, kind := text(object, "apiVersion"), text(object, "kind")
	switch {
	case version == "":
		return nil, field.Required(field.NewPath("apiVersion"), "write "+v1alpha1.GroupVersion.String())
	case kind == "":
		return nil, field.Required(field.NewPath("kind"), "write "+kinds)
	case version != v1alpha1.GroupVersion.String():
		return nil, field.NotSupported(field.NewPath("apiVersion"), version, []string{v1alpha1.GroupVersion.String()})
	case schemas[kind] == nil:
		return nil, field.Invalid(field.NewPath("kind"), kind, "it is not a kind of "+version+": write "+kinds)
	}
	return schemas[kind], nil
}

const kinds = "ToolPolicy, ClusterToolPolicy, DeciderModel, ToolApproval or DeciderEvaluation"

// admit does what an API server does with a new object, and changes it.
func admit(schema *structural.Schema, object map[string]any) field.ErrorList {
	if data, err := json.Marshal(object); err != nil || len(data) > MaxObjectBytes {
		return field.ErrorList{field.TooLong(nil, "", MaxObjectBytes)}
	}
	delete(object, "status") // only a controller says what is known about an object
	errs := admitMeta(schema, object)
	return append(errs, schema.Admit(object)...)
}

// admitMeta checks metadata, puts the object in a namespace, and drops what only a server sets.
func admitMeta(schema *structural.Schema, object map[string]any) field.ErrorList {
	at := field.NewPath("metadata")
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(at, short(object["metadata"]), err.Error())}
	case !found || meta == nil:
		return field.ErrorList{field.Required(at.Child("name"), "every object needs a name")}
	}
	var errs field.ErrorList
	for _, path := range unknown {
		errs = append(errs, field.Forbidden(field.NewPath(path), "unknown field: remove it or correct its name"))
	}
	if meta.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "every object needs a name; generateName is for API servers"))
		meta.GenerateName = ""
	}
	if schema.Namespaced && meta.Namespace == "" {
		meta.Namespace = DefaultNamespace
	}
	meta.Generation, meta.UID, meta.ResourceVersion, meta.ManagedFields = 1, "", "", nil
	meta.CreationTimestamp, meta.DeletionTimestamp, meta.DeletionGracePeriodSeconds = metav1.Time{}, nil, nil
	for _, err := range apivalidation.ValidateObjectMeta(meta, schema.Namespaced, apivalidation.NameIsDNSSubdomain, at) {
		if meta.Name != "" || err.Field != "metadata.name" {
			errs = append(errs, err)
		}
	}
	if err := objectmeta.SetObjectMeta(object, meta); err != nil {
		errs = append(errs, field.InternalError(at, err))
	}
	return errs
}

// convert makes the typed object. A field that has no place in the type would be lost, so it is an error.
func convert(kind string, object map[string]any) (interface {
	runtime.Object
	metav1.Object
}, error) {
	var typed interface {
		runtime.Object
		metav1.Object
	}
	switch kind {
	case v1alpha1.KindToolPolicy:
		typed = &v1alpha1.ToolPolicy{}
	case v1alpha1.KindClusterToolPolicy:
		typed = &v1alpha1.ClusterToolPolicy{}
	case v1alpha1.KindDeciderModel:
		typed = &v1alpha1.DeciderModel{}
	case v1alpha1.KindToolApproval:
		typed = &v1alpha1.ToolApproval{}
	case v1alpha1.KindDeciderEvaluation:
		typed = &v1alpha1.DeciderEvaluation{}
	default:
		return nil, fmt.Errorf("kind %s has a schema and no type", kind)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, typed, true); err != nil {
		return nil, fmt.Errorf("converting to %s: %w", kind, err)
	}
	return typed, nil
}
