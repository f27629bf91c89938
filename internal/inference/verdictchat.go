package inference

import (
	"context"
	"errors"

	"gatewright.dev/gatewright/internal/questions"
)

// VerdictChatOptions configures a VerdictChat.
type VerdictChatOptions struct {
	ServerOptions
	// ContextTokens is the window to ask for; 0 is DefaultContextTokens.
	ContextTokens int
	// Predict is the most tokens of the answer; 0 is a generous default, below 64 is an error.
	Predict int
	// Temperature at which answers are drawn, at most MaxTemperature. 0, as every gate has it: the likeliest answer.
	Temperature float64
}

// VerdictChat asks a chat model behind Ollama's /api/chat for a verdict in forced JSON. It answers only the question
// verdict, and without a probability.
type VerdictChat struct {
	endpoint *endpoint
	options  VerdictChatOptions
}

// NewVerdictChat returns a client, or says which option is wrong.
func NewVerdictChat(o VerdictChatOptions) (*VerdictChat, error) {
	if o.ContextTokens == 0 {
		o.ContextTokens = DefaultContextTokens
	}
	var err error
	if o.Predict, err = predictTokens(o.Predict); err != nil {
		return nil, err
	}
	if err := checkTemperature(o.Temperature); err != nil {
		return nil, err
	}
	e, err := newEndpoint(o.ServerOptions)
	if err != nil {
		return nil, err
	}
	return &VerdictChat{endpoint: e, options: o}, nil
}

func predictTokens(n int) (int, error) {
	switch {
	case n == 0:
		return defaultPredict, nil
	case n < minPredict:
		return 0, errors.New("fewer than 64 tokens cut the verdict short")
	default:
		return n, nil
	}
}

// Decide asks for the verdict; any other question is refused before anything is sent.
func (v *VerdictChat) Decide(ctx context.Context, r Request) (Result, error) {
	return decide(ctx, r, nil, v.ask)
}

func (v *VerdictChat) ask(ctx context.Context, state []byte, group []questions.Question) (Result, error) {
	q, err := onlyVerdict(group)
	if err != nil {
		return Result{}, err
	}
	body, err := encode(map[string]any{
		"model": v.options.Model, "stream": false, "think": false, "format": verdictSchema(q), "messages": verdictMessages(q, state),
		"truncate": false, "shift": false, "keep_alive": "24h",
		"options": map[string]any{
			"temperature": v.options.Temperature, "seed": seedOf(v.options.Temperature), "num_predict": v.options.Predict, "num_ctx": v.options.ContextTokens,
		},
	})
	if err != nil {
		return Result{}, err
	}
	raw, err := v.endpoint.post(ctx, "/api/chat", body, maxReply)
	if err != nil {
		return Result{}, err
	}
	var reply ollamaReply
	if err := decode(raw, &reply); err != nil {
		return Result{}, err
	}
	// The window must hold the answer too.
	if err := reply.check(v.options.expected(), len(state)+len(verdictPrompt(q)), v.options.ContextTokens-v.options.Predict); err != nil {
		return Result{}, err
	}
	switch {
	case reply.DoneReason == "length":
		return Result{}, fail(CutReply, "the verdict was cut")
	case reply.DoneReason != "stop" || reply.Message.Role != "assistant":
		return Result{}, fail(BadReply, "the verdict is nobody's")
	}
	a, err := parseVerdict(reply.Message.Content, q)
	if err != nil {
		return Result{}, err
	}
	return Result{Answers: questions.Answers{q.Name: a}, Model: reply.Model, Fingerprint: v.options.fingerprint("verdict-chat"),
		InputTokens: reply.PromptTokens, OutputTokens: reply.OutputTokens}, nil
}
