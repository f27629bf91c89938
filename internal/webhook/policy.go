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

// object is one of our kinds.
type object interface {
	runtime.Object
	metav1.Object
}

// validator judges what an object itself shows. References are for a condition: the order in which objects are created
// is not ours.
type validator[T object] struct {
	kind string
	spec func(T) any
	// judge says what is wrong, and what is allowed and may not be meant. It compiles once: a policy may have thousands of
	// expressions, and an API server waits for seconds.
	judge func(T) (field.ErrorList, []string)
	// compare says what an update loosens.
	compare func(was, is T) []string
	// slots bounds how many are judged at once, together with other kinds that have it. Nil: nothing does.
	slots slots
}

// slots are taken while a policy is compiled: one at its bounds takes tens of megabytes, and an API server asks about many
// at once.
type slots chan struct{}

// atOnce is how many policies are compiled at a time for the API server.
const atOnce = 4

// take waits for a slot as long as the API server waits for an answer.
func (s slots) take(ctx context.Context) (give func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, apierrors.NewTooManyRequests("many policies are being looked at: write it again", 1)
	}
}

// toolPolicies judges every ToolPolicy that is written.
func toolPolicies() validator[*v1alpha1.ToolPolicy] {
	return validator[*v1alpha1.ToolPolicy]{
		kind: v1alpha1.KindToolPolicy,
		spec: func(p *v1alpha1.ToolPolicy) any { return &p.Spec },
		judge: func(p *v1alpha1.ToolPolicy) (field.ErrorList, []string) {
			compiled, errs := policy.Compile(p)
			return errs, adviseToolPolicy(p, compiled)
		},
		compare: func(was, is *v1alpha1.ToolPolicy) []string { return Loosened(&was.Spec, &is.Spec) },
	}
}

// clusterToolPolicies judges every ClusterToolPolicy that is written.
func clusterToolPolicies() validator[*v1alpha1.ClusterToolPolicy] {
	return validator[*v1alpha1.ClusterToolPolicy]{
		kind: v1alpha1.KindClusterToolPolicy,
		spec: func(p *v1alpha1.ClusterToolPolicy) any { return &p.Spec },
		judge: func(p *v1alpha1.ClusterToolPolicy) (field.ErrorList, []string) {
			compiled, errs := policy.CompileCluster(p)
			return errs, adviseRules(&p.Spec.PolicyRules, compiled)
		},
		compare: func(was, is *v1alpha1.ClusterToolPolicy) []string { return LoosenedCluster(&was.Spec, &is.Spec) },
	}
}

// deciderModels judges every DeciderModel that is written.
func deciderModels() validator[*v1alpha1.DeciderModel] {
	return validator[*v1alpha1.DeciderModel]{
		kind: v1alpha1.KindDeciderModel,
		spec: func(m *v1alpha1.DeciderModel) any { return &m.Spec },
		judge: func(m *v1alpha1.DeciderModel) (field.ErrorList, []string) {
			return ValidateDeciderModel(&m.Spec), adviseDeciderModel(&m.Spec)
		},
		compare: func(was, is *v1alpha1.DeciderModel) []string { return loosenedModel(&was.Spec, &is.Spec) },
	}
}

// ValidateCreate implements admission.Validator.
func (v validator[T]) ValidateCreate(ctx context.Context, o T) (admission.Warnings, error) {
	give, err := v.slots.take(ctx)
	if err != nil {
		return nil, err
	}
	defer give()
	errs, advice := v.judge(o)
	return atMost(advice), v.invalid(o, errs)
}

// ValidateUpdate implements admission.Validator. What an object already had wrong does not refuse a change of something
// else, and an object that goes away is let go.
func (v validator[T]) ValidateUpdate(ctx context.Context, was, is T) (admission.Warnings, error) {
	if is.GetDeletionTimestamp() != nil || equality.Semantic.DeepEqual(v.spec(was), v.spec(is)) {
		return nil, nil
	}
	give, err := v.slots.take(ctx)
	if err != nil {
		return nil, err
	}
	defer give()
	refused, advice := v.judge(is)
	warnings := append(v.compare(was, is), advice...)
	if len(refused) > 0 {
		before, _ := v.judge(was)
		var tolerated field.ErrorList
		refused, tolerated = ratchet(before, refused)
		for _, e := range tolerated {
			warnings = append(warnings, "still wrong, as before: "+e.Error())
		}
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
