package gate

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

// openAPI is the OpenAPI 3.1 document of the wire, generated from the Go types so that the two cannot differ.
var openAPI = sync.OnceValue(func() []byte {
	schemas := map[string]any{}
	ref := schemaOf(reflect.TypeFor[review.ToolCallReview](), schemas)
	failure := schemaOf(reflect.TypeFor[review.Error](), schemas)
	content := func(schema any) map[string]any {
		return map[string]any{"application/json": map[string]any{"schema": schema}}
	}
	document := map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "Gatewright gate", "version": "v1alpha1",
			"description": "Asks whether a proposed tool call may run. Only status 200 carries a decision; anything else means Block.",
		},
		"paths": map[string]any{review.Path: map[string]any{"post": map[string]any{
			"operationId": "review",
			"summary":     "Judge one proposed tool call.",
			"security":    []any{map[string]any{"bearer": []any{}}},
			"parameters": []any{map[string]any{
				"name": "timeout", "in": "query", "schema": map[string]any{"type": "string", "examples": []any{"2s"}},
				"description": "Deadline of the request, as a duration.",
			}},
			"requestBody": map[string]any{"required": true, "content": content(ref)},
			"responses": map[string]any{
				"200":     map[string]any{"description": "A decision.", "content": content(ref)},
				"default": map[string]any{"description": "No decision: the call must not run.", "content": content(failure)},
			},
		}}},
		"components": map[string]any{
			"schemas":         schemas,
			"securitySchemes": map[string]any{"bearer": map[string]any{"type": "http", "scheme": "bearer"}},
		},
	}
	out, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		panic(err) // the document holds only maps, lists and strings
	}
	return append(out, '\n')
})

// enums are the closed sets of the wire.
var enums = map[reflect.Type][]any{
	reflect.TypeFor[review.Outcome](): {review.Allow, review.Clarify, review.Confirm, review.Block},
	reflect.TypeFor[review.Role]():    {review.RoleSystem, review.RoleUser, review.RoleAssistant, review.RoleTool},
	reflect.TypeFor[review.Remedy](): {
		review.RemedyNone, review.RemedyAskUser, review.RemedyWaitForApproval, review.RemedyChangeArguments, review.RemedyAskAdmin, review.RemedyRetry,
	},
}

func schemaOf(t reflect.Type, schemas map[string]any) map[string]any {
	if t == reflect.TypeFor[time.Time]() {
		return map[string]any{"type": "string", "format": "date-time"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), schemas)
	case reflect.Struct:
		return structSchema(t, schemas)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), schemas)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem(), schemas)}
	case reflect.String:
		out := map[string]any{"type": "string"}
		if values, ok := enums[t]; ok {
			out["enum"] = values
		}
		return out
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	default:
		return map[string]any{}
	}
}

func structSchema(t reflect.Type, schemas map[string]any) map[string]any {
	ref := map[string]any{"$ref": "#/components/schemas/" + t.Name()}
	if _, done := schemas[t.Name()]; done {
		return ref
	}
	properties := map[string]any{}
	var required []any
	schemas[t.Name()] = map[string]any{} // ends the recursion of types that refer to themselves
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		properties[name] = schemaOf(f.Type, schemas)
		if !strings.Contains(options, "omitempty") {
			required = append(required, name)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if required != nil {
		schema["required"] = required
	}
	schemas[t.Name()] = schema
	return ref
}
