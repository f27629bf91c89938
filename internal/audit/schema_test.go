package audit

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const schemaFile = "../../docs/reference/audit-record.schema.json"

// schemaOf writes what a Go type looks like in JSON as a JSON Schema. Members with omitempty may be missing.
func schemaOf(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem())
	}
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Struct:
		properties, required := map[string]any{}, []string{}
		members(t, properties, &required)
		out := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
		if len(required) > 0 {
			out["required"] = required
		}
		return out
	}
	panic("no JSON Schema for " + t.String())
}

func members(t reflect.Type, properties map[string]any, required *[]string) {
	for f := range t.Fields() {
		if f.Anonymous {
			members(f.Type, properties, required)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		schema := schemaOf(f.Type)
		describe(name, schema)
		properties[name] = schema
		if !strings.Contains(options, "omitempty") {
			*required = append(*required, name)
		}
	}
}

// describe narrows members that hold constants or digests.
func describe(name string, schema map[string]any) {
	const digest = `^[a-z0-9-]{1,32}:[0-9a-f]{32,128}$`
	switch name {
	case "kind":
		schema["enum"] = []string{KindDecision, KindRecovered, KindCheckpoint, KindRotated, KindDropped, KindLabel, KindUnrecorded, KindAdopted}
	case "outcome":
		schema["type"] = "string" // an approval has outcomes of its own
	case "v":
		schema["const"] = Version
	case "seq", "first":
		schema["minimum"] = 1
	case "prev", "digest", "requestDigest", "session", "policyDigest", "argumentsDigest", "stateDigest", "userTurnsDigest", "messageDigest":
		schema["pattern"] = digest
	case "captured":
		schema["enum"] = []string{"Plain", "Encrypted"}
	case "reason":
		schema["pattern"] = "^[0-9A-Za-z]{0,64}$"
	}
}

func TestSchemaIsThatOfTheRecord(t *testing.T) {
	schema := schemaOf(reflect.TypeFor[Entry]())
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["$id"] = "https://gatewright.dev/schemas/audit-record/v1"
	schema["title"] = "One line of a Gatewright audit log"
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(schema); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(schemaFile, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want.String(), string(read(t, schemaFile))); diff != "" {
		t.Errorf("%s is not that of the Go type: run go test ./internal/audit -run Schema -update (-want +got):\n%s", schemaFile, diff)
	}
}

func TestWhatIsWrittenFitsTheSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	schema, err := c.Compile(filepath.Join(schemaFile))
	if err != nil {
		t.Fatal(err)
	}
	good := line(t, full())
	for name, test := range map[string]struct {
		line string
		fits bool
	}{
		"a record with everything":             {good, true},
		"an empty record":                      {line(t, &Record{}), true},
		"a member that is not known":           {good[:len(good)-1] + `,"more":1}`, false},
		"another version":                      {strings.Replace(good, `"v":1`, `"v":2`, 1), false},
		"another kind":                         {strings.Replace(good, `"kind":"decision"`, `"kind":"else"`, 1), false},
		"text where a digest belongs":          {strings.Replace(good, `"requestDigest":"sha256:`, `"requestDigest":"All my words:`, 1), false},
		"a probability that is no number":      {strings.Replace(good, `"probability":0.25`, `"probability":"high"`, 1), false},
		"a record without the time it is from": {strings.Replace(good, `"time"`, `"when"`, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(test.line))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); (err == nil) != test.fits {
				t.Errorf("fits: %v, want %v", err, test.fits)
			}
		})
	}
}
