package policy

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/strictjson"
)

// Compile compiles a ToolPolicy. It does all that can fail: errors name field, value and remedy. The policy it returns
// is never nil: with errors it is one that blocks its callers with PolicyInvalid.
func Compile(p *v1alpha1.ToolPolicy) (*Compiled, field.ErrorList) {
	c := &compiler{
		path: field.NewPath("spec"),
		out: &Compiled{
			ID:         PolicyID{Kind: v1alpha1.KindToolPolicy, Namespace: p.Namespace, Name: p.Name},
			Generation: p.Generation,
			subjects:   setOf(p.Spec.Subjects),
			unknown:    orDefault(p.Spec.UnknownTools, v1alpha1.UnknownToolsBlock),
		},
	}
	oneOf(c, c.path.Child("unknownTools"), p.Spec.UnknownTools, unknownTools...)
	return c.compile(&p.Spec.PolicyRules, p.Namespace)
}

var unknownTools = []v1alpha1.UnknownTools{v1alpha1.UnknownToolsBlock, v1alpha1.UnknownToolsConfirm, v1alpha1.UnknownToolsDefer}

// CompileCluster compiles a ClusterToolPolicy, as Compile does.
func CompileCluster(p *v1alpha1.ClusterToolPolicy) (*Compiled, field.ErrorList) {
	c := &compiler{
		path: field.NewPath("spec"),
		out: &Compiled{
			ID:         PolicyID{Kind: v1alpha1.KindClusterToolPolicy, Name: p.Name},
			Generation: p.Generation,
			cluster:    true,
			minEnforce: p.Spec.MinimumMode == v1alpha1.ModeEnforce,
			namespaces: setOf(p.Spec.Namespaces),
			unknown:    orDefault(p.Spec.UnknownTools, v1alpha1.UnknownToolsDefer),
		},
	}
	oneOf(c, c.path.Child("unknownTools"), p.Spec.UnknownTools, unknownTools...)
	oneOf(c, c.path.Child("minimumMode"), p.Spec.MinimumMode, v1alpha1.ModeEnforce, v1alpha1.ModeAudit)
	return c.compile(&p.Spec.PolicyRules, "")
}

// Invalid stands for a policy that could not even be read. It blocks the callers that it was about: the given service
// accounts of the given namespaces, where empty is all.
func Invalid(id PolicyID, namespaces, serviceAccounts []string) *Compiled {
	c := &Compiled{ID: id, Invalid: true, cluster: true, namespaces: setOf(namespaces), subjects: setOf(serviceAccounts)}
	c.describe()
	return c
}

type compiler struct {
	path      *field.Path
	out       *Compiled
	questions map[string]questions.Question
	classes   map[v1alpha1.ClassName]*class
	used      usage
	errs      field.ErrorList
}

func (c *compiler) compile(r *v1alpha1.PolicyRules, namespace string) (*Compiled, field.ErrorList) {
	c.header(r, namespace)
	c.questions = c.compileQuestions(r.Questions)
	c.compileClasses(r)
	c.compileTools(r)
	c.compileDecider(r)
	c.out.Invalid = len(c.errs) > 0
	c.out.describe()
	return c.out, c.errs
}

func (p *Compiled) describe() {
	p.label = p.ID.String()
	p.stamp = p.label + "@" + formatInt(p.Generation)
}

func (c *compiler) fail(path *field.Path, value any, detail string) {
	c.errs = append(c.errs, field.Invalid(path, value, detail))
}

func (c *compiler) header(r *v1alpha1.PolicyRules, namespace string) {
	o := c.out
	oneOf(c, c.path.Child("mode"), r.Mode, v1alpha1.ModeEnforce, v1alpha1.ModeAudit)
	oneOf(c, c.path.Child("contextTrust"), r.ContextTrust, v1alpha1.TrustCaller, v1alpha1.TrustAttested)
	oneOf(c, c.path.Child("disclose"), r.Disclose, v1alpha1.DiscloseMinimal, v1alpha1.DiscloseFull)
	oneOf(c, c.path.Child("captureState"), r.CaptureState, v1alpha1.CaptureDigest, v1alpha1.CaptureEncrypted, v1alpha1.CapturePlain)
	o.audit = r.Mode == v1alpha1.ModeAudit
	o.trust = orDefault(r.ContextTrust, v1alpha1.TrustCaller)
	o.timeout = time.Duration(orDefault(r.TimeoutMilliseconds, 2000)) * time.Millisecond
	o.disclose = r.Disclose
	o.capture = r.CaptureState
	o.clarify = int(orDefault(r.ClarifyLimit, 2))
	if r.Approvals != nil {
		o.approvals = *r.Approvals
	}
	o.approvals.TTLSeconds = orDefault(o.approvals.TTLSeconds, 900)
	o.approvals.PermitSeconds = orDefault(o.approvals.PermitSeconds, 30)
	c.attestors(r)
	c.grants(r.Grants, namespace)
	c.facts(r.FactsFrom)
}

func (c *compiler) attestors(r *v1alpha1.PolicyRules) {
	path := c.path.Child("attestors")
	seen := map[v1alpha1.ObjectName]bool{}
	for i, a := range r.Attestors {
		if seen[a.Name] {
			c.errs = append(c.errs, field.Duplicate(path.Index(i).Child("name"), a.Name))
		}
		seen[a.Name] = true
		key, err := parseAttestor(a)
		if err != nil {
			c.fail(path.Index(i).Child("publicKey"), a.Name, err.Error())
			continue
		}
		c.out.attestors = append(c.out.attestors, key)
	}
	if c.out.trust == v1alpha1.TrustAttested && len(r.Attestors) == 0 {
		c.errs = append(c.errs, field.Required(path, "name the front door's key, or set contextTrust: Caller"))
	}
}

func (c *compiler) grants(grants []v1alpha1.Grant, namespace string) {
	for i, g := range grants {
		path := c.path.Child("grants").Index(i).Child("namespace")
		compiled := grant{namespace: namespace, account: string(g.ServiceAccount)}
		switch {
		case c.out.cluster && g.Namespace == "":
			c.errs = append(c.errs, field.Required(path, "a ClusterToolPolicy grants to a service account of a namespace: name it"))
		case c.out.cluster:
			compiled.namespace = string(g.Namespace)
		case g.Namespace != "" && string(g.Namespace) != namespace:
			c.fail(path, g.Namespace, "grants in a ToolPolicy are for its own namespace: remove it")
		}
		for _, s := range g.Scopes {
			compiled.scopes = append(compiled.scopes, string(s))
		}
		if g.Until != nil {
			compiled.until = g.Until.Time
		}
		c.out.grants = append(c.out.grants, compiled)
	}
}

func (c *compiler) facts(facts []v1alpha1.FactSource) {
	c.out.facts = make(map[string]v1alpha1.FactSource, len(facts))
	for i, f := range facts {
		path := c.path.Child("factsFrom").Index(i)
		if _, twice := c.out.facts[f.Name]; twice {
			c.errs = append(c.errs, field.Duplicate(path.Child("name"), f.Name))
		}
		oneOf(c, path.Child("from"), f.From, v1alpha1.TrustCaller, v1alpha1.TrustAttested)
		oneOf(c, path.Child("presence"), f.Presence, v1alpha1.FactOptional, v1alpha1.FactRequired)
		if f.From == v1alpha1.TrustAttested && len(c.out.attestors) == 0 {
			c.fail(path.Child("from"), f.From, "nobody can attest it: name a front door's key under spec.attestors")
		}
		c.out.facts[f.Name] = f
	}
}

func (c *compiler) compileQuestions(declared []v1alpha1.Question) map[string]questions.Question {
	all := make(map[string]questions.Question, len(declared)+16)
	for _, name := range questions.BuiltinNames() {
		q, _ := questions.Builtin(name)
		all[name] = q
	}
	for i, d := range declared {
		path := c.path.Child("questions").Index(i)
		if _, taken := all[string(d.Name)]; taken {
			c.fail(path.Child("name"), d.Name, "is a built-in question or declared twice, and its text is versioned: choose another name")
			continue
		}
		for j, s := range d.Sees {
			oneOf(c, path.Child("sees").Index(j), s, v1alpha1.SeesToolResults)
		}
		q := toQuestion(d)
		if err := q.Validate(); err != nil {
			c.fail(path, d.Name, err.Error())
			continue
		}
		all[q.Name] = q
	}
	return all
}

func toQuestion(d v1alpha1.Question) questions.Question {
	q := questions.Question{
		Name: string(d.Name), Type: questions.Type(d.Type), Instructions: d.Instructions,
		SeesToolResults: slices.Contains(d.Sees, v1alpha1.SeesToolResults),
	}
	if d.YesNo != nil {
		q.WhenTrue, q.WhenFalse = d.YesNo.WhenTrue, d.YesNo.WhenFalse
	}
	if d.Choice != nil {
		for _, o := range d.Choice.Options {
			q.Options = append(q.Options, questions.Option{Name: o.Name, Description: o.Description})
		}
	}
	if d.Score != nil {
		q.Levels = slices.Clone(d.Score.Levels)
	}
	return q
}

// compileDecider refuses questions without a decider and notes whether its numbers may allow anything.
func (c *compiler) compileDecider(r *v1alpha1.PolicyRules) {
	asks, mayAllow := false, false
	for _, k := range c.classes {
		asks, mayAllow = asks || k.ladder.asks(), mayAllow || k.ladder.mayAllow()
	}
	for _, t := range c.out.allTools() {
		for _, l := range t.ladders {
			asks, mayAllow = asks || l.asks(), mayAllow || l.mayAllow()
		}
	}
	if r.DeciderRef == nil {
		if asks {
			c.errs = append(c.errs, field.Required(c.path.Child("deciderRef"), "a class or tool asks questions: name the DeciderModel that answers them"))
		}
		return
	}
	c.out.decider = &deciderUse{name: string(r.DeciderRef.Name), fingerprint: string(r.DeciderRef.Fingerprint), mayAllow: mayAllow}
}

func (p *Compiled) allTools() []*tool {
	all := slices.Clone(p.prefixes)
	for _, t := range p.exact {
		all = append(all, t)
	}
	return all
}

// Decider returns the name of the decider that the policy refers to, empty if it asks none.
func (p *Compiled) Decider() string {
	if p.decider == nil {
		return ""
	}
	return p.decider.name
}

// NeedsFingerprint says that a ladder may allow a call by numbers whose model is not pinned.
func (p *Compiled) NeedsFingerprint() bool {
	return p.decider != nil && p.decider.mayAllow && p.decider.fingerprint == ""
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

func setOf[T ~string](list []T) map[string]bool {
	if len(list) == 0 {
		return nil
	}
	set := make(map[string]bool, len(list))
	for _, s := range list {
		set[string(s)] = true
	}
	return set
}

// splitPointer parses an RFC 6901 pointer.
func splitPointer(p string) []string {
	parts := strings.Split(strings.TrimPrefix(p, "/"), "/")
	for i := range parts {
		parts[i] = strictjson.UnescapeToken(parts[i])
	}
	return parts
}
