package sources_test

import (
	"encoding/json"
	"testing"

	"gatewright.dev/gatewright/internal/policy/sources"
)

func TestSchemaOffers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		schema, arguments string
		want              sources.Source
	}{
		"an enum member":                         {`{"properties":{"a":{"enum":["x","y"]}}}`, `{"a":"y"}`, sources.Schema},
		"no enum member":                         {`{"properties":{"a":{"enum":["x","y"]}}}`, `{"a":"z"}`, sources.Nowhere},
		"an enum member in another case":         {`{"properties":{"a":{"enum":["x"]}}}`, `{"a":"X"}`, sources.Nowhere},
		"an enum member of another property":     {`{"properties":{"b":{"enum":["x"]}}}`, `{"a":"x"}`, sources.Nowhere},
		"a const":                                {`{"properties":{"a":{"const":3}}}`, `{"a":3.0}`, sources.Schema},
		"a default":                              {`{"properties":{"a":{"default":10}}}`, `{"a":10}`, sources.Schema},
		"another value than the default":         {`{"properties":{"a":{"default":10}}}`, `{"a":11}`, sources.Nowhere},
		"a number as text is not the default":    {`{"properties":{"a":{"default":10}}}`, `{"a":"10"}`, sources.Nowhere},
		"a default of the whole object":          {`{"properties":{"a":{"default":{"b":["q"]}}}}`, `{"a":{"b":["q"]}}`, sources.Schema},
		"a part of the default object":           {`{"properties":{"a":{"default":{"b":"q","c":"r"}}}}`, `{"a":{"b":"q"}}`, sources.Nowhere},
		"an example is no offer":                 {`{"properties":{"a":{"examples":["x"]}}}`, `{"a":"x"}`, sources.Nowhere},
		"a description is no offer":              {`{"properties":{"a":{"description":"x"}}}`, `{"a":"x"}`, sources.Nowhere},
		"a declared boolean":                     {`{"properties":{"a":{"type":"boolean"}}}`, `{"a":true}`, sources.Schema},
		"a boolean among types":                  {`{"properties":{"a":{"type":["null","boolean"]}}}`, `{"a":true}`, sources.Schema},
		"an undeclared boolean":                  {`{"properties":{"a":{"type":"string"}}}`, `{"a":true}`, sources.Nowhere},
		"a boolean without a schema":             {`null`, `{"a":true}`, sources.Nowhere},
		"an item":                                {`{"properties":{"a":{"items":{"enum":["x"]}}}}`, `{"a":["x"]}`, sources.Schema},
		"a prefix item":                          {`{"properties":{"a":{"prefixItems":[{"const":"p"}],"items":{"const":"x"}}}}`, `{"a":["p"]}`, sources.Schema},
		"an item out of place":                   {`{"properties":{"a":{"prefixItems":[{"const":"p"}],"items":{"const":"x"}}}}`, `{"a":["x"]}`, sources.Nowhere},
		"an item in the older spelling":          {`{"properties":{"a":{"items":[{"const":"p"}]}}}`, `{"a":["p"]}`, sources.Schema},
		"an additional property":                 {`{"additionalProperties":{"enum":["x"]}}`, `{"a":"x"}`, sources.Schema},
		"a declared property is not additional":  {`{"properties":{"a":{}},"additionalProperties":{"enum":["x"]}}`, `{"a":"x"}`, sources.Nowhere},
		"one of several":                         {`{"properties":{"a":{"oneOf":[{"const":"p"},{"anyOf":[{"const":"x"}]}]}}}`, `{"a":"x"}`, sources.Schema},
		"all of several":                         {`{"allOf":[{"properties":{"a":{"const":"x"}}}]}`, `{"a":"x"}`, sources.Schema},
		"a reference":                            {`{"$defs":{"c/d":{"enum":["x"]}},"properties":{"a":{"$ref":"#/$defs/c~1d"}}}`, `{"a":"x"}`, sources.Schema},
		"a reference to nothing":                 {`{"properties":{"a":{"$ref":"#/$defs/none"}}}`, `{"a":"x"}`, sources.Nowhere},
		"a reference to elsewhere":               {`{"properties":{"a":{"$ref":"https://example.com/x"}}}`, `{"a":"x"}`, sources.Nowhere},
		"a schema that refers to itself":         {`{"$ref":"#","anyOf":[{"$ref":"#"},{"$ref":"#"}],"properties":{"a":{"const":"x"}}}`, `{"a":"x"}`, sources.Schema},
		"null where the schema permits it":       {`{"properties":{"a":{"type":["string","null"]}}}`, `{"a":null}`, sources.Schema},
		"nullable in the spelling of OpenAPI":    {`{"properties":{"a":{"type":"string","nullable":true}}}`, `{"a":null}`, sources.Schema},
		"null where the schema forbids it":       {`{"properties":{"a":{"type":"string"}}}`, `{"a":null}`, sources.Nowhere},
		"null without a schema":                  {`null`, `{"a":null}`, sources.Nowhere},
		"an empty string where it is permitted":  {`{"properties":{"a":{"type":"string"}}}`, `{"a":""}`, sources.Schema},
		"an empty string where it is too short":  {`{"properties":{"a":{"type":"string","minLength":1}}}`, `{"a":""}`, sources.Nowhere},
		"an empty string in an enum":             {`{"properties":{"a":{"type":"string","enum":["","x"]}}}`, `{"a":""}`, sources.Schema},
		"an empty string without a schema":       {`null`, `{"a":" "}`, sources.Nowhere},
		"a schema that is a bare true":           {`true`, `{"a":"x"}`, sources.Nowhere},
		"a schema with members of a wrong shape": {`{"properties":7,"anyOf":"x","enum":{},"$ref":1}`, `{"a":"x"}`, sources.Nowhere},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var schema any
			var arguments map[string]any
			mustDecode(t, tc.schema, &schema)
			mustDecode(t, tc.arguments, &arguments)
			got := sources.NewIndex(sources.Conversation{}).Trace(arguments, sources.NewSchema(schema))
			if len(got) != 1 || got[0].Source != tc.want {
				t.Errorf("got %v, want source %s", got, tc.want)
			}
		})
	}
}

func mustDecode(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}
