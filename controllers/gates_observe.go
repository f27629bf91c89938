package controllers

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/served"
)

// Observation is what the ready gates last said. It is immutable.
type Observation struct {
	// Known is false while a ready gate has not said anything yet and may still do so.
	Known bool
	// Reports of the gates by name of their pod. A gate that does not answer keeps its last report for a few rounds.
	Reports map[string]*served.Report
	// Silent are ready gates that did not answer for so long that their report no longer counts, sorted.
	Silent []string
}

// equal says whether two observations say the same about policies and deciders, whenever they were made.
func (o *Observation) equal(p *Observation) bool {
	if o.Known != p.Known || !slices.Equal(o.Silent, p.Silent) || len(o.Reports) != len(p.Reports) {
		return false
	}
	for pod, a := range o.Reports {
		b := p.Reports[pod]
		if b == nil || !maps.Equal(a.Policies, b.Policies) || !maps.Equal(a.Deciders, b.Deciders) || !reflect.DeepEqual(a.Shadow, b.Shadow) {
			return false
		}
	}
	return true
}

// programmed says whether every ready gate serves a generation of a policy. What it says depends on the number of gates
// only where they differ, so that another replica does not change the status of every policy.
func (o *Observation) programmed(key string, generation int64) metav1.Condition {
	set := func(s metav1.ConditionStatus, r v1alpha1.ConditionReason, message string) metav1.Condition {
		return condition(v1alpha1.ConditionProgrammed, s, r, message)
	}
	switch {
	case !o.Known:
		return pending(v1alpha1.ConditionProgrammed, "the gates have not said yet what they serve")
	case len(o.Reports) == 0 && len(o.Silent) == 0:
		return set(metav1.ConditionUnknown, v1alpha1.ReasonGatesNotObserved, "no gate is ready")
	}
	if behind := o.behind(key, generation); behind != "" {
		return set(metav1.ConditionFalse, v1alpha1.ReasonGenerationNotServed, fmt.Sprintf("generation %d is not served by every gate: %s", generation, behind))
	}
	if len(o.Silent) > 0 {
		return set(metav1.ConditionUnknown, v1alpha1.ReasonGatesNotObserved, "a ready gate does not say what it serves: "+some(o.Silent))
	}
	return set(metav1.ConditionTrue, v1alpha1.ReasonProgrammed, fmt.Sprintf("every ready gate serves generation %d", generation))
}

// behind names the gates that serve another generation of a policy than the one that is wanted.
func (o *Observation) behind(key string, generation int64) string {
	var out []string
	for _, pod := range slices.Sorted(maps.Keys(o.Reports)) {
		switch has, ok := o.Reports[pod].Policies[key]; {
		case !ok:
			out = append(out, pod+" does not have it")
		case has != generation:
			out = append(out, fmt.Sprintf("%s serves %d", pod, has))
		}
	}
	return some(out)
}

// some lists the first few of many.
func some(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
