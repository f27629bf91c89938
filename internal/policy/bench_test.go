package policy

import (
	"fmt"
	"testing"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/testkit"
)

// typical is a policy as a team would write it, and a call that all of its rules look at and none objects to.
func typical(t testing.TB, name, namespace string) *Compiled {
	t.Helper()
	return compiled(t, name, testkit.InNamespace(namespace), testkit.Grant("files:read"),
		testkit.WithTool("files.read", read, testkit.Scopes("files:read"), testkit.Path("/path", "/srv/data", "/srv/public"),
			testkit.Host("/url", "api.example.com", "*.files.example.com")),
		testkit.WithTool("files.*", write), testkit.WithTool("mail.send", external))
}

func typicalCall() *Request {
	return request("files.read", args{"path": "/srv/data/reports/2026.csv", "url": "https://eu.files.example.com/reports", "limit": int64(50)},
		userSaid("read the report of 2026"))
}

// crowd is a snapshot with that many policies, one of which applies.
func crowd(t testing.TB, n int) *Set {
	t.Helper()
	all := []*Compiled{typical(t, "p", testkit.Namespace)}
	for i := 1; i < n; i++ {
		all = append(all, typical(t, "p", fmt.Sprintf("team-%d", i)))
	}
	return NewSet(all)
}

// run judges and settles, sequentially and in parallel.
func run(b *testing.B, s *Set, r *Request, answers questions.Answers, want Outcome) {
	b.Helper()
	one := func() Outcome {
		j := s.Judge(b.Context(), r)
		return j.Settle(replying(j, answers), nil).Outcome
	}
	if got := one(); got != want {
		b.Fatalf("got %s, want %s", got, want)
	}
	b.Run("sequential", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			one()
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				one()
			}
		})
	})
}

func BenchmarkRulesOnly(b *testing.B) {
	for _, n := range []int{1, 10, 1000} {
		b.Run(fmt.Sprintf("policies=%d", n), func(b *testing.B) { run(b, crowd(b, n), typicalCall(), nil, Allow) })
	}
}

func BenchmarkChecks(b *testing.B) {
	key, door := newFrontDoor(b)
	for name, c := range map[string]struct {
		options []testkit.Option
		tool    testkit.ToolOption
		want    Outcome
	}{
		"none":        {nil, func(*v1alpha1.ToolRule) {}, Allow},
		"scopes":      {[]testkit.Option{testkit.Grant("a:b")}, testkit.Scopes("a:b"), Allow},
		"facts":       {[]testkit.Option{testkit.WithFact("tier", "Caller", "Required")}, func(*v1alpha1.ToolRule) {}, Allow},
		"attestation": {[]testkit.Option{testkit.Attested(key)}, func(*v1alpha1.ToolRule) {}, Allow},
		"schema":      {nil, testkit.Schema(`{"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}}`), Allow},
		"paths":       {nil, testkit.Path("/path", "/srv/data"), Allow},
		"hosts":       {nil, testkit.Host("/url", "*.files.example.com"), Allow},
		"sources":     {nil, testkit.Source("/*", orConfirm, "User"), Confirm},
		"rules":       {nil, testkit.Rule("r", "args.limit > 100", orBlock), Allow},
		"lowerTo":     {nil, testkit.LowerTo(read, "args.limit < 100"), Allow},
	} {
		b.Run(name, func(b *testing.B) {
			p := compiled(b, "p", append(c.options, testkit.WithTool("files.read", read, c.tool))...)
			r := typicalCall()
			r.Facts, r.Session, r.Attestation = args{"tier": "gold"}, "s1", door.sign(b, attestationType, signedContext(nil))
			run(b, NewSet([]*Compiled{p}), r, nil, c.want)
		})
	}
}

func BenchmarkLadder(b *testing.B) {
	p := compiled(b, "p", testkit.WithDecider("judge"), testkit.WithTool("files.read", write, testkit.ToolAsks(toConfirm,
		testkit.Questions("asked", "severity", "instructed_by_content"),
		testkit.Step(toBlock, testkit.Above("instructed_by_content", 50)), testkit.Floor(toClarify, 60, "asked"),
		testkit.Step(toAllow, testkit.AtLeast("asked", 90), testkit.Below("severity", 150)))))
	answers := questions.Answers{"asked": yes(0.95), "severity": score(0.5, 0.5, 0, 0), "instructed_by_content": yes(0.1)}
	run(b, NewSet([]*Compiled{p}), typicalCall(), answers, Allow)
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		typical(b, "p", testkit.Namespace)
	}
}
