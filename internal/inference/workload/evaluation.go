package workload

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
)

// Keys of a ConfigMap with cases, and names of the files in an image.
const (
	CasesFile  = "cases.jsonl"
	LadderFile = "ladder.yaml"
)

// SpecAnnotation on the pod of an evaluation holds the spec of the revision, which the pod reads as a file. What came out it
// leaves as its termination message: it speaks to the decider alone, and has no token for the API server.
const SpecAnnotation = "gatewright.dev/decider-spec"

// ResultFile is where the kubelet takes the termination message from, of which it keeps MaxResult bytes.
const (
	ResultFile = "/dev/termination-log"
	MaxResult  = 4096
)

// EvaluationLabel on a Job and its pods names the evaluation.
const EvaluationLabel = "gatewright.dev/decider-evaluation"

const (
	casesPath = "/cases"
	specPath  = "/etc/gatewright/spec"
	tokenPath = "/etc/gatewright/token"
	// jobDeadline is how long an evaluation may take, in seconds: 2,000 cases three times at two seconds each.
	jobDeadline = 4 * 3600
	// jobKept is how long a Job stays after its end, in seconds, for who wants to read its log.
	jobKept = 3600
	// jobTries: a second pod may have better luck with its node, a third would not.
	jobTries = 1
)

// Evaluation is one run of cases against one revision.
type Evaluation struct {
	// Name of the DeciderEvaluation, and its UID: it owns the Job.
	Name string
	UID  types.UID
	// CaseSet and Repeats are those of its spec.
	CaseSet v1alpha1.CaseSet
	Repeats int32
	// Revision that is asked.
	Revision Revision
}

// JobName is that of the Job. Another DeciderEvaluation of the same name has another Job.
func (e Evaluation) JobName() string { return shorten(e.Name+"-"+string(e.UID), 63) }

func (e Evaluation) labels() map[string]string {
	return map[string]string{
		names.NameLabel: names.Name, names.ComponentLabel: names.ComponentEvaluator, "app.kubernetes.io/managed-by": names.ManagerServiceAccount,
		names.ModelLabel: ModelLabelValue(e.Revision.Model), names.RevisionLabel: e.Revision.Name, EvaluationLabel: shorten(e.Name, 63),
	}
}

// Job runs the cases. Its template cannot be changed, so it is applied only when it is not there.
func Job(i Install, e Evaluation) (*batchv1ac.JobApplyConfiguration, error) {
	spec, err := json.Marshal(e.Revision.Spec)
	if err != nil {
		return nil, fmt.Errorf("writing the decider's spec: %w", err)
	}
	pod := evaluationPod(i, e)
	return batchv1ac.Job(e.JobName(), i.Namespace).WithLabels(e.labels()).
		WithOwnerReferences(owner(v1alpha1.KindDeciderEvaluation, e.Name, e.UID)).
		WithSpec(batchv1ac.JobSpec().WithBackoffLimit(jobTries).WithActiveDeadlineSeconds(jobDeadline).WithTTLSecondsAfterFinished(jobKept).
			WithPodReplacementPolicy(batchv1.Failed).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(e.labels()).WithAnnotations(map[string]string{SpecAnnotation: string(spec)}).WithSpec(pod))), nil
}

func evaluationPod(i Install, e Evaluation) *corev1ac.PodSpecApplyConfiguration {
	c := container("evaluate", i.ToolImage).WithCommand(names.BinaryPath+"/gatewright").
		WithEnv(corev1ac.EnvVar().WithName("TMPDIR").WithValue(tmpPath)).
		WithResources(corev1ac.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("256Mi")}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")})).
		WithVolumeMounts(corev1ac.VolumeMount().WithName("tmp").WithMountPath(tmpPath), mount("cases", casesPath), mount("spec", specPath))
	p := corev1ac.PodSpec().WithServiceAccountName(names.EvaluatorServiceAccount).WithAutomountServiceAccountToken(false).WithEnableServiceLinks(false).
		WithRestartPolicy(corev1.RestartPolicyNever).WithSecurityContext(podSecurity()).WithImagePullSecrets(pullSecrets(i)...).
		WithVolumes(
			corev1ac.Volume().WithName("tmp").WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(resource.MustParse("1Gi"))),
			corev1ac.Volume().WithName("spec").WithDownwardAPI(corev1ac.DownwardAPIVolumeSource().WithItems(
				corev1ac.DownwardAPIVolumeFile().WithPath("spec.json").WithFieldRef(
					corev1ac.ObjectFieldSelector().WithFieldPath("metadata.annotations['"+SpecAnnotation+"']")))))
	c.WithArgs("evaluate-revision", "--decider", e.Revision.Model, "--spec", specPath+"/spec.json", "--result", ResultFile,
		"--cases", casesOf(p, &e.CaseSet), "--cases-sha256", string(e.CaseSet.SHA256), "--repeats", strconv.Itoa(int(max(e.Repeats, 1))))
	if e.CaseSet.LadderSHA256 != "" {
		c.WithArgs("--ladder-sha256", string(e.CaseSet.LadderSHA256))
	}
	if HasPods(&e.Revision.Spec) {
		p.WithVolumes(secretVolume("tls", names.GateClientSecret))
		c.WithVolumeMounts(mount("tls", tlsPath)).WithArgs("--endpoint", URL(i.Namespace, e.Revision.Name),
			"--tls-cert", tlsPath+"/tls.crt", "--tls-key", tlsPath+"/tls.key", "--ca", tlsPath+"/ca.crt")
	}
	if x := e.Revision.Spec.External; x != nil && x.TokenSecretRef != nil {
		p.WithVolumes(tokenVolume("token", string(x.TokenSecretRef.Name)))
		c.WithVolumeMounts(mount("token", tokenPath)).WithArgs("--token-file", tokenPath+"/token")
	}
	return p.WithContainers(c)
}

// casesOf adds the volume with the cases and says where the file is.
func casesOf(p *corev1ac.PodSpecApplyConfiguration, set *v1alpha1.CaseSet) string {
	volume := corev1ac.Volume().WithName("cases")
	if set.Type == v1alpha1.CaseSetOCI {
		p.WithVolumes(volume.WithImage(corev1ac.ImageVolumeSource().WithReference(set.OCI.Image).WithPullPolicy(corev1.PullIfNotPresent)))
		return path.Join(casesPath, path.Clean("/"+set.OCI.Path))
	}
	p.WithVolumes(volume.WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(string(set.ConfigMapName))))
	return path.Join(casesPath, CasesFile)
}
