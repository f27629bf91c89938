package webhook

import (
	"strings"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// tools compares what holds for every name that one of both sides lists: the rule that matched it with the rule that
// matches it now.
func (c *comparison) tools() {
	seen := map[string]bool{}
	for _, side := range []*v1alpha1.PolicyRules{c.was, c.is} {
		for i := range side.Tools {
			t := &side.Tools[i]
			if key := t.Server + "\x00" + t.Name; !seen[key] {
				seen[key] = true
				c.tool(t, matching(c.was.Tools, t), matching(c.is.Tools, t))
			}
		}
	}
}

// matching is the most specific rule for all that another rule names, or nil.
func matching(rules []v1alpha1.ToolRule, t *v1alpha1.ToolRule) *v1alpha1.ToolRule {
	var best *v1alpha1.ToolRule
	for i := range rules {
		r := &rules[i]
		if r.Server != "" && r.Server != t.Server || !covers(r.Name, t.Name) {
			continue
		}
		if best == nil || len(r.Name) > len(best.Name) || len(r.Name) == len(best.Name) && r.Server != "" {
			best = r
		}
	}
	return best
}

// covers says whether a name or prefix matches all that another does.
func covers(rule, name string) bool {
	if rule == name {
		return true
	}
	prefix, isPrefix := strings.CutSuffix(rule, "*")
	return isPrefix && len(name) > len(prefix) && strings.HasPrefix(name, prefix)
}

func (c *comparison) tool(named, was, is *v1alpha1.ToolRule) {
	path := "spec.tools[" + named.Name + "]"
	if named.Server != "" {
		path = "spec.tools[" + named.Name + " of " + named.Server + "]"
	}
	switch {
	case was == nil: // listed anew: that is what tools are listed for
		return
	case is == nil:
		if c.unlisted == v1alpha1.UnknownToolsDefer {
			c.add("%s: is gone, and unknownTools Defer leaves it to other policies", path)
		}
		return
	}
	c.toolClass(path, was, is)
	c.removed(path+".effects", words(added(is.Effects, was.Effects)))
	c.removed(path+".requiredScopes", words(added(is.RequiredScopes, was.RequiredScopes)))
	c.removed(path+".sensitive", words(added(is.Sensitive, was.Sensitive)))
	if was.ArgumentsSchema != nil && is.ArgumentsSchema == nil {
		c.removed(path, "argumentsSchema")
	}
	c.ordered(path+".onSchemaViolation", orDefault(was.OnSchemaViolation, v1alpha1.SchemaViolationBlock), orDefault(is.OnSchemaViolation, v1alpha1.SchemaViolationBlock),
		v1alpha1.SchemaViolationBlock, v1alpha1.SchemaViolationClarify)
	c.ordered(path+".permit", orDefault(was.Permit, v1alpha1.PermitNone), orDefault(is.Permit, v1alpha1.PermitNone), v1alpha1.PermitRequired, v1alpha1.PermitNone)
	c.confinements(path, was, is)
	c.argumentSources(path, was, is)
	c.callRules(path, was, is)
	c.toolLadder(path, was, is)
}

func (c *comparison) removed(path, what string) {
	if what != "" {
		c.add("%s: %s is gone", path, what)
	}
}

func (c *comparison) toolClass(path string, was, is *v1alpha1.ToolRule) {
	before, after := classesOf(c.was)[was.Class], classesOf(c.is)[is.Class]
	if was.Class != is.Class && rank(after.base) < rank(before.base) {
		c.add("%s.class: was %s, is %s", path, was.Class, is.Class)
	}
	for _, l := range added(was.LowerTo, is.LowerTo) {
		c.add("%s.lowerTo: a way to %s is new", path, l.Class)
	}
}

// confinements compares the roots of paths and the hosts.
func (c *comparison) confinements(path string, was, is *v1alpha1.ToolRule) {
	before, after := map[string][]string{}, map[string][]string{}
	for _, side := range []struct {
		rule *v1alpha1.ToolRule
		into map[string][]string
	}{{was, before}, {is, after}} {
		for _, p := range side.rule.Paths {
			side.into["paths["+string(p.Argument)+"]"] = p.Roots
		}
		for _, h := range side.rule.Hosts {
			side.into["hosts["+string(h.Argument)+"]"] = h.Allowed
		}
	}
	for _, name := range sortedKeys(before) {
		now, is := after[name]
		if !is {
			c.removed(path, name)
			continue
		}
		if more := added(before[name], now); len(more) > 0 {
			c.add("%s.%s: %s is new", path, name, words(more))
		}
	}
}

func (c *comparison) argumentSources(path string, was, is *v1alpha1.ToolRule) {
	now := map[v1alpha1.Pointer]v1alpha1.ArgumentSourceRule{}
	for _, s := range is.ArgumentSources {
		now[s.Argument] = s
	}
	for _, s := range was.ArgumentSources {
		at := path + ".argumentSources[" + string(s.Argument) + "]"
		after, ok := now[s.Argument]
		if !ok {
			c.removed(at, "the rule")
			continue
		}
		if more := added(s.From, after.From); len(more) > 0 {
			c.add("%s.from: %s is new", at, words(more))
		}
		c.ordered(at+".otherwise", v1alpha1.Outcome(s.Otherwise), v1alpha1.Outcome(after.Otherwise), outcomes...)
	}
}

// callRules compares rules by name. What an expression means is not compared.
func (c *comparison) callRules(path string, was, is *v1alpha1.ToolRule) {
	now := map[string]v1alpha1.CallRule{}
	for _, r := range is.Rules {
		now[r.Name] = r
	}
	for _, r := range was.Rules {
		after, ok := now[r.Name]
		if !ok {
			c.removed(path+".rules", r.Name)
			continue
		}
		c.ordered(path+".rules["+r.Name+"].outcome", v1alpha1.Outcome(r.Outcome), v1alpha1.Outcome(after.Outcome), outcomes...)
		if r.When != after.When {
			c.add("%s.rules[%s].when: is another expression: whether it finds as much cannot be told", path, r.Name)
		}
	}
}

// toolLadder compares what a tool overrides of its class.
func (c *comparison) toolLadder(path string, was, is *v1alpha1.ToolRule) {
	if was.Otherwise != nil && is.Otherwise != nil {
		c.ordered(path+".otherwise", was.Otherwise.Outcome, is.Otherwise.Outcome, outcomes...)
		c.ladder(path, was.Thresholds, is.Thresholds, is.Otherwise.Outcome)
	}
	if was.Decider == v1alpha1.DeciderAsk && is.Decider == v1alpha1.DeciderSkip {
		c.add("%s.decider: was Ask, is Skip", path)
	}
}
