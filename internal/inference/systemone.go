package inference

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatewright.dev/gatewright/internal/questions"
)

// SystemOnePath is where servers of typed questions listen.
const SystemOnePath = "/v1/systemone"

// SystemOneOptions configures a SystemOne.
type SystemOneOptions struct {
	ServerOptions
	// Path replaces SystemOnePath; "/" means that BaseURL is the whole address. Empty also means that where BaseURL ends in
	// the name of the model, as on platforms that put the model into the address.
	Path string
	// Own says that the server is a process of this project, which checked the bytes that it loaded: the fingerprint that it
	// states is the decider's as it is, and a reply that states none is refused. Fingerprint must be empty then.
	Own bool
}

// SystemOne asks over the wire of typed questions: state and questions in, one typed answer for each out.
type SystemOne struct {
	endpoint *endpoint
	options  SystemOneOptions
}

// NewSystemOne returns a client, or says which option is wrong.
func NewSystemOne(o SystemOneOptions) (*SystemOne, error) {
	e, err := newEndpoint(o.ServerOptions)
	if err != nil {
		return nil, err
	}
	if o.Own && o.Fingerprint != "" {
		return nil, errors.New("an own server states its fingerprint: leave it out")
	}
	switch o.Path {
	case "":
		if !strings.HasSuffix(strings.TrimSuffix(e.base.Path, "/"), "/"+o.Model) {
			o.Path = SystemOnePath
		}
	case "/":
		o.Path = ""
	}
	return &SystemOne{endpoint: e, options: o}, nil
}

// Decide asks all questions that see the same state in one request.
func (s *SystemOne) Decide(ctx context.Context, r Request) (Result, error) {
	return decide(ctx, r, s.options.Calibration, s.ask)
}

func (s *SystemOne) ask(ctx context.Context, state []byte, group []questions.Question) (Result, error) {
	body, err := systemOneBody(s.options.Model, state, group)
	if err != nil {
		return Result{}, err
	}
	raw, err := s.endpoint.post(ctx, s.options.Path, body, maxReply)
	if err != nil {
		return Result{}, err
	}
	reply, err := parseSystemOne(raw, group)
	if err != nil {
		return Result{}, err
	}
	return s.result(reply, group)
}

// ownFingerprint is how the decider server states it.
var ownFingerprint = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// result checks who answered. A server that names its own fingerprint must name the pinned one.
func (s *SystemOne) result(reply systemOneReply, group []questions.Question) (Result, error) {
	if err := checkModel(reply.model, s.options.expected()); err != nil {
		return Result{}, err
	}
	pinned := s.options.Fingerprint
	if pinned != "" && reply.fingerprint != "" && pinned != reply.fingerprint {
		return Result{}, fail(ModelMismatch, "the reply does not carry the pinned fingerprint")
	}
	for _, q := range group {
		if err := s.options.checkCoverage(q.Name, reply.answers[q.Name].Coverage); err != nil {
			return Result{}, err
		}
	}
	fingerprint := s.options.fingerprint("systemone", reply.fingerprint)
	if s.options.Own {
		if !ownFingerprint.MatchString(reply.fingerprint) {
			return Result{}, fail(ModelMismatch, "the reply carries no fingerprint")
		}
		fingerprint = reply.fingerprint
	}
	return Result{
		Answers: reply.answers, Model: reply.model, Fingerprint: fingerprint,
		InputTokens: reply.inputTokens, OutputTokens: reply.outputTokens,
	}, nil
}

// systemOneBody writes the request with a fixed order of members: servers that render the state as it stands would
// otherwise read another text, and give another number, for the same call.
func systemOneBody(model string, state []byte, group []questions.Question) ([]byte, error) {
	var buf bytes.Buffer
	w := tokenWriter{enc: jsontext.NewEncoder(&buf)}
	w.token(jsontext.BeginObject)
	w.text("model", model)
	w.token(jsontext.String("state"))
	w.value(state)
	w.token(jsontext.String("questions"))
	w.token(jsontext.BeginObject)
	for _, q := range group {
		w.question(q)
	}
	w.token(jsontext.EndObject)
	w.token(jsontext.EndObject)
	if w.err != nil {
		return nil, fail(StateUnreadable, "the request cannot be written as JSON")
	}
	return buf.Bytes(), nil
}

type tokenWriter struct {
	enc *jsontext.Encoder
	err error
}

func (w *tokenWriter) token(t jsontext.Token) {
	if w.err == nil {
		w.err = w.enc.WriteToken(t)
	}
}

func (w *tokenWriter) value(v []byte) {
	if w.err == nil {
		w.err = w.enc.WriteValue(jsontext.Value(v))
	}
}

func (w *tokenWriter) text(key, value string) {
	w.token(jsontext.String(key))
	w.token(jsontext.String(value))
}

var wireTypes = map[questions.Type]string{questions.YesNo: "noul", questions.Choice: "choice", questions.Score: "score"}

func (w *tokenWriter) question(q questions.Question) {
	w.token(jsontext.String(q.Name))
	w.token(jsontext.BeginObject)
	w.text("type", wireTypes[q.Type])
	w.text("instructions", questions.Neutralise(q.Instructions))
	w.criteria(q)
	w.token(jsontext.EndObject)
}

func (w *tokenWriter) criteria(q questions.Question) {
	if q.Type == questions.YesNo && q.WhenTrue == "" && q.WhenFalse == "" {
		return
	}
	w.token(jsontext.String("criteria"))
	if q.Type == questions.Score {
		w.token(jsontext.BeginArray)
		for _, level := range q.Levels {
			w.token(jsontext.String(questions.Neutralise(level)))
		}
		w.token(jsontext.EndArray)
		return
	}
	options := q.Options
	if q.Type == questions.YesNo {
		options = []questions.Option{{Name: "true", Description: q.WhenTrue}, {Name: "false", Description: q.WhenFalse}}
	}
	w.token(jsontext.BeginObject)
	for _, o := range options {
		w.token(jsontext.String(o.Name))
		if o.Description == "" {
			w.token(jsontext.Null)
			continue
		}
		w.token(jsontext.String(questions.Neutralise(o.Description)))
	}
	w.token(jsontext.EndObject)
}
