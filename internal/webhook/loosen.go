package webhook

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// Loosened says which ordered fields an update of a ToolPolicy moves to the looser side. It compares fields and proves
// nothing about calls: what it does not name may still let more through.
func Loosened(was, is *v1alpha1.ToolPolicySpec) []string {
	c := newComparison(&was.PolicyRules, &is.PolicyRules)
	c.selection("spec.subjects", was.Subjects, is.Subjects)
	c.unknown(orDefault(was.UnknownTools, v1alpha1.UnknownToolsBlock), orDefault(is.UnknownTools, v1alpha1.UnknownToolsBlock))
	c.rules()
	return c.out
}

// LoosenedCluster does the same for a ClusterToolPolicy.
func LoosenedCluster(was, is *v1alpha1.ClusterToolPolicySpec) []string {
	c := newComparison(&was.PolicyRules, &is.PolicyRules)
	c.selection("spec.namespaces", toNames(was.Namespaces), toNames(is.Namespaces))
	c.unknown(orDefault(was.UnknownTools, v1alpha1.UnknownToolsDefer), orDefault(is.UnknownTools, v1alpha1.UnknownToolsDefer))
	c.ordered("spec.minimumMode", orDefault(was.MinimumMode, v1alpha1.ModeAudit), orDefault(is.MinimumMode, v1alpha1.ModeAudit), v1alpha1.ModeEnforce, v1alpha1.ModeAudit)
	c.rules()
	return c.out
}

func toNames(namespaces []v1alpha1.Namespace) []v1alpha1.ObjectName {
	out := make([]v1alpha1.ObjectName, len(namespaces))
	for i, n := range namespaces {
		out[i] = v1alpha1.ObjectName(n)
	}
	return out
}

// comparison collects what is looser than it was.
type comparison struct {
	was, is  *v1alpha1.PolicyRules
	unlisted v1alpha1.UnknownTools
	out      []string
}

func newComparison(was, is *v1alpha1.PolicyRules) *comparison { return &comparison{was: was, is: is} }

func (c *comparison) add(format string, args ...any) {
	c.out = append(c.out, "loosened: "+fmt.Sprintf(format, args...))
}

// ordered compares values whose order is given, strictest first. A value that is not in it is no looser than any.
func (c *comparison) ordered(path string, was, is any, strictestFirst ...any) {
	if i, j := slices.Index(strictestFirst, was), slices.Index(strictestFirst, is); i >= 0 && j > i {
		c.add("%s: was %v, is %v", path, was, is)
	}
}

// greater says that a number that bounds something has grown.
func (c *comparison) greater(path string, was, is int32) {
	if is > was {
		c.add("%s: was %d, is %d", path, was, is)
	}
}

// selection compares whom a policy applies to; empty is everybody.
func (c *comparison) selection(path string, was, is []v1alpha1.ObjectName) {
	if len(is) == 0 {
		return
	}
	if len(was) == 0 {
		c.add("%s: was everybody, is %s", path, words(is))
		return
	}
	if gone := added(is, was); len(gone) > 0 {
		c.add("%s: no longer %s", path, words(gone))
	}
}

func (c *comparison) unknown(was, is v1alpha1.UnknownTools) {
	c.unlisted = is
	c.ordered("spec.unknownTools", was, is, v1alpha1.UnknownToolsBlock, v1alpha1.UnknownToolsConfirm, v1alpha1.UnknownToolsDefer)
}

// rules compares what both kinds of policies have in common.
func (c *comparison) rules() {
	was, is := c.was, c.is
	c.ordered("spec.mode", orDefault(was.Mode, v1alpha1.ModeEnforce), orDefault(is.Mode, v1alpha1.ModeEnforce), v1alpha1.ModeEnforce, v1alpha1.ModeAudit)
	c.ordered("spec.contextTrust", orDefault(was.ContextTrust, v1alpha1.TrustCaller), orDefault(is.ContextTrust, v1alpha1.TrustCaller), v1alpha1.TrustAttested, v1alpha1.TrustCaller)
	c.ordered("spec.disclose", orDefault(was.Disclose, v1alpha1.DiscloseMinimal), orDefault(is.Disclose, v1alpha1.DiscloseMinimal), v1alpha1.DiscloseMinimal, v1alpha1.DiscloseFull)
	c.ordered("spec.captureState", orDefault(was.CaptureState, v1alpha1.CaptureDigest), orDefault(is.CaptureState, v1alpha1.CaptureDigest),
		v1alpha1.CaptureDigest, v1alpha1.CaptureEncrypted, v1alpha1.CapturePlain)
	c.greater("spec.clarifyLimit", orDefault(was.ClarifyLimit, 2), orDefault(is.ClarifyLimit, 2))
	for _, a := range is.Attestors {
		if !slices.Contains(was.Attestors, a) && len(was.Attestors) > 0 {
			c.add("spec.attestors[%s]: is a new key whose word counts", a.Name)
		}
	}
	c.approvals(settings(was), settings(is))
	c.classes()
	c.tools()
	c.grants()
	c.facts()
}

func settings(r *v1alpha1.PolicyRules) v1alpha1.ApprovalSettings {
	var s v1alpha1.ApprovalSettings
	if r.Approvals != nil {
		s = *r.Approvals
	}
	s.TTLSeconds, s.PermitSeconds = orDefault(s.TTLSeconds, 900), orDefault(s.PermitSeconds, 30)
	return s
}

func (c *comparison) approvals(was, is v1alpha1.ApprovalSettings) {
	c.greater("spec.approvals.ttlSeconds", was.TTLSeconds, is.TTLSeconds)
	c.greater("spec.approvals.permitSeconds", was.PermitSeconds, is.PermitSeconds)
	switch {
	case was.Budget == nil:
	case is.Budget == nil:
		c.add("spec.approvals.budget: was %d confirmations in %d s, is gone", was.Budget.Confirmations, was.Budget.WindowSeconds)
	default:
		c.greater("spec.approvals.budget.confirmations", was.Budget.Confirmations, is.Budget.Confirmations)
		if was.Budget.WindowSeconds > is.Budget.WindowSeconds { // the same number in less time is more
			c.add("spec.approvals.budget.windowSeconds: was %d, is %d", was.Budget.WindowSeconds, is.Budget.WindowSeconds)
		}
		c.ordered("spec.approvals.budget.beyond", orDefault(was.Budget.Beyond, v1alpha1.BudgetBlock), orDefault(is.Budget.Beyond, v1alpha1.BudgetBlock),
			v1alpha1.BudgetBlock, v1alpha1.BudgetClarify)
	}
}

// grants compares what service accounts hold. A grant without an end is the longest.
func (c *comparison) grants() {
	before := held(c.was.Grants)
	after := held(c.is.Grants)
	for _, key := range sortedKeys(after) {
		until, known := before[key]
		switch now := after[key]; {
		case !known:
			c.add("spec.grants: %s is new", key)
		case until != nil && now == nil:
			c.add("spec.grants: %s ended at %s, has no end", key, until.UTC().Format(timeFormat))
		case until != nil && now.After(until.Time):
			c.add("spec.grants: %s ended at %s, ends at %s", key, until.UTC().Format(timeFormat), now.UTC().Format(timeFormat))
		}
	}
}

const timeFormat = "2006-01-02T15:04:05Z"

// held lists account and scope with the latest end.
func held(grants []v1alpha1.Grant) map[string]*metav1.Time {
	out := map[string]*metav1.Time{}
	for _, g := range grants {
		for _, s := range g.Scopes {
			key := fmt.Sprintf("%s of %s", s, strings.TrimPrefix(string(g.Namespace)+"/"+string(g.ServiceAccount), "/"))
			until, known := out[key]
			if !known || until != nil && (g.Until == nil || g.Until.After(until.Time)) {
				out[key] = g.Until
			}
		}
	}
	return out
}

func (c *comparison) facts() {
	now := map[string]v1alpha1.FactSource{}
	for _, f := range c.is.FactsFrom {
		now[f.Name] = f
	}
	for _, f := range c.was.FactsFrom {
		is, path := now[f.Name], "spec.factsFrom["+f.Name+"]"
		if f.Presence == v1alpha1.FactRequired && is.Presence != v1alpha1.FactRequired {
			c.add("%s: was Required, is not", path)
		}
		if is.Name != "" {
			c.ordered(path+".from", orDefault(f.From, v1alpha1.TrustCaller), orDefault(is.From, v1alpha1.TrustCaller), v1alpha1.TrustAttested, v1alpha1.TrustCaller)
		}
	}
}

// added are the entries of a list that another does not have.
func added[T comparable](was, is []T) []T {
	var out []T
	for _, v := range is {
		if !slices.Contains(was, v) {
			out = append(out, v)
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func words[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return strings.Join(out, ", ")
}
