package workload

import (
	"path"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
)

// Places in the containers.
const (
	tlsPath      = "/etc/gatewright/tls"
	artifactPath = "/artifact"
	scratchPath  = "/scratch"
	tmpPath      = "/tmp"
	downloaded   = artifactPath + "/model"
)

// Names of containers.
const (
	// DeciderContainer is the container that answers.
	DeciderContainer = "decider"
	// FetchContainer downloads the model before it.
	FetchContainer = "fetch"
	// FrontContainer ends TLS in front of a foreign image.
	FrontContainer = "tls-front"
)

const (
	user = 65532 // of all images
	// drainDelay and drainTimeout are given to the decider server, and the pod has both and ten seconds more to end.
	drainDelay, drainTimeout = 5, 20
	grace                    = drainDelay + drainTimeout + 10
	// startPeriod times startTries is ten minutes: a large file from a slow volume, hashed while it is copied.
	startPeriod, startTries = 5, 120
	// deadline without progress, after which a Deployment says that it has failed: the start and a download.
	progressDeadline = 1800
	defaultDownload  = 32 << 30
)

// Deployment is what runs a revision.
func Deployment(i Install, r Revision) *appsv1ac.DeploymentApplyConfiguration {
	return appsv1ac.Deployment(r.Name, i.Namespace).
		WithLabels(Labels(r.Model, r.Name)).WithOwnerReferences(r.owner()).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(r.Replicas).WithRevisionHistoryLimit(1).WithProgressDeadlineSeconds(progressDeadline).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(r.Name))).
			WithStrategy(appsv1ac.DeploymentStrategy().WithType("RollingUpdate").WithRollingUpdate(
				appsv1ac.RollingUpdateDeployment().WithMaxUnavailable(intstr.FromInt32(0)).WithMaxSurge(intstr.FromInt32(1)))).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(Labels(r.Model, r.Name)).WithSpec(podSpec(i, r))))
}

func podSpec(i Install, r Revision) *corev1ac.PodSpecApplyConfiguration {
	p := corev1ac.PodSpec().
		WithServiceAccountName(names.DeciderServiceAccount).WithAutomountServiceAccountToken(false).WithEnableServiceLinks(false).
		WithSecurityContext(podSecurity()).WithTerminationGracePeriodSeconds(grace).WithImagePullSecrets(pullSecrets(i)...).
		WithTopologySpreadConstraints(corev1ac.TopologySpreadConstraint().
			WithMaxSkew(1).WithTopologyKey(corev1.LabelHostname).WithWhenUnsatisfiable(corev1.ScheduleAnyway).
			WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(selector(r.Name)))).
		WithVolumes(secretVolume("tls", names.DeciderTLSSecret))
	place(p, r.Spec.Pod)
	if r.Spec.Runtime == v1alpha1.RuntimeContainer {
		return foreign(p, i, r)
	}
	file := artifact(p, i, &r.Spec)
	c := container(DeciderContainer, r.Image).WithArgs(llamaArgs(r, file)...).WithResources(resources(r.Spec.Pod)).
		WithPorts(corev1ac.ContainerPort().WithName("https").WithContainerPort(names.DeciderPort)).
		WithVolumeMounts(mount("tls", tlsPath))
	if r.Spec.Artifact.Type != v1alpha1.ArtifactBundled {
		c.WithVolumeMounts(mount("artifact", artifactPath))
	}
	if limit := modelMemory(r.Spec.Pod); limit != nil {
		c.WithArgs("-scratch", scratchPath).WithVolumeMounts(corev1ac.VolumeMount().WithName("scratch").WithMountPath(scratchPath))
		p.WithVolumes(corev1ac.Volume().WithName("scratch").WithEmptyDir(
			corev1ac.EmptyDirVolumeSource().WithMedium(corev1.StorageMediumMemory).WithSizeLimit(*limit)))
	}
	return p.WithContainers(probed(c))
}

// place says where the pods may run.
func place(to *corev1ac.PodSpecApplyConfiguration, pod *v1alpha1.DeciderPod) {
	if pod == nil {
		return
	}
	to.WithNodeSelector(pod.NodeSelector)
	if pod.PriorityClassName != "" && !pod.HasSystemPriority() {
		to.WithPriorityClassName(pod.PriorityClassName)
	}
	for _, t := range pod.Tolerations {
		to.WithTolerations(convert[corev1ac.TolerationApplyConfiguration](t))
	}
	if pod.Affinity != nil {
		to.WithAffinity(convert[corev1ac.AffinityApplyConfiguration](pod.Affinity))
	}
}

// llamaArgs is the command line of the decider server: all that moves its numbers, and by whom it may be asked.
func llamaArgs(r Revision, file string) []string {
	spec := &r.Spec
	args := []string{
		"-model", file, "-sha256", string(spec.Artifact.SHA256), "-name", r.Model, "-library", names.DeciderLibraryPath,
		"-listen", ":" + strconv.Itoa(names.DeciderPort), "-tls-cert", tlsPath + "/tls.crt", "-tls-key", tlsPath + "/tls.key",
		"-client-ca", tlsPath + "/ca.crt", "-context-tokens", strconv.Itoa(int(spec.ContextTokens)),
		"-drain-delay", strconv.Itoa(drainDelay) + "s", "-drain-timeout", strconv.Itoa(drainTimeout) + "s",
	}
	if n := threads(spec); n > 0 {
		args = append(args, "-threads", strconv.FormatInt(n, 10))
	}
	return append(args, ReadoutFlags(spec)...)
}

// threads are those that are asked for, else the whole processors that are requested: more would spin for each other. 0
// leaves it to the server, which looks at its CPU limit.
func threads(spec *v1alpha1.DeciderModelSpec) int64 {
	if spec.Threads != nil {
		return int64(*spec.Threads)
	}
	res := resources(spec.Pod)
	if res.Requests == nil {
		return 0
	}
	cpu, ok := (*res.Requests)[corev1.ResourceCPU]
	if !ok {
		return 0
	}
	return max(cpu.MilliValue()/1000, 1)
}

// resources of the container that answers. The defaults are for a small model; a large one says what it needs at its start.
func resources(pod *v1alpha1.DeciderPod) *corev1ac.ResourceRequirementsApplyConfiguration {
	out := corev1ac.ResourceRequirements()
	if pod == nil || pod.Resources == nil {
		return out.
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")})
	}
	if len(pod.Resources.Requests) > 0 {
		out.WithRequests(pod.Resources.Requests)
	}
	if len(pod.Resources.Limits) > 0 {
		out.WithLimits(pod.Resources.Limits)
	}
	return out
}

func modelMemory(pod *v1alpha1.DeciderPod) *resource.Quantity {
	if pod == nil {
		return nil
	}
	return pod.ModelMemoryLimit
}

// artifact adds the volume that holds the model file and says where the file is. Whatever lies there, the server hashes
// what it copies and loads only that copy.
func artifact(p *corev1ac.PodSpecApplyConfiguration, i Install, spec *v1alpha1.DeciderModelSpec) (file string) {
	volume := corev1ac.Volume().WithName("artifact")
	switch a := spec.Artifact; a.Type {
	case v1alpha1.ArtifactBundled:
		return path.Join(names.DeciderModelsPath, a.Bundled.Name)
	case v1alpha1.ArtifactOCI:
		p.WithVolumes(volume.WithImage(corev1ac.ImageVolumeSource().WithReference(a.OCI.Image).WithPullPolicy(corev1.PullIfNotPresent)))
		return within(a.OCI.Path)
	case v1alpha1.ArtifactPVC:
		p.WithVolumes(volume.WithPersistentVolumeClaim(
			corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(string(a.PersistentVolumeClaim.ClaimName)).WithReadOnly(true)))
		return within(a.PersistentVolumeClaim.Path)
	case v1alpha1.ArtifactURL:
		most := int64(defaultDownload)
		if limit := modelMemory(spec.Pod); limit != nil {
			most = limit.Value()
		}
		// The volume holds the file and, while it comes, nothing else of it: it is renamed and not copied.
		p.WithVolumes(volume.WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(*resource.NewQuantity(most+(1<<20), resource.BinarySI))))
		p.WithInitContainers(container(FetchContainer, i.ToolImage).WithCommand(names.BinaryPath+"/gatewright").
			WithArgs("model", "fetch", "--url", a.URL, "--sha256", string(a.SHA256), "--out", downloaded, "--max-bytes", strconv.FormatInt(most, 10)).
			WithResources(small()).WithVolumeMounts(corev1ac.VolumeMount().WithName("artifact").WithMountPath(artifactPath)))
		return downloaded
	}
	return "" // no other type passes the schema, and the server refuses an empty path
}

// within is a path in the volume, whatever dots it holds.
func within(p string) string { return path.Join(artifactPath, path.Clean("/"+p)) }

// foreign is an image of somebody else, and in front of it what asks for a client certificate. It has a /tmp and no way out.
func foreign(p *corev1ac.PodSpecApplyConfiguration, i Install, r Revision) *corev1ac.PodSpecApplyConfiguration {
	x := r.Spec.Container
	p.WithVolumes(corev1ac.Volume().WithName("tmp").WithEmptyDir(corev1ac.EmptyDirVolumeSource()))
	front := container(FrontContainer, i.ToolImage).WithCommand(names.BinaryPath+"/gatewright").
		WithArgs("tls-front", "--listen", ":"+strconv.Itoa(names.DeciderPort), "--upstream", "http://127.0.0.1:"+strconv.Itoa(int(x.Port)),
			"--tls-cert", tlsPath+"/tls.crt", "--tls-key", tlsPath+"/tls.key", "--client-ca", tlsPath+"/ca.crt",
			"--max-in-flight", strconv.Itoa(int(max(x.MaxInFlight, 1)))).
		WithResources(small()).WithPorts(corev1ac.ContainerPort().WithName("https").WithContainerPort(names.DeciderPort)).
		WithVolumeMounts(mount("tls", tlsPath))
	answers := container(DeciderContainer, x.Image).WithArgs(x.Args...).WithResources(resources(r.Spec.Pod)).
		WithEnv(corev1ac.EnvVar().WithName("HOME").WithValue(tmpPath)).
		WithVolumeMounts(corev1ac.VolumeMount().WithName("tmp").WithMountPath(tmpPath))
	return p.WithContainers(answers, probed(front))
}

// container is one as the restricted profile of Pod Security wants it.
func container(name, image string) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().WithName(name).WithImage(image).WithImagePullPolicy(corev1.PullIfNotPresent).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(corev1ac.SecurityContext().WithAllowPrivilegeEscalation(false).WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))
}

func podSecurity() *corev1ac.PodSecurityContextApplyConfiguration {
	return corev1ac.PodSecurityContext().WithRunAsNonRoot(true).WithRunAsUser(user).WithRunAsGroup(user).WithFSGroup(user).
		WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}

// small are the resources of what only moves bytes.
func small() *corev1ac.ResourceRequirementsApplyConfiguration {
	return corev1ac.ResourceRequirements().
		WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")}).
		WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")})
}

// probed adds the probes. The kubelet has no client certificate: probes are the one thing that is answered without.
func probed(c *corev1ac.ContainerApplyConfiguration) *corev1ac.ContainerApplyConfiguration {
	get := func(path string, period, failures int32) *corev1ac.ProbeApplyConfiguration {
		return corev1ac.Probe().WithPeriodSeconds(period).WithFailureThreshold(failures).WithTimeoutSeconds(3).WithHTTPGet(
			corev1ac.HTTPGetAction().WithPath(path).WithPort(intstr.FromString("https")).WithScheme(corev1.URISchemeHTTPS))
	}
	return c.WithStartupProbe(get("/readyz", startPeriod, startTries)).WithReadinessProbe(get("/readyz", 5, 2)).WithLivenessProbe(get("/healthz", 10, 3))
}

func mount(name, path string) *corev1ac.VolumeMountApplyConfiguration {
	return corev1ac.VolumeMount().WithName(name).WithMountPath(path).WithReadOnly(true)
}

// secretVolume can be read by the group of the pod, and by nobody else.
func secretVolume(name, secret string) *corev1ac.VolumeApplyConfiguration {
	return corev1ac.Volume().WithName(name).WithSecret(corev1ac.SecretVolumeSource().WithSecretName(secret).WithDefaultMode(0o440))
}
