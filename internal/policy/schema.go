package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"gatewright.dev/gatewright/internal/policy/sources"
	"gatewright.dev/gatewright/internal/strictjson"
)

const schemaURL = "gatewright:///arguments.json"

// noLoader refuses every document but the schema itself: a policy is judged without I/O.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("refers to another document, which is never loaded: write it out under $defs")
}

func (c *compiler) compileArgumentsSchema(t *tool, path *field.Path) {
	if t.rule.ArgumentsSchema == nil || !c.takes(path, &c.used.schemaBytes, len(t.rule.ArgumentsSchema.Raw), maxSchemaBytes, "bytes of schemas") {
		return
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(t.rule.ArgumentsSchema.Raw))
	if err != nil {
		c.fail(path, "", "is no JSON: "+err.Error())
		return
	}
	if !c.takesSchema(tree, path) {
		return
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseRegexpEngine(boundedRegexp)
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	compiler.AssertFormat()
	if err := compiler.AddResource(schemaURL, tree); err != nil {
		c.fail(path, "", err.Error())
		return
	}
	if t.schema, err = compiler.Compile(schemaURL); err != nil {
		c.schemaError(tree, path, err)
		return
	}
	if repeatsTooOften(t.schema) {
		t.schema = nil
		c.fail(path, "", errRepeats.Error())
		return
	}
	t.schemaTree = tree
	t.offers = sources.NewSchema(plainNumbers(tree))
	if draft := draftOf(tree); draft == "" || strings.Contains(draft, "2020-12") {
		c.keywords(tree, path)
	}
}

// schemaError says where a schema is none, and why. Of all that a validator says about it only the deepest place helps.
func (c *compiler) schemaError(tree any, path *field.Path, err error) {
	var invalid *jsonschema.ValidationError
	if outer := (*jsonschema.SchemaValidationError)(nil); errors.As(err, &outer) { // which does not unwrap
		err = outer.Err
	}
	if !errors.As(err, &invalid) {
		c.fail(path, "", "does not compile as JSON Schema 2020-12: "+strings.ReplaceAll(err.Error(), schemaURL, ""))
		return
	}
	leaf := deepest(invalid)
	value, _ := lookup(tree, leaf.InstanceLocation, &budget{left: runLimit})
	for _, name := range leaf.InstanceLocation {
		path = path.Child(name)
	}
	bare := *leaf
	bare.Causes = nil
	_, why, _ := strings.Cut(bare.Error(), "': ") // "... - at '/properties/a/type': value must be one of ..."
	c.fail(path, value, "does not compile as JSON Schema 2020-12: "+why)
}

func deepest(v *jsonschema.ValidationError) *jsonschema.ValidationError {
	if len(v.Causes) == 0 {
		return v
	}
	best := deepest(v.Causes[0])
	for _, cause := range v.Causes[1:] {
		if other := deepest(cause); len(other.InstanceLocation) > len(best.InstanceLocation) {
			best = other
		}
	}
	return best
}

// draftOf is the draft that a schema says it is written in.
func draftOf(tree any) string {
	schema, _ := tree.(map[string]any)
	draft, _ := schema["$schema"].(string)
	return draft
}

// plainNumbers turns json.Number into int64 or float64, as the arguments of a call have them.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = plainNumbers(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plainNumbers(e)
		}
		return out
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	}
	return v
}

// missingFrom returns JSON Pointers of what the schema misses or refuses, without any value.
func missingFrom(err error) []string {
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return nil
	}
	var out []string
	collectMissing(v, &out)
	slices.Sort(out)
	return slices.Compact(out)
}

func collectMissing(v *jsonschema.ValidationError, out *[]string) {
	if len(v.Causes) > 0 {
		for _, cause := range v.Causes {
			collectMissing(cause, out)
		}
		return
	}
	at := joinPointer(v.InstanceLocation)
	if missing, ok := requiredProperties(v); ok {
		for _, name := range missing {
			*out = append(*out, at+"/"+strictjson.EscapeToken(name))
		}
		return
	}
	if at == "" {
		at = "/"
	}
	*out = append(*out, at)
}

func joinPointer(parts []string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(strictjson.EscapeToken(p))
	}
	return b.String()
}

func requiredProperties(v *jsonschema.ValidationError) ([]string, bool) {
	r, ok := v.ErrorKind.(*kind.Required)
	if !ok {
		return nil, false
	}
	return r.Missing, true
}
