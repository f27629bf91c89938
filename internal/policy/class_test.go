package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/testkit"
)

var irreversible = shown{"Confirm", ReasonIrreversible, byIrreversible}

func TestClasses(t *testing.T) {
	own := func(base v1alpha1.Base, options ...testkit.ClassOption) []testkit.Option {
		return []testkit.Option{testkit.WithClass("Own", append(options, testkit.Base(base))...)}
	}
	builtIn := func(name v1alpha1.ClassName, options ...testkit.ClassOption) []testkit.Option {
		return []testkit.Option{testkit.WithClass(name, options...)}
	}
	forbidden := shown{"Block", ReasonClassForbidden, "rule:class-forbidden"}
	otherwise := func(outcome string) shown { return shown{outcome, ReasonNoThresholdMatched, byOtherwise} }
	for name, c := range map[string]struct {
		class   v1alpha1.ClassName
		options []testkit.Option
		want    shown
		base    string
	}{
		"ReadOnly passes by default":                     {read, nil, allowed, "ReadOnly"},
		"Write asks a person by default":                 {write, nil, byDefault, "Write"},
		"External needs a person":                        {external, nil, irreversible, "External"},
		"Destructive needs a person":                     {destructive, nil, irreversible, "Destructive"},
		"ReadOnly may ask a person":                      {read, builtIn(read, testkit.Otherwise(toConfirm)), otherwise("Confirm"), "ReadOnly"},
		"ReadOnly may always need a person":              {read, builtIn(read, testkit.Approval("Always")), shown{"Confirm", ReasonApprovalRequired, byApprovalAlways}, "ReadOnly"},
		"Write may pass":                                 {write, builtIn(write, testkit.Otherwise(toAllow)), allowed, "Write"},
		"Write may be blocked":                           {write, builtIn(write, testkit.Otherwise(toBlock)), otherwise("Block"), "Write"},
		"Destructive that otherwise allows still asks":   {destructive, builtIn(destructive, testkit.Otherwise(toAllow)), irreversible, "Destructive"},
		"Destructive when unsure still has its default":  {destructive, builtIn(destructive, testkit.Approval("WhenUnsure")), byDefault, "Destructive"},
		"Destructive when unsure may pass explicitly":    {destructive, builtIn(destructive, testkit.Approval("WhenUnsure"), testkit.Otherwise(toAllow)), allowed, "Destructive"},
		"Destructive may be forbidden":                   {destructive, builtIn(destructive, testkit.Approval("Forbidden")), forbidden, "Destructive"},
		"a class of one's own has the default of a read": {"Own", own("ReadOnly"), allowed, "ReadOnly"},
		"a class of one's own has that of a write":       {"Own", own("Write"), byDefault, "Write"},
		"a class of one's own has that of External":      {"Own", own("External"), irreversible, "External"},
		"a class of one's own has that of Destructive":   {"Own", own("Destructive", testkit.Otherwise(toAllow)), irreversible, "Destructive"},
		"a class of one's own may be forbidden":          {"Own", own("ReadOnly", testkit.Approval("Forbidden")), forbidden, "ReadOnly"},
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, "p", append(c.options, testkit.WithTool("act", c.class))...)
			j := judge(request("act", nil), p)
			if diff := cmp.Diff(c.want, show(j.Settle(nil, nil))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			gotName, base := j.Class()
			if gotName != string(c.class) || base != c.base {
				t.Errorf("class is %s (%s), want %s (%s)", gotName, base, c.class, c.base)
			}
			if got, want := j.IsRead(), c.base == "ReadOnly"; got != want {
				t.Errorf("IsRead is %v, want %v", got, want)
			}
		})
	}
}

func TestLowerTo(t *testing.T) {
	lower := func(options ...testkit.ToolOption) []testkit.ToolOption { return options }
	toRead := func(when v1alpha1.Expression) []testkit.ToolOption { return lower(testkit.LowerTo(read, when)) }
	for name, c := range map[string]struct {
		tool      []testkit.ToolOption
		arguments args
		change    func(*Request)
		want      string
	}{
		"an expression that holds lowers":              {tool: toRead("args.dryRun == true"), arguments: args{"dryRun": true}, want: "ReadOnly"},
		"one that does not hold keeps the class":       {tool: toRead("args.dryRun == true"), arguments: args{"dryRun": false}, want: "Destructive"},
		"a missing argument keeps the class":           {tool: toRead("args.dryRun == true"), want: "Destructive"},
		"a missing argument is not true when negated":  {tool: toRead("!(args.force == true)"), want: "Destructive"},
		"another type keeps the class":                 {tool: toRead("args.n < 10"), arguments: args{"n": "3"}, want: "Destructive"},
		"a text that is true is not true":              {tool: toRead("args.dryRun == true"), arguments: args{"dryRun": "true"}, want: "Destructive"},
		"null keeps the class":                         {tool: toRead("args.n < 10"), arguments: args{"n": nil}, want: "Destructive"},
		"the first that holds decides":                 {tool: lower(testkit.LowerTo(write, "args.n < 10"), testkit.LowerTo(read, "args.n < 5")), arguments: args{"n": int64(1)}, want: "Write"},
		"an error ends the search":                     {tool: lower(testkit.LowerTo(write, "args.x == 1"), testkit.LowerTo(read, "args.n < 5")), arguments: args{"n": int64(1)}, want: "Destructive"},
		"the next is tried":                            {tool: lower(testkit.LowerTo(write, "args.n > 10"), testkit.LowerTo(read, "args.n < 5")), arguments: args{"n": int64(1)}, want: "ReadOnly"},
		"the tool is visible":                          {tool: toRead("tool.name == 'act' && tool.server == 'mcp'"), change: func(r *Request) { r.Server = "mcp" }, want: "ReadOnly"},
		"the caller is visible":                        {tool: toRead("caller.namespace == 'shop' && caller.serviceAccount == 'agent'"), want: "ReadOnly"},
		"the end user is only claimed and not visible": {tool: toRead("caller.onBehalfOf == 'ada'"), change: func(r *Request) { r.OnBehalfOf = "ada" }, want: "Destructive"},
		"the session is only claimed and not visible":  {tool: toRead("caller.session == 's1'"), change: func(r *Request) { r.Session = "s1" }, want: "Destructive"},
		"a read-only command is a read":                {tool: toRead("shell(args.cmd).isRead"), arguments: args{"cmd": "ls -l /tmp"}, want: "ReadOnly"},
		"a command in doubt is not":                    {tool: toRead("shell(args.cmd).isRead"), arguments: args{"cmd": "ls $(rm -rf /)"}, want: "Destructive"},
		"SQL that holds NUL is not":                    {tool: toRead("sql(args.q, 'postgres').isRead"), arguments: args{"q": "SELECT 1\x00"}, want: "Destructive"},
		"a dear expression keeps the class":            {tool: toRead("args.l.all(x, !args.s.contains('q'))"), arguments: args{"l": numbers(2000), "s": strings.Repeat("a", 20_000)}, want: "Destructive"},
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, "p", testkit.WithTool("act", destructive, c.tool...))
			r := request("act", c.arguments)
			if c.change != nil {
				c.change(r)
			}
			if _, base := judge(r, p).Class(); base != c.want {
				t.Errorf("base is %s, want %s", base, c.want)
			}
		})
	}
}

func TestWhatCanBeClaimedIsNoVariableOfLowerTo(t *testing.T) {
	for _, variable := range []string{"facts.approved == true", "'admin' in scopes", "sources['/x'] == 'User'", "user == 'go'"} {
		_, errs := Compile(testkit.ToolPolicy("p", testkit.WithTool("act", write, testkit.LowerTo(read, v1alpha1.Expression(variable)))))
		if len(errs) == 0 {
			t.Errorf("lowerTo with %s compiles", variable)
		}
	}
}

func TestWhatIsDeclaredIsAllThatLoweringResolves(t *testing.T) {
	e := &evaluation{request: request("act", nil), policy: &Compiled{}}
	a := argumentsActivation{activation{e}}
	for _, name := range []string{"facts", "scopes", "sources", "user", "nonesuch"} {
		if v, ok := a.ResolveName(name); ok {
			t.Errorf("%s resolves to %v", name, v)
		}
	}
	for _, name := range []string{"args", "tool", "caller"} {
		if _, ok := a.ResolveName(name); !ok {
			t.Errorf("%s does not resolve", name)
		}
	}
	if a.Parent() != nil {
		t.Error("there is a scope behind what is declared")
	}
}

func numbers(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

func TestWhatAToolSaysReplacesWhatItsClassSays(t *testing.T) {
	asks := testkit.WithClass(write, testkit.Asks(toAllow, testkit.Questions("asked"), testkit.Step(toBlock, testkit.Below("asked", 50))))
	plain := testkit.WithClass(write, testkit.Otherwise(toBlock))
	ownLadder := testkit.ToolAsks(toConfirm, testkit.Questions("declined"), testkit.Step(toBlock, testkit.Above("declined", 10)))
	for name, c := range map[string]struct {
		class testkit.Option
		base  v1alpha1.ClassName
		tool  []testkit.ToolOption
		asked []string
		p     float64
		want  shown
	}{
		"nothing leaves the ladder of the class":             {asks, write, nil, []string{"asked"}, 0.4, shown{"Block", ReasonThreshold, byDecider}},
		"an end of its own keeps questions and steps":        {asks, write, []testkit.ToolOption{testkit.ToolOtherwise(toConfirm)}, []string{"asked"}, 0.4, shown{"Block", ReasonThreshold, byDecider}},
		"an end of its own is the end":                       {asks, write, []testkit.ToolOption{testkit.ToolOtherwise(toConfirm)}, []string{"asked"}, 0.6, shown{"Confirm", ReasonNoThresholdMatched, byDecider}},
		"an end of its own without a decider":                {plain, write, []testkit.ToolOption{testkit.ToolOtherwise(toAllow)}, nil, 0, allowed},
		"a ladder of its own is the whole ladder":            {asks, write, []testkit.ToolOption{ownLadder}, []string{"declined"}, 0.05, shown{"Confirm", ReasonNoThresholdMatched, byDecider}},
		"a ladder of its own blocks":                         {asks, write, []testkit.ToolOption{ownLadder}, []string{"declined"}, 0.2, shown{"Block", ReasonThreshold, byDecider}},
		"Skip does not get the end of calls that are judged": {asks, write, []testkit.ToolOption{testkit.ToolSkips()}, nil, 0, byDefault},
		"Skip with an end of its own":                        {asks, write, []testkit.ToolOption{testkit.ToolSkips(), testkit.ToolOtherwise(toAllow)}, nil, 0, allowed},
		"Skip keeps the end of a class that asks nobody":     {plain, write, []testkit.ToolOption{testkit.ToolSkips()}, nil, 0, shown{"Block", ReasonNoThresholdMatched, byOtherwise}},
		"Skip keeps a stricter end of a class that asks": {testkit.WithClass(write, testkit.Asks(toBlock, testkit.Questions("asked"))), write,
			[]testkit.ToolOption{testkit.ToolSkips()}, nil, 0, shown{"Block", ReasonNoThresholdMatched, byOtherwise}},
		"the end of a call that is lowered is that of its class": {plain, destructive, []testkit.ToolOption{testkit.ToolSkips(), testkit.LowerTo(write, "true")},
			nil, 0, shown{"Block", ReasonNoThresholdMatched, byOtherwise}},
		"Skip of a lowered call has the default of its class": {testkit.WithClass(read), destructive, []testkit.ToolOption{testkit.ToolSkips(), testkit.LowerTo(write, "true")},
			nil, 0, byDefault},
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, "p", c.class, testkit.WithDecider("judge"), testkit.WithTool("act", c.base, c.tool...))
			j := judge(request("act", nil), p)
			var asked []string
			for _, a := range j.Asks() {
				for _, q := range a.Questions {
					asked = append(asked, q.Name)
				}
			}
			if diff := cmp.Diff(c.asked, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			got := j.Settle(replying(j, map[string]answerOf{"asked": yes(c.p), "declined": yes(c.p)}), nil)
			if diff := cmp.Diff(c.want, show(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
