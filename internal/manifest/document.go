package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	yamlv2 "go.yaml.in/yaml/v2"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"gatewright.dev/gatewright/internal/strictjson"
)

// document is one document of a file: a tree as an API server would see it, or why there is none.
type document struct {
	// index of the document in its file, from 1.
	index int
	// tree is nil when the document is empty or could not be read at all.
	tree any
	// err says what is wrong with the text. The tree may be there even so: what a lenient reader makes of it.
	err error
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// documents reads all documents of a file. One that cannot be read does not hide those after it.
func documents(data []byte) []document {
	data = bytes.TrimPrefix(data, byteOrderMark)
	if json.Valid(data) {
		tree, err := readJSON(data)
		return []document{{index: 1, tree: tree, err: err}}
	}
	var found []document
	for i, chunk := range split(data) {
		tree, err := readYAML(chunk)
		if tree != nil || err != nil {
			found = append(found, document{index: i + 1, tree: tree, err: err})
		}
	}
	return found
}

// readJSON is strict about what two readers could understand differently, then reads numbers as an API server does.
func readJSON(data []byte) (any, error) {
	limits := strictjson.Limits{MaxBytes: MaxFileBytes, MaxDepth: maxDepth, MaxKeys: MaxFileBytes}
	_, strict := strictjson.Parse(data, limits)
	var fault *strictjson.Error
	if errors.As(strict, &fault) && fault.Code == strictjson.NumberNotExact {
		strict = nil // a bound in a JSON Schema may be any number
	}
	var tree any
	if err := utiljson.Unmarshal(data, &tree); err != nil {
		return nil, fmt.Errorf("reading JSON: %w", err)
	}
	return tree, strict
}

// readYAML reads one document. A key that is there twice is an error, and so is a second document, which split has
// failed to see: a rule that nobody reads must not pass for one that holds.
func readYAML(chunk []byte) (any, error) {
	var raw any
	dec := yamlv2.NewDecoder(bytes.NewReader(chunk))
	dec.SetStrict(true)
	strict := dec.Decode(&raw)
	if errors.Is(strict, io.EOF) {
		return nil, nil
	}
	if strict == nil {
		var rest any
		if err := dec.Decode(&rest); !errors.Is(err, io.EOF) {
			strict = errors.New("text follows the end of the document: put --- on a line of its own between documents")
		}
	} else if err := yamlv2.Unmarshal(chunk, &raw); err != nil {
		return nil, fmt.Errorf("reading YAML: %w", err)
	}
	tree, err := toTree(raw, 0)
	if strict != nil {
		return tree, fmt.Errorf("reading YAML: %w", strict)
	}
	return tree, err
}

// split cuts a file at its document markers: a line that starts with --- or ... and goes on with white space or not at
// all. Such a line is a marker wherever it stands, also within a quoted or block text. The marker --- stays with the
// document that it begins, because text may follow it on the same line.
func split(data []byte) [][]byte {
	var chunks [][]byte
	start, content := 0, false
	for at := 0; at < len(data); {
		line, next := cutLine(data[at:])
		switch {
		case isMarker(line, "---"):
			if content {
				chunks = append(chunks, data[start:at])
				start = at
			}
			content = true
		case isMarker(line, "..."):
			chunks = append(chunks, data[start:at])
			start, content = at+next, false
		default:
			content = content || !isPreamble(line)
		}
		at += next
	}
	return append(chunks, data[start:])
}

// isPreamble says whether a line may stand before the marker that begins a document.
func isPreamble(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#' || line[0] == '%'
}

// lineBreaks are those of YAML 1.1, which the parser follows.
var lineBreaks = []string{"\r\n", "\n", "\r", "\u0085", "\u2028", "\u2029"}

// cutLine returns the first line and where the next one starts.
func cutLine(data []byte) (line []byte, next int) {
	for i := range data {
		for _, b := range lineBreaks {
			if bytes.HasPrefix(data[i:], []byte(b)) {
				return data[:i], i + len(b)
			}
		}
	}
	return data, len(data)
}

func isMarker(line []byte, marker string) bool {
	rest, found := bytes.CutPrefix(line, []byte(marker))
	return found && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t')
}

// maxDepth bounds the nesting of a manifest. The deepest field of our kinds lies at 14.
const maxDepth = 100

// toTree turns what the YAML reader gives into what JSON can say. If a part cannot be said, the rest is returned with
// the error.
func toTree(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep: flatten it", maxDepth)
	}
	switch v := v.(type) {
	case nil, bool, int64:
		return v, nil
	case int:
		return int64(v), nil
	case uint64:
		return float64(v), nil // as JSON readers do with what int64 does not hold
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v is not a number that JSON knows: write a finite one", v)
		}
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return nil, errors.New("a text is not UTF-8: save the file as UTF-8, and do not use !!binary")
		}
		return v, nil
	case []any:
		return listTree(v, depth)
	case map[any]any:
		return objectTree(v, depth)
	default:
		return nil, fmt.Errorf("a value of type %T has no form in JSON: write it as text in quotes", v)
	}
}

func listTree(list []any, depth int) (any, error) {
	var errs []error
	out := make([]any, len(list))
	for i, e := range list {
		var err error
		out[i], err = toTree(e, depth+1)
		errs = append(errs, err)
	}
	return out, errors.Join(errs...)
}

// objectTree takes text keys only: on, yes and 1 are other keys in YAML than in JSON, and may stand beside "on".
func objectTree(object map[any]any, depth int) (any, error) {
	var errs []error
	out := make(map[string]any, len(object))
	for k, e := range object {
		key, ok := k.(string)
		if !ok {
			errs = append(errs, fmt.Errorf("key %s is read as %T and not as text: put it in quotes", short(k), k))
			continue
		}
		if !utf8.ValidString(key) {
			errs = append(errs, errors.New("a key is not UTF-8: save the file as UTF-8"))
			continue
		}
		value, err := toTree(e, depth+1)
		out[key] = value
		errs = append(errs, err)
	}
	return out, errors.Join(errs...)
}

// short prints a value for a message.
func short(v any) string {
	s := strings.ToValidUTF8(fmt.Sprint(v), "\uFFFD")
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "") + "..."
	}
	return s
}
