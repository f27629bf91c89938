package policy

import (
	"testing"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/testkit"
)

const closedSchema = `{"type": "object", "additionalProperties": false, "properties": {"path": {"type": "string"},
	"a/b": {"type": "string"}, "options": {"type": "object", "additionalProperties": false, "properties": {"force": {"type": "boolean"}}},
	"items": {"type": "array", "items": {"type": "object", "additionalProperties": false, "properties": {"to": {"type": "string"}}}},
	"free": {"type": "object"}, "either": {"anyOf": [{"type": "object"}]}}}`

const ownersSchema = `{"additionalProperties": false, "properties": {"items": {"type": "array", "items": {"type": "object",
	"additionalProperties": false, "properties": {"owner": {"type": "object", "additionalProperties": false, "properties": {"mail": {}}}}}}}}`

func TestWhatWouldDoNothingDoesNotCompile(t *testing.T) {
	closed := testkit.Schema(closedSchema)
	set := func(change func(*v1alpha1.ToolRule)) testkit.ToolOption { return change }
	for name, c := range map[string]struct {
		tool []testkit.ToolOption
		want string
	}{
		"a path that the schema refuses":          {[]testkit.ToolOption{closed, testkit.Path("/file", "/srv")}, "spec.tools[0].paths[0].argument: Invalid value: \"/file\": argumentsSchema refuses /file, it allows /a~1b, /either, /free, /items, /options, /path"},
		"a host that the schema refuses":          {[]testkit.ToolOption{closed, testkit.Host("/options/url", "a.example")}, "spec.tools[0].hosts[0].argument: Invalid value: \"/options/url\": argumentsSchema refuses /options/url, it allows /options/force"},
		"a source of what the schema refuses":     {[]testkit.ToolOption{closed, testkit.Source("/items/0/from", orBlock, v1alpha1.SourceUser)}, "spec.tools[0].argumentSources[0].argument"},
		"a secret that the schema refuses":        {[]testkit.ToolOption{closed, set(func(r *v1alpha1.ToolRule) { r.Sensitive = []v1alpha1.Pointer{"/pasword"} })}, "spec.tools[0].sensitive[0]: Invalid value"},
		"a rule that reads what is refused":       {[]testkit.ToolOption{closed, testkit.Rule("r", `has(args.forse) && args.forse`, "Block")}, "reads an argument that is not there: argumentsSchema refuses /forse"},
		"a rule that reads it in a list":          {[]testkit.ToolOption{closed, testkit.Rule("r", `args.items.exists(i, has(i.from))`, "Block")}, "argumentsSchema refuses /items/*/from, it allows /items/*/to"},
		"a rule that reads it in what is made":    {[]testkit.ToolOption{testkit.Schema(ownersSchema), testkit.Rule("r", `args.items.map(i, i.owner).exists(o, o.male == "x")`, "Block")}, "argumentsSchema refuses /items/*/owner/male"},
		"a lower class by what is refused":        {[]testkit.ToolOption{closed, testkit.LowerTo("ReadOnly", `!has(args.options.forse)`)}, "spec.tools[0].lowerTo[0].when"},
		"a question about what is refused":        {[]testkit.ToolOption{closed, set(func(r *v1alpha1.ToolRule) { r.ConfirmMessage = `string(args.file)` })}, "spec.tools[0].confirmMessage"},
		"a path twice":                            {[]testkit.ToolOption{testkit.Path("/a", "/srv"), testkit.Path("/a", "/tmp")}, "spec.tools[0].paths[1].argument: Duplicate value: \"/a\": merge the roots into one entry"},
		"a host twice":                            {[]testkit.ToolOption{testkit.Host("/a", "a.example"), testkit.Host("/a", "b.example")}, "spec.tools[0].hosts[1].argument: Duplicate value: \"/a\": merge the hosts into one entry"},
		"an audience without a permit":            {[]testkit.ToolOption{set(func(r *v1alpha1.ToolRule) { r.PermitAudience = "db" })}, "spec.tools[0].permitAudience: Invalid value: \"db\": does nothing without permit: Required"},
		"a question without clarifying":           {[]testkit.ToolOption{closed, set(func(r *v1alpha1.ToolRule) { r.ClarifyMessage = "which?" })}, "spec.tools[0].clarifyMessage"},
		"clarifying without a schema":             {[]testkit.ToolOption{testkit.ClarifyOnViolation("which?")}, "spec.tools[0].onSchemaViolation"},
		"a keyword with a slip":                   {[]testkit.ToolOption{testkit.Schema(`{"additionalProperty": false}`)}, "spec.tools[0].argumentsSchema.additionalProperty: Invalid value: \"additionalProperty\": is no keyword of JSON Schema and would do nothing: did you mean additionalProperties?"},
		"a keyword in other capitals, deeper":     {[]testkit.ToolOption{testkit.Schema(`{"properties": {"a": {"items": {"maxlength": 3}}}}`)}, "spec.tools[0].argumentsSchema.properties[a].items.maxlength"},
		"a keyword with a slip, in a choice":      {[]testkit.ToolOption{testkit.Schema(`{"anyOf": [{"requird": ["a"]}]}`)}, "spec.tools[0].argumentsSchema.anyOf[0].requird"},
		"a keyword of an earlier draft":           {[]testkit.ToolOption{testkit.Schema(`{"dependencies": {"a": ["b"]}}`)}, "use dependentRequired or dependentSchemas"},
		"a keyword of an earlier draft, listed":   {[]testkit.ToolOption{testkit.Schema(`{"properties": {"a": {"additionalItems": false}}}`)}, "use prefixItems and items"},
		"a required name that is refused":         {[]testkit.ToolOption{testkit.Schema(`{"additionalProperties": false, "properties": {"a": {}}, "required": ["b"]}`)}, "spec.tools[0].argumentsSchema.required[0]: Invalid value: \"b\": is required and no property, which additionalProperties: false refuses: no call can fit"},
		"a required name with a slip":             {[]testkit.ToolOption{testkit.Schema(`{"properties": {"amount": {}}, "required": ["amout"]}`)}, "did you mean amount?"},
		"a path where nothing is allowed":         {[]testkit.ToolOption{testkit.Schema(`{"additionalProperties": false}`), testkit.Path("/path", "/srv")}, "it allows nothing there"},
		"a schema that is none":                   {[]testkit.ToolOption{testkit.Schema(`{"properties": {"a": {"type": "text"}}}`)}, "spec.tools[0].argumentsSchema.properties.a.type: Invalid value: \"text\": does not compile as JSON Schema 2020-12: value must be one of"},
		"a schema with a keyword of another type": {[]testkit.ToolOption{testkit.Schema(`{"properties": {"a": {"maxLength": "x"}}}`)}, "spec.tools[0].argumentsSchema.properties.a.maxLength"},
		"a format with a slip":                    {[]testkit.ToolOption{testkit.Schema(`{"properties": {"a": {"format": "e-mail"}}}`)}, "did you mean email?"},
		"a format that is called otherwise":       {[]testkit.ToolOption{testkit.Schema(`{"properties": {"a": {"format": "url"}}}`)}, "did you mean uri?"},
		"a format that is not checked":            {[]testkit.ToolOption{testkit.Schema(`{"properties": {"a": {"format": "idn-email"}}}`)}, "is not checked: use pattern"},
	} {
		t.Run(name, func(t *testing.T) {
			p, errs := Compile(testkit.ToolPolicy("p", testkit.WithTool("act", destructive, c.tool...)))
			wantError(t, p, errs, c.want)
		})
	}
}

func TestWhatMayDoSomethingCompiles(t *testing.T) {
	closed := testkit.Schema(closedSchema)
	for name, tool := range map[string][]testkit.ToolOption{
		"arguments of the schema":            {closed, testkit.Path("/path", "/srv"), testkit.Path("/a~1b", "/srv"), testkit.Source("/items/0/to", orBlock, v1alpha1.SourceUser), testkit.Rule("r", `args.items.exists(i, i.to == "x") || args.options.force`, "Block")},
		"below what the schema leaves":       {closed, testkit.Path("/free/x", "/srv"), testkit.Path("/either/x", "/srv"), testkit.Rule("r", `args.free.x == 1`, "Block")},
		"an open schema":                     {testkit.Schema(`{"properties": {"a": {"type": "string"}}}`), testkit.Path("/b", "/srv")},
		"a schema by reference":              {testkit.Schema(`{"$ref": "#/$defs/a", "additionalProperties": false, "$defs": {"a": {"type": "object"}}}`), testkit.Path("/b", "/srv")},
		"a schema with patterns of names":    {testkit.Schema(`{"additionalProperties": false, "properties": {}, "patternProperties": {"^x-": {}}}`), testkit.Path("/x-a", "/srv")},
		"a required name without properties": {testkit.Schema(`{"required": ["a"]}`)},
		"a required name of a part":          {testkit.Schema(`{"properties": {"a": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}`)},
		"every argument":                     {closed, testkit.Source("/*", orBlock, v1alpha1.SourceUser)},
		"a name that looks like a slip":      {testkit.Schema(`{"properties": {"requird": {"type": "string"}, "format": {"const": {"maxlength": 1}}}, "examples": [{"typ": 1}], "example": {"typ": 1}, "x-order": 1, "$defs": {"tpe": {}}}`)},
		"a format of another standard":       {testkit.Schema(`{"properties": {"a": {"type": "integer", "format": "int64"}}}`)},
		"a keyword of a named draft":         {testkit.Schema(`{"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": ["b"]}}`)},
		"what a list is turned into":         {testkit.Schema(ownersSchema), testkit.Rule("r", `args.items.map(i, i.owner).exists(o, o.mail == "x")`, "Block")},
		"what a function gives":              {testkit.Schema(ownersSchema), testkit.Rule("r", `args.items.sortBy(i, i.owner.mail)[0].owner.mail == "x"`, "Block")},
		"an expression of every argument":    {closed, testkit.Rule("r", `args.exists(k, args[k] == "x")`, "Block")},
	} {
		t.Run(name, func(t *testing.T) {
			compiled(t, "p", testkit.WithTool("act", destructive, tool...))
		})
	}
}

func TestStepsThatNeverMatchDoNotCompile(t *testing.T) {
	score := v1alpha1.QuestionName("severity")
	for name, c := range map[string]struct {
		steps []v1alpha1.Threshold
		want  string
	}{
		"above all there is":           {[]v1alpha1.Threshold{testkit.Step(toConfirm, testkit.Above("asked", 100))}, "spec.classes[0].thresholds[0].when[0]: Invalid value: \"asked\": never matches"},
		"below all there is":           {[]v1alpha1.Threshold{testkit.Step(toConfirm, testkit.Below("asked", 0))}, "never matches"},
		"above the last level":         {[]v1alpha1.Threshold{testkit.Step(toConfirm, testkit.Above(score, 400))}, "never matches"},
		"behind a step for all":        {[]v1alpha1.Threshold{testkit.Step(toConfirm, testkit.AtLeast("asked", 0)), testkit.Step(toBlock, testkit.Below("asked", 50))}, "spec.classes[0].thresholds[1]: Invalid value: \"Threshold\": is never tried, since thresholds[0] matches whenever it does"},
		"behind a step for all levels": {[]v1alpha1.Threshold{testkit.Step(toConfirm, testkit.AtMost(score, 400)), testkit.Step(toBlock, testkit.Below("asked", 50))}, "thresholds[1]"},
		"the same step twice":          {[]v1alpha1.Threshold{testkit.Step(toConfirm, testkit.Below("asked", 50)), testkit.Step(toBlock, testkit.Below("asked", 50))}, "thresholds[1]"},
		"behind a wider step":          {[]v1alpha1.Threshold{testkit.Step(toConfirm, testkit.AtMost("asked", 50)), testkit.Step(toBlock, testkit.Below("asked", 50))}, "thresholds[1]"},
		"behind a step with less":      {[]v1alpha1.Threshold{testkit.Step(toConfirm, testkit.Above(score, 100)), testkit.Step(toBlock, testkit.AtLeast(score, 200), testkit.Below("asked", 50))}, "thresholds[1]"},
		"behind a narrower step":       {[]v1alpha1.Threshold{testkit.Step(toConfirm, testkit.Below("asked", 50)), testkit.Step(toBlock, testkit.AtMost("asked", 50))}, ""},
		"behind a step of another":     {[]v1alpha1.Threshold{testkit.Step(toConfirm, testkit.Below("asked", 50)), testkit.Step(toBlock, testkit.Below(score, 50))}, ""},
		"behind a step with more":      {[]v1alpha1.Threshold{testkit.Step(toConfirm, testkit.Above(score, 100), testkit.Below("asked", 50)), testkit.Step(toBlock, testkit.AtLeast(score, 200))}, ""},
		"on the other side":            {[]v1alpha1.Threshold{testkit.Step(toConfirm, testkit.AtLeast("asked", 50)), testkit.Step(toBlock, testkit.AtMost("asked", 50))}, ""},
		"a step for all at the end":    {[]v1alpha1.Threshold{testkit.Step(toBlock, testkit.Below("asked", 50)), testkit.Step(toConfirm, testkit.AtLeast("asked", 0))}, ""},
		"a step for all but with more": {[]v1alpha1.Threshold{testkit.Step(toBlock, testkit.AtLeast("asked", 0), testkit.AtLeast(score, 200)), testkit.Step(toConfirm, testkit.AtLeast("asked", 50))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, errs := Compile(testkit.ToolPolicy("p", testkit.WithDecider("d"), testkit.WithClass(write, testkit.Asks(toConfirm, testkit.Questions("asked", score), c.steps...)), testkit.WithTool("act", write)))
			if c.want != "" {
				wantError(t, p, errs, c.want)
			} else if len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
		})
	}
}
