package policy

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/strictjson"
)

// idle refuses settings that could never do anything. Whoever wrote them counts on them, so they are slips: a name that is
// misspelt, or half of a pair.
func (c *compiler) idle(t *tool, path *field.Path) {
	r := t.rule
	if r.PermitAudience != "" && r.Permit != v1alpha1.PermitRequired {
		c.fail(path.Child("permitAudience"), r.PermitAudience, "does nothing without permit: Required: add that, or remove it")
	}
	if r.ClarifyMessage != "" && r.OnSchemaViolation != v1alpha1.SchemaViolationClarify {
		c.fail(path.Child("clarifyMessage"), r.ClarifyMessage, "is said with onSchemaViolation: Clarify only: add that, or remove it")
	}
	if r.ArgumentsSchema == nil {
		if r.OnSchemaViolation == v1alpha1.SchemaViolationClarify {
			c.fail(path.Child("onSchemaViolation"), r.OnSchemaViolation, "does nothing without argumentsSchema: add that, or remove it")
		}
		return
	}
	c.idlePointers(t, path)
	c.idleReadings(t, path)
}

// idlePointers refuses rules about arguments that the schema refuses: such a call is blocked before, and the argument that
// was meant is not looked at.
func (c *compiler) idlePointers(t *tool, path *field.Path) {
	check := func(path *field.Path, p v1alpha1.Pointer) {
		if p == everyArgument {
			return
		}
		if at, ok := refusedBy(t.schemaTree, splitPointer(string(p))); ok {
			c.fail(path, p, at)
		}
	}
	for i, p := range t.rule.Paths {
		check(path.Child("paths").Index(i).Child("argument"), p.Argument)
	}
	for i, h := range t.rule.Hosts {
		check(path.Child("hosts").Index(i).Child("argument"), h.Argument)
	}
	for i, s := range t.rule.ArgumentSources {
		check(path.Child("argumentSources").Index(i).Child("argument"), s.Argument)
	}
	for i, s := range t.rule.Sensitive {
		check(path.Child("sensitive").Index(i), s)
	}
}

// idleReadings does the same for expressions.
func (c *compiler) idleReadings(t *tool, path *field.Path) {
	check := func(x *expression, path *field.Path, text v1alpha1.Expression) {
		if x == nil {
			return
		}
		for _, r := range x.reads {
			if at, ok := refusedBy(t.schemaTree, r); ok {
				c.fail(path, text, "reads an argument that is not there: "+at)
				return
			}
		}
	}
	for i := range t.lower {
		check(t.lower[i].program, path.Child("lowerTo").Index(i).Child("when"), t.rule.LowerTo[i].When)
	}
	for i := range t.rules {
		check(t.rules[i].program, path.Child("rules").Index(i).Child("when"), t.rule.Rules[i].When)
	}
	check(t.confirm, path.Child("confirmMessage"), t.rule.ConfirmMessage)
}

// refusedBy says whether a schema is sure to refuse an argument at a place, and how. It follows plain objects and lists only:
// what else there is (references, combinations, patterns) may allow anything.
func refusedBy(schema any, place []string) (why string, refused bool) {
	for i, name := range place {
		if name == anyDepth {
			return "", false
		}
		s, ok := schema.(map[string]any)
		if !ok || hasAny(s, "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas", "prefixItems", "not") {
			return "", false
		}
		if s["type"] == "array" {
			schema = s["items"]
			continue
		}
		if name == everyItem {
			return "", false
		}
		properties, _ := s["properties"].(map[string]any)
		child, ok := properties[name]
		if !ok {
			if s["additionalProperties"] != false {
				return "", false
			}
			at := shownPointer(place[:i])
			return "argumentsSchema refuses " + at + "/" + strictjson.EscapeToken(name) + ", it allows " + allowedNames(at, properties), true
		}
		schema = child
	}
	return "", false
}

// shownPointer is a pointer for people, with a star for every item.
func shownPointer(place []string) string {
	return strings.ReplaceAll(joinPointer(place), everyItem, "*")
}

func hasAny(object map[string]any, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, ok := object[name]; return ok })
}

func allowedNames(at string, properties map[string]any) string {
	names := slices.Sorted(maps.Keys(properties))
	for i := range names {
		names[i] = at + "/" + strictjson.EscapeToken(names[i])
	}
	if len(names) == 0 {
		return "nothing there"
	}
	return someOf(names)
}

// idleSteps refuses steps of a ladder that never match, and steps behind one that matches whenever they do.
func (c *compiler) idleSteps(l *ladder, path *field.Path) {
	for i := range l.steps {
		at := path.Child("thresholds").Index(i)
		s := &l.steps[i]
		for j := range s.when {
			if k := &s.when[j]; k.never() {
				c.fail(at.Child("when").Index(j), k.question.Name, "never matches: no answer is beyond its end of the scale. Move the bar, or use atLeast or atMost")
			}
		}
		for before := range i {
			if l.steps[before].covers(s) {
				c.fail(at, string(s.obligation.Reason), "is never tried, since thresholds["+strconv.Itoa(before)+"] matches whenever it does: put it before that, or remove it")
				break
			}
		}
	}
}

// covers says whether a step matches whenever another does. A floor of confidence is not compared with anything.
func (s *step) covers(other *step) bool {
	if len(s.when) == 0 || len(other.when) == 0 {
		return false
	}
	return !slices.ContainsFunc(s.when, func(k comparison) bool {
		return !k.always() && !slices.ContainsFunc(other.when, k.follows)
	})
}

// follows says whether a comparison holds whenever another does.
func (k comparison) follows(from comparison) bool {
	if k.question.Name != from.question.Name || k.option != from.option || k.level != from.level {
		return false
	}
	switch k.operator {
	case is:
		return from.operator == is && k.is == from.is
	case above:
		return from.operator == above && from.number >= k.number || from.operator == atLeast && from.number > k.number
	case atLeast:
		return (from.operator == above || from.operator == atLeast) && from.number >= k.number
	case below:
		return from.operator == below && from.number <= k.number || from.operator == atMost && from.number < k.number
	case atMost:
		return (from.operator == below || from.operator == atMost) && from.number <= k.number
	}
	return false
}

// limit is the most that an answer can come to; checkOperand refuses bars beyond it.
func (k *comparison) limit() float64 {
	if k.question.Type == "Score" && k.level == "" {
		return float64(len(k.question.Levels) - 1)
	}
	return 1
}

func (k *comparison) never() bool {
	return k.operator == above && k.number >= k.limit() || k.operator == below && k.number <= 0
}

func (k *comparison) always() bool {
	return k.operator == atLeast && k.number <= 0 || k.operator == atMost && k.number >= k.limit()
}
