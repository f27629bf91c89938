package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/testkit"
)

// compileManifest compiles a manifest of either kind.
func compileManifest(t *testing.T, text []byte) (*Compiled, field.ErrorList) {
	t.Helper()
	var meta struct{ Kind string }
	if err := yaml.Unmarshal(text, &meta); err != nil {
		t.Fatal(err)
	}
	if meta.Kind == v1alpha1.KindClusterToolPolicy {
		var p v1alpha1.ClusterToolPolicy
		if err := yaml.UnmarshalStrict(text, &p); err != nil {
			t.Fatal(err)
		}
		return CompileCluster(&p)
	}
	var p v1alpha1.ToolPolicy
	if err := yaml.UnmarshalStrict(text, &p); err != nil {
		t.Fatal(err)
	}
	return Compile(&p)
}

func TestManifestsThatMustNotCompile(t *testing.T) {
	files, err := filepath.Glob("../../test/testdata/invalid/compile/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(text), "\n")
			want, ok := strings.CutPrefix(first, "# want: ")
			if !ok || want == "" {
				t.Fatalf("the first line is %q, not what is wanted", first)
			}
			p, errs := compileManifest(t, text)
			wantError(t, p, errs, want)
		})
	}
}

// wantError requires an error that says this, and a policy that blocks.
func wantError(t *testing.T, p *Compiled, errs field.ErrorList, want string) {
	t.Helper()
	if len(errs) == 0 {
		t.Fatalf("compiles, want %q", want)
	}
	if got := errs.ToAggregate().Error(); !strings.Contains(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if !p.Invalid {
		t.Error("a policy with errors is not marked invalid")
	}
	if v := decide(request("act", nil), p); v.Outcome != Block {
		t.Errorf("a policy with errors is %s", v.Outcome)
	}
}

func TestCompileRefuses(t *testing.T) {
	key, _ := newFrontDoor(t)
	rules := testkit.WithRules
	tool := func(options ...testkit.ToolOption) testkit.Option {
		return testkit.WithTool("act", write, options...)
	}
	class := func(change func(*v1alpha1.ClassPolicy)) testkit.Option {
		return testkit.WithClass(write, func(k *v1alpha1.ClassPolicy) { change(k) })
	}
	asked := testkit.Questions("asked")
	asks := func(steps ...v1alpha1.Threshold) testkit.Option {
		return testkit.WithClass(write, testkit.Asks(toConfirm, asked, steps...))
	}
	decider := testkit.WithDecider("judge")
	many := func(options ...testkit.Option) []testkit.Option { return options }
	for name, c := range map[string]struct {
		options []testkit.Option
		want    string
	}{
		"a mode that is none":                 {many(rules(func(r *v1alpha1.PolicyRules) { r.Mode = "audit" })), `spec.mode: Unsupported value: "audit"`},
		"a trust that is none":                {many(rules(func(r *v1alpha1.PolicyRules) { r.ContextTrust = "attested" })), "spec.contextTrust: Unsupported value"},
		"a way of keeping that is none":       {many(rules(func(r *v1alpha1.PolicyRules) { r.CaptureState = "All" })), "spec.captureState: Unsupported value"},
		"a disclosure that is none":           {many(rules(func(r *v1alpha1.PolicyRules) { r.Disclose = "All" })), "spec.disclose: Unsupported value"},
		"unknown tools to allow":              {many(testkit.UnknownTools("Allow")), "spec.unknownTools: Unsupported value"},
		"a fact by hearsay":                   {many(testkit.WithFact("f", "Hearsay", "")), "spec.factsFrom[0].from: Unsupported value"},
		"a fact that is needed somehow":       {many(testkit.WithFact("f", "", "required")), "spec.factsFrom[0].presence: Unsupported value"},
		"a fact twice":                        {many(testkit.WithFact("f", "", ""), testkit.WithFact("f", "", "")), "spec.factsFrom[1].name: Duplicate value"},
		"a fact that nobody can attest":       {many(testkit.WithFact("f", "Attested", "")), "nobody can attest it"},
		"attested context without a key":      {many(testkit.Attested()), "spec.attestors: Required value"},
		"a key that is no JSON":               {many(testkit.Attested("ssh-ed25519 AAAA")), "is no JSON Web Key"},
		"a private key":                       {many(testkit.Attested(`{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}`)), "is no Ed25519 public key"},
		"a front door twice":                  {many(testkit.Attestors(key), testkit.Attestors(key)), "spec.attestors[1].name: Duplicate value"},
		"a grant for another namespace":       {many(testkit.Grant("a:b"), rules(func(r *v1alpha1.PolicyRules) { r.Grants[0].Namespace = "bank" })), "spec.grants[0].namespace: Invalid value"},
		"a class twice":                       {many(testkit.WithClass(write), testkit.WithClass(write)), "spec.classes[1].name: Duplicate value"},
		"a class of one's own without a base": {many(testkit.WithClass("Own")), "spec.classes[0].base: Required value"},
		"a class with a base that is none":    {many(testkit.WithClass("Own", testkit.Base("Harmless"))), "spec.classes[0].base: Required value"},
		"a built-in class with another base":  {many(testkit.WithClass(destructive, testkit.Base("ReadOnly"))), "is fixed for a built-in class"},
		"an approval that is none":            {many(class(func(k *v1alpha1.ClassPolicy) { k.Approval = "always" })), "spec.classes[0].approval: Unsupported value"},
		"a decider use that is none":          {many(class(func(k *v1alpha1.ClassPolicy) { k.Decider = "ask" })), "spec.classes[0].decider: Unsupported value"},
		"to allow without an answer":          {many(testkit.WithClass(write, testkit.WhenUnavailable("Allow"))), "spec.classes[0].whenDeciderUnavailable: Unsupported value"},
		"an outcome that is none":             {many(testkit.WithClass(write, testkit.Otherwise("Permit"))), "spec.classes[0].otherwise.outcome: Unsupported value"},
		"an outcome of a step that is none":   {many(decider, asks(testkit.Step("Permit", testkit.Below("asked", 1)))), "spec.classes[0].thresholds[0].outcome: Unsupported value"},
		"Ask without an end":                  {many(decider, class(func(k *v1alpha1.ClassPolicy) { k.Decider, k.Questions = "Ask", asked })), "spec.classes[0].otherwise: Required value"},
		"Ask without questions":               {many(decider, testkit.WithClass(write, testkit.Asks(toConfirm, nil))), "spec.classes[0].questions: Required value"},
		"a question twice":                    {many(decider, testkit.WithClass(write, testkit.Asks(toConfirm, testkit.Questions("asked", "asked")))), "spec.classes[0].questions[1]: Duplicate value"},
		"steps that nobody asks for":          {many(class(func(k *v1alpha1.ClassPolicy) { k.Thresholds = []v1alpha1.Threshold{testkit.Step(toBlock)} })), "need decider: Ask"},
		"a step without conditions":           {many(decider, asks(testkit.Step(toBlock))), "exactly one of when and confidenceBelow"},
		"a floor without questions":           {many(decider, asks(testkit.Floor(toConfirm, 80))), "confidenceBelow.questions: Required value"},
		"a floor above certainty":             {many(decider, asks(testkit.Floor(toConfirm, 101, "asked"))), "is no percentage"},
		"a floor that allows":                 {many(decider, asks(testkit.Floor(toAllow, 80, "asked"))), "low confidence cannot allow"},
		"a comparison with two numbers":       {many(decider, asks(testkit.Step(toBlock, func() v1alpha1.Condition { k := testkit.Above("asked", 1); k.Below = k.Above; return k }()))), "exactly one of above"},
		"a comparison with no number":         {many(decider, asks(testkit.Step(toBlock, v1alpha1.Condition{Question: "asked"}))), "exactly one of above"},
		"a number below nothing":              {many(decider, asks(testkit.Step(toAllow, testkit.AtLeast("asked", -1)))), "is less than asked can be"},
		"is with an option beside it": {many(decider, testkit.WithQuestion(tone), testkit.WithClass(write, testkit.Asks(toConfirm, testkit.Questions("tone"), testkit.Step(toBlock, testkit.OfOption("rude", testkit.Is("tone", "rude")))))),
			"remove option and level"},
		"a level of a Choice": {many(decider, testkit.WithQuestion(tone), testkit.WithClass(write, testkit.Asks(toConfirm, testkit.Questions("tone"), testkit.Step(toBlock, testkit.OfLevel(1, testkit.OfOption("rude", testkit.Above("tone", 1))))))),
			"is no Score: remove it"},
		"a question twice declared":          {many(testkit.WithQuestion(tone), testkit.WithQuestion(tone)), "is a built-in question or declared twice"},
		"a Choice without options":           {many(testkit.WithQuestion(v1alpha1.Question{Name: "q", Type: "Choice", Instructions: "?"})), "has 2 to 26 options"},
		"a Score without levels":             {many(testkit.WithQuestion(v1alpha1.Question{Name: "q", Type: "Score", Instructions: "?"})), "levels"},
		"a question that sees what is none":  {many(testkit.WithQuestion(v1alpha1.Question{Name: "q", Type: "YesNo", Instructions: "?", Sees: []v1alpha1.SeenContent{"Everything"}})), "spec.questions[0].sees[0]: Unsupported value"},
		"a tool twice":                       {many(tool(), tool()), "spec.tools[1].name: Duplicate value"},
		"a prefix twice":                     {many(testkit.WithTool("db.*", read), testkit.WithTool("db.*", write)), "spec.tools[1].name: Duplicate value"},
		"a tool with a space in its name":    {many(testkit.WithTool("db read", read)), "spec.tools[0].name: Invalid value"},
		"a tool with a look-alike letter":    {many(testkit.WithTool("db.r\u0435ad", read)), "spec.tools[0].name: Invalid value"},
		"a star inside a name":               {many(testkit.WithTool("db.*.read", read)), "spec.tools[0].name: Invalid value"},
		"a star inside a prefix":             {many(testkit.WithTool("db.*.*", read)), "has a star only at its end"},
		"a tool with a decider use of none":  {many(tool(func(r *v1alpha1.ToolRule) { r.Decider = "skip" })), "spec.tools[0].decider: Unsupported value"},
		"a tool whose end is none":           {many(tool(testkit.ToolOtherwise("Permit"))), "spec.tools[0].otherwise.outcome: Unsupported value"},
		"a tool with steps of its own only":  {many(decider, tool(func(r *v1alpha1.ToolRule) { r.Thresholds = []v1alpha1.Threshold{testkit.Step(toBlock)} })), "need decider: Ask"},
		"a tool that asks nobody":            {many(tool(testkit.ToolAsks(toConfirm, asked))), "spec.deciderRef: Required value"},
		"an effect that is none":             {many(tool(testkit.Effects("Explodes"))), "spec.tools[0].effects[0]: Unsupported value"},
		"a permit that is none":              {many(tool(func(r *v1alpha1.ToolRule) { r.Permit = "required" })), "spec.tools[0].permit: Unsupported value"},
		"a permit for nobody":                {many(tool(testkit.Permit(""))), "spec.tools[0].permitAudience: Required value"},
		"a schema violation to confirm":      {many(tool(func(r *v1alpha1.ToolRule) { r.OnSchemaViolation = "Confirm" })), "spec.tools[0].onSchemaViolation: Unsupported value"},
		"a schema that is no JSON":           {many(tool(testkit.Schema(`{"type":`))), "is no JSON"},
		"a schema that is no schema":         {many(tool(testkit.Schema(`[]`))), "does not compile as JSON Schema 2020-12"},
		"a schema with a remote reference":   {many(tool(testkit.Schema(`{"properties": {"x": {"$ref": "file:///etc/passwd"}}}`))), "which is never loaded"},
		"a schema with a relative reference": {many(tool(testkit.Schema(`{"$ref": "other.json"}`))), "which is never loaded"},
		"a schema with a remote vocabulary":  {many(tool(testkit.Schema(`{"$schema": "https://example.com/meta"}`))), "which is never loaded"},
		"a schema with a broken pattern":     {many(tool(testkit.Schema(`{"pattern": "("}`))), "does not compile as JSON Schema 2020-12"},
		"a path with a wildcard":             {many(tool(testkit.Path("/*", "/srv"))), "has no wildcards here"},
		"a path with a wildcard inside":      {many(tool(testkit.Path("/files/*/path", "/srv"))), "has no wildcards here"},
		"a path that is no pointer":          {many(tool(testkit.Path("path", "/srv"))), "is no JSON Pointer"},
		"a path with a lone tilde":           {many(tool(testkit.Path("/a~b", "/srv"))), "is no JSON Pointer"},
		"a path without roots":               {many(tool(testkit.Path("/path"))), "spec.tools[0].paths[0].roots"},
		"a host with a wildcard":             {many(tool(testkit.Host("/*", "example.com"))), "has no wildcards here"},
		"a host without hosts":               {many(tool(testkit.Host("/url"))), "spec.tools[0].hosts[0].allowed"},
		"a sensitive wildcard":               {many(tool(func(r *v1alpha1.ToolRule) { r.Sensitive = []v1alpha1.Pointer{"/*"} })), "spec.tools[0].sensitive[0]"},
		"a source with a wildcard inside":    {many(tool(testkit.Source("/a/*", orBlock, "User"))), "has no wildcards here"},
		"a source that is no pointer":        {many(tool(testkit.Source("a", orBlock, "User"))), "is no JSON Pointer"},
		"a source of nobody":                 {many(tool(testkit.Source("/a", orBlock, "Nowhere"))), "spec.tools[0].argumentSources[0].from: Unsupported value"},
		"a source that otherwise allows":     {many(tool(testkit.Source("/a", "Allow", "User"))), "spec.tools[0].argumentSources[0].otherwise: Unsupported value"},
		"a source twice":                     {many(tool(testkit.Source("/a", orBlock, "User"), testkit.Source("/a", orBlock, "Tool"))), "spec.tools[0].argumentSources[1].argument: Duplicate value"},
		"a rule that allows":                 {many(tool(testkit.Rule("r", "true", "Allow"))), "spec.tools[0].rules[0].outcome: Unsupported value"},
		"a rule twice":                       {many(tool(testkit.Rule("r", "true", orBlock), testkit.Rule("r", "false", orBlock))), "spec.tools[0].rules[1].name: Duplicate value"},
		"a rule by the name of a built-in":   {many(tool(testkit.Rule("missing-scope", "true", orBlock))), "is the name of a built-in rule"},
		"a rule that may never end":          {many(tool(testkit.Rule("r", "args.l.all(x, args.l.all(y, args.l.all(z, x + y == z)))", orBlock))), "may cost more than a rule is given"},
		"a rule whose pattern is broken":     {many(tool(testkit.Rule("r", "args.x.matches('(')", orBlock))), "spec.tools[0].rules[0].when"},
		"a rule of any type":                 {many(tool(testkit.Rule("r", "args.x", orBlock))), "want bool"},
		"a misspelt field of an effect":      {many(tool(testkit.Rule("r", "shell(args.x).isReadd", orBlock))), "undefined field"},
		"a class that lowers nothing":        {many(tool(testkit.LowerTo(destructive, "true"))), "is not lower than Write"},
	} {
		t.Run(name, func(t *testing.T) {
			p, errs := Compile(testkit.ToolPolicy("p", c.options...))
			wantError(t, p, errs, c.want)
		})
	}
}

func TestCompileClusterRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		option testkit.Option
		want   string
	}{
		"a grant for no namespace":    {testkit.WithRules(func(r *v1alpha1.PolicyRules) { r.Grants = []v1alpha1.Grant{{ServiceAccount: "agent"}} }), "spec.grants[0].namespace: Required value"},
		"a minimum mode that is none": {testkit.MinimumMode("enforce"), "spec.minimumMode: Unsupported value"},
		"unknown tools to allow":      {testkit.UnknownTools("Allow"), "spec.unknownTools: Unsupported value"},
	} {
		t.Run(name, func(t *testing.T) {
			p, errs := CompileCluster(testkit.ClusterToolPolicy("c", c.option))
			wantError(t, p, errs, c.want)
		})
	}
}

func TestEveryBuiltInRuleNameIsReserved(t *testing.T) {
	for name := range reservedRules {
		_, errs := Compile(testkit.ToolPolicy("p", testkit.WithTool("act", read, testkit.Rule(name, "true", orBlock))))
		if len(errs) == 0 {
			t.Errorf("a policy may name its rule %s", name)
		}
	}
	for _, c := range checks {
		if !reservedRules[c.name] && c.name != "rules" {
			t.Errorf("%s is not reserved", c.name)
		}
	}
}

func TestWhatTheAPIFillsInIsFilledInHereToo(t *testing.T) {
	bare := &v1alpha1.ToolPolicy{}
	bare.Name, bare.Namespace = "p", testkit.Namespace
	bare.Spec.Tools = []v1alpha1.ToolRule{{Name: "act", Class: read}}
	p, errs := Compile(bare)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	if v := decide(request("other", nil), p); v.Reason != ReasonUnknownTool || v.Outcome != Block {
		t.Errorf("unlisted: %+v", show(v))
	}
	if v := decide(request("act", nil), p); show(v) != allowed {
		t.Errorf("listed: %+v", show(v))
	}
	if terms := judge(request("act", nil), p).Terms(); terms.ClarifyLimit != 2 || terms.Approvals.TTLSeconds != 900 || terms.Approvals.PermitSeconds != 30 {
		t.Errorf("terms: %+v", terms)
	}
}

func TestUsesSQL(t *testing.T) {
	for expression, want := range map[v1alpha1.Expression]bool{
		"sql(args.q, 'postgres').isRead": true, "shell(args.q).isRead": false, "args.sql == 'x'": false,
	} {
		p := compiled(t, "p", testkit.WithTool("act", write, testkit.LowerTo(read, expression)))
		if p.UsesSQL() != want {
			t.Errorf("%s: got %v", expression, p.UsesSQL())
		}
	}
}
