package policy

import (
	"cmp"
	"fmt"
	"slices"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// Point is one place of a policy at which a call can be decided. Test suites count which of them their cases reach.
type Point struct {
	// Policy as PolicyID.String.
	Policy string `json:"policy"`
	// Kind is rule, threshold or fallback.
	Kind PointKind `json:"kind"`
	// Place in the spec, such as tools[send_email].rules[own-domain] or classes[Write].thresholds[0].
	Place string `json:"place"`
}

// PointKind says what a point is.
type PointKind string

// The kinds of points.
const (
	// PointRule is decided by code alone.
	PointRule PointKind = "rule"
	// PointThreshold is one step of a ladder.
	PointThreshold PointKind = "threshold"
	// PointFallback is what happens when no threshold matches, or when the decider gives no usable answer.
	PointFallback PointKind = "fallback"
)

// points collects the points of one policy, each once, in the order of the tools' names.
type points struct {
	label string
	all   []Point
	seen  map[string]bool
}

func (p *points) add(kind PointKind, format string, args ...any) {
	place := fmt.Sprintf(format, args...)
	if !p.seen[place] {
		p.seen[place] = true
		p.all = append(p.all, Point{Policy: p.label, Kind: kind, Place: place})
	}
}

// Points lists every point of the policy that some call can reach. Classes that no tool uses have none.
func (p *Compiled) Points() []Point {
	out := &points{label: p.label, seen: map[string]bool{}}
	if p.unknown != v1alpha1.UnknownToolsDefer {
		out.add(PointRule, "unknownTools")
	}
	for _, name := range p.requiredFacts() {
		out.add(PointRule, "factsFrom[%s]", name)
	}
	if p.trust == v1alpha1.TrustAttested {
		out.add(PointRule, "contextTrust")
	}
	tools := p.allTools()
	slices.SortFunc(tools, func(a, b *tool) int { return cmp.Compare(a.place(), b.place()) })
	for _, t := range tools {
		out.addTool(t)
	}
	return out.all
}

func (p *Compiled) requiredFacts() []string {
	var names []string
	for name, f := range p.facts {
		if f.Presence == v1alpha1.FactRequired {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// place is how a tool is called in points.
func (t *tool) place() string {
	if t.rule.Server != "" {
		return "tools[" + t.rule.Name + "@" + t.rule.Server + "]"
	}
	return "tools[" + t.rule.Name + "]"
}

// placeOf is where a part of a ladder stands: at the tool, or at the class.
func (t *tool) placeOf(k *class, own bool) string {
	if own {
		return t.place()
	}
	return "classes[" + k.name + "]"
}

func (p *points) addTool(t *tool) {
	at := t.place()
	classes := []*class{t.class}
	for i := range t.lower {
		p.add(PointRule, "%s.lowerTo[%d]", at, i)
		classes = append(classes, t.lower[i].class)
	}
	if !slices.ContainsFunc(classes, func(k *class) bool { return !k.forbidden }) {
		p.add(PointRule, "classes[%s].approval", t.class.name)
		return // nothing behind a forbidden class can be reached
	}
	for _, s := range t.scopes {
		p.add(PointRule, "%s.requiredScopes[%s]", at, s)
	}
	if t.schema != nil {
		p.add(PointRule, "%s.argumentsSchema", at)
	}
	for i := range t.paths {
		p.add(PointRule, "%s.paths[%s]", at, t.paths[i].text)
	}
	for i := range t.hosts {
		p.add(PointRule, "%s.hosts[%s]", at, t.hosts[i].text)
	}
	for i := range t.sources {
		p.add(PointRule, "%s.argumentSources[%s]", at, t.sources[i].pointer)
	}
	for i := range t.rules {
		p.add(PointRule, "%s.rules[%s]", at, ruleName(t.rules[i].by))
	}
	for _, k := range classes {
		p.addClass(t, k)
	}
}

func ruleName(by string) string { return by[len("rule:"):] }

func (p *points) addClass(t *tool, k *class) {
	if k.forbidden || k.always {
		p.add(PointRule, "classes[%s].approval", k.name)
	}
	if k.forbidden {
		return
	}
	l := t.ladder(k)
	for i := range l.steps {
		p.add(PointThreshold, "%s.thresholds[%d]", t.placeOf(k, l.ownSteps), i)
	}
	p.add(PointFallback, "%s.otherwise", t.placeOf(k, l.ownEnd))
	if l.asks() {
		p.add(PointFallback, "classes[%s].whenDeciderUnavailable", k.name)
	}
}

// Reached lists the points that decided something about the call, after Settle. Each policy that applies has its own.
func (j *Judgement) Reached() []Point {
	var all []Point
	for i := range j.evaluations {
		e := &j.evaluations[i]
		if e.policy.Invalid {
			continue
		}
		out := &points{label: e.policy.label, seen: map[string]bool{}}
		if e.class == nil {
			out.add(PointRule, "unknownTools")
		} else {
			e.reached(out)
		}
		all = append(all, out.all...)
	}
	return all
}

func (e *evaluation) reached(out *points) {
	if i := e.lowered(); i >= 0 {
		out.add(PointRule, "%s.lowerTo[%d]", e.tool.place(), i)
	}
	for i := range e.obligations {
		e.reachedRule(out, &e.obligations[i])
	}
	e.reachedLadder(out)
}

// lowered is the index of the expression that lowered the class, -1 if none did. It runs on a budget of its own: the
// verdict is already there.
func (e *evaluation) lowered() int {
	b := &budget{left: runLimit}
	for i := range e.tool.lower {
		lower, err := b.isTrue(e.ctx, e.tool.lower[i].program, argumentsActivation{activation{e}})
		if err != nil {
			return -1
		}
		if lower {
			return i
		}
	}
	return -1
}

func (e *evaluation) reachedRule(out *points, o *Obligation) {
	at := e.tool.place()
	switch o.By {
	case "rule:" + ruleClassForbidden, byIrreversible, byApprovalAlways:
		out.add(PointRule, "classes[%s].approval", e.class.name)
	case "rule:" + ruleNotAttested:
		out.add(PointRule, "contextTrust")
	case "rule:" + ruleFactMissing:
		for _, name := range e.policy.requiredFacts() {
			if _, ok := e.fact(e.policy.facts[name]); !ok {
				out.add(PointRule, "factsFrom[%s]", name)
			}
		}
	case "rule:" + ruleMissingScope:
		for _, s := range e.tool.scopes {
			if !slices.Contains(e.scopes(), s) {
				out.add(PointRule, "%s.requiredScopes[%s]", at, s)
			}
		}
	case "rule:" + ruleArgumentsSchema:
		out.add(PointRule, "%s.argumentsSchema", at)
	case "rule:" + rulePathEscape, "rule:" + ruleHostNotAllowed, "rule:" + ruleArgumentSource:
		e.reachedArgument(out, o)
	default:
		for i := range e.tool.rules {
			if r := &e.tool.rules[i]; r.by == o.By && o.Reason == r.reason {
				out.add(PointRule, "%s.rules[%s]", at, ruleName(r.by))
			}
		}
	}
}

// reachedArgument finds which entry of paths, hosts or argumentSources objected.
func (e *evaluation) reachedArgument(out *points, o *Obligation) {
	at := e.tool.place()
	switch o.By {
	case "rule:" + rulePathEscape:
		for i := range e.tool.paths {
			one := *e
			oneTool := *e.tool
			oneTool.paths, one.tool = e.tool.paths[i:i+1], &oneTool
			if checkPaths(&one) != nil {
				out.add(PointRule, "%s.paths[%s]", at, e.tool.paths[i].text)
			}
		}
	case "rule:" + ruleHostNotAllowed:
		for i := range e.tool.hosts {
			one := *e
			oneTool := *e.tool
			oneTool.hosts, one.tool = e.tool.hosts[i:i+1], &oneTool
			if checkHosts(&one) != nil {
				out.add(PointRule, "%s.hosts[%s]", at, e.tool.hosts[i].text)
			}
		}
	default:
		for _, pointer := range o.Missing {
			i := slices.IndexFunc(e.tool.sources, func(s sourceCheck) bool { return isBelow(pointer, s.pointer) })
			if i >= 0 {
				out.add(PointRule, "%s.argumentSources[%s]", at, e.tool.sources[i].pointer)
			}
		}
	}
}

// reachedLadder finds the step that decided. A ladder that asks was climbed only if answers were looked for.
func (e *evaluation) reachedLadder(out *points) {
	if e.settled || e.class.forbidden {
		return
	}
	l := e.ladder()
	switch {
	case e.unanswered != reasonNotUnavailable:
		out.add(PointFallback, "classes[%s].whenDeciderUnavailable", e.class.name)
		return
	case l.asks() && e.answers == nil:
		return
	}
	for i := range l.steps {
		if l.steps[i].matches(e.answers) {
			out.add(PointThreshold, "%s.thresholds[%d]", e.tool.placeOf(e.class, l.ownSteps), i)
			return
		}
	}
	out.add(PointFallback, "%s.otherwise", e.tool.placeOf(e.class, l.ownEnd))
}
