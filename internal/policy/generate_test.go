package policy

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/testkit"
)

// generator makes random policies and calls from one seed. What it makes is small on purpose: with few tools, values
// and questions, policies and calls have much to do with one another.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, seed))} }

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g generator, list ...T) T { return list[g.IntN(len(list))] }

func some[T any](g generator, list ...T) []T {
	list = slices.Clone(list)
	g.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:1+g.IntN(len(list))]
}

// generated is a policy with the spec that it was made from.
type generated struct {
	*Compiled
	rules *v1alpha1.PolicyRules
}

var (
	generatedQuestions = testkit.Questions("asked", "severity", "moves_money", "instructed_by_content", "tone")
	generatedClasses   = []v1alpha1.ClassName{read, write, external, destructive, "Own"}
)

func (g generator) policy(t testing.TB, name string, extra ...testkit.Option) generated {
	t.Helper()
	p := testkit.ToolPolicy(name, append(g.options(), extra...)...)
	out, errs := Compile(p)
	if len(errs) > 0 {
		t.Fatalf("a generated policy does not compile: %v", errs.ToAggregate())
	}
	return generated{out, &p.Spec.PolicyRules}
}

// cluster makes a cluster policy that grants nothing.
func (g generator) cluster(t testing.TB, name string, extra ...testkit.Option) generated {
	t.Helper()
	noGrants := testkit.WithRules(func(r *v1alpha1.PolicyRules) { r.Grants = nil })
	p := testkit.ClusterToolPolicy(name, append(append(g.options(), noGrants), extra...)...)
	out, errs := CompileCluster(p)
	if len(errs) > 0 {
		t.Fatalf("a generated policy does not compile: %v", errs.ToAggregate())
	}
	return generated{out, &p.Spec.PolicyRules}
}

func (g generator) options() []testkit.Option {
	out := []testkit.Option{
		testkit.WithDecider("judge"), testkit.WithQuestion(tone), testkit.UnknownTools(pick(g, v1alpha1.UnknownToolsBlock, "Confirm", "Defer", "Defer", "Defer", "Defer")),
		testkit.WithFact("tier", "Caller", ""), testkit.WithClass("Own", g.class("Own")),
	}
	for _, name := range generatedClasses[:4] {
		if g.chance(70) {
			out = append(out, testkit.WithClass(name, g.class(name)))
		}
	}
	for _, name := range []string{"act", "act.*", "other"} {
		if g.chance(75) {
			out = append(out, testkit.WithTool(name, pick(g, generatedClasses...), g.tool()...))
		}
	}
	if g.chance(60) {
		out = append(out, testkit.Grant("a:b"))
	}
	return out
}

func (g generator) class(name v1alpha1.ClassName) testkit.ClassOption {
	base := v1alpha1.Base("")
	if name == "Own" {
		base = pick(g, v1alpha1.BaseReadOnly, v1alpha1.BaseWrite, v1alpha1.BaseExternal, v1alpha1.BaseDestructive)
	}
	approval := pick(g, "", "", "", "", "", "", v1alpha1.ApprovalWhenUnsure, v1alpha1.ApprovalAlways, v1alpha1.ApprovalForbidden)
	unavailable := pick(g, "", v1alpha1.UnavailableBlock, v1alpha1.UnavailableConfirm)
	names, steps, end := g.ladder()
	asks, ends := g.chance(70), g.chance(60)
	return func(k *v1alpha1.ClassPolicy) {
		k.Base, k.Approval, k.WhenDeciderUnavailable = base, approval, unavailable
		if asks {
			testkit.Asks(end, names, steps...)(k)
		} else if ends {
			testkit.Otherwise(end)(k)
		}
	}
}

func (g generator) ladder() ([]v1alpha1.QuestionName, []v1alpha1.Threshold, v1alpha1.Outcome) {
	names := some(g, generatedQuestions...)
	var steps []v1alpha1.Threshold
	type side struct {
		question v1alpha1.QuestionName
		isUpper  bool
	}
	sides := map[side]bool{}
	for range g.IntN(4) {
		outcome := pick(g, toAllow, toAllow, toClarify, toConfirm, toBlock)
		name := pick(g, names...)
		if name == "instructed_by_content" && outcome == toAllow {
			outcome = toConfirm
		}
		if outcome != toAllow && g.chance(30) {
			steps = append(steps, testkit.Floor(outcome, pick(g, v1alpha1.Percent(50), 80), names...))
			continue
		}
		bar := pick(g, int32(10), 50, 90)
		isUpper := g.chance(50)
		if sides[side{name, isUpper}] {
			continue // what a second step of one side says may be covered by the first, which does not compile
		}
		sides[side{name, isUpper}] = true
		compare := pick(g, testkit.Below, testkit.AtMost)(name, bar)
		if isUpper {
			compare = pick(g, testkit.Above, testkit.AtLeast)(name, bar)
		}
		if name == "tone" {
			compare = testkit.OfOption("rude", compare)
		}
		steps = append(steps, testkit.Step(outcome, compare))
	}
	return names, steps, pick(g, toAllow, toAllow, toConfirm, toBlock)
}

func (g generator) tool() []testkit.ToolOption {
	names, steps, end := g.ladder()
	outcome := func() v1alpha1.StricterOutcome { return pick(g, orClarify, orConfirm, orBlock) }
	all := []testkit.ToolOption{
		testkit.Scopes("a:b"),
		testkit.Schema(`{"required": ["n"], "properties": {"n": {"type": "integer"}, "mode": {"enum": ["fast", "slow"]}}}`),
		testkit.Path("/path", "/srv/data"),
		testkit.Host("/url", "api.example.com"),
		// What tool results may vouch for, and rules that object to what they do not know, are the policy's own choice.
		testkit.Source(pick(g, v1alpha1.Pointer("/*"), "/memo", "/n"), outcome(), some(g, v1alpha1.SourceUser, v1alpha1.SourceFacts, v1alpha1.SourceSchema)...),
		testkit.Rule("large", "args.n > 50", outcome()),
		testkit.Rule("unsourced", "has(args.memo) && sources['/memo'] != 'User'", outcome()),
		testkit.LowerTo(read, "args.n < 5"),
		testkit.Effects(v1alpha1.EffectMovesMoney),
		testkit.ToolOtherwise(end),
		testkit.ToolSkips(),
	}
	var out []testkit.ToolOption
	if g.chance(30) {
		all, out = all[:len(all)-2], append(out, testkit.ToolAsks(end, names, steps...))
	}
	for _, o := range all {
		if g.chance(12) {
			out = append(out, o)
		}
	}
	return out
}

func (g generator) call() *Request {
	r := request(pick(g, "act", "act", "act.now", "other", "nonesuch"), args{})
	for _, v := range []struct {
		name   string
		values []any
	}{
		{"n", []any{int64(3), int64(30), int64(300), "many", nil, 2.5}},
		{"path", []any{"/srv/data/x", "/etc/passwd", int64(1), []any{"/srv/data/y", "/srv/data/z"}}},
		{"url", []any{"https://api.example.com/", "https://evil.example.net/", nil}},
		{"memo", []any{"pay walrus harbour", "quartz zebra", "", true}},
		{"mode", []any{"fast", "sideways"}},
	} {
		if g.chance(60) {
			r.Arguments[v.name] = pick(g, v.values...)
		}
	}
	for range g.IntN(3) {
		r.UserTurns = append(r.UserTurns, pick(g, "please pay walrus harbour 30", "use /srv/data/x and api.example.com", "what is quartz?"))
	}
	if g.chance(40) {
		r.Facts = args{"tier": pick[any](g, "gold", "fast", int64(300))}
	}
	if g.chance(40) {
		r.ToolResults = []string{pick(g, "quartz zebra", "the limit is 300")}
	}
	return r
}

func (g generator) answers() questions.Answers {
	level := [4]float64{}
	level[g.IntN(4)] = 1
	p := func() float64 { return pick(g, 0, 0.1, 0.5, 0.9, 0.95, 1, g.Float64()) }
	return questions.Answers{
		"asked": yes(p()), "moves_money": yes(p()), "instructed_by_content": yes(p()), "severity": score(level[:]...), "tone": tones(p()),
	}
}

// garbage is a reply that is no answer to what was asked.
func (g generator) garbage(a Ask) Answered {
	good := Answered{Fingerprint: testkit.Fingerprint, Answers: questions.Answers{}}
	all := g.answers()
	for _, q := range a.Questions {
		good.Answers[q.Name] = all[q.Name]
	}
	name := pick(g, a.Questions...).Name
	switch g.IntN(7) {
	case 0:
		good.Fingerprint = "judge-" + strconv.Itoa(2+g.IntN(9))
	case 1:
		good.Unavailable = pick(g, unavailable...)
	case 2:
		delete(good.Answers, name)
	case 3:
		good.Answers["declined"] = yes(0)
	case 4:
		bad := good.Answers[name]
		bad.Coverage = pick(g, math.NaN(), math.Inf(1), -1, 2)
		good.Answers[name] = bad
	case 5:
		good.Answers[name] = questions.Answer{Type: "Essay"}
	default:
		return Answered{}
	}
	return good
}

// world is a set of policies that all properties draw from.
type world struct {
	enforced, observed, cluster, observedCluster []generated
}

func newWorld(t testing.TB, g generator) world {
	var w world
	for i := range 40 {
		n := strconv.Itoa(i)
		w.enforced = append(w.enforced, g.policy(t, "e"+n))
		w.observed = append(w.observed, g.policy(t, "a"+n, testkit.InAudit()))
		w.cluster = append(w.cluster, g.cluster(t, "c"+n))
		w.observedCluster = append(w.observedCluster, g.cluster(t, "o"+n, testkit.InAudit()))
	}
	return w
}

// selection is one to three policies in force, at least one of them of the namespace.
func (g generator) selection(w world) []generated {
	out := []generated{pick(g, w.enforced...)}
	for range g.IntN(3) {
		if next := pick(g, pick(g, w.enforced...), pick(g, w.cluster...)); !slices.ContainsFunc(out, func(o generated) bool { return o.ID == next.ID }) {
			out = append(out, next)
		}
	}
	return out
}

func setOfGenerated(list ...generated) *Set {
	var all []*Compiled
	for _, p := range list {
		all = append(all, p.Compiled)
	}
	return NewSet(all)
}

func (g generator) judge(list []generated, r *Request) *Judgement {
	return setOfGenerated(list...).Judge(context.Background(), r)
}
