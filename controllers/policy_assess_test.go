package controllers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/served"
)

const testPrint v1alpha1.Fingerprint = "sha256:one"

// servedBy is an observation of gates that serve generations of the policy p, by name of the pod.
func servedBy(generations map[string]int64) *Observation {
	o := &Observation{Known: true, Reports: map[string]*served.Report{}}
	for pod, g := range generations {
		o.Reports[pod] = &served.Report{Policies: map[string]int64{"p": g}}
	}
	return o
}

// goodDecider serves one verified revision.
func goodDecider() *v1alpha1.DeciderModel {
	m := &v1alpha1.DeciderModel{Spec: v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeLlamaCpp, RequireVerified: v1alpha1.Required}}
	m.Name = "judge"
	m.Status.Active = &v1alpha1.DeciderRevision{Name: "judge-1", Fingerprint: testPrint}
	setVerified(m, metav1.ConditionTrue, v1alpha1.ReasonVerified)
	return m
}

func setVerified(m *v1alpha1.DeciderModel, s metav1.ConditionStatus, r v1alpha1.ConditionReason) {
	m.Status.Conditions = []metav1.Condition{condition(v1alpha1.ConditionVerified, s, r, "")}
}

// goodFacts are those of a policy at generation 4 with nothing to say about it.
func goodFacts() *policyFacts {
	return &policyFacts{
		key: "p", generation: 4, reference: &v1alpha1.DeciderReference{Name: "judge", Fingerprint: testPrint}, decider: goodDecider(),
		namespaces: []string{"shop"}, gates: servedBy(map[string]int64{"gate-0": 4, "gate-1": 4}),
	}
}

// states are the statuses and reasons of the four conditions: Accepted, ResolvedRefs, Programmed, Ready.
func states(conditions []metav1.Condition) []string {
	var out []string
	for _, c := range conditions {
		out = append(out, c.Type+"="+string(c.Status)+" "+c.Reason)
	}
	return out
}

func TestAssessPolicy(t *testing.T) {
	const (
		accepted, resolved, programmed = "Accepted=True Accepted", "ResolvedRefs=True ResolvedRefs", "Programmed=True Programmed"
		ready                          = "Ready=True Ready"
	)
	for name, row := range map[string]struct {
		change  func(*policyFacts)
		want    []string
		wantSay string // in the message of Ready
	}{
		"everything is as it should be": {
			func(*policyFacts) {}, []string{accepted, resolved, programmed, ready}, "every ready gate applies this policy",
		},
		"it asks no decider": {
			func(f *policyFacts) { f.reference, f.decider = nil, nil }, []string{accepted, resolved, programmed, ready}, "applies",
		},
		"it does not compile, and gates block its callers": {
			func(f *policyFacts) { f.compiled.errors = "spec.tools[0].class: Not found" },
			[]string{"Accepted=False Invalid", "ResolvedRefs=Unknown Pending", programmed, "Ready=False Invalid"}, "spec.tools[0].class: Not found",
		},
		"the decider does not exist": {
			func(f *policyFacts) { f.decider = nil },
			[]string{accepted, "ResolvedRefs=False DeciderNotFound", programmed, "Ready=False DeciderNotFound"}, "DeciderModel judge does not exist",
		},
		"the decider is not for this namespace": {
			func(f *policyFacts) {
				f.decider.Spec.AllowedNamespaces = &v1alpha1.NamespaceAllowance{From: v1alpha1.NamespacesListed, Namespaces: []v1alpha1.Namespace{"bank"}}
			},
			[]string{accepted, "ResolvedRefs=False DeciderNotAllowed", programmed, "Ready=False DeciderNotAllowed"}, "from namespace shop",
		},
		"the decider is for this namespace among others": {
			func(f *policyFacts) {
				f.decider.Spec.AllowedNamespaces = &v1alpha1.NamespaceAllowance{From: v1alpha1.NamespacesListed, Namespaces: []v1alpha1.Namespace{"bank", "shop"}}
			},
			[]string{accepted, resolved, programmed, ready}, "applies",
		},
		"the decider is at a URL and says nothing of namespaces": {
			func(f *policyFacts) { f.decider.Spec.Runtime = v1alpha1.RuntimeExternal },
			[]string{accepted, "ResolvedRefs=False DeciderNotAllowed", programmed, "Ready=False DeciderNotAllowed"}, "allowedNamespaces",
		},
		"the policy is for one namespace too many": {
			func(f *policyFacts) {
				f.namespaces = []string{"bank", "shop"}
				f.decider.Spec.AllowedNamespaces = &v1alpha1.NamespaceAllowance{From: v1alpha1.NamespacesListed, Namespaces: []v1alpha1.Namespace{"bank"}}
			},
			[]string{accepted, "ResolvedRefs=False DeciderNotAllowed", programmed, "Ready=False DeciderNotAllowed"}, "from namespace shop",
		},
		"the policy is for all namespaces and the decider for some": {
			func(f *policyFacts) {
				f.namespaces = nil
				f.decider.Spec.AllowedNamespaces = &v1alpha1.NamespaceAllowance{From: v1alpha1.NamespacesListed, Namespaces: []v1alpha1.Namespace{"shop"}}
			},
			[]string{accepted, "ResolvedRefs=False DeciderNotAllowed", programmed, "Ready=False DeciderNotAllowed"}, "from every namespace",
		},
		"the policy and the decider are for all namespaces": {
			func(f *policyFacts) { f.namespaces = nil }, []string{accepted, resolved, programmed, ready}, "applies",
		},
		"no namespace may ask the decider": {
			func(f *policyFacts) {
				f.decider.Spec.AllowedNamespaces = &v1alpha1.NamespaceAllowance{From: v1alpha1.NamespacesNone}
			},
			[]string{accepted, "ResolvedRefs=False DeciderNotAllowed", programmed, "Ready=False DeciderNotAllowed"}, "from namespace shop",
		},
		"a ladder may allow by numbers of an unnamed model": {
			func(f *policyFacts) { f.reference.Fingerprint, f.compiled.needsFingerprint = "", true },
			[]string{accepted, "ResolvedRefs=False FingerprintRequired", programmed, "Ready=False FingerprintRequired"}, "spec.deciderRef.fingerprint",
		},
		"no ladder allows by numbers of an unnamed model": {
			func(f *policyFacts) { f.reference.Fingerprint = "" }, []string{accepted, resolved, programmed, ready}, "applies",
		},
		"the decider serves another fingerprint": {
			func(f *policyFacts) { f.decider.Status.Active.Fingerprint = "sha256:two" },
			[]string{accepted, "ResolvedRefs=False DeciderMismatch", programmed, "Ready=False DeciderMismatch"}, "sha256:two",
		},
		"the decider has no revision that serves": {
			func(f *policyFacts) { f.decider.Status.Active = nil },
			[]string{accepted, "ResolvedRefs=Unknown Pending", programmed, "Ready=Unknown Pending"}, "no revision",
		},
		"the decider has not said its fingerprint": {
			func(f *policyFacts) { f.decider.Status.Active.Fingerprint = "" },
			[]string{accepted, "ResolvedRefs=Unknown Pending", programmed, "Ready=Unknown Pending"}, "fingerprint",
		},
		"the decider's bytes are others than pinned": {
			func(f *policyFacts) { setVerified(f.decider, metav1.ConditionFalse, v1alpha1.ReasonHashMismatch) },
			[]string{accepted, "ResolvedRefs=False DeciderNotVerified", programmed, "Ready=False DeciderNotVerified"}, "HashMismatch",
		},
		"a candidate's bytes are others than pinned, and those that serve were checked": {
			func(f *policyFacts) {
				f.decider.Status.Active.SHA256 = pinnedHash
				setVerified(f.decider, metav1.ConditionFalse, v1alpha1.ReasonHashMismatch)
			},
			[]string{accepted, resolved, programmed, ready}, "applies",
		},
		"the decider vouches for itself": {
			func(f *policyFacts) { setVerified(f.decider, metav1.ConditionUnknown, v1alpha1.ReasonSelfReported) },
			[]string{accepted, "ResolvedRefs=False DeciderNotVerified", programmed, "Ready=False DeciderNotVerified"}, "SelfReported",
		},
		"the decider vouches for itself, which is enough": {
			func(f *policyFacts) {
				f.decider.Spec.RequireVerified = v1alpha1.Optional
				setVerified(f.decider, metav1.ConditionUnknown, v1alpha1.ReasonSelfReported)
			},
			[]string{accepted, resolved, programmed, ready}, "applies",
		},
		"the decider's bytes are not checked yet": {
			func(f *policyFacts) { setVerified(f.decider, metav1.ConditionUnknown, v1alpha1.ReasonPending) },
			[]string{accepted, "ResolvedRefs=Unknown Pending", programmed, "Ready=Unknown Pending"}, "not checked yet",
		},
		"nothing is known of the decider's bytes": {
			func(f *policyFacts) { f.decider.Status.Conditions = nil },
			[]string{accepted, "ResolvedRefs=Unknown Pending", programmed, "Ready=Unknown Pending"}, "not checked yet",
		},
		"a gate serves an older generation": {
			func(f *policyFacts) { f.gates = servedBy(map[string]int64{"gate-0": 4, "gate-1": 3}) },
			[]string{accepted, resolved, "Programmed=False GenerationNotServed", "Ready=False GenerationNotServed"}, "gate-1 serves 3",
		},
		"a gate does not have it": {
			func(f *policyFacts) { f.gates = servedBy(nil); f.gates.Reports["gate-0"] = &served.Report{} },
			[]string{accepted, resolved, "Programmed=False GenerationNotServed", "Ready=False GenerationNotServed"}, "gate-0 does not have it",
		},
		"many gates are behind": {
			func(f *policyFacts) {
				f.gates = servedBy(map[string]int64{"g-0": 1, "g-1": 1, "g-2": 2, "g-3": 3, "g-4": 4})
			},
			[]string{accepted, resolved, "Programmed=False GenerationNotServed", "Ready=False GenerationNotServed"}, "g-0 serves 1, g-1 serves 1, g-2 serves 2 and 1 more",
		},
		"no gate is ready": {
			func(f *policyFacts) { f.gates = servedBy(nil) },
			[]string{accepted, resolved, "Programmed=Unknown GatesNotObserved", "Ready=Unknown Pending"}, "no gate is ready",
		},
		"a ready gate says nothing": {
			func(f *policyFacts) { f.gates.Silent = []string{"gate-2"} },
			[]string{accepted, resolved, "Programmed=Unknown GatesNotObserved", "Ready=Unknown Pending"}, "gate-2",
		},
		"a gate says nothing and another is behind": {
			func(f *policyFacts) {
				f.gates = servedBy(map[string]int64{"gate-0": 1})
				f.gates.Silent = []string{"gate-2"}
			},
			[]string{accepted, resolved, "Programmed=False GenerationNotServed", "Ready=False GenerationNotServed"}, "gate-0 serves 1",
		},
		"the gates were not asked yet": {
			func(f *policyFacts) { f.gates = &Observation{} },
			[]string{accepted, resolved, "Programmed=Unknown Pending", "Ready=Unknown Pending"}, "have not said yet",
		},
		"the gates were not asked yet, but it was known of this generation": {
			func(f *policyFacts) {
				f.gates = &Observation{}
				known := condition(v1alpha1.ConditionProgrammed, metav1.ConditionTrue, v1alpha1.ReasonProgrammed, "known before")
				known.ObservedGeneration = 4
				f.before = []metav1.Condition{known}
			},
			[]string{accepted, resolved, programmed, ready}, "applies",
		},
		"the gates were not asked yet, and it was known of an older generation": {
			func(f *policyFacts) {
				f.gates = &Observation{}
				known := condition(v1alpha1.ConditionProgrammed, metav1.ConditionTrue, v1alpha1.ReasonProgrammed, "known before")
				known.ObservedGeneration = 3
				f.before = []metav1.Condition{known}
			},
			[]string{accepted, resolved, "Programmed=Unknown Pending", "Ready=Unknown Pending"}, "have not said yet",
		},
		"several things are wrong: Ready has the reason of the first": {
			func(f *policyFacts) { f.decider, f.gates = nil, servedBy(map[string]int64{"gate-0": 1}) },
			[]string{accepted, "ResolvedRefs=False DeciderNotFound", "Programmed=False GenerationNotServed", "Ready=False DeciderNotFound"}, "judge",
		},
		"something is wrong and something is not known: Ready is False": {
			func(f *policyFacts) { f.gates, f.decider.Status.Active = servedBy(map[string]int64{"gate-0": 1}), nil },
			[]string{accepted, "ResolvedRefs=Unknown Pending", "Programmed=False GenerationNotServed", "Ready=False GenerationNotServed"}, "gate-0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := goodFacts()
			row.change(f)
			got := assessPolicy(f)
			if diff := cmp.Diff(row.want, states(got)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if say := got[len(got)-1].Message; !strings.Contains(say, row.wantSay) {
				t.Errorf("Ready says %q, want %q in it", say, row.wantSay)
			}
			if diff := cmp.Diff(got, assessPolicy(f)); diff != "" {
				t.Errorf("judging twice differs:\n%s", diff)
			}
		})
	}
}

// TestAnotherReplicaChangesNoMessage keeps a change of the number of gates from writing the status of every policy.
func TestAnotherReplicaChangesNoMessage(t *testing.T) {
	two, three := servedBy(map[string]int64{"a": 4, "b": 4}), servedBy(map[string]int64{"a": 4, "b": 4, "c": 4})
	if diff := cmp.Diff(two.programmed("p", 4), three.programmed("p", 4)); diff != "" {
		t.Errorf("Programmed with two and three gates:\n%s", diff)
	}
}

func TestConditionsKeepTheTimeOfTheirTransition(t *testing.T) {
	early, late := metav1.Unix(1_000, 0), metav1.Unix(2_000, 0)
	var held []metav1.Condition
	ok := func(s metav1.ConditionStatus, message string) []metav1.Condition {
		return []metav1.Condition{condition(v1alpha1.ConditionReady, s, v1alpha1.ReasonReady, message)}
	}
	setConditions(&held, 1, early, ok(metav1.ConditionTrue, "one"))
	setConditions(&held, 2, late, ok(metav1.ConditionTrue, "two"))
	want := []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Ready", Message: "two", ObservedGeneration: 2, LastTransitionTime: early}}
	if diff := cmp.Diff(want, held); diff != "" {
		t.Errorf("after another message (-want +got):\n%s", diff)
	}
	setConditions(&held, 2, late, ok(metav1.ConditionUnknown, "two"))
	if !held[0].LastTransitionTime.Equal(&late) {
		t.Errorf("after another status the transition was at %s", held[0].LastTransitionTime)
	}
	held = append(held, metav1.Condition{Type: "Invented", Status: "True"})
	setConditions(&held, 2, late, ok(metav1.ConditionUnknown, "two"))
	if len(held) != 1 {
		t.Errorf("a condition of another type stays: %v", states(held))
	}
}

func TestShortenCutsBetweenCharacters(t *testing.T) {
	for name, text := range map[string]string{
		"letters": strings.Repeat("a", 3000), "characters of three bytes": strings.Repeat("€", 1000), "a shift of one byte": "a" + strings.Repeat("€", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			got := shorten(text)
			if len(got) > maxMessage || !strings.HasSuffix(got, " …") || strings.ToValidUTF8(got, "") != got {
				t.Errorf("%d bytes, valid %t: …%q", len(got), strings.ToValidUTF8(got, "") == got, got[len(got)-12:])
			}
		})
	}
	if got := shorten("short"); got != "short" {
		t.Errorf("a short text became %q", got)
	}
}
