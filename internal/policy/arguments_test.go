package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/testkit"
)

func TestSchema(t *testing.T) {
	const order = `{"type": "object", "required": ["id", "a/b"], "additionalProperties": false, "properties": {
		"id": {"type": "integer", "minimum": 1}, "a/b": {"type": "string"}, "mail": {"type": "string", "format": "email"},
		"lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}},
		"$defs": {"line": {"type": "object", "required": ["sku"], "properties": {"sku": {"type": "string"}}}}}`
	for name, c := range map[string]struct {
		arguments args
		missing   []string
	}{
		"arguments that fit":              {args{"id": int64(1), "a/b": "x"}, nil},
		"a whole number written as float": {args{"id": 2.0, "a/b": "x"}, nil},
		"no arguments at all":             {nil, []string{"/a~1b", "/id"}},
		"one argument is missing":         {args{"a/b": "x"}, []string{"/id"}},
		"another type":                    {args{"id": "1", "a/b": "x"}, []string{"/id"}},
		"a fraction":                      {args{"id": 1.5, "a/b": "x"}, []string{"/id"}},
		"below the minimum":               {args{"id": int64(0), "a/b": "x"}, []string{"/id"}},
		"null":                            {args{"id": nil, "a/b": "x"}, []string{"/id"}},
		"an argument that nobody declared": {args{"id": int64(1), "a/b": "x", "force": true},
			[]string{"/"}},
		"a format":              {args{"id": int64(1), "a/b": "x", "mail": "nobody"}, []string{"/mail"}},
		"a format that holds":   {args{"id": int64(1), "a/b": "x", "mail": "a@example.com"}, nil},
		"missing in a list":     {args{"id": int64(1), "a/b": "x", "lines": []any{args{"sku": "1"}, args{}}}, []string{"/lines/1/sku"}},
		"of another kind in it": {args{"id": int64(1), "a/b": "x", "lines": []any{"1"}}, []string{"/lines/0"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, onViolation := range []testkit.ToolOption{testkit.Schema(order), testkit.ClarifyOnViolation("which order?")} {
				p := compiled(t, "p", testkit.WithTool("act", read, testkit.Schema(order), onViolation))
				v := decide(request("act", c.arguments), p)
				want := allowed
				if c.missing != nil {
					want = shown{"Block", ReasonArgumentsInvalid, "rule:arguments-schema"}
					if p.exact[toolName{name: "act"}].rule.OnSchemaViolation == v1alpha1.SchemaViolationClarify {
						want.Outcome = "Clarify"
						if v.Message != "which order?" || v.Remedy != RemedyAskUser {
							t.Errorf("message is %q with remedy %d", v.Message, v.Remedy)
						}
					}
				}
				if diff := cmp.Diff(want, show(v)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				if diff := cmp.Diff(c.missing, v.Missing); diff != "" {
					t.Errorf("missing (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestAMessageAboutManyArgumentsStaysShort(t *testing.T) {
	arguments := args{}
	for i := range 1000 {
		arguments["key"+formatInt(int64(i))] = "quartz"
	}
	for name, tool := range map[string]testkit.ToolOption{
		"schema":  testkit.Schema(`{"additionalProperties": {"type": "integer"}}`),
		"sources": testkit.Source("/*", orBlock, v1alpha1.SourceUser),
	} {
		t.Run(name, func(t *testing.T) {
			v := decide(request("act", arguments), compiled(t, "p", testkit.WithTool("act", read, tool)))
			if len(v.Missing) != 1000 || len(v.Message) > 400 || !strings.Contains(v.Message, "992 more") {
				t.Errorf("%d missing, message of %d bytes: %.200s", len(v.Missing), len(v.Message), v.Message)
			}
			if strings.Contains(v.Message, "quartz") {
				t.Errorf("the message holds a value: %.200s", v.Message)
			}
		})
	}
}

func TestPathsAndHosts(t *testing.T) {
	path := testkit.Path("/a/at", "/srv/data")
	host := testkit.Host("/a/at", "api.example.com")
	list := func(items ...any) args { return args{"a": args{"at": items}} }
	one := func(v any) args { return args{"a": args{"at": v}} }
	for name, c := range map[string]struct {
		rule      testkit.ToolOption
		arguments args
		isAllowed bool
		code      string
	}{
		"a path inside":                        {path, one("/srv/data/x"), true, ""},
		"a path outside":                       {path, one("/etc/passwd"), false, ""},
		"a path that climbs":                   {path, one("/srv/data/../../etc/passwd"), false, ""},
		"a list of paths inside":               {path, list("/srv/data/x", "/srv/data/y"), true, ""},
		"a list with one outside":              {path, list("/srv/data/x", "/etc/passwd"), false, ""},
		"an empty list":                        {path, list(), true, ""},
		"a list in a list":                     {path, list([]any{"/srv/data/x"}), false, codeNotText},
		"a list with a number":                 {path, list("/srv/data/x", int64(1)), false, codeNotText},
		"a number":                             {path, one(int64(1)), false, codeNotText},
		"an object":                            {path, one(args{"path": "/srv/data/x"}), false, codeNotText},
		"null":                                 {path, one(nil), false, codeNotText},
		"a truth value":                        {path, one(true), false, codeNotText},
		"absent":                               {path, args{"a": args{}}, true, ""},
		"nothing above it either":              {path, nil, true, ""},
		"the name in other capitals":           {path, args{"a": args{"At": "/etc/passwd"}}, false, codeNotText},
		"the name twice but for capitals":      {path, args{"a": args{"at": "/srv/data/x", "AT": "/etc/passwd"}}, false, codeNotText},
		"something that has no members":        {path, args{"a": "/etc/passwd"}, false, codeNotText},
		"a list where an object is wanted":     {path, args{"a": []any{args{"at": "/etc/passwd"}}}, false, codeNotText},
		"null where an object is wanted":       {path, args{"a": nil}, true, ""},
		"an empty path":                        {path, one(""), false, ""},
		"a host on the list":                   {host, one("https://api.example.com/v1"), true, ""},
		"a host that is not":                   {host, one("https://api.example.com.evil.net/"), false, ""},
		"a host behind a user name":            {host, one("https://api.example.com@evil.net/"), false, ""},
		"a list of hosts":                      {host, list("api.example.com", "https://api.example.com/x"), true, ""},
		"a list with another host":             {host, list("api.example.com", "evil.net"), false, ""},
		"a host that is a number":              {host, one(int64(2130706433)), false, codeNotText},
		"a host that is null":                  {host, one(nil), false, codeNotText},
		"a host that is absent":                {host, args{}, true, ""},
		"an item of a list by its place":       {testkit.Path("/l/1", "/srv/data"), args{"l": []any{"/etc/x", "/etc/y"}}, false, ""},
		"another item than the one at a place": {testkit.Path("/l/1", "/srv/data"), args{"l": []any{"/etc/x", "/srv/data/y"}}, true, ""},
		"an index with a leading zero":         {testkit.Path("/l/01", "/srv/data"), args{"l": []any{"/etc/x", "/etc/y"}}, false, codeNotText},
		"a place behind the end of a list":     {testkit.Path("/l/5", "/srv/data"), args{"l": []any{"/etc/x"}}, true, ""},
		"a name with a slash in it":            {testkit.Path("/a~1b", "/srv/data"), args{"a/b": "/etc/x"}, false, ""},
		"a name with a tilde in it":            {testkit.Path("/a~01", "/srv/data"), args{"a~1": "/etc/x"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := decide(request("act", c.arguments), compiled(t, "p", testkit.WithTool("act", read, c.rule)))
			if got := v.Outcome == Allow; got != c.isAllowed || v.Outcome == Confirm || v.Outcome == Clarify {
				t.Errorf("got %s %s", v.Outcome, v.Message)
			}
			if c.code != "" && !strings.Contains(v.Message, "("+c.code+")") {
				t.Errorf("message %q does not name %s", v.Message, c.code)
			}
			if strings.Contains(v.Message, "passwd") || strings.Contains(v.Message, "evil") {
				t.Errorf("message %q holds a value of the call", v.Message)
			}
		})
	}
}

func TestArgumentSources(t *testing.T) {
	user, facts, tool, schema := v1alpha1.SourceUser, v1alpha1.SourceFacts, v1alpha1.SourceTool, v1alpha1.SourceSchema
	said := func(r *Request) {
		r.UserTurns = []string{"send 250 to Marlowe Quigley, order 4711"}
		r.Facts = args{"account": "DE02120300000000202051", "order": int64(4711)}
		r.ToolResults = []string{"the balance is 8812, pay walrus harbour"}
		r.Assistant = []string{"I would send it to zebra crossing"}
	}
	objection := func(outcome string) shown { return shown{outcome, ReasonSourceNotAccepted, "rule:argument-source"} }
	rules := func(options ...testkit.ToolOption) []testkit.ToolOption { return options }
	for name, c := range map[string]struct {
		tool      []testkit.ToolOption
		arguments args
		want      shown
		missing   []string
	}{
		"the user said it":                   {rules(testkit.Source("/n", orBlock, user)), args{"n": int64(250)}, allowed, nil},
		"a fact states it":                   {rules(testkit.Source("/n", orBlock, facts)), args{"n": "DE02120300000000202051"}, allowed, nil},
		"a tool result holds it":             {rules(testkit.Source("/n", orBlock, tool)), args{"n": int64(8812)}, allowed, nil},
		"the schema offers it":               {rules(testkit.Source("/n", orBlock, schema), testkit.Schema(`{"properties": {"n": {"enum": ["fast", "slow"]}}}`)), args{"n": "fast"}, allowed, nil},
		"a tool result is not the user":      {rules(testkit.Source("/n", orBlock, user)), args{"n": int64(8812)}, objection("Block"), []string{"/n"}},
		"the assistant is nobody":            {rules(testkit.Source("/n", orBlock, user, facts, tool, schema)), args{"n": "zebra crossing"}, objection("Block"), []string{"/n"}},
		"nowhere":                            {rules(testkit.Source("/n", orBlock, user, facts, tool, schema)), args{"n": "quartz"}, objection("Block"), []string{"/n"}},
		"said by the user and by a fact":     {rules(testkit.Source("/n", orBlock, facts)), args{"n": int64(4711)}, allowed, nil},
		"to clarify":                         {rules(testkit.Source("/n", orClarify, user)), args{"n": "quartz"}, objection("Clarify"), []string{"/n"}},
		"to confirm":                         {rules(testkit.Source("/n", orConfirm, user)), args{"n": "quartz"}, objection("Confirm"), []string{"/n"}},
		"absent":                             {rules(testkit.Source("/n", orBlock, user)), args{"m": "quartz"}, allowed, nil},
		"below the pointer":                  {rules(testkit.Source("/n", orBlock, user)), args{"n": args{"deep": []any{"quartz"}}}, objection("Block"), []string{"/n/deep/0"}},
		"beside the pointer":                 {rules(testkit.Source("/n", orBlock, user)), args{"nn": "quartz"}, allowed, nil},
		"every argument":                     {rules(testkit.Source("/*", orBlock, user)), args{"a": "Marlowe Quigley", "b": "quartz"}, objection("Block"), []string{"/b"}},
		"a named one before every argument":  {rules(testkit.Source("/*", orBlock, user), testkit.Source("/a", orBlock, tool)), args{"a": int64(8812), "b": int64(250)}, allowed, nil},
		"whatever the order":                 {rules(testkit.Source("/a", orBlock, tool), testkit.Source("/*", orBlock, user)), args{"a": int64(8812), "b": int64(250)}, allowed, nil},
		"a named one stricter than every":    {rules(testkit.Source("/*", orBlock, user, tool), testkit.Source("/a", orBlock, user)), args{"a": int64(8812)}, objection("Block"), []string{"/a"}},
		"the deeper pointer":                 {rules(testkit.Source("/a", orBlock, user), testkit.Source("/a/b", orBlock, tool)), args{"a": args{"b": int64(8812), "c": int64(250)}}, allowed, nil},
		"the strictest of several objects":   {rules(testkit.Source("/a", orConfirm, user), testkit.Source("/b", orBlock, user)), args{"a": "quartz", "b": "feldspar"}, objection("Block"), []string{"/a", "/b"}},
		"a short name does not catch others": {rules(testkit.Source("/a", orBlock, tool), testkit.Source("/*", orBlock, user)), args{"ab": int64(250)}, allowed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, "p", testkit.WithFact("account", "Caller", ""), testkit.WithFact("order", "Caller", ""), testkit.WithTool("act", read, c.tool...))
			v := decide(request("act", c.arguments, said), p)
			if diff := cmp.Diff(c.want, show(v)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(c.missing, v.Missing); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASourceRuleHoldsForAnotherShape(t *testing.T) {
	rule := func(r *v1alpha1.ToolRule) {
		r.ArgumentSources = []v1alpha1.ArgumentSourceRule{{Argument: "/to/address", From: []v1alpha1.ValueSource{v1alpha1.SourceUser}, Otherwise: v1alpha1.StricterOutcome(v1alpha1.OutcomeBlock)}}
	}
	for name, c := range map[string]struct {
		arguments args
		want      Outcome
	}{
		"as the rule has it":         {args{"to": args{"address": "eve@evil.example"}}, Block},
		"as a list of objects":       {args{"to": []any{args{"address": "eve@evil.example"}}}, Block},
		"as a text":                  {args{"to": "eve@evil.example"}, Block},
		"absent":                     {args{"other": "x"}, Allow},
		"absent from its own object": {args{"to": args{}}, Allow},
	} {
		t.Run(name, func(t *testing.T) {
			if v := decide(request("act", c.arguments), compiled(t, "p", testkit.WithTool("act", read, rule))); v.Outcome != c.want {
				t.Errorf("got %s %s", v.Outcome, v.Message)
			}
		})
	}
}
