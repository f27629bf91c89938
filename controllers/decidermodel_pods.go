package controllers

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"gatewright.dev/gatewright/internal/inference/workload"
)

// exitHash is the code with which the decider server, and a download, end when the bytes have another hash than the pinned
// one. It is in the reference of both.
const exitHash = 10

// stuck are the reasons of a waiting container that do not heal by waiting.
var stuck = []string{
	"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError", "RunContainerError",
}

// podTrouble says in one line why pods do not serve, from the first that shows it. A hash that differs goes before
// everything else.
func podTrouble(pods []corev1.Pod) (trouble string, mismatch bool) {
	pods = slices.Clone(pods)
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for i := range pods {
		text, differs := troubleOf(&pods[i])
		if differs {
			return text, true
		}
		if trouble == "" {
			trouble = text
		}
	}
	return trouble, false
}

func troubleOf(pod *corev1.Pod) (text string, mismatch bool) {
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if s.Ready {
			continue
		}
		for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
			if t != nil && t.ExitCode != 0 {
				ours := s.Name == workload.DeciderContainer || s.Name == workload.FetchContainer
				return fmt.Sprintf("container %s ended with code %d: %s", s.Name, t.ExitCode, lastLine(t)), ours && t.ExitCode == exitHash
			}
		}
		if w := s.State.Waiting; w != nil && slices.Contains(stuck, w.Reason) {
			return fmt.Sprintf("container %s waits: %s: %s", s.Name, w.Reason, short(w.Message)), false
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "the pod has no node: " + short(c.Message), false
		}
	}
	return "", false
}

// lastLine is what a container said last: its own reason, where it wrote one, or the end of its log.
func lastLine(t *corev1.ContainerStateTerminated) string {
	lines := strings.Split(strings.TrimSpace(t.Message), "\n")
	if last := short(lines[len(lines)-1]); last != "" {
		return last
	}
	if t.Reason != "" {
		return t.Reason
	}
	return "it gave no reason"
}
