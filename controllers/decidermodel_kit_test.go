package controllers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference/workload"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/pki"
	"gatewright.dev/gatewright/internal/served"
)

// deciderKit has the reconcilers of deciders and evaluations, a client, and deciders that answer by mutual TLS.
type deciderKit struct {
	t           *testing.T
	client      client.Client
	models      *DeciderModelReconciler
	evaluations *DeciderEvaluationReconciler
	clock       *clocktesting.FakeClock
	recorder    *events.FakeRecorder
	namespace   string
	authority   *pki.Authority

	mu      sync.Mutex
	answers map[string]modelAnswer
}

// modelAnswer is what the decider of a revision says that it has loaded.
type modelAnswer struct {
	name, sha256, fingerprint string
	ready                     bool
}

func newDeciderKit(t *testing.T, c client.Client, namespace string) *deciderKit {
	t.Helper()
	k := &deciderKit{t: t, client: c, clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second)), recorder: events.NewFakeRecorder(1000), namespace: namespace, answers: map[string]modelAnswer{}}
	o := Options{
		Namespace: namespace, Clock: k.clock, Registry: prometheus.NewRegistry(),
		Deciders: DeciderOptions{Image: "decider:1", ToolImage: "gatewright:1"},
	}
	o.setDefaults()
	p := &parts{Options: o, events: k.recorder}
	p.gates = newGates(c, o)
	k.models = newDeciderModelReconciler(c, p)
	k.evaluations = &DeciderEvaluationReconciler{parts: p, client: c}
	authority, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	k.authority = authority
	url := k.serve(authority)
	k.models.prober.url = func(_, revision string) string { return url + "/" + revision }
	data, err := authority.Issue(time.Now(), pki.Request{Name: "gate", Usage: x509.ExtKeyUsageClientAuth})
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names.GateClientSecret}, Data: data, Type: corev1.SecretTypeTLS}
	if err := c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	return k
}

// serve answers for all revisions, by the first part of the path.
func (k *deciderKit) serve(authority *pki.Authority) (url string) {
	data, err := authority.Issue(time.Now(), pki.Request{Name: "decider", DNSNames: []string{names.DeciderServerName}, Usage: x509.ExtKeyUsageServerAuth})
	if err != nil {
		k.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(data[pki.KeyCertificate], data[pki.KeyPrivate])
	if err != nil {
		k.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.Bundle())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		a, ok := k.answers[strings.Split(r.URL.Path, "/")[1]]
		k.mu.Unlock()
		if ok && strings.HasSuffix(r.URL.Path, "/v1/systemone") {
			_ = json.NewEncoder(w).Encode(map[string]any{"model": a.name, "answers": map[string]any{"asked": map[string]any{"type": "noul", "noul": 0.5}}, "usage": map[string]any{"input_tokens": 1, "output_tokens": 1}})
			return
		}
		if !ok || !strings.HasSuffix(r.URL.Path, "/v1/models") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"models": []any{map[string]any{"name": a.name, "sha256": a.sha256, "fingerprint": a.fingerprint, "ready": a.ready}}})
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	server.StartTLS()
	k.t.Cleanup(server.Close)
	return server.URL
}

func fakeCluster(t *testing.T, build func(*fake.ClientBuilder) *fake.ClientBuilder) client.Client {
	t.Helper()
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	// The schemas that the fake client has by default do not fit what it does to a NetworkPolicy.
	b := fake.NewClientBuilder().WithScheme(scheme).WithTypeConverters(managedfields.NewDeducedTypeConverter()).
		WithStatusSubresource(&v1alpha1.DeciderModel{}, &v1alpha1.DeciderEvaluation{}, &appsv1.Deployment{}, &batchv1.Job{}, &corev1.Pod{})
	if build != nil {
		b = build(b)
	}
	return b.Build()
}

// judge is a DeciderModel with a file on a volume.
func judge(change func(*v1alpha1.DeciderModelSpec)) *v1alpha1.DeciderModel {
	m := &v1alpha1.DeciderModel{ObjectMeta: metav1.ObjectMeta{Name: "judge", UID: "uid-of-judge"}}
	m.Spec = v1alpha1.DeciderModelSpec{
		Runtime: v1alpha1.RuntimeLlamaCpp, ContextTokens: 4096, Readout: v1alpha1.ReadoutAuto, RequireVerified: v1alpha1.Required,
		Artifact: &v1alpha1.Artifact{Type: v1alpha1.ArtifactPVC, SHA256: pinnedHash, PersistentVolumeClaim: &v1alpha1.PVCArtifact{ClaimName: "models", Path: "judge.gguf"}},
	}
	if change != nil {
		change(&m.Spec)
	}
	return m
}

func (k *deciderKit) create(m client.Object) {
	k.t.Helper()
	if err := k.client.Create(k.t.Context(), m); err != nil {
		k.t.Fatal(err)
	}
}

func (k *deciderKit) model() *v1alpha1.DeciderModel {
	k.t.Helper()
	var m v1alpha1.DeciderModel
	k.get(client.ObjectKey{Name: "judge"}, &m)
	return &m
}

func (k *deciderKit) get(key client.ObjectKey, o client.Object) {
	k.t.Helper()
	if err := k.client.Get(k.t.Context(), key, o); err != nil {
		k.t.Fatal(err)
	}
}

// change updates the spec, as a user does.
func (k *deciderKit) change(f func(*v1alpha1.DeciderModel)) {
	k.t.Helper()
	m := k.model()
	f(m)
	m.Generation++ // the fake client does not count
	if err := k.client.Update(k.t.Context(), m); err != nil {
		k.t.Fatal(err)
	}
}

// reconcile lets the reconciler pass as often as it takes until nothing changes.
func (k *deciderKit) reconcile() *v1alpha1.DeciderModel {
	k.t.Helper()
	for range 10 {
		before := k.model()
		k.clock.Step(rememberOwn + time.Second)
		if _, err := k.models.Reconcile(k.t.Context(), before.DeepCopy()); err != nil {
			k.t.Fatal(err)
		}
		if after := k.model(); after.ResourceVersion == before.ResourceVersion {
			return after
		}
	}
	k.t.Fatal("the status of the DeciderModel does not come to rest")
	return nil
}

// serves lets the pods of a revision be ready and answer.
func (k *deciderKit) serves(revision string, a modelAnswer) {
	k.t.Helper()
	k.mu.Lock()
	k.answers[revision] = a
	k.mu.Unlock()
	var d appsv1.Deployment
	k.get(client.ObjectKey{Namespace: k.namespace, Name: revision}, &d)
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
	if err := k.client.Status().Update(k.t.Context(), &d); err != nil {
		k.t.Fatal(err)
	}
}

// answer is that of a decider with the pinned bytes.
func answer(hash v1alpha1.SHA256, fingerprint string) modelAnswer {
	return modelAnswer{name: "judge", sha256: string(hash), fingerprint: fingerprint, ready: true}
}

func print64(c string) string { return "sha256:" + strings.Repeat(c, 64) }

// pod makes a pod of a revision whose decider ended with a code.
func (k *deciderKit) crashed(revision string, code int32, message string) {
	k.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: revision + "-x", Labels: workload.Labels("judge", revision)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "decider", Image: "decider:1"}}},
	}
	k.create(pod)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "decider", LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}},
	}}
	if err := k.client.Status().Update(k.t.Context(), pod); err != nil {
		k.t.Fatal(err)
	}
}

// compared lets two gates say how a candidate compares.
func (k *deciderKit) compared(revision string, compared, disagreed int64) {
	k.models.gates.latest.Store(&Observation{Known: true, Reports: map[string]*served.Report{
		"gate-0": {Shadow: map[string]served.Shadow{revision: {Compared: compared, Disagreed: disagreed}}},
	}})
}

// evaluationDone ends the Job of an evaluation with counts.
func (k *deciderKit) evaluationDone(name, message string, failed bool) {
	k.t.Helper()
	var e v1alpha1.DeciderEvaluation
	k.get(client.ObjectKey{Name: name}, &e)
	jobName := workload.Evaluation{Name: e.Name, UID: e.UID}.JobName()
	var job batchv1.Job
	k.get(client.ObjectKey{Namespace: k.namespace, Name: jobName}, &job)
	k.evaluationPod(&job, message, failed)
	kind, now := batchv1.JobComplete, metav1.NewTime(k.clock.Now())
	job.Status.StartTime = &now
	if failed {
		kind = batchv1.JobFailed
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, LastTransitionTime: now})
	} else {
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	if err := k.client.Status().Update(k.t.Context(), &job); err != nil {
		k.t.Fatal(err)
	}
}

func (k *deciderKit) evaluationPod(job *batchv1.Job, message string, failed bool) {
	k.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.namespace, Name: job.Name[:min(len(job.Name), 40)] + "pod", Labels: map[string]string{batchv1.JobNameLabel: job.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "evaluate", Image: "gatewright:1"}}},
	}
	k.create(pod)
	ended := &corev1.ContainerStateTerminated{Message: message}
	pod.Status.Phase = corev1.PodSucceeded
	if failed {
		pod.Status.Phase, ended.ExitCode = corev1.PodFailed, 1
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "evaluate", State: corev1.ContainerState{Terminated: ended}}}
	if err := k.client.Status().Update(k.t.Context(), pod); err != nil {
		k.t.Fatal(err)
	}
}

// reconcileEvaluation lets the reconciler of evaluations pass until nothing changes.
func (k *deciderKit) reconcileEvaluation(name string) *v1alpha1.DeciderEvaluation {
	k.t.Helper()
	var e v1alpha1.DeciderEvaluation
	for range 10 {
		k.get(client.ObjectKey{Name: name}, &e)
		before := e.ResourceVersion
		if _, err := k.evaluations.Reconcile(k.t.Context(), &e); err != nil {
			k.t.Fatal(err)
		}
		k.get(client.ObjectKey{Name: name}, &e)
		if e.ResourceVersion == before {
			return &e
		}
	}
	k.t.Fatal("the status of the DeciderEvaluation does not come to rest")
	return nil
}

var errScripted = errors.New("the API server is away")

// names of the children of a kind.
func (k *deciderKit) names(list client.ObjectList) []string {
	k.t.Helper()
	if err := k.client.List(context.WithoutCancel(k.t.Context()), list, client.InNamespace(k.namespace), client.MatchingLabels{names.ModelLabel: "judge"}); err != nil {
		k.t.Fatal(err)
	}
	return namesOf(list)
}

func namesOf(list client.ObjectList) []string {
	var out []string
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		out = append(out, o.(client.Object).GetName())
		return nil
	})
	slices.Sort(out)
	return out
}
