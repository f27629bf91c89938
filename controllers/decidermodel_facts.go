package controllers

import (
	"cmp"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference/workload"
)

// deciderFacts is all that the status and the children of a DeciderModel depend on.
type deciderFacts struct {
	model *v1alpha1.DeciderModel
	now   time.Time
	// problem is why the spec, or the annotation that asks for an earlier revision, makes no sense. Empty: it does.
	problem string
	// wanted is the revision that is asked for: that of the spec, or the earlier one that an annotation names.
	wanted string
	// known are the revisions that are there, the newest first. The wanted one may be still to come.
	known []*appsv1.ControllerRevision
	// revisions has what was observed of the active and of the wanted revision, by name.
	revisions map[string]*revisionFacts
	gates     *Observation
}

// revisionFacts is what was observed of one revision.
type revisionFacts struct {
	revision workload.Revision
	// problem is why the revision cannot be used at all, such as that its object was changed by somebody else.
	problem string
	// taken names an object of somebody else that has a name which this revision needs. Empty: none.
	taken string
	pods  podFacts
	// seen is what the decider says of itself; nil if it was not asked, or could not be.
	seen *seen
	// silent is why it could not be asked.
	silent string
	// evaluationTaken names a DeciderEvaluation that has the name of that of this revision and is another one. Empty: none.
	evaluationTaken string
	// evaluation of this revision by the cases and floors of now; nil as long as there is none.
	evaluation *v1alpha1.DeciderEvaluation
}

// podFacts is what is known of the pods of a revision.
type podFacts struct {
	// ready serve. complete says that as many as are wanted do, all of them as they should be.
	ready    int32
	complete bool
	// trouble is why a pod does not start, in one line. mismatch says that it is a hash that differs.
	trouble  string
	mismatch bool
}

// seen is what a decider says of itself.
type seen struct {
	fingerprint v1alpha1.Fingerprint
	// sha256 of the loaded bytes, where code of ours has hashed them. Empty for all others.
	sha256 v1alpha1.SHA256
	// mismatch is why it is not the one that was asked for: other bytes, or another name. Empty: it is.
	mismatch string
}

// shadow sums up how a revision compared with the active one in all gates.
func (f *deciderFacts) shadow(revision string) v1alpha1.ShadowResult {
	var sum v1alpha1.ShadowResult
	classes := map[string]v1alpha1.ShadowClassResult{}
	for _, report := range f.gates.Reports {
		s := report.Shadow[revision]
		sum.Compared += s.Compared
		sum.Disagreed += s.Disagreed
		sum.Failed += s.Failed
		for name, count := range s.ByClass {
			c := classes[name]
			classes[name] = v1alpha1.ShadowClassResult{Class: name, Compared: c.Compared + count.Compared, Disagreed: c.Disagreed + count.Disagreed}
		}
	}
	sum.ByClass = mostDisagreed(classes)
	return sum
}

// The bounds of the schema for classes of a comparison.
const maxClasses, maxClassName = 16, 63

// mostDisagreed are as many classes as a status takes, by name.
func mostDisagreed(classes map[string]v1alpha1.ShadowClassResult) []v1alpha1.ShadowClassResult {
	byName := func(a, b v1alpha1.ShadowClassResult) int { return cmp.Compare(a.Class, b.Class) }
	all := slices.SortedFunc(maps.Values(classes), func(a, b v1alpha1.ShadowClassResult) int {
		return cmp.Or(cmp.Compare(b.Disagreed, a.Disagreed), byName(a, b))
	})
	all = slices.DeleteFunc(all, func(c v1alpha1.ShadowClassResult) bool { return c.Class == "" || len(c.Class) > maxClassName })
	all = all[:min(len(all), maxClasses)]
	slices.SortFunc(all, byName)
	if len(all) == 0 {
		return nil
	}
	return all
}

// deciderVerdict is what follows from the facts.
type deciderVerdict struct {
	conditions []metav1.Condition
	active     *v1alpha1.DeciderRevision
	candidate  *v1alpha1.DeciderRevision
	history    []v1alpha1.DeciderRevision
	// create says that the wanted revision is to be written first.
	create bool
	// run are the revisions whose children are to be there, evaluate the one that is to be evaluated.
	run      []string
	evaluate string
	// keep are the revisions that stay; all others, and the children of those that do not run, are deleted.
	keep []string
	// recheck is when to look again without an event. 0: there is nothing to wait for but events.
	recheck time.Duration
}

const (
	// revisionsKept are those besides the active one and the candidate.
	revisionsKept = 10
	// drainFor is how long the pods of a revision stay after another took over: until every gate has heard of it, and the
	// last call that began before that has ended.
	drainFor = 90 * time.Second
	// downFor is how long the active revision must have been away before a candidate is no longer compared with it.
	downFor = 5 * time.Minute
	// lookAgain is how often a decider is asked who it is, without an event.
	lookAgain = time.Minute
	// lookSoon is how often a candidate is asked.
	lookSoon = 5 * time.Second
)
