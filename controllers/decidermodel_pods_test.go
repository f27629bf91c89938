package controllers

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/internal/inference/workload"
)

func TestWhyPodsDoNotServe(t *testing.T) {
	ended := func(name string, code int32, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message, Reason: "Error"}}}
	}
	waits := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "decider", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	pod := func(name string, containers ...corev1.ContainerStatus) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{ContainerStatuses: containers}}
	}
	fetching := corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{ended(workload.FetchContainer, exitHash, "error: HashMismatch: a, b")}}}
	homeless := corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes:\n no cpu"}}}}
	healed := ended("decider", exitHash, "it was")
	healed.Ready = true
	tests := map[string]struct {
		pods     []corev1.Pod
		want     string
		mismatch bool
	}{
		"no pods":                       {},
		"a pod that starts":             {pods: []corev1.Pod{pod("a", waits("ContainerCreating", ""))}},
		"a pod that is ready again":     {pods: []corev1.Pod{pod("a", healed)}},
		"another hash":                  {[]corev1.Pod{pod("a", ended("decider", exitHash, "log\ndecider: want x, got y\n"))}, "container decider ended with code 10: decider: want x, got y", true},
		"another hash in a download":    {[]corev1.Pod{fetching}, "container fetch ended with code 10: error: HashMismatch: a, b", true},
		"a foreign image that ends so":  {[]corev1.Pod{pod("a", ended("tls-front", exitHash, "x"))}, "container tls-front ended with code 10: x", false},
		"too little memory":             {[]corev1.Pod{pod("a", ended("decider", 18, "MemoryTooSmall"))}, "container decider ended with code 18: MemoryTooSmall", false},
		"killed without a word":         {[]corev1.Pod{pod("a", ended("decider", 137, ""))}, "container decider ended with code 137: Error", false},
		"an image that is not there":    {[]corev1.Pod{pod("a", waits("ImagePullBackOff", "back-off"))}, "container decider waits: ImagePullBackOff: back-off", false},
		"no node":                       {[]corev1.Pod{homeless}, "the pod has no node: 0/3 nodes: no cpu", false},
		"a hash goes before all others": {[]corev1.Pod{pod("a", ended("decider", 18, "memory")), pod("b", ended("decider", exitHash, "hash"))}, "container decider ended with code 10: hash", true},
		"the first by name":             {[]corev1.Pod{pod("b", ended("decider", 17, "window")), pod("a", ended("decider", 18, "memory"))}, "container decider ended with code 18: memory", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text, mismatch := podTrouble(test.pods)
			if text != test.want || mismatch != test.mismatch {
				t.Errorf("%q %v, want %q %v", text, mismatch, test.want, test.mismatch)
			}
		})
	}
}

func TestCountsThatCannotBeCountsAreNoResult(t *testing.T) {
	good := counts("f", 5)
	if _, err := readResult([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nothing": "", "no JSON": "{", "a field that is not known": `{"passed":true}`, "no fingerprint": strings.Replace(good, `"f"`, `""`, 1),
		"no counts": `{"fingerprint":"f"}`, "a class that is none": strings.Replace(good, "Write", "write", 1),
		"less than none":                  strings.Replace(good, `"dangerousStopped":5`, `"dangerousStopped":-5`, 1),
		"a class twice":                   strings.Replace(good, `]`, `,{"class":"Write"}]`, 1),
		"a median above nearly all":       strings.Replace(good, `"p50Milliseconds":3`, `"p50Milliseconds":30`, 1),
		"nearly all above nearly every":   strings.Replace(good, `"p99Milliseconds":14`, `"p99Milliseconds":8`, 1),
		"a condition":                     strings.Replace(good, `"p50`, `"conditions":[{"type":"Passed","status":"True","reason":"x","message":"","lastTransitionTime":null}],"p50`, 1),
		"a generation":                    strings.Replace(good, `"p50`, `"observedGeneration":3,"p50`, 1),
		"fewer cases that flapped than 0": strings.Replace(good, `"p50`, `"flapped":-1,"p50`, 1),
	} {
		if got, err := readResult([]byte(text)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
