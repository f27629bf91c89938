package server

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/strictjson"
)

// request is a body that can be asked: the state as the model reads it, and questions in the order in which they came.
type request struct {
	model string
	state []byte
	asked []questions.Question
}

// The gate's own client nests arguments 64 deep, below the body, the state and the call; the rest is room.
const (
	maxDepth = 80
	maxKeys  = 8192
)

var idPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)

// parseRequest reads a body strictly: what two readers could understand differently is refused, and so is every member
// that this server would not act on.
func parseRequest(body []byte, maxBytes int) (request, *refusal) {
	tree, err := strictjson.Parse(body, strictjson.Limits{MaxBytes: maxBytes, MaxDepth: maxDepth, MaxKeys: maxKeys})
	if err != nil {
		return request{}, refusedBody(err)
	}
	top, r := object(tree, "", "model", "state", "questions")
	if r != nil {
		return request{}, r
	}
	order, err := layoutOf(body)
	if err != nil {
		return request{}, refuse(http.StatusBadRequest, CodeInvalidJSON, "the body cannot be read")
	}
	var req request
	if model, ok := top["model"]; ok {
		if req.model, ok = model.(string); !ok {
			return request{}, invalid("/model", "model must be a string")
		}
	}
	if req.state, r = stateOf(top, order); r != nil {
		return request{}, r
	}
	req.asked, r = questionsOf(top, order)
	return req, r
}

func invalid(pointer, message string) *refusal {
	r := refuse(http.StatusUnprocessableEntity, CodeValidation, "%s", message)
	r.extra.Pointer = pointer
	return r
}

// object returns the members of an object that has no others than those known. A pointer never holds an unknown name: it
// is text of the caller.
func object(v any, pointer string, known ...string) (map[string]any, *refusal) {
	members, ok := v.(map[string]any)
	if !ok {
		return nil, invalid(pointer, "an object is expected here")
	}
	for name := range members {
		if !slices.Contains(known, name) {
			return nil, invalid(pointer, "an unknown member stands here, the known ones are "+strings.Join(known, ", "))
		}
	}
	return members, nil
}

func stateOf(top map[string]any, order layout) ([]byte, *refusal) {
	const pointer = "/state"
	state, ok := top["state"]
	if !ok {
		return nil, invalid(pointer, "state is required")
	}
	empty := false
	switch state := state.(type) {
	case string:
		empty = strings.TrimSpace(state) == ""
	case map[string]any:
		empty = len(state) == 0
	case []any:
		empty = len(state) == 0
	default:
		return nil, invalid(pointer, "state must be a string, an object or an array")
	}
	if empty {
		return nil, invalid(pointer, "state must not be empty")
	}
	text, err := render(order.state)
	if err != nil {
		return nil, refusedText(pointer, err)
	}
	return text, nil
}

func refusedText(pointer string, err error) *refusal {
	message := errBadState.Error()
	if errors.Is(err, errSameNames) {
		message = errSameNames.Error()
	}
	r := refuse(http.StatusUnprocessableEntity, CodeStateUnreadable, "%s", message)
	r.extra.Pointer = pointer
	return r
}

func questionsOf(top map[string]any, order layout) ([]questions.Question, *refusal) {
	const pointer = "/questions"
	all, ok := top["questions"].(map[string]any)
	switch {
	case top["questions"] == nil:
		return nil, invalid(pointer, "questions are required")
	case !ok:
		return nil, invalid(pointer, "questions must be an object")
	case len(all) == 0 || len(all) > questions.MaxQuestions:
		return nil, invalid(pointer, "questions must be 1 to 64")
	}
	asked := make([]questions.Question, 0, len(all))
	for _, id := range order.ids {
		if !idPattern.MatchString(id) {
			return nil, invalid(pointer, "the id of a question must match "+idPattern.String())
		}
		q, r := questionOf(id, all[id], order)
		if r != nil {
			r.extra.Question = id
			return nil, r
		}
		asked = append(asked, q)
	}
	return asked, nil
}

func questionOf(id string, v any, order layout) (questions.Question, *refusal) {
	pointer := "/questions/" + id
	members, r := object(v, pointer, "type", "instructions", "criteria")
	if r != nil {
		return questions.Question{}, r
	}
	q := questions.Question{Name: id}
	if q.Instructions, r = instructionsOf(members, pointer+"/instructions", order.instructions[id]); r != nil {
		return questions.Question{}, r
	}
	pointer += "/criteria"
	switch members["type"] {
	case "noul":
		q.Type = questions.YesNo
		q.WhenTrue, q.WhenFalse, r = outcomesOf(members["criteria"], pointer)
	case "choice":
		q.Type = questions.Choice
		q.Options, r = optionsOf(members["criteria"], pointer, order.options[id])
	case "score":
		q.Type = questions.Score
		q.Levels, r = levelsOf(members["criteria"], pointer)
	default:
		r = invalid("/questions/"+id+"/type", "type must be noul, choice or score")
	}
	return q, r
}

// instructionsOf takes text, or an object or array, which is shown as JSON.
func instructionsOf(members map[string]any, pointer string, raw []byte) (string, *refusal) {
	switch v := members["instructions"].(type) {
	case nil:
		return "", invalid(pointer, "instructions are required")
	case string:
		if strings.TrimSpace(v) == "" {
			return "", invalid(pointer, "instructions must not be empty")
		}
		return v, nil
	case map[string]any, []any:
		text, err := render(raw)
		if err != nil {
			return "", refusedText(pointer, err)
		}
		return string(text), nil
	default:
		return "", invalid(pointer, "instructions must be a string, an object or an array")
	}
}

func outcomesOf(v any, pointer string) (whenTrue, whenFalse string, r *refusal) {
	if v == nil {
		return "", "", nil
	}
	members, r := object(v, pointer, "true", "false")
	if r != nil {
		return "", "", r
	}
	if whenTrue, r = descriptionOf(members["true"], pointer+"/true"); r != nil {
		return "", "", r
	}
	whenFalse, r = descriptionOf(members["false"], pointer+"/false")
	return whenTrue, whenFalse, r
}

// descriptionOf takes text or null, which is the same as no text.
func descriptionOf(v any, pointer string) (string, *refusal) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	default:
		return "", invalid(pointer, "a description must be a string or null")
	}
}

func optionsOf(v any, pointer string, order []string) ([]questions.Option, *refusal) {
	members, ok := v.(map[string]any)
	if !ok {
		return nil, invalid(pointer, "criteria of a choice must be an object from option to description or null")
	}
	if len(members) < 2 || len(members) > questions.MaxOptions {
		return nil, invalid(pointer, "a choice must have 2 to 26 options")
	}
	options := make([]questions.Option, 0, len(order))
	for _, name := range order {
		if !idPattern.MatchString(name) {
			return nil, invalid(pointer, "the name of an option must match "+idPattern.String())
		}
		description, r := descriptionOf(members[name], pointer+"/"+name)
		if r != nil {
			return nil, r
		}
		options = append(options, questions.Option{Name: name, Description: description})
	}
	return options, nil
}

func levelsOf(v any, pointer string) ([]string, *refusal) {
	items, ok := v.([]any)
	if !ok {
		return nil, invalid(pointer, "criteria of a score must be an array of levels, mildest first")
	}
	if len(items) < questions.MinLevels || len(items) > questions.MaxLevels {
		return nil, invalid(pointer, "a score must have 2 to 10 levels")
	}
	levels := make([]string, len(items))
	for i, item := range items {
		text, ok := item.(string)
		if !ok || strings.TrimSpace(text) == "" {
			return nil, invalid(pointer, "a level must be a string that is not empty")
		}
		levels[i] = text
	}
	return levels, nil
}
