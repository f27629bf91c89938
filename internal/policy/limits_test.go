package policy

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// manyTools is a policy with tools that a function fills.
func manyTools(n int, fill func(i int, t *v1alpha1.ToolRule)) *v1alpha1.ToolPolicy {
	p := &v1alpha1.ToolPolicy{}
	p.Name, p.Namespace = "p", "n"
	for i := range n {
		t := v1alpha1.ToolRule{Name: fmt.Sprintf("tool-%d", i), Class: "ReadOnly"}
		fill(i, &t)
		p.Spec.Tools = append(p.Spec.Tools, t)
	}
	return p
}

func ruled(n int, when string) func(int, *v1alpha1.ToolRule) {
	return func(_ int, t *v1alpha1.ToolRule) {
		for i := range n {
			t.Rules = append(t.Rules, v1alpha1.CallRule{Name: fmt.Sprintf("r%d", i), When: v1alpha1.Expression(when), Outcome: "Block", Message: "m"})
		}
	}
}

func schemed(schema string) func(int, *v1alpha1.ToolRule) {
	return func(_ int, t *v1alpha1.ToolRule) { t.ArgumentsSchema = &apiextensionsv1.JSON{Raw: []byte(schema)} }
}

// Whoever may write one policy must not be able to fill the memory of the gates of all.
func TestAPolicyIsBounded(t *testing.T) {
	const bomb = `(([a-z]{1,30}){1,30}|x)(([a-z]{1,30}){1,30}|y)` // thousands of steps in a few letters
	tests := map[string]struct {
		policy *v1alpha1.ToolPolicy
		want   string // in the one error; empty: it compiles
	}{
		"as many expressions as are taken":     {manyTools(maxExpressions/32, ruled(32, "true")), ""},
		"one expression more":                  {manyTools(maxExpressions/32+1, ruled(32, "true")), "spec.tools[32].rules[0].when: Invalid value: \"\": is beyond the 1024 expressions that one policy may hold"},
		"long expressions":                     {manyTools(30, ruled(1, "true"+strings.Repeat(" ", 4000))), "bytes of expressions"},
		"as much of schemas as is taken":       {manyTools(64, schemed(`{"title":"`+strings.Repeat("x", 4000)+`"}`)), ""},
		"more of schemas":                      {manyTools(70, schemed(`{"title":"`+strings.Repeat("x", 4000)+`"}`)), "bytes of schemas"},
		"a pattern as they are written":        {manyTools(100, schemed(`{"properties":{"name":{"pattern":"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"}}}`)), ""},
		"a pattern that is a bomb":             {manyTools(1, schemed(`{"properties":{"name":{"pattern":"`+bomb+`"}}}`)), "regular expression of more than 4096 steps"},
		"names by a pattern that is a bomb":    {manyTools(1, schemed(`{"patternProperties":{"`+bomb+`":{}}}`)), "regular expression of more than 4096 steps"},
		"patterns that are many together":      {manyTools(80, schemed(`{"prefixItems":[{"pattern":"[a-z]{1,900}"}]}`)), "steps of regular expressions that one policy may hold"},
		"patterns at a place that is named":    {manyTools(80, schemed(`{"$ref":"#/x/y","x":{"y":{"pattern":"[a-z]{1,900}"}}}`)), "steps of regular expressions that one policy may hold"},
		"names in any script":                  {manyTools(10, schemed(`{"properties":{"name":{"pattern":"^[\\pL\\pN ._-]{1,64}$"}}}`)), ""},
		"large classes, repeated":              {manyTools(1, schemed(`{"properties":{"name":{"pattern":"^\\pL{0,400}$"}}}`)), "regular expression of more than 4096 steps"},
		"large classes, written out":           {manyTools(1, schemed(`{"properties":{"name":{"pattern":"`+strings.Repeat(`\\pL`, 1000)+`"}}}`)), "regular expression of more than 4096 steps"},
		"large classes that are many":          {manyTools(40, schemed(`{"properties":{"name":{"pattern":"^\\pL{1,64}$"}}}`)), "steps of regular expressions that one policy may hold"},
		"a pattern of a long text":             {manyTools(1, schemed(`{"properties":{"name":{"pattern":"[`+strings.Repeat("a", 16<<10)+`]"}}}`)), "regular expression of more than 4096 steps"},
		"numbers as they are written":          {manyTools(1, schemed(`{"properties":{"a":{"minimum":-1.5e-300,"maximum":1E300,"multipleOf":0.01,"maxLength":1e3}}}`)), ""},
		"a number of a million digits":         {manyTools(1, schemed(`{"properties":{"a":{"minimum":1e999999}}}`)), `Invalid value: "1e999999": is a number of more than 400 digits`},
		"a number of a million places":         {manyTools(1, schemed(`{"items":{"anyOf":[{"multipleOf":1E-999999}]}}`)), "is a number of more than 400 digits"},
		"a number beyond all exponents":        {manyTools(1, schemed(`{"const":1e99999999999999999999}`)), "is a number of more than 400 digits"},
		"a number that is written out":         {manyTools(1, schemed(`{"maxLength":1`+strings.Repeat("0", 400)+`}`)), "is a number of more than 400 digits"},
		"a rule with a pattern":                {manyTools(100, ruled(1, `string(args.x).matches("^[a-z]{1,20}$")`)), ""},
		"a rule with a bomb":                   {manyTools(1, ruled(1, `string(args.x).matches("`+bomb+`")`)), "regular expression of more than 4096 steps"},
		"a bomb deep in a rule":                {manyTools(1, ruled(1, `[1].exists(i, i == 1 && matches(string(args.x), "`+bomb+`"))`)), "regular expression of more than 4096 steps"},
		"rules with many patterns":             {manyTools(80, ruled(1, `string(args.x).matches("[a-z]{1,900}")`)), "steps of regular expressions that one policy may hold"},
		"a pattern that the agent gives":       {manyTools(1, ruled(1, `"x".matches(string(args.x))`)), "a pattern that is written out"},
		"a pattern that is made from an agent": {manyTools(1, ruled(1, `"x".matches("^" + string(args.x))`)), "a pattern that is written out"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, errs := Compile(test.policy)
			switch {
			case test.want == "" && (len(errs) > 0 || c.Invalid):
				t.Errorf("refused: %v", errs)
			case test.want != "" && (len(errs) != 1 || !c.Invalid || !strings.Contains(errs[0].Error(), test.want)):
				t.Errorf("errors %v, want one with %q", errs, test.want)
			}
		})
	}
}

// Parts of a schema that refer to others several times double the work at each step.
func TestASchemaIsBoundedInWork(t *testing.T) {
	chain := func(n int, each string) string {
		var defs []string
		for i := range n {
			defs = append(defs, fmt.Sprintf(`"d%d":`+each, i, i+1, i+1))
		}
		return `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(append(defs, fmt.Sprintf(`"d%d":{}`, n)), ",") + `}}`
	}
	var kinds, properties []string
	for i := range 60 {
		kinds = append(kinds, fmt.Sprintf(`{"properties":{"kind":{"const":"k%d"},"value":{"type":"object","properties":{"name":{"type":"string"}}}}}`, i))
	}
	for i := range 3000 {
		properties = append(properties, fmt.Sprintf(`"p%d":{"$ref":"#/$defs/text"}`, i))
	}
	tests := map[string]struct {
		schema  string
		refused bool
	}{
		"a chain of parts":                           {chain(100, `{"properties":{"a":{"$ref":"#/$defs/d%d"}},"title":"%d"}`), false},
		"a chain that forks on the same value":       {chain(40, `{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`), true},
		"a chain that forks a few times":             {chain(9, `{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`), false},
		"a chain that forks by names":                {chain(40, `{"anyOf":[{"properties":{"a":{"$ref":"#/$defs/d%d"}}},{"properties":{"a":{"$ref":"#/$defs/d%d"}}}]}`), true},
		"a chain that forks to values apart":         {chain(40, `{"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`), false},
		"a chain that forks to items":                {chain(40, `{"items":{"$ref":"#/$defs/d%d"},"contains":{"$ref":"#/$defs/d%d"}}`), true},
		"a chain of conditions":                      {chain(40, `{"if":{"$ref":"#/$defs/d%d"},"else":{"$ref":"#/$defs/d%d"}}`), true},
		"a tree":                                     {`{"properties":{"left":{"$ref":"#"},"right":{"$ref":"#"},"list":{"type":"array","items":{"$ref":"#"}}}}`, false},
		"a tree whose parts are looked at twice":     {`{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`, true},
		"a tree by names and by patterns":            {`{"properties":{"a":{"$ref":"#"}},"patternProperties":{"a":{"$ref":"#"}}}`, true},
		"a tree by an anchor":                        {`{"$dynamicAnchor":"n","properties":{"a":{"allOf":[{"$dynamicRef":"#n"},{"$dynamicRef":"#n"}]}}}`, true},
		"a part that is itself":                      {`{"$defs":{"a":{"$ref":"#/$defs/a"}},"properties":{"x":{"$ref":"#/$defs/a"}}}`, true},
		"one of many kinds":                          {`{"properties":{"items":{"type":"array","items":{"oneOf":[` + strings.Join(kinds, ",") + `]}}}}`, false},
		"three thousand properties of the same kind": {`{"properties":{` + strings.Join(properties, ",") + `},"$defs":{"text":{"type":"string"}}}`, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, errs := Compile(manyTools(1, schemed(test.schema)))
			if isRefused := len(errs) > 0; isRefused != test.refused {
				t.Errorf("errors %v", errs)
			}
			if test.refused && !strings.Contains(errs.ToAggregate().Error(), errRepeats.Error()) {
				t.Errorf("errors %v", errs)
			}
		})
	}
}

// A schema may want an argument to be a pattern, and the agent gives the argument.
func TestAnArgumentThatIsABombIsNoPattern(t *testing.T) {
	for text, want := range map[string]bool{"^[a-z]+$": true, "(": false, "([a-z]{1,900}){1,20}": false, strings.Repeat("[a-z]{1,1000}", 10): false} {
		if _, err := boundedRegexp(text); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
