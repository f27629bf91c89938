package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference/workload"
	"gatewright.dev/gatewright/internal/names"
)

// observe reads all that the status and the children depend on. Besides it returns the revision of the spec as it would be
// written; nil, if the spec makes no sense.
func (r *DeciderModelReconciler) observe(ctx context.Context, m *v1alpha1.DeciderModel) (*deciderFacts, *appsv1.ControllerRevision, error) {
	f := &deciderFacts{model: m, now: r.Clock.Now(), revisions: map[string]*revisionFacts{}, gates: r.gates.Observation(), problem: deciderProblem(&m.Spec, r.Deciders)}
	if err := r.listRevisions(ctx, f); err != nil {
		return nil, nil, err
	}
	var wanted *appsv1.ControllerRevision
	if f.problem == "" {
		var err error
		if wanted, err = workload.NewRevision(r.install(), m); err != nil {
			return nil, nil, err
		}
		f.wanted = wanted.Name
		if to := m.Annotations[rollbackAnnotation]; to != "" {
			f.wanted = to
			if !slices.Contains(f.names(), to) {
				f.problem = fmt.Sprintf("the annotation %s names %q, which is no revision that is kept: kubectl get controllerrevisions -n %s -l %s=%s lists them",
					rollbackAnnotation, to, r.Namespace, names.ModelLabel, workload.ModelLabelValue(m.Name))
			}
		}
	}
	for _, name := range f.inUse() {
		if err := r.observeRevision(ctx, f, name); err != nil {
			return nil, nil, err
		}
	}
	if wanted != nil && f.revisions[wanted.Name] == nil && f.wanted == wanted.Name {
		if err := r.observeName(ctx, f, wanted); err != nil {
			return nil, nil, err
		}
	}
	return f, wanted, nil
}

// inUse are the revisions that are looked at: the active one, those that drain, the candidate and the wanted one.
func (f *deciderFacts) inUse() []string {
	list := []string{f.wanted}
	for _, r := range []*v1alpha1.DeciderRevision{f.model.Status.Active, f.model.Status.Candidate} {
		if r != nil {
			list = append(list, string(r.Name))
		}
	}
	drain, _ := draining(f.model.Status.Active, f.model.Status.History, f.now)
	list = append(list, drain...)
	slices.Sort(list)
	return slices.Compact(list)
}

func (r *DeciderModelReconciler) listRevisions(ctx context.Context, f *deciderFacts) error {
	var list appsv1.ControllerRevisionList
	if err := r.client.List(ctx, &list, r.childrenOf(f.model)...); err != nil {
		return fmt.Errorf("listing revisions: %w", err)
	}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], f.model) {
			f.known = append(f.known, &list.Items[i])
		}
	}
	slices.SortFunc(f.known, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

func (r *DeciderModelReconciler) childrenOf(m *v1alpha1.DeciderModel) []client.ListOption {
	return []client.ListOption{client.InNamespace(r.Namespace), client.MatchingLabels{names.ModelLabel: workload.ModelLabelValue(m.Name)}}
}

// observeName looks whether the name of a revision that is not there yet belongs to somebody else.
func (r *DeciderModelReconciler) observeName(ctx context.Context, f *deciderFacts, wanted *appsv1.ControllerRevision) error {
	var other appsv1.ControllerRevision
	switch err := r.client.Get(ctx, client.ObjectKeyFromObject(wanted), &other); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading revision %s: %w", wanted.Name, err)
	}
	if metav1.IsControlledBy(&other, f.model) {
		return nil // it was written just now
	}
	revision, err := workload.ReadRevision(f.model, wanted)
	if err != nil {
		return err
	}
	f.revisions[wanted.Name] = &revisionFacts{revision: revision, taken: "ControllerRevision " + wanted.Name}
	f.known = append(f.known, &other) // so that it is not written
	return nil
}

func (r *DeciderModelReconciler) observeRevision(ctx context.Context, f *deciderFacts, name string) error {
	i := slices.IndexFunc(f.known, func(c *appsv1.ControllerRevision) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	revision, err := workload.ReadRevision(f.model, f.known[i])
	facts := &revisionFacts{revision: revision}
	f.revisions[name] = facts
	if err != nil {
		facts.problem = err.Error()
		return nil
	}
	if facts.taken, err = r.takenBy(ctx, f.model, name); err != nil {
		return err
	}
	if facts.taken != "" {
		return nil
	}
	if workload.HasPods(&revision.Spec) {
		if facts.pods, err = r.observePods(ctx, name, revision.Replicas); err != nil {
			return err
		}
	}
	if !workload.HasPods(&revision.Spec) || facts.pods.ready > 0 {
		facts.ask(ctx, r.prober)
	}
	return r.observeEvaluation(ctx, f, facts)
}

func (facts *revisionFacts) ask(ctx context.Context, p *prober) {
	s, err := p.ask(ctx, facts.revision)
	if err != nil {
		facts.silent = short(err.Error())
		return
	}
	facts.seen = s
}

// takenBy names the first child that has the name of a revision and belongs to somebody else.
func (r *DeciderModelReconciler) takenBy(ctx context.Context, m *v1alpha1.DeciderModel, name string) (string, error) {
	for _, o := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &networkingv1.NetworkPolicy{}, &policyv1.PodDisruptionBudget{}} {
		switch err := r.client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, o); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return "", fmt.Errorf("reading %T %s: %w", o, name, err)
		case !metav1.IsControlledBy(o, m):
			return fmt.Sprintf("%s %s", kindOf(o), name), nil
		}
	}
	return "", nil
}

func kindOf(o client.Object) string {
	switch o.(type) {
	case *appsv1.Deployment:
		return "Deployment"
	case *corev1.Service:
		return "Service"
	case *networkingv1.NetworkPolicy:
		return "NetworkPolicy"
	}
	return "PodDisruptionBudget"
}

// observeEvaluation finds the evaluation by the cases and floors of now.
func (r *DeciderModelReconciler) observeEvaluation(ctx context.Context, f *deciderFacts, facts *revisionFacts) error {
	if f.model.Spec.Rollout == nil || f.model.Spec.Rollout.Evaluation == nil {
		return nil
	}
	wanted, err := workload.NewEvaluation(f.model, facts.revision.Name)
	if err != nil {
		return err
	}
	var e v1alpha1.DeciderEvaluation
	switch err := r.client.Get(ctx, client.ObjectKey{Name: wanted.Name}, &e); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading the evaluation: %w", err)
	case !isOf(&e, f.model), !equality.Semantic.DeepEqual(e.Spec, wanted.Spec):
		// Its name can be foreseen, and an owner can be written by whoever makes it: only its spec says what it has shown.
		facts.evaluationTaken = "DeciderEvaluation " + e.Name
		return nil
	}
	if e.DeletionTimestamp.IsZero() {
		facts.evaluation = &e
	}
	return nil
}

// isOf says whether an evaluation is of a model's roll-out. Admission guards owners by their kind, and so it has to be right.
func isOf(e *v1alpha1.DeciderEvaluation, m *v1alpha1.DeciderModel) bool {
	o := metav1.GetControllerOf(e)
	return o != nil && o.UID == m.UID && o.Kind == v1alpha1.KindDeciderModel && strings.HasPrefix(o.APIVersion, v1alpha1.GroupVersion.Group+"/")
}

// observePods looks at the Deployment of a revision and, while nothing of it serves, at what keeps its pods from it.
func (r *DeciderModelReconciler) observePods(ctx context.Context, name string, replicas int32) (podFacts, error) {
	var facts podFacts
	var d appsv1.Deployment
	switch err := r.client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, &d); {
	case apierrors.IsNotFound(err):
		return facts, nil
	case err != nil:
		return facts, fmt.Errorf("reading deployment %s: %w", name, err)
	}
	s := &d.Status
	facts.ready = s.ReadyReplicas
	facts.complete = s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == replicas && s.Replicas == replicas && s.ReadyReplicas == replicas
	if facts.complete {
		return facts, nil
	}
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(r.Namespace), client.MatchingLabels{names.RevisionLabel: name, names.ComponentLabel: names.ComponentDecider}); err != nil {
		return facts, fmt.Errorf("listing pods of %s: %w", name, err)
	}
	facts.trouble, facts.mismatch = podTrouble(pods.Items)
	facts.mismatch = facts.mismatch && facts.ready == 0 // pods that serve have loaded what is pinned
	return facts, nil
}
