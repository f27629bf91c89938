package policy

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/testkit"
)

func TestReadings(t *testing.T) {
	const each = everyItem
	env, err := callEnv.build()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		expression string
		want       []reading
	}{
		"a name":                               {`args.a == 1`, []reading{{"a"}}},
		"a name in brackets":                   {`args["a"] == 1`, []reading{{"a"}}},
		"whether there is a name":              {`has(args.a) && args.a`, []reading{{"a"}}},
		"whether a name is among others":       {`"a" in args && "b" in args.c`, []reading{{"a"}, {"c", "b"}}},
		"a name below a name":                  {`args.a.b == 1 && args.a.c == 2`, []reading{{"a", "b"}, {"a", "c"}}},
		"the longer place holds the shorter":   {`has(args.a) && args.a.b`, []reading{{"a", "b"}}},
		"a place in a list":                    {`args.a[0].b == 1`, []reading{{"a", each, "b"}}},
		"a key that is computed":               {`args[tool.name] == 1`, []reading{{each}}},
		"items of a list":                      {`args.a.exists(i, has(i.b) && i.b)`, []reading{{"a", each, "b"}}},
		"items of items":                       {`args.a.all(i, i.b.all(j, j.c == 1))`, []reading{{"a", each, "b", each, "c"}}},
		"the same variable once more":          {`args.a.all(i, args.b.all(i, i.c == 1) && i.d == 1)`, []reading{{"a", each, "d"}, {"b", each, "c"}}},
		"items that are left":                  {`args.a.filter(i, i.b > 1).all(j, j.c == 1)`, []reading{{"a", each, "b"}, {"a", each, "c"}}},
		"a place handed on":                    {`shell(args.a).isRead && args.b.lowerAscii() == "x"`, []reading{{"a"}, {"b"}}},
		"a place in a list of the expression":  {`[args.a, args.b].exists(x, x == 1)`, []reading{{"a"}, {"b"}}},
		"either of two places":                 {`(args.c ? args.a : args.b).d == 1`, []reading{{"a", "d"}, {"b", "d"}, {"c"}}},
		"items of either of two lists":         {`(args.a + args.b).exists(x, x.c == 1)`, []reading{{"a", each, "c"}, {"b", each, "c"}}},
		"a place in items of the expression":   {`[args.a, args.b].exists(x, x.c == 1) && [args.d][0].e == 1`, []reading{{"a", "c"}, {"b", "c"}, {"d", "e"}}},
		"what items are turned into":           {`args.a.map(i, i.b).exists(j, j.c == 1)`, []reading{{"a", each, "b", "c"}}},
		"what a function makes of a list":      {`args.a.flatten().exists(i, i.b.c == 1)`, []reading{{"a", anyDepth, "b"}, {"a", anyDepth, "c"}}},
		"what a macro makes of a list":         {`args.a.sortBy(i, i.b)[0].c == 1`, []reading{{"a", each, "b", anyDepth, "c"}, {"a", each, "c"}, {"a", anyDepth, "c"}}},
		"a name in a map of the expression":    {`{"x": args.a}.x.b == 1`, []reading{{"a", anyDepth, "b"}}},
		"a place in a map of the expression":   {`{"x": args.a}.x == args.b`, []reading{{"a"}, {"b"}}},
		"names of other things are none of it": {`tool.name == "a" && caller.session == "b" && facts.c == true`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			compiled, issues := env.Compile(c.expression)
			if issues.Err() != nil {
				t.Fatal(issues.Err())
			}
			if diff := cmp.Diff(c.want, readingsOf(compiled.NativeRep().Expr())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAnotherSpellingIsNoWayPastAnExpression(t *testing.T) {
	rule := func(expression v1alpha1.Expression) testkit.ToolOption {
		return testkit.Rule("no-force", expression, "Block")
	}
	failed, matched := shown{"Block", ReasonRuleFailed, "rule:no-force"}, shown{"Block", ReasonRule, "rule:no-force"}
	force, items := rule(`has(args.force) && args.force == true`), rule(`args.items.exists(i, has(i.force) && i.force)`)
	for name, c := range map[string]struct {
		rule      testkit.ToolOption
		arguments args
		want      shown
	}{
		"as the rule has it":               {force, args{"force": true}, matched},
		"absent":                           {force, args{"other": true}, allowed},
		"in other capitals":                {force, args{"Force": true}, failed},
		"in letters that are the same":     {force, args{"ｆorce": true}, failed},
		"in both spellings":                {force, args{"force": false, "FORCE": true}, failed},
		"as what an object inherits":       {force, args{"__proto__": args{"force": true}}, failed},
		"in other capitals, deeper":        {rule(`has(args.a.force) && args.a.force`), args{"a": args{"Force": true}}, failed},
		"the object in other capitals":     {rule(`has(args.a) && has(args.a.force)`), args{"A": args{"force": true}}, failed},
		"in an item in other capitals":     {items, args{"items": []any{args{"x": 1}, args{"FORCE": true}}}, failed},
		"in no item":                       {items, args{"items": []any{args{"x": 1}}}, allowed},
		"a name elsewhere is another name": {force, args{"a": args{"Force": true}}, allowed},
		"in a list of the expression":      {rule(`[args.a, args.b].exists(x, has(x.force) && x.force)`), args{"a": args{"Force": true}, "b": args{}}, failed},
		"in either of two":                 {rule(`(args.b.on ? args.a : args.b).force == true`), args{"a": args{"Force": true}, "b": args{"on": true}}, failed},
		"in two lists":                     {rule(`(args.c + args.d).exists(x, has(x.force) && x.force)`), args{"c": []any{args{"Force": true}}, "d": []any{}}, failed},
		"in what items are turned into":    {rule(`args.a.map(i, i.b).exists(x, has(x.force) && x.force)`), args{"a": []any{args{"b": args{"Force": true}}}}, failed},
		"in what a function makes of it":   {rule(`args.a.flatten().exists(x, has(x.force) && x.force)`), args{"a": []any{[]any{args{"Force": true}}}}, failed},
		"asked for by in":                  {rule(`"force" in args`), args{"Force": true}, failed},
	} {
		t.Run(name, func(t *testing.T) {
			v := decide(request("act", c.arguments), compiled(t, "p", testkit.WithTool("act", read, c.rule)))
			if diff := cmp.Diff(c.want, show(v)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAnotherSpellingIsNoWayToALowerClass(t *testing.T) {
	p := compiled(t, "p", testkit.WithTool("act", destructive, testkit.LowerTo("ReadOnly", `!has(args.force)`)))
	for name, c := range map[string]struct {
		arguments args
		wantClass string
	}{
		"absent":                     {args{"x": 1}, "ReadOnly"},
		"there":                      {args{"force": true}, "Destructive"},
		"in other capitals":          {args{"FORCE": true}, "Destructive"},
		"as what an object inherits": {args{"__proto__": args{}}, "Destructive"},
	} {
		t.Run(name, func(t *testing.T) {
			if class, _ := judge(request("act", c.arguments), p).Class(); class != c.wantClass {
				t.Errorf("class is %s, want %s", class, c.wantClass)
			}
		})
	}
}

func TestManyNamesAreFoldedOnce(t *testing.T) {
	many := args{}
	for i := range 1000 {
		many[strings.Repeat("é", 100)+strconv.Itoa(i)] = 1
	}
	b := &budget{left: 4 * runLimit}
	b.isSpeltOtherwise(many, "first")
	first := 4*runLimit - b.left
	b.isSpeltOtherwise(many, "second")
	if second := 4*runLimit - b.left - first; second*10 > first {
		t.Errorf("a second look costs %d, the first %d: want less than a tenth", second, first)
	}
	if b.spent || !b.isSpeltOtherwise(many, strings.Repeat("É", 100)+"7") {
		t.Errorf("spent: %t, want a name in capitals found within the budget", b.spent)
	}
}

func TestMoreNamesThanTheBudgetCoversFailTheRules(t *testing.T) {
	many := args{}
	for i := range 2000 {
		many[strings.Repeat("é", 100)+strconv.Itoa(i)] = 1
	}
	v := decide(request("act", many), compiled(t, "p", testkit.WithTool("act", read, testkit.Rule("no-force", `has(args.force) && args.force`, "Confirm"))))
	if diff := cmp.Diff(shown{"Block", ReasonRuleFailed, "rule:no-force"}, show(v)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
