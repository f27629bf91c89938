package effects_test

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"

	"gatewright.dev/gatewright/internal/policy/effects"
)

func newEnv(t *testing.T) *cel.Env {
	t.Helper()
	env, err := cel.NewEnv(effects.Library(), cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)), cel.Variable("text", cel.StringType))
	if err != nil {
		t.Fatalf("NewEnv: %v", err)
	}
	return env
}

func compile(t *testing.T, env *cel.Env, expr string) *cel.Ast {
	t.Helper()
	checked, issues := env.Compile(expr)
	if issues.Err() != nil {
		t.Fatalf("compiling %q: %v", expr, issues.Err())
	}
	return checked
}

func TestExpressions(t *testing.T) {
	tests := map[string]struct {
		expr string
		arg  any
	}{
		"a read":                              {`shell(args.x).isRead && shell(args.x).parsed && shell(args.x).why == ""`, "ls -la"},
		"a deletion":                          {`!shell(args.x).isRead && shell(args.x).writes && shell(args.x).deletes && !shell(args.x).sends`, "ls; rm x"},
		"a fetched page":                      {`shell(args.x).sends && shell(args.x).hosts == ["a.example"]`, "curl https://a.example/b"},
		"programs and paths":                  {`shell(args.x).programs == ["cat"] && shell(args.x).paths.all(p, p.startsWith("/data/"))`, "cat /data/a"},
		"a path that leaves":                  {`!shell(args.x).paths.all(p, p.startsWith("/data/"))`, "cat /data/../etc/passwd"},
		"a command that is not parsed":        {`!shell(args.x).isRead && shell(args.x).writes && shell(args.x).deletes && shell(args.x).sends && !shell(args.x).parsed`, "ls $(x)"},
		"a query":                             {`sql(args.x, "postgres").isRead && sql(args.x, "postgres").statements == ["select"]`, "SELECT 1 FROM t"},
		"a query of MySQL":                    {`sql(args.x, "mysql").isRead && sql(args.x, "mysql").tables == ["t"]`, "SELECT 1 FROM `t`"},
		"a deletion in SQL":                   {`sql(args.x, "mysql").deletes && sql(args.x, "postgres").deletes && !sql(args.x, "postgres").sends`, "DELETE FROM t"},
		"SQL that is not parsed":              {`[sql(args.x, "mysql"), sql(args.x, "postgres"), sql(args.x, "")].all(s, !s.isRead && s.writes && s.deletes && s.sends && !s.parsed)`, "hello"},
		"pods":                                {`kubectl(args.x).isRead && kubectl(args.x).verb == "get" && kubectl(args.x).namespace == "a" && !kubectl(args.x).allNamespaces`, "kubectl get pods -n a"},
		"a secret":                            {`"secrets" in kubectl(args.x).resources && kubectl(args.x).names == ["x"]`, "kubectl get secret x"},
		"kubectl that is not parsed":          {`!kubectl(args.x).isRead && kubectl(args.x).writes && kubectl(args.x).deletes && kubectl(args.x).sends && !kubectl(args.x).parsed`, "kubectl exec x"},
		"a URL":                               {`url(args.x).scheme == "https" && url(args.x).host == "a.example" && url(args.x).port == 443 && url(args.x).path == "/b" && url(args.x).query == "c=d" && url(args.x).userinfo == "u" && !url(args.x).isIP && !url(args.x).isPrivate`, "https://u@a.example/b?c=d"},
		"a private address":                   {`url(args.x).isIP && url(args.x).isPrivate && url(args.x).parsed`, "http://10.0.0.1/"},
		"a URL that is not parsed":            {`!url(args.x).parsed && url(args.x).isPrivate && url(args.x).host == "" && url(args.x).why != ""`, "http://0x7f.1/"},
		"a result that is carried as a value": {`[shell(args.x)].map(s, s.programs).size() == 1`, "ls"},
	}
	env := newEnv(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			program, err := env.Program(compile(t, env, test.expr), cel.CostLimit(1_000_000))
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := program.Eval(map[string]any{"args": map[string]any{"x": test.arg}, "text": ""})
			if err != nil || got != types.True {
				t.Errorf("%q over %v = %v, %v, want true", test.expr, test.arg, got, err)
			}
		})
	}
}

func TestNoStringIsAnError(t *testing.T) {
	env := newEnv(t)
	for _, expr := range []string{`shell(args.x).isRead`, `!shell(args.x).isRead`, `sql(args.x, "mysql").isRead`, `sql("SELECT 1", args.x).isRead`, `kubectl(args.x).isRead`, `url(args.x).parsed`} {
		for name, arg := range map[string]any{"a number": 1, "nothing": nil, "a list": []any{"ls"}, "a switch": true, "bytes": []byte("ls")} {
			t.Run(expr+" of "+name, func(t *testing.T) {
				program, err := env.Program(compile(t, env, expr))
				if err != nil {
					t.Fatal(err)
				}
				if got, _, err := program.Eval(map[string]any{"args": map[string]any{"x": arg}}); err == nil {
					t.Errorf("= %v, want an error", got)
				}
			})
		}
	}
}

func TestDoesNotCompile(t *testing.T) {
	env := newEnv(t)
	for name, expr := range map[string]string{
		"an unknown field": `shell(text).isread`, "a field of another result": `shell(text).verb == "get"`, "a read of a URL": `url(text).isRead`,
		"a number": `shell(1).isRead`, "no dialect": `sql(text).isRead`, "a list as a word": `shell(text).paths == "x"`, "an unknown field of SQL": `sql(text, "mysql").paths.size() > 0`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, issues := env.Compile(expr); issues.Err() == nil {
				t.Errorf("%q compiles", expr)
			}
		})
	}
}

// estimator knows the length of text, and asks the library for the rest.
type estimator struct{ textLength uint64 }

func (e estimator) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if path := node.Path(); len(path) == 1 && path[0] == "text" {
		return &checker.SizeEstimate{Max: e.textLength}
	}
	return effects.EstimateSize(node)
}

func (estimator) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

func TestEstimatedCost(t *testing.T) {
	tests := map[string]struct {
		expr             string
		length           uint64
		wantMin, wantMax uint64
	}{
		"a short command":           {`shell(text).isRead`, 100, 100, 310},
		"a command without bound":   {`shell(text).isRead`, 1 << 40, 100, 140_000},
		"a short query":             {`sql(text, "postgres").isRead`, 100, 3000, 5100},
		"a query without bound":     {`sql(text, "postgres").isRead`, 1 << 40, 3000, 700_000},
		"a walk over a list":        {`shell(text).paths.all(p, p == "x")`, 100, 100, 30_000},
		"a command line of kubectl": {`kubectl(text).isRead`, 100, 100, 310},
		"a short URL":               {`url(text).parsed`, 100, 20, 130},
	}
	env := newEnv(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := env.EstimateCost(compile(t, env, test.expr), estimator{test.length})
			if err != nil || got.Min < test.wantMin || got.Max > test.wantMax || got.Max < test.wantMin {
				t.Errorf("cost of %q = %+v, %v, want within [%d, %d]", test.expr, got, err, test.wantMin, test.wantMax)
			}
		})
	}
}

func TestCostLimitStopsALongText(t *testing.T) {
	env := newEnv(t)
	program, err := env.Program(compile(t, env, `shell(text).isRead`), cel.CostLimit(1000))
	if err != nil {
		t.Fatal(err)
	}
	if _, details, err := program.Eval(map[string]any{"text": "ls"}); err != nil || *details.ActualCost() < 100 {
		t.Errorf("a short text: %v, cost %v", err, details.ActualCost())
	}
	if got, _, err := program.Eval(map[string]any{"text": "ls " + strings.Repeat("x", 1000)}); err == nil {
		t.Errorf("a long text = %v, want an exceeded cost limit", got)
	}
}

func TestLibraryTwiceIsOnce(t *testing.T) {
	if _, err := cel.NewEnv(effects.Library(), effects.Library()); err != nil {
		t.Errorf("NewEnv: %v", err)
	}
}

func BenchmarkFunctions(b *testing.B) {
	if err := effects.Warm(); err != nil {
		b.Fatal(err)
	}
	env, err := cel.NewEnv(effects.Library(), cel.Variable("text", cel.StringType))
	if err != nil {
		b.Fatal(err)
	}
	for name, row := range map[string][2]string{
		"shell":    {`shell(text).isRead`, "cat /data/a | grep -n x | sort -rn | head -20"},
		"kubectl":  {`kubectl(text).isRead`, "kubectl get pods -n a -o wide"},
		"url":      {`url(text).isPrivate`, "https://a.example/b?c=d"},
		"postgres": {`sql(text, "postgres").isRead`, "SELECT a, count(*) FROM s.t WHERE b = 'x' GROUP BY a"},
		"mysql":    {`sql(text, "mysql").isRead`, "SELECT a, count(*) FROM s.t WHERE b = 'x' GROUP BY a"},
	} {
		b.Run(name, func(b *testing.B) {
			checked, issues := env.Compile(row[0])
			if issues.Err() != nil {
				b.Fatal(issues.Err())
			}
			program, err := env.Program(checked)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := program.Eval(map[string]any{"text": row[1]}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
