// Package workload builds what runs a decider in a cluster: for each revision of a DeciderModel a Deployment, a Service, a
// NetworkPolicy and a PodDisruptionBudget, and for each evaluation a Job. The builders are pure: the
// same input gives the same apply configuration, which is the whole of what the manager wants to be there.
package workload

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
)

// Install is what all children of an installation share.
type Install struct {
	// Namespace is Gatewright's own.
	Namespace string
	// DeciderImage has the decider server.
	DeciderImage string
	// ToolImage has the program gatewright.
	ToolImage string
	// PullSecret in the namespace, for all images. Empty: none.
	PullSecret string
}

// Revision is one revision of a DeciderModel, as far as its children depend on it.
type Revision struct {
	// Name of the ControllerRevision, and of every child.
	Name string
	// Model is the name of the DeciderModel, and UID its uid: it owns the children.
	Model string
	UID   types.UID
	// Image of the decider server that belongs to the revision; for runtime LlamaCpp only.
	Image string
	// Spec is what makes the revision.
	Spec v1alpha1.DeciderModelSpec
	// Replicas are those of the DeciderModel as it is now: they belong to no revision.
	Replicas int32
}

// HasPods says whether the runtime of a revision runs in pods of its own.
func HasPods(spec *v1alpha1.DeciderModelSpec) bool {
	return spec.Runtime == v1alpha1.RuntimeLlamaCpp || spec.Runtime == v1alpha1.RuntimeContainer
}

// URL is where a revision with pods answers, without the path of the wire.
func URL(namespace, revision string) string {
	return fmt.Sprintf("https://%s.%s.svc:%d", revision, namespace, names.DeciderPort)
}

// ModelName is the name under which a revision is asked and has to answer.
func ModelName(model string, spec *v1alpha1.DeciderModelSpec) string {
	switch {
	case spec.External != nil:
		return spec.External.Model
	case spec.Container != nil && spec.Container.Model != "":
		return spec.Container.Model
	}
	return model
}

// selector are the labels that the pods of one revision have, and no others.
func selector(revision string) map[string]string {
	return map[string]string{names.ComponentLabel: names.ComponentDecider, names.RevisionLabel: revision}
}

// Labels are those of every child of a revision. That of the model is cut to the length of a label.
func Labels(model, revision string) map[string]string {
	labels := selector(revision)
	maps.Copy(labels, map[string]string{
		names.NameLabel: names.Name, "app.kubernetes.io/managed-by": names.ManagerServiceAccount, names.ModelLabel: ModelLabelValue(model),
	})
	return labels
}

// ModelLabelValue is the value of the label by which the children of a DeciderModel are found. Names that are too long for
// a label end in a hash.
func ModelLabelValue(model string) string { return shorten(model, 63) }

func owner(kind, name string, uid types.UID) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind(kind).WithName(name).WithUID(uid).
		WithController(true).WithBlockOwnerDeletion(true)
}

func (r Revision) owner() *metav1ac.OwnerReferenceApplyConfiguration {
	return owner(v1alpha1.KindDeciderModel, r.Model, r.UID)
}

func pullSecrets(i Install) []*corev1ac.LocalObjectReferenceApplyConfiguration {
	if i.PullSecret == "" {
		return nil
	}
	return []*corev1ac.LocalObjectReferenceApplyConfiguration{corev1ac.LocalObjectReference().WithName(i.PullSecret)}
}
