package workload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
)

// ImageAnnotation on a ControllerRevision holds the image of the decider server that belongs to it. The engine is part of
// a fingerprint, so another image is another revision, which has to pass before it serves.
const ImageAnnotation = "gatewright.dev/decider-image"

// SpecOf is the part of a spec that makes a revision: everything that can move an answer, or by which it runs. Who may
// refer to it, what it has to pass, and how many replicas there are belong to no revision.
func SpecOf(spec *v1alpha1.DeciderModelSpec) v1alpha1.DeciderModelSpec {
	out := *spec.DeepCopy()
	out.Rollout, out.AllowedNamespaces, out.RequireVerified = nil, nil, ""
	if out.Pod != nil {
		out.Pod.Replicas = nil
		if empty, err := json.Marshal(out.Pod); err == nil && bytes.Equal(empty, []byte("{}")) {
			out.Pod = nil
		}
	}
	return out
}

// Replicas are those that a DeciderModel asks for: 1 by default.
func Replicas(spec *v1alpha1.DeciderModelSpec) int32 {
	if spec.Pod != nil && spec.Pod.Replicas != nil {
		return *spec.Pod.Replicas
	}
	return 1
}

// NewRevision makes the ControllerRevision that a DeciderModel asks for. Its name follows from what it holds.
func NewRevision(i Install, m *v1alpha1.DeciderModel) (*appsv1.ControllerRevision, error) {
	spec := SpecOf(&m.Spec)
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("writing the revision: %w", err)
	}
	image := ""
	if spec.Runtime == v1alpha1.RuntimeLlamaCpp {
		image = i.DeciderImage
	}
	name := RevisionName(m.Name, image, data)
	out := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: i.Namespace, Labels: Labels(m.Name, name),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(m, v1alpha1.GroupVersion.WithKind(v1alpha1.KindDeciderModel))},
		},
		Data: runtime.RawExtension{Raw: data},
	}
	if image != "" {
		out.Annotations = map[string]string{ImageAnnotation: image}
	}
	return out, nil
}

// RevisionName names a revision MODEL-HASH. It is a name for a Service, so the model's is cut and freed of dots; the hash
// covers the whole of it.
func RevisionName(model, image string, data []byte) string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(model), []byte(image), data} {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	base := strings.Trim(strings.ReplaceAll(model, ".", "-"), "-")
	if base == "" || base[0] < 'a' || base[0] > 'z' {
		base = "d-" + base
	}
	base = strings.TrimRight(base[:min(len(base), 52)], "-")
	return base + "-" + hex.EncodeToString(h.Sum(nil))[:10]
}

// ReadRevision reads a ControllerRevision back. One whose name does not follow from what it holds was changed by somebody
// else, and is refused.
func ReadRevision(model *v1alpha1.DeciderModel, c *appsv1.ControllerRevision) (Revision, error) {
	out := Revision{
		Name: c.Name, Model: model.Name, UID: model.UID, Image: c.Annotations[ImageAnnotation], Replicas: Replicas(&model.Spec),
	}
	if err := json.Unmarshal(c.Data.Raw, &out.Spec); err != nil {
		return Revision{}, fmt.Errorf("reading revision %s: %w", c.Name, err)
	}
	data, err := json.Marshal(out.Spec)
	if err != nil {
		return Revision{}, fmt.Errorf("reading revision %s: %w", c.Name, err)
	}
	if want := RevisionName(model.Name, out.Image, data); want != c.Name {
		return Revision{}, fmt.Errorf("revision %s does not hold what it is named for: it should be %s", c.Name, want)
	}
	return out, nil
}

// EvaluationName names the evaluation of a revision by the cases and floors of a rollout: others are another evaluation.
func EvaluationName(revision string, gate *v1alpha1.EvaluationGate) (string, error) {
	data, err := json.Marshal(gate)
	if err != nil {
		return "", fmt.Errorf("naming the evaluation: %w", err)
	}
	sum := sha256.Sum256(data)
	return revision + "-" + hex.EncodeToString(sum[:])[:6], nil
}

// NewEvaluation makes the DeciderEvaluation that a rollout asks for.
func NewEvaluation(m *v1alpha1.DeciderModel, revision string) (*v1alpha1.DeciderEvaluation, error) {
	gate := m.Spec.Rollout.Evaluation
	name, err := EvaluationName(revision, gate)
	if err != nil {
		return nil, err
	}
	floors := gate.Floors.DeepCopy()
	return &v1alpha1.DeciderEvaluation{
		ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			Labels:          map[string]string{names.ModelLabel: ModelLabelValue(m.Name), names.RevisionLabel: revision},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(m, v1alpha1.GroupVersion.WithKind(v1alpha1.KindDeciderModel))},
		},
		Spec: v1alpha1.DeciderEvaluationSpec{
			DeciderRef: v1alpha1.EvaluatedDecider{Name: v1alpha1.ObjectName(m.Name), Revision: v1alpha1.ObjectName(revision)},
			CaseSet:    *gate.CaseSet.DeepCopy(), Floors: floors, Repeats: repeats,
		},
	}, nil
}

// repeats of each case in the evaluation of a rollout: the fewest that show which of two answers is the odd one.
const repeats = 3

// shorten cuts a name to a length, and ends it in a hash of the whole then.
func shorten(name string, most int) string {
	if len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:most-9], "-.") + "-" + hex.EncodeToString(sum[:])[:8]
}
