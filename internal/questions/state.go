package questions

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Truth is a fact that code may not know. Its zero value is unknown, which is never taken for true.
type Truth string

// The values of a Truth.
const (
	Unknown Truth = ""
	True    Truth = "true"
	False   Truth = "false"
)

// Where a value in the arguments was first seen.
const (
	SourceUser    = "User"
	SourceFacts   = "Facts"
	SourceTool    = "Tool"
	SourceSchema  = "Schema"
	SourceNowhere = "Nowhere"
	// SourcePartly is a value of which only a part was found anywhere.
	SourcePartly = "Partly"
)

// State is everything that a decider sees of one proposed call.
type State struct {
	Tool Tool
	// Arguments is a tree of map[string]any, []any, string, int, int64, float64, bool and nil.
	Arguments any
	// UserTurns are the user's own words, the latest last.
	UserTurns []string
	// System is what the agent was told to be.
	System []string
	Facts  Facts
	// ToolResults reach only questions that ask for them.
	ToolResults []string
	// Language is the BCP 47 tag of the user's words, empty if it is not known. It is not part of the rendered state.
	Language string
	// Messages are what assistant and tools said before the call, in order. They are for deciders that compute from them
	// and read nothing; they are never rendered.
	Messages []Message
}

// The roles of a Message.
const (
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// CallPrefix begins a message of the assistant that is a call and no text: "[tool call] NAME {arguments}".
const CallPrefix = "[tool call] "

// Message is what somebody other than the user said. Text of a tool is untrusted.
type Message struct {
	Role, Text string
	// Refused says of a call that the gate did not let it run: it explains no value of a later call.
	Refused bool
}

// Tool describes the tool that is to be called, as policy and server have it.
type Tool struct {
	Name, Server, Description string
	// Note is the policy's own line about this tool.
	Note    string
	Class   string
	Effects []string
}

// Facts are what code knows about the call, so that no model has to guess it.
type Facts struct {
	ScopesHeld, ScopesRequired []string
	SchemaValid                Truth
	ArgumentSources            []ArgumentSource
	// Stated are facts that the caller states, as a tree like the arguments.
	Stated map[string]any
}

// ArgumentSource says where the value at a JSON pointer into the arguments was first seen.
type ArgumentSource struct {
	Pointer, Source string
	// PartOf is where a value stands of which only a part was found. It is not rendered.
	PartOf string
}

// maxDepth bounds how deep arguments may nest. The strictest server known stops near 100 levels in all.
const maxDepth = 64

// RenderState writes the state as one line of JSON, byte for byte the same for the same state. Nothing is left out or
// cut: a state that cannot be written whole is an error, and whether it fits is for the caller to say by its length.
//
// What stays the same from call to call comes first, so that a server can keep the work it did for that part: policy,
// tool, agent and caller, then the conversation, then the latest words, then the call and where its values come from. Whether
// the arguments fit their schema comes first too: it is the same for nearly all calls of one tool about which a decider is asked.
func RenderState(s State) ([]byte, error) {
	var buf bytes.Buffer
	w := writer{enc: jsontext.NewEncoder(&buf)}
	w.begin()
	w.text("policy_note", s.Tool.Note)
	w.tool(s.Tool)
	w.texts("agent_instructions", s.System, false)
	w.facts(s.Facts)
	w.conversation(s.UserTurns)
	w.texts("tool_results", s.ToolResults, s.ToolResults != nil)
	w.call(s)
	w.end()
	if w.err != nil {
		return nil, fmt.Errorf("rendering state: %w", w.err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// Render returns the state as the given question may see it.
func Render(s State, q Question) ([]byte, error) {
	if !q.SeesToolResults {
		s.ToolResults = nil
	} else if s.ToolResults == nil {
		s.ToolResults = []string{}
	}
	return RenderState(s)
}

// writer keeps the first error, so that the layout above reads as a list.
type writer struct {
	enc *jsontext.Encoder
	err error
}

func (w *writer) tool(t Tool) {
	w.key("tool")
	w.begin()
	w.text("name", t.Name)
	w.text("server", t.Server)
	w.text("class", t.Class)
	w.texts("effects", slices.Sorted(slices.Values(t.Effects)), false)
	w.text("description", t.Description)
	w.end()
}

func (w *writer) facts(f Facts) {
	w.key("caller")
	w.begin()
	w.texts("scopes_required", slices.Sorted(slices.Values(f.ScopesRequired)), true)
	w.texts("scopes_held", slices.Sorted(slices.Values(f.ScopesHeld)), true)
	w.end()
	if len(f.Stated) > 0 {
		w.key("stated_facts")
		w.tree(f.Stated, 0)
	}
	w.key("arguments_fit_schema")
	w.truth(f.SchemaValid)
}

// conversation keeps the latest turn apart: it is what the call answers.
func (w *writer) conversation(turns []string) {
	if len(turns) == 0 {
		w.key("user_request")
		w.put(jsontext.Null)
		return
	}
	last := len(turns) - 1
	w.texts("earlier_user_turns", turns[:last], false)
	w.key("user_request")
	w.put(w.str(turns[last]))
}

func (w *writer) call(s State) {
	w.key("proposed_call")
	w.begin()
	w.text("tool", s.Tool.Name)
	w.key("arguments")
	w.tree(s.Arguments, 0)
	w.key("argument_sources")
	w.begin()
	for _, source := range s.Facts.ArgumentSources {
		w.key(source.Pointer)
		w.put(w.str(source.Source))
	}
	w.end()
	w.end()
}

func (w *writer) truth(t Truth) {
	switch t {
	case True:
		w.put(jsontext.True)
	case False:
		w.put(jsontext.False)
	case Unknown:
		w.put(jsontext.String("unknown"))
	default:
		w.fail(errors.New("a fact is neither true, false nor unknown"))
	}
}

func (w *writer) tree(v any, depth int) {
	if depth > maxDepth {
		w.fail(fmt.Errorf("nested deeper than %d levels", maxDepth))
		return
	}
	switch v := v.(type) {
	case map[string]any:
		w.begin()
		for _, key := range slices.Sorted(maps.Keys(v)) {
			w.key(key)
			w.tree(v[key], depth+1)
		}
		w.end()
	case []any:
		w.put(jsontext.BeginArray)
		for _, item := range v {
			w.tree(item, depth+1)
		}
		w.put(jsontext.EndArray)
	default:
		w.put(w.scalar(v))
	}
}

func (w *writer) scalar(v any) jsontext.Token {
	switch v := v.(type) {
	case nil:
		return jsontext.Null
	case bool:
		return jsontext.Bool(v)
	case string:
		return w.str(v)
	case int:
		return jsontext.Int(int64(v))
	case int64:
		return jsontext.Int(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			w.fail(errors.New("a number is not finite"))
			return jsontext.Null
		}
		return jsontext.Float(v)
	default:
		w.fail(fmt.Errorf("a value has the unexpected type %T", v))
		return jsontext.Null
	}
}

// text leaves an empty member out: absent and empty mean the same for these.
func (w *writer) text(key, value string) {
	if value == "" {
		return
	}
	w.key(key)
	w.put(w.str(value))
}

func (w *writer) texts(key string, values []string, always bool) {
	if len(values) == 0 && !always {
		return
	}
	w.key(key)
	w.put(jsontext.BeginArray)
	for _, v := range values {
		w.put(w.str(v))
	}
	w.put(jsontext.EndArray)
}

// key also refuses two names that became the same by neutralising: the encoder does not write a name twice.
func (w *writer) key(name string) { w.put(w.str(name)) }

func (w *writer) str(s string) jsontext.Token {
	if !utf8.ValidString(s) {
		w.fail(errors.New("a text is not valid UTF-8"))
		return jsontext.String("")
	}
	return jsontext.String(Neutralise(s))
}

func (w *writer) begin() { w.put(jsontext.BeginObject) }
func (w *writer) end()   { w.put(jsontext.EndObject) }

// put drops the encoder's own message, which quotes the name or value that it stumbled over.
func (w *writer) put(t jsontext.Token) {
	if w.err == nil && w.enc.WriteToken(t) != nil {
		w.err = errors.New("two names in one object are the same for the model")
	}
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}
