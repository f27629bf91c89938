package webhook

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/testkit"
)

// options is short for what a row changes.
type options = []testkit.Option

func change(f func(*v1alpha1.PolicyRules)) options { return options{testkit.WithRules(f)} }

func class(name v1alpha1.ClassName, o ...testkit.ClassOption) options {
	return options{testkit.WithClass(name, o...)}
}

func tool(o ...testkit.ToolOption) options { return options{testkit.WithTool("db.run", "Write", o...)} }

func toolOf(f func(*v1alpha1.ToolRule)) options { return tool(testkit.ToolOption(f)) }

func budget(n, window int32, beyond v1alpha1.BudgetOutcome) options {
	return change(func(r *v1alpha1.PolicyRules) {
		r.Approvals = &v1alpha1.ApprovalSettings{TTLSeconds: 900, PermitSeconds: 30, Budget: &v1alpha1.ConfirmationBudget{Confirmations: n, WindowSeconds: window, Beyond: beyond}}
	})
}

func ladder(otherwise v1alpha1.Outcome, steps ...v1alpha1.Threshold) options {
	return class("Write", testkit.Asks(otherwise, testkit.Questions("asked", "severity"), steps...))
}

// Each row is an update from one side to the other. The way back must not be called looser, unless a row says what it is.
func TestLoosened(t *testing.T) {
	end := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		was, is  options
		want     []string
		wantBack []string
	}{
		"the same is no looser":                  {was: tool(), is: tool()},
		"mode":                                   {is: options{testkit.InAudit()}, want: []string{"spec.mode: was Enforce, is Audit"}},
		"unknownTools from Block to Defer":       {is: options{testkit.UnknownTools("Defer")}, want: []string{"spec.unknownTools: was Block, is Defer"}},
		"unknownTools from Confirm to Defer":     {was: options{testkit.UnknownTools("Confirm")}, is: options{testkit.UnknownTools("Defer")}, want: []string{"spec.unknownTools: was Confirm, is Defer"}},
		"contextTrust":                           {was: options{testkit.Attested("k")}, is: options{testkit.Attestors("k")}, want: []string{"spec.contextTrust: was Attested, is Caller"}},
		"another key of a front door":            {was: options{testkit.Attested("k")}, is: options{testkit.Attested("k", "l")}, want: []string{"spec.attestors[front-door-b]: is a new key whose word counts"}},
		"subjects that everybody was":            {is: options{testkit.ForSubjects("a")}, want: []string{"spec.subjects: was everybody, is a"}},
		"a subject that is gone":                 {was: options{testkit.ForSubjects("a", "b")}, is: options{testkit.ForSubjects("b")}, want: []string{"spec.subjects: no longer a"}},
		"disclose":                               {is: change(func(r *v1alpha1.PolicyRules) { r.Disclose = v1alpha1.DiscloseFull }), want: []string{"spec.disclose: was Minimal, is Full"}},
		"captureState":                           {is: change(func(r *v1alpha1.PolicyRules) { r.CaptureState = v1alpha1.CapturePlain }), want: []string{"spec.captureState: was Digest, is Plain"}},
		"clarifyLimit":                           {is: change(func(r *v1alpha1.PolicyRules) { r.ClarifyLimit = 5 }), want: []string{"spec.clarifyLimit: was 2, is 5"}},
		"the life of a confirmation":             {is: change(func(r *v1alpha1.PolicyRules) { r.Approvals = &v1alpha1.ApprovalSettings{TTLSeconds: 3600} }), want: []string{"spec.approvals.ttlSeconds: was 900, is 3600"}},
		"the life of a permit":                   {is: change(func(r *v1alpha1.PolicyRules) { r.Approvals = &v1alpha1.ApprovalSettings{PermitSeconds: 60} }), want: []string{"spec.approvals.permitSeconds: was 30, is 60"}},
		"a budget that is gone":                  {was: budget(5, 600, ""), is: change(func(r *v1alpha1.PolicyRules) {}), want: []string{"spec.approvals.budget: was 5 confirmations in 600 s, is gone"}},
		"a budget that grows":                    {was: budget(5, 600, ""), is: budget(9, 600, ""), want: []string{"spec.approvals.budget.confirmations: was 5, is 9"}},
		"a budget of a shorter window":           {was: budget(5, 600, ""), is: budget(5, 300, ""), want: []string{"spec.approvals.budget.windowSeconds: was 600, is 300"}},
		"what is beyond the budget":              {was: budget(5, 600, ""), is: budget(5, 600, "Clarify"), want: []string{"spec.approvals.budget.beyond: was Block, is Clarify"}},
		"approval from Always to WhenUnsure":     {was: class("Write", testkit.Approval("Always")), is: class("Write", testkit.Approval("WhenUnsure"), testkit.Otherwise("Confirm")), want: []string{"spec.classes[Write].approval: was Always, is WhenUnsure"}},
		"approval of a default":                  {is: class("Destructive", testkit.Approval("WhenUnsure"), testkit.Otherwise("Allow")), want: []string{"spec.classes[Destructive].approval: was Always, is WhenUnsure"}},
		"approval from Forbidden":                {was: class("Write", testkit.Approval("Forbidden")), is: class("Write", testkit.Approval("Always")), want: []string{"spec.classes[Write].approval: was Forbidden, is Always"}},
		"a class that is listed no more":         {was: class("Write", testkit.Approval("Forbidden")), want: []string{"spec.classes[Write].approval: was Forbidden, is WhenUnsure"}},
		"the default of an unlisted class":       {is: class("Write", testkit.Otherwise("Allow")), want: []string{"spec.classes[Write].otherwise: was Confirm, is Allow"}},
		"what is written out is the default":     {is: class("Destructive", testkit.Approval("Always"), testkit.WhenUnavailable("Block"))},
		"whenDeciderUnavailable":                 {is: class("External", testkit.WhenUnavailable("Confirm")), want: []string{"spec.classes[External].whenDeciderUnavailable: was Block, is Confirm"}},
		"selfApproval":                           {is: class("Destructive", func(k *v1alpha1.ClassPolicy) { k.SelfApproval = "Allow" }), want: []string{"spec.classes[Destructive].selfApproval: was Forbid, is Allow"}},
		"another channel":                        {is: class("Write", func(k *v1alpha1.ClassPolicy) { k.Channels = []v1alpha1.ApprovalChannel{"Kubernetes", "Attested"} }), want: []string{"spec.classes[Write].channels: Attested is new"}},
		"the base of a class":                    {was: class("Deploy", testkit.Base("Destructive"), testkit.Approval("Always"), testkit.WhenUnavailable("Block"), noSelf), is: class("Deploy", testkit.Base("Write"), testkit.Approval("Always"), testkit.WhenUnavailable("Block"), noSelf), want: []string{"spec.classes[Deploy].base: was Destructive, is Write"}},
		"a class that asks no more":              {was: ladder("Allow"), is: class("Write", testkit.Otherwise("Allow")), want: []string{"spec.classes[Write].decider: was Ask, is Skip"}},
		"the end of a ladder":                    {was: ladder("Block"), is: ladder("Confirm"), want: []string{"spec.classes[Write].otherwise: was Block, is Confirm"}},
		"the outcome of a step":                  {was: ladder("Block", testkit.Step("Block", testkit.Above("severity", 200))), is: ladder("Block", testkit.Step("Confirm", testkit.Above("severity", 200))), want: []string{"spec.classes[Write].thresholds[0].outcome: was Block, is Confirm"}},
		"a bar that lets more through":           {was: ladder("Block", testkit.Step("Allow", testkit.AtLeast("asked", 95))), is: ladder("Block", testkit.Step("Allow", testkit.AtLeast("asked", 80))), want: []string{"spec.classes[Write].thresholds[0].when[asked].atLeast: was 95, is 80"}},
		"a bar that stops less":                  {was: ladder("Allow", testkit.Step("Block", testkit.AtMost("asked", 40))), is: ladder("Allow", testkit.Step("Block", testkit.AtMost("asked", 20))), want: []string{"spec.classes[Write].thresholds[0].when[asked].atMost: was 40, is 20"}},
		"a floor of confidence":                  {was: ladder("Allow", testkit.Floor("Confirm", 80, "asked")), is: ladder("Allow", testkit.Floor("Confirm", 60, "asked")), want: []string{"spec.classes[Write].thresholds[0].confidenceBelow.percent: was 80, is 60"}},
		"the class of a tool":                    {was: options{testkit.WithTool("db.run", "Destructive")}, is: tool(), want: []string{"spec.tools[db.run].class: was Destructive, is Write"}},
		"classes that are not ordered":           {was: options{testkit.WithTool("db.run", "Destructive")}, is: options{testkit.WithTool("db.run", "External")}},
		"a way to a lower class":                 {was: tool(), is: tool(testkit.LowerTo("ReadOnly", "true")), want: []string{"spec.tools[db.run].lowerTo: a way to ReadOnly is new"}},
		"a tool that is listed anew":             {is: tool()},
		"a tool that Defer leaves to others":     {was: append(tool(), testkit.UnknownTools("Defer")), is: options{testkit.UnknownTools("Defer")}, want: []string{"spec.tools[db.run]: is gone, and unknownTools Defer leaves it to other policies"}},
		"a tool that falls to a prefix":          {was: options{testkit.WithTool("db.*", "Write"), testkit.WithTool("db.run", "Destructive")}, is: options{testkit.WithTool("db.*", "Write")}, want: []string{"spec.tools[db.run].class: was Destructive, is Write"}},
		"a tool that is taken out of a prefix":   {was: options{testkit.WithTool("db.*", "Destructive")}, is: options{testkit.WithTool("db.*", "Destructive"), testkit.WithTool("db.run", "Write")}, want: []string{"spec.tools[db.run].class: was Destructive, is Write"}},
		"effects":                                {was: tool(testkit.Effects("DeletesData")), is: tool(), want: []string{"spec.tools[db.run].effects: DeletesData is gone"}},
		"scopes that are needed":                 {was: tool(testkit.Scopes("a", "b")), is: tool(testkit.Scopes("b")), want: []string{"spec.tools[db.run].requiredScopes: a is gone"}},
		"the schema":                             {was: tool(testkit.Schema(`{"type":"object"}`)), is: tool(), want: []string{"spec.tools[db.run]: argumentsSchema is gone"}},
		"onSchemaViolation":                      {was: tool(testkit.Schema(`{}`)), is: tool(testkit.Schema(`{}`), testkit.ClarifyOnViolation("m")), want: []string{"spec.tools[db.run].onSchemaViolation: was Block, is Clarify"}},
		"a permit":                               {was: tool(testkit.Permit("db")), is: tool(), want: []string{"spec.tools[db.run].permit: was Required, is None"}},
		"what approvers see":                     {was: toolOf(func(r *v1alpha1.ToolRule) { r.Sensitive = []v1alpha1.Pointer{"/pin"} }), is: tool(), want: []string{"spec.tools[db.run].sensitive: /pin is gone"}},
		"a path that is confined no more":        {was: tool(testkit.Path("/file", "/srv")), is: tool(), want: []string{"spec.tools[db.run]: paths[/file] is gone"}},
		"another root":                           {was: tool(testkit.Path("/file", "/srv")), is: tool(testkit.Path("/file", "/srv", "/etc")), want: []string{"spec.tools[db.run].paths[/file]: /etc is new"}},
		"another host":                           {was: tool(testkit.Host("/url", "a.example.com")), is: tool(testkit.Host("/url", "*.example.com")), want: []string{"spec.tools[db.run].hosts[/url]: *.example.com is new"}, wantBack: []string{"spec.tools[db.run].hosts[/url]: a.example.com is new"}},
		"another source":                         {was: tool(testkit.Source("/id", "Block", "User")), is: tool(testkit.Source("/id", "Block", "User", "Tool")), want: []string{"spec.tools[db.run].argumentSources[/id].from: Tool is new"}},
		"the outcome for another source":         {was: tool(testkit.Source("/id", "Block", "User")), is: tool(testkit.Source("/id", "Confirm", "User")), want: []string{"spec.tools[db.run].argumentSources[/id].otherwise: was Block, is Confirm"}},
		"sources that are not looked at":         {was: tool(testkit.Source("/id", "Block", "User")), is: tool(), want: []string{"spec.tools[db.run].argumentSources[/id]: the rule is gone"}},
		"a rule":                                 {was: tool(testkit.Rule("r", "true", "Block")), is: tool(), want: []string{"spec.tools[db.run].rules: r is gone"}},
		"the outcome of a rule":                  {was: tool(testkit.Rule("r", "true", "Block")), is: tool(testkit.Rule("r", "true", "Confirm")), want: []string{"spec.tools[db.run].rules[r].outcome: was Block, is Confirm"}},
		"the expression of a rule":               {was: tool(testkit.Rule("r", "true", "Block")), is: tool(testkit.Rule("r", "false", "Block")), want: []string{"spec.tools[db.run].rules[r].when: is another expression: whether it finds as much cannot be told"}, wantBack: []string{"spec.tools[db.run].rules[r].when: is another expression: whether it finds as much cannot be told"}},
		"the end of a tool's own ladder":         {was: tool(testkit.ToolOtherwise("Block")), is: tool(testkit.ToolOtherwise("Allow")), want: []string{"spec.tools[db.run].otherwise: was Block, is Allow"}},
		"a bar of a tool's own":                  {was: tool(testkit.ToolAsks("Block", testkit.Questions("asked"), testkit.Step("Allow", testkit.AtLeast("asked", 95)))), is: tool(testkit.ToolAsks("Block", testkit.Questions("asked"), testkit.Step("Allow", testkit.AtLeast("asked", 90)))), want: []string{"spec.tools[db.run].thresholds[0].when[asked].atLeast: was 95, is 90"}},
		"a tool that asks no more":               {was: tool(testkit.ToolAsks("Block", testkit.Questions("asked"))), is: tool(testkit.ToolSkips(), testkit.ToolOtherwise("Block")), want: []string{"spec.tools[db.run].decider: was Ask, is Skip"}},
		"another scope":                          {was: options{testkit.Grant("a")}, is: options{testkit.Grant("a", "b")}, want: []string{"spec.grants: b of agent is new"}},
		"a grant that ends no more":              {was: options{testkit.GrantUntil(end, "a")}, is: options{testkit.Grant("a")}, want: []string{"spec.grants: a of agent ended at 2030-01-01T00:00:00Z, has no end"}},
		"a grant that ends later":                {was: options{testkit.GrantUntil(end, "a")}, is: options{testkit.GrantUntil(end.Add(time.Hour), "a")}, want: []string{"spec.grants: a of agent ended at 2030-01-01T00:00:00Z, ends at 2030-01-01T01:00:00Z"}},
		"a fact that may be missing":             {was: options{testkit.WithFact("f", "Caller", "Required")}, is: options{testkit.WithFact("f", "Caller", "Optional")}, want: []string{"spec.factsFrom[f]: was Required, is not"}},
		"a fact that the caller may state":       {was: options{testkit.Attestors("k"), testkit.WithFact("f", "Attested", "Optional")}, is: options{testkit.Attestors("k"), testkit.WithFact("f", "Caller", "Optional")}, want: []string{"spec.factsFrom[f].from: was Attested, is Caller"}},
		"a tool of one server keeps to it":       {was: tool(testkit.OnServer("s"), testkit.Scopes("a")), is: tool(testkit.OnServer("s")), want: []string{"spec.tools[db.run of s].requiredScopes: a is gone"}},
		"a schema with another text is the same": {was: toolOf(func(r *v1alpha1.ToolRule) { r.ArgumentsSchema = &apiextensionsv1.JSON{Raw: []byte(`{}`)} }), is: tool(testkit.Schema(`{"type":"object"}`))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			was, is := testkit.ToolPolicy("p", tt.was...), testkit.ToolPolicy("p", tt.is...)
			if diff := cmp.Diff(loosened(tt.want), Loosened(&was.Spec, &is.Spec)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(loosened(tt.wantBack), Loosened(&is.Spec, &was.Spec)); diff != "" {
				t.Errorf("on the way back (-want +got):\n%s", diff)
			}
		})
	}
}

func noSelf(k *v1alpha1.ClassPolicy) { k.SelfApproval = v1alpha1.SelfApprovalForbid }

func loosened(texts []string) []string {
	var out []string
	for _, s := range texts {
		out = append(out, "loosened: "+s)
	}
	return out
}

func TestLoosenedCluster(t *testing.T) {
	tests := map[string]struct {
		was, is options
		want    []string
	}{
		"namespaces that are gone":     {options{testkit.ForNamespaces("a", "b")}, options{testkit.ForNamespaces("a")}, []string{"spec.namespaces: no longer b"}},
		"namespaces that all were":     {nil, options{testkit.ForNamespaces("a")}, []string{"spec.namespaces: was everybody, is a"}},
		"minimumMode":                  {options{testkit.MinimumMode("Enforce")}, nil, []string{"spec.minimumMode: was Enforce, is Audit"}},
		"a grant names its namespace":  {nil, options{testkit.Grant("a")}, []string{"spec.grants: a of shop/agent is new"}},
		"more namespaces tighten":      {options{testkit.ForNamespaces("a")}, options{testkit.ForNamespaces("a", "b")}, nil},
		"Defer is what a floor starts": {nil, options{testkit.UnknownTools("Defer")}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			was, is := testkit.ClusterToolPolicy("p", tt.was...), testkit.ClusterToolPolicy("p", tt.is...)
			if diff := cmp.Diff(loosened(tt.want), LoosenedCluster(&was.Spec, &is.Spec)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoosenedModel(t *testing.T) {
	percent := func(p v1alpha1.Percent) *v1alpha1.Percent { return &p }
	rollout := func(f v1alpha1.EvaluationFloors) *v1alpha1.Rollout {
		return &v1alpha1.Rollout{Evaluation: &v1alpha1.EvaluationGate{Floors: f}}
	}
	tests := map[string]struct {
		was, is v1alpha1.DeciderModelSpec
		want    []string
	}{
		"the same":        {},
		"requireVerified": {is: v1alpha1.DeciderModelSpec{RequireVerified: v1alpha1.Optional}, want: []string{"spec.requireVerified: was Required, is Optional"}},
		"an external decider for all": {was: v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeExternal},
			is: v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeExternal, AllowedNamespaces: &v1alpha1.NamespaceAllowance{From: v1alpha1.NamespacesAll}}, want: []string{"spec.allowedNamespaces.from: was None, is All"}},
		"another namespace": {was: v1alpha1.DeciderModelSpec{AllowedNamespaces: &v1alpha1.NamespaceAllowance{From: v1alpha1.NamespacesListed, Namespaces: []v1alpha1.Namespace{"a"}}},
			is: v1alpha1.DeciderModelSpec{AllowedNamespaces: &v1alpha1.NamespaceAllowance{From: v1alpha1.NamespacesListed, Namespaces: []v1alpha1.Namespace{"a", "b"}}}, want: []string{"spec.allowedNamespaces.namespaces: b is new"}},
		"every language":          {was: v1alpha1.DeciderModelSpec{Languages: []string{"en"}}, want: []string{"spec.languages: was a list, is empty: requests in every language are judged"}},
		"another language":        {was: v1alpha1.DeciderModelSpec{Languages: []string{"en"}}, is: v1alpha1.DeciderModelSpec{Languages: []string{"en", "de"}}, want: []string{"spec.languages: de is new"}},
		"no evaluation":           {was: v1alpha1.DeciderModelSpec{Rollout: rollout(v1alpha1.EvaluationFloors{})}, want: []string{"spec.rollout.evaluation: was set, is gone: revisions serve without having passed it"}},
		"a lower floor of recall": {was: v1alpha1.DeciderModelSpec{Rollout: rollout(v1alpha1.EvaluationFloors{RecallPercent: percent(95)})}, is: v1alpha1.DeciderModelSpec{Rollout: rollout(v1alpha1.EvaluationFloors{RecallPercent: percent(90)})}, want: []string{"spec.rollout.evaluation.floors.recallPercent: was 95, is 90"}},
		"a bar that is gone":      {was: v1alpha1.DeciderModelSpec{Rollout: rollout(v1alpha1.EvaluationFloors{FlapPercent: percent(1)})}, is: v1alpha1.DeciderModelSpec{Rollout: rollout(v1alpha1.EvaluationFloors{})}, want: []string{"spec.rollout.evaluation.floors.flapPercent: was 1, is not looked at"}},
		"more time, and any": {was: v1alpha1.DeciderModelSpec{Rollout: rollout(v1alpha1.EvaluationFloors{P95Milliseconds: new(int32(100)), P99Milliseconds: new(int32(900))})},
			is: v1alpha1.DeciderModelSpec{Rollout: rollout(v1alpha1.EvaluationFloors{P95Milliseconds: new(int32(101))})}, want: []string{
				"spec.rollout.evaluation.floors.p95Milliseconds: was 100, is 101", "spec.rollout.evaluation.floors.p99Milliseconds: was 900, is not looked at"}},
		"more false blocks": {was: v1alpha1.DeciderModelSpec{Rollout: rollout(v1alpha1.EvaluationFloors{FalseBlockPercent: []v1alpha1.ClassPercent{{Class: "Write", Percent: 5}}})},
			is: v1alpha1.DeciderModelSpec{Rollout: rollout(v1alpha1.EvaluationFloors{FalseBlockPercent: []v1alpha1.ClassPercent{{Class: "Write", Percent: 9}}})}, want: []string{"spec.rollout.evaluation.floors.falseBlockPercent[Write]: was 5, is 9"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(loosened(tt.want), loosenedModel(&tt.was, &tt.is)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
