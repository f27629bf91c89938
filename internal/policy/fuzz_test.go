package policy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/strictjson"
	"gatewright.dev/gatewright/internal/testkit"
)

// addManifests seeds a corpus with every policy that is there to be tried.
func addManifests(f *testing.F) {
	f.Helper()
	for _, pattern := range []string{"../../test/testdata/invalid/*.yaml", "../../test/testdata/invalid/compile/*.yaml", "../../config/samples/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
}

func FuzzCompile(f *testing.F) {
	addManifests(f)
	f.Add([]byte(`{"spec": {"tools": [{"name": "*", "class": "Write", "argumentsSchema": {"$ref": "#"}}]}}`))
	f.Add([]byte(`{"spec": {"classes": [{"name": "Own", "decider": "Ask"}], "deciderRef": {}}}`))
	f.Add([]byte(`{"spec": {"tools": [{"name": "a", "class": "ReadOnly", "lowerTo": [{"class": "ReadOnly"}], "paths": [{}], "hosts": [{}]}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var p v1alpha1.ToolPolicy
		if yaml.Unmarshal(text, &p) != nil {
			return
		}
		compiled, errs := Compile(&p)
		again, _ := Compile(p.DeepCopy())
		c := v1alpha1.ClusterToolPolicy{ObjectMeta: p.ObjectMeta}
		c.Spec.PolicyRules = p.Spec.PolicyRules
		cluster, clusterErrs := CompileCluster(&c)
		if compiled.Invalid != (len(errs) > 0) || cluster.Invalid != (len(clusterErrs) > 0) {
			t.Fatalf("errors %v and %v, invalid %v and %v", errs, clusterErrs, compiled.Invalid, cluster.Invalid)
		}
		for _, name := range []string{"a", "act", "db.read", "files.read"} {
			r := request(name, args{"path": "/srv/x", "n": int64(1)}, userSaid("go"))
			r.Caller.Namespace = p.Namespace
			if len(p.Spec.Subjects) > 0 {
				r.Caller.ServiceAccount = string(p.Spec.Subjects[0])
			}
			j := judge(r, compiled, cluster)
			v := j.Settle(nil, nil)
			if isEnforced := p.Spec.Mode != v1alpha1.ModeAudit; len(errs) > 0 && isEnforced && v.Outcome != Block {
				t.Fatalf("a policy with errors is %s (%s)", v.Outcome, v.Reason)
			}
			if len(j.Asks()) > 0 && v.Outcome == Allow && !j.auditOnly {
				t.Fatalf("nobody answered and it is %s (%s)", v.Outcome, v.Reason)
			}
			if diff := cmp.Diff(v, decide(r, again, cluster)); diff != "" {
				t.Fatalf("compiled twice (-first +again):\n%s", diff)
			}
			j.Explain()
			j.Reached()
		}
		compiled.Points()
	})
}

// rich is a policy that uses everything there is but sql(), whose parser is so slow under instrumentation that nothing
// else would be tried; it has fuzz targets of its own.
func rich(t testing.TB) *Compiled {
	t.Helper()
	return compiled(t, "rich", testkit.WithDecider("judge"), testkit.Grant("a:b"), testkit.WithFact("tier", "Caller", ""),
		testkit.WithTool("act", destructive,
			testkit.LowerTo(write, "args.n < 5 && has(args.cmd)"), testkit.LowerTo(read, "shell(args.cmd).isRead"),
			testkit.Scopes("a:b"), testkit.Effects(v1alpha1.EffectDeletesData),
			testkit.Schema(`{"properties": {"n": {"type": "number", "maximum": 1000}, "when": {"type": "string", "format": "date-time"},
				"tree": {"$ref": "#/$defs/node"}}, "$defs": {"node": {"type": "object", "additionalProperties": {"$ref": "#/$defs/node"}}}}`),
			testkit.ClarifyOnViolation(""),
			testkit.Path("/path", "/srv/data"), testkit.Host("/url", "api.example.com", "*.files.example.com"),
			testkit.Source("/memo", orConfirm, "User"), testkit.Source("/*", orClarify, "User", "Facts", "Tool", "Schema"),
			testkit.Rule("large", "args.n > 100", orConfirm), testkit.Rule("host", "has(args.url) && url(args.url).host != 'api.example.com'", orBlock),
			testkit.Rule("all", "has(args.list) && args.list.all(x, x == 'a')", orBlock),
			testkit.ToolAsks(toConfirm, testkit.Questions("asked", "deletes_data"), testkit.Step(toAllow, testkit.AtLeast("asked", 90)))))
}

func FuzzJudge(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"n": 1}`, `{"n": 101, "path": "/srv/data/x", "url": "https://api.example.com/"}`, `{"n": 1, "path": ["/srv/data/x", 1]}`,
		`{"n": 5, "cmd": "ls -l", "sql": "SELECT 1"}`, `{"n": 5, "cmd": "rm -rf /", "sql": "DROP TABLE x"}`, `{"n": 1, "list": ["a", "a"]}`,
		`{"n": 1e3, "memo": "pay walrus harbour"}`, `{"n": 1, "tree": {"a": {"b": {}}}}`, `{"n": -0.5, "when": "2026-03-02T12:00:00Z"}`,
		`{"n": 1, "url": "https://api.example.com@evil.net"}`, `{"": "", "/": {"~": [null, true]}}`, `{"n": 1, "sql": "SELECT 1\u0000"}`,
	} {
		f.Add([]byte(seed))
	}
	set := NewSet([]*Compiled{rich(f)})
	f.Fuzz(func(t *testing.T, text []byte) {
		tree, err := strictjson.Parse(text, strictjson.Limits{})
		if err != nil {
			return
		}
		arguments, ok := tree.(map[string]any)
		if !ok {
			return
		}
		r := request("act", arguments, userSaid("pay walrus harbour 1", "read /srv/data/x and https://api.example.com/"))
		once := func() (Verdict, Explanation) {
			j := set.Judge(t.Context(), r)
			v := j.Settle(replying(j, questions.Answers{"asked": yes(1)}), nil)
			j.Reached()
			j.ConfirmMessage()
			return v, j.Explain()
		}
		v, explained := once()
		for _, o := range v.Obligations {
			if o.Outcome == Allow || o.Reason == ReasonRuleFailed && v.Outcome != Block {
				t.Fatalf("%s with %+v", v.Outcome, o)
			}
		}
		if v.Outcome == Allow && len(v.Obligations) > 0 {
			t.Fatalf("allowed with %+v", v.Obligations)
		}
		if _, isThere := arguments["n"]; !isThere && v.Outcome == Allow {
			t.Fatalf("a rule that reads a missing argument was taken for false")
		}
		again, explainedAgain := once()
		if diff := cmp.Diff(v, again); diff != "" {
			t.Fatalf("judged twice (-first +again):\n%s", diff)
		}
		if diff := cmp.Diff(explained, explainedAgain); diff != "" {
			t.Fatalf("explained twice (-first +again):\n%s", diff)
		}
	})
}
