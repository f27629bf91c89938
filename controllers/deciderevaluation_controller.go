package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference/workload"
	"gatewright.dev/gatewright/internal/names"
)

// DeciderEvaluationReconciler runs labelled cases against a revision, and computes from the counts whether the floors hold.
type DeciderEvaluationReconciler struct {
	*parts
	client client.Client
}

// +kubebuilder:rbac:groups=gatewright.dev,resources=deciderevaluations,verbs=get;list;watch
// +kubebuilder:rbac:groups=gatewright.dev,resources=deciderevaluations/status,verbs=patch
// +kubebuilder:rbac:groups=gatewright.dev,resources=deciderevaluations/finalizers,verbs=update
// +kubebuilder:rbac:groups=gatewright.dev,resources=decidermodels,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch,namespace=gatewright-system
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch,namespace=gatewright-system
// +kubebuilder:rbac:groups="",resources=pods;configmaps;secrets,verbs=get;list;watch,namespace=gatewright-system
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

func setupEvaluations(mgr ctrl.Manager, p *parts) error {
	r := &DeciderEvaluationReconciler{parts: p, client: mgr.GetClient()}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.DeciderEvaluation{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.ofPod), builder.WithPredicates(isEvaluationPod(p.Namespace))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

func isEvaluationPod(namespace string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetNamespace() == namespace && o.GetLabels()[names.ComponentLabel] == names.ComponentEvaluator && jobOf(o) != ""
	})
}

// jobOf is the Job that a pod belongs to.
func jobOf(pod client.Object) string {
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "Job" {
		return owner.Name
	}
	return ""
}

// ofPod finds the evaluation of a pod by its Job.
func (r *DeciderEvaluationReconciler) ofPod(ctx context.Context, pod client.Object) []reconcile.Request {
	var job batchv1.Job
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: jobOf(pod)}, &job); err != nil {
		return nil // the evaluation hears of its Job itself
	}
	if owner := metav1.GetControllerOf(&job); owner != nil && owner.Kind == v1alpha1.KindDeciderEvaluation {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: owner.Name}}}
	}
	return nil
}

// Reconcile starts the Job of an evaluation and takes over what it left.
func (r *DeciderEvaluationReconciler) Reconcile(ctx context.Context, e *v1alpha1.DeciderEvaluation) (ctrl.Result, error) {
	if !e.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	before := e.DeepCopy()
	facts, run, err := r.observe(ctx, e)
	if err != nil {
		return ctrl.Result{}, err
	}
	verdict := assessEvaluation(facts)
	if verdict.start {
		if err := r.start(ctx, run); err != nil {
			return ctrl.Result{}, err
		}
	}
	e.Status = verdict.status
	if equality.Semantic.DeepEqual(before.Status, e.Status) {
		return ctrl.Result{RequeueAfter: verdict.recheck}, nil
	}
	if err := patchStatus(ctx, r.client, before, e); err != nil {
		return ctrl.Result{}, err
	}
	recordTransitions(r.events, e, before.Status.Conditions, e.Status.Conditions)
	return ctrl.Result{RequeueAfter: verdict.recheck}, nil
}

// observe reads all that the status depends on, and what is to be run.
func (r *DeciderEvaluationReconciler) observe(ctx context.Context, e *v1alpha1.DeciderEvaluation) (*evaluationFacts, workload.Evaluation, error) {
	f := &evaluationFacts{evaluation: e, now: r.Clock.Now()}
	run := workload.Evaluation{Name: e.Name, UID: e.UID, CaseSet: e.Spec.CaseSet, Repeats: e.Spec.Repeats}
	if c := meta.FindStatusCondition(e.Status.Conditions, string(v1alpha1.ConditionComplete)); c != nil && c.Status != metav1.ConditionUnknown {
		return f, run, nil // it has ended
	}
	var job batchv1.Job
	switch err := r.client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: run.JobName()}, &job); {
	case apierrors.IsNotFound(err):
		var failed error
		f.missing, failed = r.lookUp(ctx, e, &run)
		return f, run, failed
	case err != nil:
		return nil, run, fmt.Errorf("reading the job: %w", err)
	case !metav1.IsControlledBy(&job, e):
		f.taken = "Job " + job.Name
		return f, run, nil
	}
	f.job = &job
	return f, run, r.observePods(ctx, f)
}

// lookUp finds what is to be run, and says what is missing.
func (r *DeciderEvaluationReconciler) lookUp(ctx context.Context, e *v1alpha1.DeciderEvaluation, run *workload.Evaluation) (missing string, err error) {
	if r.Deciders.ToolImage == "" {
		return "this manager was started without -tool-image, so that there is nothing to run cases with", nil
	}
	var m v1alpha1.DeciderModel
	switch err := r.client.Get(ctx, client.ObjectKey{Name: string(e.Spec.DeciderRef.Name)}, &m); {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("DeciderModel %s does not exist", e.Spec.DeciderRef.Name), nil
	case err != nil:
		return "", fmt.Errorf("reading the decider: %w", err)
	}
	name := string(e.Spec.DeciderRef.Revision)
	if name == "" && m.Status.Active != nil {
		name = string(m.Status.Active.Name)
	}
	if name == "" {
		return fmt.Sprintf("DeciderModel %s has no active revision yet", m.Name), nil
	}
	if missing, err := r.lookUpRevision(ctx, &m, name, run); err != nil || missing != "" {
		return missing, err
	}
	if missing, err := r.lookUpToken(ctx, &run.Revision.Spec); err != nil || missing != "" {
		return missing, err
	}
	if set := &e.Spec.CaseSet; set.Type == v1alpha1.CaseSetConfigMap {
		var cases corev1.ConfigMap
		switch err := r.client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: string(set.ConfigMapName)}, &cases); {
		case apierrors.IsNotFound(err):
			return fmt.Sprintf("ConfigMap %s with the cases does not exist in namespace %s", set.ConfigMapName, r.Namespace), nil
		case err != nil:
			return "", fmt.Errorf("reading the cases: %w", err)
		}
	}
	return "", nil
}

func (r *DeciderEvaluationReconciler) lookUpRevision(ctx context.Context, m *v1alpha1.DeciderModel, name string, run *workload.Evaluation) (missing string, err error) {
	var c appsv1.ControllerRevision
	switch err := r.client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, &c); {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("DeciderModel %s has no revision %s", m.Name, name), nil
	case err != nil:
		return "", fmt.Errorf("reading revision %s: %w", name, err)
	case !metav1.IsControlledBy(&c, m):
		return fmt.Sprintf("revision %s is none of DeciderModel %s", name, m.Name), nil
	}
	run.Revision, err = workload.ReadRevision(m, &c)
	if err != nil {
		return err.Error(), nil
	}
	return "", nil
}

// lookUpToken says why the token of a server outside may not be mounted.
func (r *DeciderEvaluationReconciler) lookUpToken(ctx context.Context, spec *v1alpha1.DeciderModelSpec) (missing string, err error) {
	if spec.External == nil || spec.External.TokenSecretRef == nil {
		return "", nil
	}
	var secret corev1.Secret
	name := string(spec.External.TokenSecretRef.Name)
	switch err := r.client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, &secret); {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("Secret %s with the token does not exist in namespace %s", name, r.Namespace), nil
	case err != nil:
		return "", fmt.Errorf("reading the token: %w", err)
	}
	if _, err := workload.Token(&secret, spec.External); err != nil {
		return err.Error(), nil
	}
	return "", nil
}

// observePods looks at what the pods of the Job left, or why they do not run.
func (r *DeciderEvaluationReconciler) observePods(ctx context.Context, f *evaluationFacts) error {
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(r.Namespace), client.MatchingLabels{batchv1.JobNameLabel: f.job.Name}); err != nil {
		return fmt.Errorf("listing pods of the job: %w", err)
	}
	f.trouble, _ = podTrouble(pods.Items)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodSucceeded || !metav1.IsControlledBy(pod, f.job) {
			continue
		}
		for _, s := range pod.Status.ContainerStatuses {
			if t := s.State.Terminated; t != nil && t.ExitCode == 0 {
				var err error
				if f.result, err = readResult([]byte(t.Message)); err != nil {
					f.unreadable = err.Error()
				}
			}
		}
	}
	return nil
}

var className = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// readResult reads the counts of a run. Numbers that cannot be counts are no result.
func readResult(text []byte) (*v1alpha1.DeciderEvaluationStatus, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var s v1alpha1.DeciderEvaluationStatus
	if err := d.Decode(&s); err != nil {
		return nil, errors.New("it is no result of an evaluation")
	}
	seen := map[v1alpha1.ClassName]bool{}
	for _, c := range s.Confusion {
		if !className.MatchString(string(c.Class)) || seen[c.Class] || min(c.DangerousStopped, c.DangerousAllowed, c.BenignStopped, c.BenignAllowed) < 0 {
			return nil, errors.New("its counts by class are none")
		}
		seen[c.Class] = true
	}
	switch {
	case len(s.Conditions) > 0 || s.ObservedGeneration != 0:
		return nil, errors.New("it says more than counts")
	case s.Fingerprint == "" || len(s.Confusion) == 0 || len(s.Confusion) > 16:
		return nil, errors.New("it lacks the fingerprint of one decider, or counts")
	case s.Flapped < 0 || s.P50Milliseconds < 0 || s.P95Milliseconds < s.P50Milliseconds || s.P99Milliseconds < s.P95Milliseconds:
		return nil, errors.New("its counts are none")
	}
	return &s, nil
}

func (r *DeciderEvaluationReconciler) start(ctx context.Context, run workload.Evaluation) error {
	job, err := workload.Job(r.install(), run)
	if err != nil {
		return err
	}
	if err := r.client.Apply(ctx, job, client.FieldOwner(managerName), client.ForceOwnership); err != nil {
		return fmt.Errorf("applying the job: %w", err)
	}
	return nil
}
