package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/strictjson"
)

// source is the name that every case carries.
const source = "standard-240"

//go:embed families/*.yaml cloud/*.yaml
var templates embed.FS

// family is a template: several scenes that were written together, share one label and stay in one half.
type family struct {
	Name     string              `yaml:"family"`
	Half     string              `yaml:"half"`
	Class    string              `yaml:"class"`
	Kind     string              `yaml:"kind"`
	Label    string              `yaml:"label"`
	Why      string              `yaml:"why"`
	N        int                 `yaml:"n"`
	Tool     string              `yaml:"tool"`
	Role     string              `yaml:"role"`
	Approved bool                `yaml:"approved"`
	Slots    map[string][]string `yaml:"slots"`
	Scenes   []scene             `yaml:"scenes"`
}

// scene is one wording. Words in braces are slots; a text that begins with # becomes a number.
type scene struct {
	Tool   string         `yaml:"tool"`
	Role   string         `yaml:"role"`
	Say    string         `yaml:"say"`
	Before []string       `yaml:"before"`
	Args   map[string]any `yaml:"args"`
}

type catalog struct {
	Roles map[string][]string `yaml:"roles"`
	Tools []tool              `yaml:"tools"`
}

type tool struct {
	Name        string            `yaml:"name"`
	Class       string            `yaml:"class"`
	Unlisted    bool              `yaml:"unlisted"`
	Description string            `yaml:"description"`
	Schema      map[string]string `yaml:"schema"`
	Optional    []string          `yaml:"optional"`
}

// generate writes all cases, one a line, in an order that says nothing.
func generate(from uint64) ([]byte, error) {
	known, list, err := load()
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(from, from))
	var cases []*evaluation.Case
	for _, f := range list {
		made, err := f.cases(known, random)
		if err != nil {
			return nil, fmt.Errorf("family %s: %w", f.Name, err)
		}
		cases = append(cases, made...)
	}
	return lines(cases)
}

// lines writes cases by id, and refuses two that a gate could not tell apart.
func lines(cases []*evaluation.Case) ([]byte, error) {
	slices.SortFunc(cases, func(a, b *evaluation.Case) int { return strings.Compare(a.ID, b.ID) })
	var out bytes.Buffer
	rows := json.NewEncoder(&out)
	rows.SetEscapeHTML(false)
	for i, c := range cases {
		if i > 0 && c.ID == cases[i-1].ID {
			return nil, fmt.Errorf("families %s and %s make the same case", cases[i-1].Family, c.Family)
		}
		if err := rows.Encode(row{Case: c, Scopes: c.Scopes}); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// row is a case whose scopes are written even where there are none: no scopes and unknown scopes are not the same.
type row struct {
	*evaluation.Case
	Scopes []string `json:"scopes"`
}

func load() (*catalog, []family, error) {
	known := &catalog{}
	var list []family
	files, err := fs.Glob(templates, "families/*.yaml")
	if err != nil {
		return nil, nil, err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "/tools.yaml") {
			err = read(name, known)
		} else {
			var more []family
			err = read(name, &more)
			list = append(list, more...)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return known, list, nil
}

// read decodes a file of templates strictly.
func read(name string, out any) error {
	data, err := templates.ReadFile(name)
	if err != nil {
		return err
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(out); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// cases takes the scenes in turn, each time with the next word of every slot.
func (f *family) cases(known *catalog, random *rand.Rand) ([]*evaluation.Case, error) {
	if len(f.Scenes) == 0 || f.N < len(f.Scenes) {
		return nil, errors.New("n is below the number of scenes")
	}
	first := random.IntN(1 << 16)
	var out []*evaluation.Case
	for i := range f.N {
		words := map[string]string{}
		for name, values := range f.Slots {
			words[name] = values[(first+i)%len(values)]
		}
		c, err := f.fill(known, &f.Scenes[i%len(f.Scenes)], words)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func (f *family) fill(known *catalog, s *scene, words map[string]string) (*evaluation.Case, error) {
	name := either(s.Tool, f.Tool)
	at := slices.IndexFunc(known.Tools, func(t tool) bool { return t.Name == name })
	if at < 0 || known.Tools[at].Class != f.Class || known.Tools[at].Unlisted != (f.Kind == "unknown-tool") {
		return nil, fmt.Errorf("tool %q is not in the catalog as this family needs it", name)
	}
	scopes, ok := known.Roles[either(either(s.Role, f.Role), "none")]
	if !ok {
		return nil, fmt.Errorf("role %q is not in the catalog", s.Role)
	}
	arguments, err := fillArguments(s.Args, words)
	if err != nil {
		return nil, err
	}
	c := &evaluation.Case{
		Source: source, Family: f.Name, Kind: f.Kind, Half: f.Half, UserRequest: put(s.Say, words),
		Tool: known.Tools[at].shown(), Arguments: arguments, Class: f.Class, Scopes: scopes, Label: evaluation.Label(f.Label), Why: f.Why,
	}
	if f.Approved {
		c.Facts = strictjson.Object{"approved": true}
	}
	if c.Conversation, err = turns(s.Before, words); err != nil {
		return nil, err
	}
	c.ID, err = identify("std-", c)
	return c, err
}

func turns(lines []string, words map[string]string) ([]evaluation.Turn, error) {
	out := []evaluation.Turn{}
	for _, line := range lines {
		turn, err := turnOf(put(line, words))
		if err != nil {
			return nil, err
		}
		out = append(out, turn)
	}
	return out, nil
}

// identify names a case by what a gate would see of it, so that the name says nothing about its label.
func identify(prefix string, c *evaluation.Case) (string, error) {
	seen, err := json.Marshal([]any{c.UserRequest, c.Conversation, c.Tool.Name, c.Arguments, c.Scopes})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(seen)
	return prefix + hex.EncodeToString(sum[:6]), nil
}

func (t *tool) shown() evaluation.Tool {
	properties := map[string]any{}
	var required []any
	for name, kind := range t.Schema {
		properties[name] = map[string]any{"type": kind}
		if !slices.Contains(t.Optional, name) {
			required = append(required, name)
		}
	}
	slices.SortFunc(required, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	return evaluation.Tool{Name: t.Name, Description: t.Description, InputSchema: strictjson.Object{
		"type": "object", "additionalProperties": false, "required": required, "properties": properties,
	}}
}

func fillArguments(args map[string]any, words map[string]string) (strictjson.Object, error) {
	out := strictjson.Object{}
	for name, value := range args {
		switch v := value.(type) {
		case string:
			text := put(v, words)
			number, isNumber := strings.CutPrefix(text, "#")
			n, err := strconv.ParseInt(number, 10, 64)
			if isNumber && err == nil {
				out[name] = n
			} else {
				out[name] = text
			}
		case int:
			out[name] = int64(v)
		default:
			return nil, fmt.Errorf("argument %s is neither text nor a number: quote it", name)
		}
	}
	return out, nil
}

// put replaces the slots of a text.
func put(text string, words map[string]string) string {
	for name, word := range words {
		text = strings.ReplaceAll(text, "{"+name+"}", word)
	}
	return text
}

// turnOf reads a line such as "user: hello".
func turnOf(line string) (evaluation.Turn, error) {
	role, content, _ := strings.Cut(line, ": ")
	switch role {
	case "user", "assistant", "tool", "system":
		return evaluation.Turn{Role: role, Content: content}, nil
	case "call":
		return evaluation.Turn{Role: "assistant", Content: "[tool call] " + content}, nil
	}
	return evaluation.Turn{}, fmt.Errorf("a line of the conversation begins with %q", role)
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
