package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/strictjson"
)

// Tree is arguments or facts, read as strictly as the gate reads them.
type Tree struct {
	set   bool
	value any
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *Tree) UnmarshalYAML(n *yaml.Node) error {
	var b strings.Builder
	if err := writeJSON(&b, n); err != nil {
		return err
	}
	v, err := strictjson.Parse([]byte(b.String()), strictjson.Limits{})
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*t = Tree{set: true, value: v}
	return nil
}

// object gives the tree as an object. One that is not written is an empty object.
func (t Tree) object() (map[string]any, bool) {
	if !t.set {
		return map[string]any{}, true
	}
	v, ok := t.value.(map[string]any)
	return v, ok
}

// writeJSON writes a node as JSON. Numbers are written as they stand, so that the strict reader sees the same digits.
func writeJSON(b *strings.Builder, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		return writeAll(b, "{", "}", n.Content, 2)
	case yaml.SequenceNode:
		return writeAll(b, "[", "]", n.Content, 1)
	case yaml.ScalarNode:
		return writeScalar(b, n)
	case yaml.AliasNode, yaml.DocumentNode:
	}
	return fmt.Errorf("line %d: write the value out instead of referring to an anchor", n.Line)
}

// writeAll writes members, each of one node, or of a key and a value.
func writeAll(b *strings.Builder, opening, closing string, content []*yaml.Node, width int) error {
	b.WriteString(opening)
	for i := 0; i+width <= len(content); i += width {
		if i > 0 {
			b.WriteByte(',')
		}
		if width == 2 {
			if content[i].Kind != yaml.ScalarNode || content[i].Tag == "!!merge" {
				return fmt.Errorf("line %d: a key is a plain text", content[i].Line)
			}
			writeText(b, content[i].Value)
			b.WriteByte(':')
		}
		if err := writeJSON(b, content[i+width-1]); err != nil {
			return err
		}
	}
	b.WriteString(closing)
	return nil
}

func writeScalar(b *strings.Builder, n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		writeText(b, n.Value)
	case "!!null":
		b.WriteString("null")
	case "!!bool":
		var v bool
		if err := n.Decode(&v); err != nil {
			return fmt.Errorf("line %d: %w", n.Line, err)
		}
		b.WriteString(strconv.FormatBool(v))
	case "!!int", "!!float":
		if !json.Valid([]byte(n.Value)) {
			return fmt.Errorf("line %d: the number %s is not written as JSON writes it: use plain decimals, or quotes for a text", n.Line, n.Value)
		}
		b.WriteString(n.Value)
	default:
		return fmt.Errorf("line %d: a value of type %s has no place in JSON", n.Line, n.Tag)
	}
	return nil
}

func writeText(b *strings.Builder, s string) {
	text, _ := json.Marshal(s) // a string always marshals
	b.Write(text)
}

// Reply is the scripted answer to one question, in short: a number for a YesNo, a number or levels for a Score, the
// options with their probabilities for a Choice, is for a bare verdict.
type Reply struct {
	line          int
	number        *float64
	probabilities map[string]float64
	levels        bool
	is            string
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (r *Reply) UnmarshalYAML(n *yaml.Node) error {
	r.line = n.Line
	fault := fmt.Errorf("line %d: an answer is a number, {OPTION: P, ...}, {levels: {\"0\": P, ...}} or {is: OPTION}", n.Line)
	if n.Kind == yaml.ScalarNode {
		if n.ShortTag() != "!!float" && n.ShortTag() != "!!int" || n.Decode(&r.number) != nil {
			return fault
		}
		return nil
	}
	var verdict struct {
		Is string `yaml:"is"`
	}
	var score struct {
		Levels map[string]float64 `yaml:"levels"`
	}
	switch {
	case n.Kind != yaml.MappingNode:
		return fault
	case len(n.Content) == 2 && n.Content[0].Value == "is" && n.Content[1].ShortTag() == "!!str" && n.Decode(&verdict) == nil:
		r.is = verdict.Is
	case len(n.Content) == 2 && n.Content[0].Value == "levels" && n.Content[1].Kind == yaml.MappingNode && n.Decode(&score) == nil:
		r.probabilities, r.levels = score.Levels, true
	case n.Decode(&r.probabilities) != nil || len(r.probabilities) == 0:
		return fault
	}
	return nil
}

// answer makes the answer to a question. It must be one that the question can have: a suite tests the policy and not
// how replies are parsed, so a slip here is an error and not a bad reply.
func (r Reply) answer(q questions.Question) (questions.Answer, error) {
	a := questions.Answer{Type: q.Type, Coverage: 1}
	switch {
	case r.is != "":
		a.Choice, a.Verdict = r.is, true
	case r.number != nil && q.Type == questions.YesNo:
		a.Probability = *r.number
	case r.number != nil && q.Type == questions.Score:
		if *r.number < 0 || *r.number > float64(len(q.Levels)-1) {
			return a, fmt.Errorf("line %d: %s has levels 0 to %d", r.line, q.Name, len(q.Levels)-1)
		}
		a = q.FromDistribution(between(*r.number, len(q.Levels)), 1)
	case r.probabilities != nil && r.levels == (q.Type == questions.Score) && q.Type != questions.YesNo:
		p, err := r.distribution(q)
		if err != nil {
			return a, err
		}
		a = q.FromDistribution(p, 1)
	default:
		return a, fmt.Errorf("line %d: %s is a %s and is answered in another form", r.line, q.Name, q.Type)
	}
	if err := q.Check(a); err != nil {
		return a, fmt.Errorf("line %d: %w", r.line, err)
	}
	return a, nil
}

// distribution puts the probabilities in order. What is not written is 0.
func (r Reply) distribution(q questions.Question) ([]float64, error) {
	labels := q.Labels()
	p := make([]float64, len(labels))
	found := 0
	for i, label := range labels {
		v, ok := r.probabilities[label]
		if p[i] = v; ok {
			found++
		}
	}
	if found != len(r.probabilities) {
		return nil, errors.New("line " + strconv.Itoa(r.line) + ": " + q.Name + " has only these: " + strings.Join(labels, ", "))
	}
	return p, nil
}

// between spreads an expected level over the two levels next to it.
func between(score float64, levels int) []float64 {
	p := make([]float64, levels)
	low := int(math.Floor(score))
	p[low] = 1 - (score - float64(low))
	if low+1 < levels {
		p[low+1] = score - float64(low)
	}
	return p
}
