package evaluation

import (
	"cmp"
	"slices"
	"strings"

	"gatewright.dev/gatewright/internal/evaluation/stats"
)

// ReportOptions say how results are reported.
type ReportOptions struct {
	// Name of the case set.
	Name string
	// CasesDigest and PoliciesDigest say what was run.
	CasesDigest, PoliciesDigest string
	// Version of the binary.
	Version string
	// Seed of the bootstrap.
	Seed uint64
	// Rounds of the bootstrap, 1000 by default.
	Rounds int
	// Speaks says of questions that are not built in whether yes speaks for allow or for block.
	Speaks map[string]Label
	// Prices of decider requests; without them no cost is reported.
	Prices *Prices
	// Temperature at which generative deciders drew their answers. 0, as they are served: the likeliest one.
	Temperature float64
	// Served says that the gate is at an address: what deciders said is not known, and the gate may reuse judgements.
	Served bool
}

// Prices are in any currency.
type Prices struct {
	// InputPerMillion and OutputPerMillion tokens, and PerRequest to a decider.
	InputPerMillion  float64 `json:"inputPerMillion,omitempty"`
	OutputPerMillion float64 `json:"outputPerMillion,omitempty"`
	PerRequest       float64 `json:"perRequest,omitempty"`
}

// Report is what came of a run.
type Report struct {
	Name           string `json:"name"`
	Version        string `json:"version,omitempty"`
	CasesDigest    string `json:"casesDigest,omitempty"`
	PoliciesDigest string `json:"policiesDigest,omitempty"`
	Cases          int    `json:"cases"`
	Dangerous      int    `json:"dangerous"`
	Harmless       int    `json:"harmless"`
	// Requests are different requests of users: cases of one are not independent.
	Requests int `json:"requests"`
	Repeats  int `json:"repeats"`
	// Temperature at which generative deciders drew their answers.
	Temperature float64 `json:"temperature,omitempty"`
	// Notes say what to keep in mind.
	Notes          []string              `json:"notes,omitempty"`
	Configurations []ConfigurationReport `json:"configurations"`
	// Comparisons of configurations, with intervals drawn by user request.
	Comparisons []Comparison `json:"comparisons,omitempty"`
}

// ConfigurationReport is what came of one configuration.
type ConfigurationReport struct {
	Configuration Configuration `json:"configuration"`
	Fingerprints  []string      `json:"fingerprints,omitempty"`
	// Answered are the scores of what the gate answered.
	Answered Scores `json:"answered"`
	// Judged are the scores without the standing rule that some classes always wait for a person. Nil: it changes nothing.
	Judged    *Scores    `json:"judged,omitempty"`
	ByClass   []Group    `json:"byClass"`
	BySource  []Group    `json:"bySource"`
	ByFamily  []Group    `json:"byFamily,omitempty"`
	ByKind    []Group    `json:"byKind,omitempty"`
	ByHalf    []Group    `json:"byHalf,omitempty"`
	DecidedBy []Decided  `json:"decidedBy"`
	Coverage  Coverage   `json:"coverage"`
	Expected  *Expected  `json:"expected,omitempty"`
	Questions []Question `json:"questions,omitempty"`
	// ByType is the accuracy of answers by type of question.
	ByType []TypeAccuracy `json:"byType,omitempty"`
	// Curve is accuracy against coverage over the answers to all questions, as a floor of confidence rises.
	Curve    []stats.Step `json:"curve,omitempty"`
	Latency  Latency      `json:"latency"`
	Failures Failures     `json:"failures"`
	Tokens   *Tokens      `json:"tokens,omitempty"`
	Flaps    *Flaps       `json:"flaps,omitempty"`
	// Reused counts answers that rest on an earlier judgement that the gate remembered.
	Reused int `json:"reused,omitempty"`
	// Missed are dangerous calls that were allowed; Stopped are harmless ones that were not.
	Missed  []Wrong `json:"missed,omitempty"`
	Stopped []Wrong `json:"stopped,omitempty"`
}

// Coverage says how much was settled by whom.
type Coverage struct {
	// WithoutModel is the share that no decider had to be asked about.
	WithoutModel stats.Proportion `json:"withoutModel"`
	// WithoutPerson is the share that ended in Allow or Block, so that nobody has to answer anything.
	WithoutPerson stats.Proportion `json:"withoutPerson"`
}

// Expected says how often a case came out as its expect says.
type Expected struct {
	Outcome stats.Proportion `json:"outcome"`
}

// Wrong is a case whose decision is not as labelled.
type Wrong struct {
	ID          string `json:"id"`
	Source      string `json:"source"`
	Class       string `json:"class"`
	Tool        string `json:"tool"`
	UserRequest string `json:"userRequest"`
	Outcome     string `json:"outcome"`
	Reason      string `json:"reason"`
	By          string `json:"by"`
}

// Latency is how long calls took, in milliseconds.
type Latency struct {
	// Call is from sending the request to having read the answer.
	Call stats.Spread `json:"call"`
	// Decider is the time of requests to deciders, in a local run.
	Decider stats.Spread `json:"decider"`
	// First is the first call to the gate.
	First float64 `json:"first"`
}

// Failures counts what went wrong. Each of them counts as stopped in the scores.
type Failures struct {
	// Timeouts of deciders and of the gate.
	Timeouts int `json:"timeouts"`
	// Malformed answers of deciders and of the gate.
	Malformed int `json:"malformed"`
	// Cut answers of deciders, which ended before they were whole.
	Cut int `json:"cut"`
	// Decider has the errors of deciders by reason.
	Decider map[string]int `json:"decider,omitempty"`
	// Gate has calls without a decision by kind, and by code for those that the gate refused.
	Gate map[string]int `json:"gate,omitempty"`
}

// Tokens that deciders reported.
type Tokens struct {
	Requests int `json:"requests"`
	Input    int `json:"input"`
	Output   int `json:"output"`
	// InputPerRequest and OutputPerRequest are means.
	InputPerRequest  float64 `json:"inputPerRequest"`
	OutputPerRequest float64 `json:"outputPerRequest"`
	// CostPerThousand decisions at the given prices. Nil: no prices were given, or tokens have one and none are reported.
	CostPerThousand *float64 `json:"costPerThousand,omitempty"`
}

// Flaps says how many cases got another outcome in another repeat.
type Flaps struct {
	Rate stats.Proportion `json:"rate"`
	// Cases that flapped, with their outcomes in order.
	Cases []Flap `json:"cases,omitempty"`
}

// Flap is a case that got different outcomes.
type Flap struct {
	ID       string   `json:"id"`
	Class    string   `json:"class"`
	Outcomes []string `json:"outcomes"`
}

// Comparison is the difference between two configurations, in shares: positive means more in With.
type Comparison struct {
	With    Configuration `json:"with"`
	Without Configuration `json:"without"`
	// Recall of dangerous calls, and FalseBlock of harmless ones. Nil: a label has no cases.
	Recall     *stats.Interval `json:"recall,omitempty"`
	FalseBlock *stats.Interval `json:"falseBlock,omitempty"`
	Accuracy   *stats.Interval `json:"accuracy,omitempty"`
	// Caught are dangerous calls that only With stopped; Lost those that only Without stopped. Spared and Burdened are the
	// same for harmless calls: stopped only by Without, and only by With.
	Caught   int `json:"caught"`
	Lost     int `json:"lost"`
	Spared   int `json:"spared"`
	Burdened int `json:"burdened"`
}

// observed is a case with its results in one configuration, by repeat.
type observed struct {
	one     *Case
	repeats []*Result
}

// NewReport makes the report of a run. The same cases, results and options give the same report.
func NewReport(cases []*Case, results []Result, o ReportOptions) *Report {
	r := &Report{
		Name: o.Name, Version: o.Version, CasesDigest: o.CasesDigest, PoliciesDigest: o.PoliciesDigest, Cases: len(cases),
		Temperature: o.Temperature, Requests: len(stats.Clusters(requests(cases))),
	}
	for _, c := range cases {
		if c.IsDangerous() {
			r.Dangerous++
		} else {
			r.Harmless++
		}
	}
	bootstrap := stats.Bootstrap{Seed: o.Seed, Rounds: o.Rounds}
	configurations, by := observe(cases, results)
	for _, c := range configurations {
		for _, seen := range by[c] {
			r.Repeats = max(r.Repeats, len(seen.repeats))
		}
		r.Configurations = append(r.Configurations, configurationReport(c, by[c], o, bootstrap))
	}
	r.Comparisons = comparisons(configurations, by, bootstrap)
	r.Notes = r.notes(o)
	return r
}

func requests(cases []*Case) []string {
	out := make([]string, len(cases))
	for i, c := range cases {
		out[i] = c.UserRequest
	}
	return out
}

// observe sorts results by configuration, in the order in which they first occur, and case, in the order of the file.
func observe(cases []*Case, results []Result) (order []Configuration, by map[Configuration][]observed) {
	found := map[Configuration]map[string][]*Result{}
	for i := range results {
		r := &results[i]
		if found[r.Configuration] == nil {
			found[r.Configuration] = map[string][]*Result{}
			order = append(order, r.Configuration)
		}
		found[r.Configuration][r.Case] = append(found[r.Configuration][r.Case], r)
	}
	by = map[Configuration][]observed{}
	for _, c := range order {
		for _, one := range cases {
			repeats := found[c][one.ID]
			if len(repeats) == 0 {
				continue
			}
			slices.SortStableFunc(repeats, func(a, b *Result) int { return cmp.Compare(a.Repeat, b.Repeat) })
			by[c] = append(by[c], observed{one, repeats})
		}
	}
	return order, by
}

func configurationReport(c Configuration, list []observed, o ReportOptions, b stats.Bootstrap) ConfigurationReport {
	r := ConfigurationReport{
		Configuration: c, Fingerprints: fingerprints(list), Answered: confusionOf(list).scores(), Judged: judgedScores(list),
		ByClass: groupBy(list, func(c *Case) string { return c.Class }), BySource: groupBy(list, func(c *Case) string { return c.Source }),
		ByFamily: groupBy(list, func(c *Case) string { return c.Family }), ByKind: groupBy(list, func(c *Case) string { return c.Kind }), ByHalf: groupBy(list, func(c *Case) string { return c.Half }),
		DecidedBy: decidedBy(list), Coverage: coverageOf(list), Expected: expectedOf(list),
		Latency: latencyOf(list), Failures: failuresOf(list), Tokens: tokensOf(list, o.Prices), Flaps: flapsOf(list),
	}
	r.Questions, r.Curve = questionsOf(list, o.Speaks, b)
	r.ByType = byType(r.Questions)
	for _, seen := range list {
		for _, one := range seen.repeats {
			r.Reused += min(one.Repeats, 1)
		}
		first := seen.repeats[0]
		switch dangerous := seen.one.IsDangerous(); {
		case dangerous && !first.IsStopped():
			r.Missed = append(r.Missed, wrong(seen))
		case !dangerous && first.IsStopped():
			r.Stopped = append(r.Stopped, wrong(seen))
		}
	}
	return r
}

func wrong(seen observed) Wrong {
	c, r := seen.one, seen.repeats[0]
	return Wrong{
		ID: c.ID, Source: c.Source, Class: c.Class, Tool: c.Tool.Name, UserRequest: clip(c.UserRequest, 240),
		Outcome: outcomeText(r), Reason: r.Reason, By: r.By,
	}
}

func outcomeText(r *Result) string {
	if r.Failure != NoFailure {
		return "(" + string(r.Failure) + ")"
	}
	return string(r.Outcome)
}

func confusionOf(list []observed) Confusion {
	var c Confusion
	for _, seen := range list {
		r := seen.repeats[0]
		c.add(seen.one.IsDangerous(), r.Outcome, r.Failure)
	}
	return c
}

func judgedScores(list []observed) *Scores {
	var c Confusion
	differs := false
	for _, seen := range list {
		r := seen.repeats[0]
		differs = differs || r.Failure == NoFailure && r.Judged != r.Outcome
		c.add(seen.one.IsDangerous(), r.Judged, r.Failure)
	}
	if !differs {
		return nil
	}
	s := c.scores()
	return &s
}

// classOrder is the order in which classes are shown; other names come after them, by name.
var classOrder = []string{"read-only", "write", "external", "destructive"}

// groupBy makes the scores of each group. Cases without a name are left out; one group alone says nothing more.
func groupBy(list []observed, name func(*Case) string) []Group {
	groups := map[string]*Confusion{}
	for _, seen := range list {
		n := name(seen.one)
		if n == "" {
			continue
		}
		if groups[n] == nil {
			groups[n] = &Confusion{}
		}
		groups[n].add(seen.one.IsDangerous(), seen.repeats[0].Outcome, seen.repeats[0].Failure)
	}
	out := make([]Group, 0, len(groups))
	for n, c := range groups {
		out = append(out, Group{n, c.scores()})
	}
	place := func(n string) int {
		if i := slices.Index(classOrder, n); i >= 0 {
			return i
		}
		return len(classOrder)
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(place(a.Name), place(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func decidedBy(list []observed) []Decided {
	type key struct{ by, reason, outcome string }
	count := map[key]*Decided{}
	for _, seen := range list {
		r := seen.repeats[0]
		by, _, _ := strings.Cut(r.By, ":")
		if by == "rule" || by == "policy" {
			by = r.By
		}
		k := key{by, r.Reason, outcomeText(r)}
		if count[k] == nil {
			count[k] = &Decided{By: k.by, Reason: k.reason, Outcome: k.outcome}
		}
		if seen.one.IsDangerous() {
			count[k].Dangerous++
		} else {
			count[k].Harmless++
		}
	}
	out := make([]Decided, 0, len(count))
	for _, d := range count {
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b Decided) int {
		return cmp.Or(cmp.Compare(b.Dangerous+b.Harmless, a.Dangerous+a.Harmless), cmp.Compare(a.By, b.By), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Outcome, b.Outcome))
	})
	return out
}

func fingerprints(list []observed) []string {
	var out []string
	for _, seen := range list {
		for _, r := range seen.repeats {
			if r.Fingerprint != "" && !slices.Contains(out, r.Fingerprint) {
				out = append(out, r.Fingerprint)
			}
		}
	}
	slices.Sort(out)
	return out
}
