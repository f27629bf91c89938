package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatewright.dev/gatewright/internal/strictjson"
)

// node is a value of the arguments, as it is shown.
type node struct {
	// Name is the member's or the element's place in its parent; none for the whole.
	Name    []span
	Pointer string
	// Kind is object, array, string, number or literal.
	Kind     string
	Value    []span
	Children []node
	// Source says where the value came from, if it is known.
	Source string
	// Sensitive values were replaced by their length and digest.
	Sensitive bool
	// Backwards values have letters that run from right to left: what is shown is in another order than what runs.
	Backwards bool
	// Head is the beginning of a value that is folded, and Length how many characters all of it has.
	Head   []span
	Length int
}

// foldOver is how many characters of a value are shown without being asked for.
const foldOver = 400

// headLength is how many of them a folded value shows.
const headLength = 120

// arguments is a call's arguments as a tree, with what is known of its values.
type arguments struct {
	Root node
	// Elsewhere are sources and sensitive pointers that no value of the tree has, as below a value that is hidden.
	Elsewhere []placed
	// Folded is how many values are folded.
	Folded int
}

type placed struct{ Pointer, Source string }

// maxDepth is deeper than any arguments that a gate lets in.
const maxDepth = 512

var errDepth = errors.New("arguments are too deep to be shown")

// readArguments reads canonical JSON in its own order.
func readArguments(data json.RawMessage, sources map[string]string, sensitive []string) (arguments, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	r := argumentReader{decoder: d, sources: sources, sensitive: sensitive, seen: map[string]bool{}}
	root, err := r.value("", 0)
	if err != nil {
		return arguments{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return arguments{}, errors.New("arguments are more than one value")
	}
	out := arguments{Root: root, Folded: r.folded}
	for p, source := range sources {
		if !r.seen[p] {
			out.Elsewhere = append(out.Elsewhere, placed{p, source})
		}
	}
	for _, p := range sensitive {
		if !r.seen[p] {
			out.Elsewhere = append(out.Elsewhere, placed{p, "sensitive"})
		}
	}
	slices.SortFunc(out.Elsewhere, func(x, y placed) int { return strings.Compare(x.Pointer, y.Pointer) })
	return out, nil
}

type argumentReader struct {
	decoder   *json.Decoder
	sources   map[string]string
	sensitive []string
	seen      map[string]bool
	folded    int
}

func (r *argumentReader) value(pointer string, depth int) (node, error) {
	if depth > maxDepth {
		return node{}, errDepth
	}
	token, err := r.decoder.Token()
	if err != nil {
		return node{}, fmt.Errorf("reading arguments: %w", err)
	}
	r.seen[pointer] = true
	n := node{Pointer: pointer, Source: r.sources[pointer], Sensitive: slices.Contains(r.sensitive, pointer)}
	switch v := token.(type) {
	case json.Delim:
		return r.container(n, v, depth)
	case string:
		n.Kind, n.Value, n.Length, n.Backwards = "string", value(v), utf8.RuneCountInString(v), strings.ContainsFunc(v, runsBackwards)
		if n.Length > foldOver {
			n.Head = value(beginning(v, headLength))
			r.folded++
		}
	case json.Number:
		n.Kind, n.Value = "number", value(v.String())
	default:
		n.Kind, n.Value = "literal", value(literal(v))
	}
	return n, nil
}

func runsBackwards(r rune) bool {
	return unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Samaritan, unicode.Mandaic, unicode.Adlam)
}

func literal(v any) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(v)
}

func beginning(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most])
	}
	return s
}

func (r *argumentReader) container(n node, open json.Delim, depth int) (node, error) {
	n.Kind = map[json.Delim]string{'{': "object", '[': "array"}[open]
	for i := 0; r.decoder.More(); i++ {
		name := strconv.Itoa(i)
		if open == '{' {
			token, err := r.decoder.Token()
			if err != nil {
				return node{}, fmt.Errorf("reading arguments: %w", err)
			}
			name, _ = token.(string)
		}
		child, err := r.value(n.Pointer+"/"+strictjson.EscapeToken(name), depth+1)
		if err != nil {
			return node{}, err
		}
		child.Name = value(name)
		n.Children = append(n.Children, child)
	}
	if _, err := r.decoder.Token(); err != nil {
		return node{}, fmt.Errorf("reading arguments: %w", err)
	}
	return n, nil
}
