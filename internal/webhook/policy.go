package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
)

// ValidateToolPolicy says what keeps a ToolPolicy from being loaded: what the engine that judges calls has against it.
func ValidateToolPolicy(p *v1alpha1.ToolPolicy) field.ErrorList {
	_, errs := policy.Compile(p)
	return errs
}

// ValidateClusterToolPolicy does the same for a ClusterToolPolicy.
func ValidateClusterToolPolicy(p *v1alpha1.ClusterToolPolicy) field.ErrorList {
	_, errs := policy.CompileCluster(p)
	return errs
}

// object is one of our kinds.
type object interface {
	runtime.Object
	metav1.Object
}

// validator judges what an object itself shows. References are for a condition: the order in which objects are created
// is not ours.
type validator[T object] struct {
	kind     string
	spec     func(T) any
	validate func(T) field.ErrorList
	// advise says what is allowed and may not be meant.
	advise func(T) []string
	// compare says what an update loosens.
	compare func(was, is T) []string
}

// toolPolicies judges every ToolPolicy that is written.
func toolPolicies() validator[*v1alpha1.ToolPolicy] {
	return validator[*v1alpha1.ToolPolicy]{
		kind:     v1alpha1.KindToolPolicy,
		spec:     func(p *v1alpha1.ToolPolicy) any { return &p.Spec },
		validate: ValidateToolPolicy,
		advise:   adviseToolPolicy,
		compare:  func(was, is *v1alpha1.ToolPolicy) []string { return Loosened(&was.Spec, &is.Spec) },
	}
}

// clusterToolPolicies judges every ClusterToolPolicy that is written.
func clusterToolPolicies() validator[*v1alpha1.ClusterToolPolicy] {
	return validator[*v1alpha1.ClusterToolPolicy]{
		kind:     v1alpha1.KindClusterToolPolicy,
		spec:     func(p *v1alpha1.ClusterToolPolicy) any { return &p.Spec },
		validate: ValidateClusterToolPolicy,
		advise:   adviseClusterToolPolicy,
		compare:  func(was, is *v1alpha1.ClusterToolPolicy) []string { return LoosenedCluster(&was.Spec, &is.Spec) },
	}
}

// deciderModels judges every DeciderModel that is written.
func deciderModels() validator[*v1alpha1.DeciderModel] {
	return validator[*v1alpha1.DeciderModel]{
		kind:     v1alpha1.KindDeciderModel,
		spec:     func(m *v1alpha1.DeciderModel) any { return &m.Spec },
		validate: func(m *v1alpha1.DeciderModel) field.ErrorList { return ValidateDeciderModel(&m.Spec) },
		advise:   func(m *v1alpha1.DeciderModel) []string { return adviseDeciderModel(&m.Spec) },
		compare:  func(was, is *v1alpha1.DeciderModel) []string { return loosenedModel(&was.Spec, &is.Spec) },
	}
}

// ValidateCreate implements admission.Validator.
func (v validator[T]) ValidateCreate(_ context.Context, o T) (admission.Warnings, error) {
	return atMost(v.advise(o)), v.invalid(o, v.validate(o))
}

// ValidateUpdate implements admission.Validator. What an object already had wrong does not refuse a change of something
// else, and an object that goes away is let go.
func (v validator[T]) ValidateUpdate(_ context.Context, was, is T) (admission.Warnings, error) {
	if is.GetDeletionTimestamp() != nil || equality.Semantic.DeepEqual(v.spec(was), v.spec(is)) {
		return nil, nil
	}
	refused, tolerated := ratchet(v.validate(was), v.validate(is))
	warnings := append(v.compare(was, is), v.advise(is)...)
	for _, e := range tolerated {
		warnings = append(warnings, "still wrong, as before: "+e.Error())
	}
	return atMost(warnings), v.invalid(is, refused)
}

// ValidateDelete implements admission.Validator: deleting is never refused here.
func (v validator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }

func (v validator[T]) invalid(o T, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: v.kind}, o.GetName(), errs)
}
