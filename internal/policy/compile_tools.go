package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy/hosts"
	"gatewright.dev/gatewright/internal/policy/paths"
	"gatewright.dev/gatewright/internal/policy/sources"
)

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

func (c *compiler) compileTools(r *v1alpha1.PolicyRules) {
	c.out.exact = make(map[toolName]*tool, len(r.Tools))
	common := *r
	common.Tools = nil
	for i := range r.Tools {
		path := c.path.Child("tools").Index(i)
		t := c.compileTool(&r.Tools[i], &common, path)
		name, isPrefix := strings.CutSuffix(r.Tools[i].Name, "*")
		if isPrefix {
			t.prefix = name
			if name != "" && !isToolName(name) {
				c.fail(path.Child("name"), r.Tools[i].Name, "may hold letters, digits, _ . : / and -, starts with a letter, digit or _, and has a star only at its end")
			}
			if slices.ContainsFunc(c.out.prefixes, func(o *tool) bool { return o.prefix == name && o.rule.Server == t.rule.Server }) {
				c.errs = append(c.errs, field.Duplicate(path.Child("name"), r.Tools[i].Name))
			}
			c.out.prefixes = append(c.out.prefixes, t)
			continue
		}
		if !isToolName(name) {
			c.fail(path.Child("name"), name, "may hold letters, digits, _ . : / and -, and starts with a letter, digit or _")
		}
		key := toolName{name, t.rule.Server}
		if c.out.exact[key] != nil {
			c.errs = append(c.errs, field.Duplicate(path.Child("name"), name))
		}
		c.out.exact[key] = t
	}
	slices.SortStableFunc(c.out.prefixes, func(a, b *tool) int {
		return cmp.Or(cmp.Compare(len(b.prefix), len(a.prefix)), cmp.Compare(b.rule.Server, a.rule.Server))
	})
	c.out.unknownTool = &tool{rule: &v1alpha1.ToolRule{}, digest: c.toolDigest(&common, nil)}
}

func (c *compiler) compileTool(r *v1alpha1.ToolRule, common *v1alpha1.PolicyRules, path *field.Path) *tool {
	t := &tool{rule: r, effects: r.Effects, digest: c.toolDigest(common, r), class: c.class(r.Class, path.Child("class"))}
	for _, s := range r.RequiredScopes {
		t.scopes = append(t.scopes, string(s))
	}
	c.toolTerms(r, path)
	c.compileArgumentsSchema(t, path.Child("argumentsSchema"))
	c.compileLowering(t, path.Child("lowerTo"))
	c.compilePaths(t, path.Child("paths"))
	c.compileHosts(t, path.Child("hosts"))
	c.compileSources(t, path.Child("argumentSources"))
	c.compileRules(t, path.Child("rules"))
	if r.ConfirmMessage != "" {
		t.confirm = c.program(string(r.ConfirmMessage), callEnv, stringType, path.Child("confirmMessage"))
	}
	c.compileOverride(t, path)
	c.idle(t, path)
	t.schemaTree = nil
	return t
}

// compileOverride puts what the tool rule says in the place of what its class says, for each class that a call may have.
// With decider: Ask the whole ladder is the tool's. Otherwise what the tool does not name stays the class's.
func (c *compiler) compileOverride(t *tool, path *field.Path) {
	r := t.rule
	isWhole := r.Decider == v1alpha1.DeciderAsk || len(r.Questions)+len(r.Thresholds) > 0
	if !isWhole && r.Decider == "" && r.Otherwise == nil {
		return
	}
	t.ladders = make(map[*class]*ladder, 1+len(t.lower))
	own := ladder{}
	if isWhole {
		own = c.compileLadder(ladderSource{
			decider: r.Decider, questions: r.Questions, thresholds: r.Thresholds, otherwise: r.Otherwise,
		}, path, v1alpha1.Fallback{Outcome: v1alpha1.OutcomeBlock})
		own.ownSteps, own.ownEnd = true, true
	} else if r.Otherwise != nil {
		c.outcome(path.Child("otherwise", "outcome"), r.Otherwise.Outcome)
	}
	for _, k := range t.classes() {
		t.ladders[k] = &own
		if !isWhole {
			t.ladders[k] = partLadder(r, k)
		}
	}
}

// classes lists the classes that a call of the tool may have.
func (t *tool) classes() []*class {
	all := []*class{t.class}
	for i := range t.lower {
		all = append(all, t.lower[i].class)
	}
	return all
}

// partLadder is the ladder of a class with the end or the silence of a tool rule. A class that asks gives its end to
// calls that were judged; one that is not judged gets no weaker end than a class that never asks.
func partLadder(r *v1alpha1.ToolRule, k *class) *ladder {
	l := k.ladder
	if r.Decider == v1alpha1.DeciderSkip && l.asks() {
		end := endOf(defaultEnd(k.base, k.always), byClassDefault)
		if l.end.Outcome < end.Outcome {
			end = l.end
			end.By = byOtherwise
		}
		l = ladder{end: end}
	}
	if r.Otherwise != nil {
		by := byOtherwise
		if l.asks() {
			by = byDecider
		}
		l.end, l.ownEnd = endOf(*r.Otherwise, by), true
	}
	l.endAllows = l.end.Outcome == Allow
	return &l
}

// class finds a class. An unknown one is an error and stands in as the worst, so that the rest can be checked.
func (c *compiler) class(name v1alpha1.ClassName, path *field.Path) *class {
	if k := c.classes[name]; k != nil {
		return k
	}
	c.fail(path, name, "is no class: use ReadOnly, Write, External or Destructive, or declare it under spec.classes with a base")
	return c.classes[v1alpha1.ClassName(v1alpha1.BaseDestructive)]
}

func (c *compiler) compileLowering(t *tool, path *field.Path) {
	for i, l := range t.rule.LowerTo {
		k := c.class(l.Class, path.Index(i).Child("class"))
		if rank(k.base) > rank(t.class.base) || rank(k.base) == 2 && k.base != t.class.base {
			c.fail(path.Index(i).Child("class"), l.Class, "is not lower than "+t.class.name+": a tool's class is the worst that it can do")
		}
		program := c.program(string(l.When), argumentsEnv, boolType, path.Index(i).Child("when"))
		t.lower = append(t.lower, lowering{class: k, program: program})
	}
}

func (c *compiler) compilePaths(t *tool, path *field.Path) {
	seen := map[v1alpha1.Pointer]bool{}
	for i, p := range t.rule.Paths {
		c.pointer(path.Index(i).Child("argument"), p.Argument)
		c.once(seen, path.Index(i).Child("argument"), p.Argument, "merge the roots into one entry")
		roots, err := paths.Compile(p.Roots)
		if err != nil {
			c.fail(path.Index(i).Child("roots"), p.Roots, err.Error())
		}
		t.paths = append(t.paths, pathCheck{pointer: splitPointer(string(p.Argument)), text: string(p.Argument), roots: roots})
	}
}

func (c *compiler) compileHosts(t *tool, path *field.Path) {
	seen := map[v1alpha1.Pointer]bool{}
	for i, h := range t.rule.Hosts {
		c.pointer(path.Index(i).Child("argument"), h.Argument)
		c.once(seen, path.Index(i).Child("argument"), h.Argument, "merge the hosts into one entry")
		compiled, err := hosts.Compile(h.Allowed)
		if err != nil {
			c.fail(path.Index(i).Child("allowed"), h.Allowed, err.Error())
		}
		t.hosts = append(t.hosts, hostCheck{pointer: splitPointer(string(h.Argument)), text: string(h.Argument), hosts: compiled})
	}
}

// once refuses a second entry for an argument: both would hold, and it reads as if either would do.
func (c *compiler) once(seen map[v1alpha1.Pointer]bool, path *field.Path, p v1alpha1.Pointer, instead string) {
	if seen[p] {
		twice := field.Duplicate(path, p)
		twice.Detail = instead
		c.errs = append(c.errs, twice)
	}
	seen[p] = true
}

// everyArgument is the pointer that stands for all arguments that no other rule names.
const everyArgument = "/*"

func (c *compiler) compileSources(t *tool, path *field.Path) {
	seen := map[v1alpha1.Pointer]bool{}
	for i, s := range t.rule.ArgumentSources {
		p := path.Index(i)
		if s.Argument != everyArgument {
			c.pointer(p.Child("argument"), s.Argument)
		}
		c.once(seen, p.Child("argument"), s.Argument, "merge the sources into one entry")
		c.stricter(p.Child("otherwise"), s.Otherwise)
		accept := make(map[sources.Source]bool, len(s.From))
		for _, from := range s.From {
			oneOf(c, p.Child("from"), from, v1alpha1.SourceUser, v1alpha1.SourceFacts, v1alpha1.SourceTool, v1alpha1.SourceSchema)
			accept[sources.Source(from)] = true
		}
		t.sources = append(t.sources, sourceCheck{pointer: string(s.Argument), parts: splitPointer(string(s.Argument)), accept: accept, outcome: outcomeOf(s.Otherwise)})
	}
	// The most specific pointer is looked at first; the catch-all comes last.
	slices.SortStableFunc(t.sources, func(a, b sourceCheck) int {
		if (a.pointer == everyArgument) != (b.pointer == everyArgument) {
			return cmp.Compare(len(b.pointer)*boolInt(b.pointer != everyArgument), len(a.pointer)*boolInt(a.pointer != everyArgument))
		}
		return cmp.Compare(len(b.pointer), len(a.pointer))
	})
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (c *compiler) compileRules(t *tool, path *field.Path) {
	seen := map[string]bool{}
	for i, r := range t.rule.Rules {
		p := path.Index(i)
		if seen[r.Name] {
			c.errs = append(c.errs, field.Duplicate(p.Child("name"), r.Name))
		}
		seen[r.Name] = true
		c.stricter(p.Child("outcome"), r.Outcome)
		if reservedRules[r.Name] {
			c.fail(p.Child("name"), r.Name, "is the name of a built-in rule: choose another")
		}
		program := c.program(string(r.When), callEnv, boolType, p.Child("when"))
		reason := Reason(r.Reason)
		if reason == "" {
			reason = ReasonRule
		}
		t.rules = append(t.rules, callCheck{
			by: "rule:" + r.Name, outcome: outcomeOf(r.Outcome), reason: reason, message: r.Message,
			program: program,
		})
	}
}

// toolDigest covers all of a policy that bears on one tool: what other tools may do does not.
func (c *compiler) toolDigest(common *v1alpha1.PolicyRules, rule *v1alpha1.ToolRule) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	// The types hold no maps, floats or pointers to cycles, so this encoding is the same for the same spec and never fails.
	for _, part := range []any{EngineSemantics, c.out.ID, c.out.unknown, common, rule} {
		if err := enc.Encode(part); err != nil {
			c.fail(c.path, c.out.ID.Name, "cannot be digested: "+err.Error())
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
