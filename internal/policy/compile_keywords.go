package policy

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"gatewright.dev/gatewright/internal/strictjson"
)

// The keywords of JSON Schema 2020-12 by what they hold. Those that only describe are not among them: to misspell one of
// those loosens nothing.
var (
	schemaIn   = setOf(strings.Fields("not if then else items contains additionalProperties propertyNames unevaluatedItems unevaluatedProperties"))
	schemasIn  = setOf(strings.Fields("allOf anyOf oneOf prefixItems"))
	namedIn    = setOf(strings.Fields("properties patternProperties $defs definitions dependentSchemas"))
	assertions = strings.Fields("type enum const multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern " +
		"maxItems minItems uniqueItems maxContains minContains maxProperties minProperties required dependentRequired format")
	checkedFormats = strings.Fields("date time date-time duration email hostname ipv4 ipv6 uri iri uri-reference iri-reference uri-template " +
		"uuid json-pointer relative-json-pointer regex")
	allKeywords = slices.Concat(slices.Collect(maps.Keys(schemaIn)), slices.Collect(maps.Keys(schemasIn)), slices.Collect(maps.Keys(namedIn)), assertions)
)

// earlierKeywords are keywords of earlier drafts that 2020-12 passes over, with what took their place.
var earlierKeywords = map[string]string{
	"dependencies":    "does nothing in JSON Schema 2020-12: use dependentRequired or dependentSchemas",
	"additionalItems": "does nothing in JSON Schema 2020-12: use prefixItems and items",
}

// keywords refuses what JSON Schema passes over in silence and an author would not: a keyword that is a slip for another, or
// one of another draft, and a format that is never checked.
func (c *compiler) keywords(schema any, path *field.Path) {
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		switch value := s[name]; {
		case schemaIn[name]:
			c.keywords(value, path.Child(name))
		case schemasIn[name]:
			list, _ := value.([]any)
			for i := range list {
				c.keywords(list[i], path.Child(name).Index(i))
			}
		case namedIn[name]:
			named, _ := value.(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(named)) {
				c.keywords(named[key], path.Child(name).Key(key))
			}
		case name == "format":
			c.format(value, path.Child(name))
		case name == "required":
			c.required(s, path.Child(name))
		case slices.Contains(assertions, name):
		case earlierKeywords[name] != "":
			c.fail(path.Child(name), name, earlierKeywords[name])
		default:
			if meant := slip(name, allKeywords, 4); meant != "" {
				c.fail(path.Child(name), name, "is no keyword of JSON Schema and would do nothing: did you mean "+meant+"?")
			}
		}
	}
}

// required refuses a required name that no call can have, and one that is a slip for a property: what was meant is then
// optional, and a missing argument passes all rules about it.
func (c *compiler) required(schema map[string]any, path *field.Path) {
	properties, _ := schema["properties"].(map[string]any)
	list, _ := schema["required"].([]any)
	for i := range list {
		name, _ := list[i].(string)
		if _, ok := properties[name]; ok || name == "" {
			continue
		}
		if _, isRefused := refusedBy(schema, []string{name}); isRefused {
			c.fail(path.Index(i), name, "is required and no property, which additionalProperties: false refuses: no call can fit")
		} else if meant := strictjson.Near(name, slices.Collect(maps.Keys(properties))); len(meant) > 0 {
			c.fail(path.Index(i), name, "is no property: declare it under properties, or did you mean "+meant[0]+"?")
		}
	}
}

func (c *compiler) format(value any, path *field.Path) {
	name, _ := value.(string)
	switch {
	case slices.Contains(checkedFormats, name):
	case name == "idn-email" || name == "idn-hostname":
		c.fail(path, name, "is not checked: use pattern, or a rule")
	default:
		if meant := slip(name, checkedFormats, 3); meant != "" {
			c.fail(path, name, "is no format and would not be checked: did you mean "+meant+"?")
		}
	}
}

// slip is the word that a name is probably a slip for. Of words shorter than the given length every other one is near.
func slip(name string, known []string, shortest int) string {
	near := strictjson.Near(name, known)
	if len(near) == 0 || len(near[0]) < shortest && !strings.EqualFold(near[0], name) {
		return ""
	}
	return near[0]
}
