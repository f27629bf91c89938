package inference

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"gatewright.dev/gatewright/internal/questions"
)

// OpenAIChatOptions configures an OpenAIChat.
type OpenAIChatOptions struct {
	ServerOptions
	// Predict is the most tokens of the answer; 0 is a generous default, below 64 is an error.
	Predict int
	// Temperature at which answers are drawn, at most MaxTemperature. 0, as every gate has it: the likeliest answer.
	Temperature float64
}

// OpenAIChat asks a general chat model for a verdict over /v1/chat/completions, in JSON forced by a schema. It answers
// only the question verdict, and without a probability.
type OpenAIChat struct {
	endpoint *endpoint
	options  OpenAIChatOptions
}

// NewOpenAIChat returns a client, or says which option is wrong.
func NewOpenAIChat(o OpenAIChatOptions) (*OpenAIChat, error) {
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
	return &OpenAIChat{endpoint: e, options: o}, nil
}

// Decide asks for the verdict; any other question is refused before anything is sent.
func (o *OpenAIChat) Decide(ctx context.Context, r Request) (Result, error) {
	return decide(ctx, r, nil, o.ask)
}

type chatReply struct {
	Model   string `json:"model"`
	Choices []struct {
		FinishReason string `json:"finish_reason"`
		Message      struct {
			Role      string         `json:"role"`
			Content   string         `json:"content"`
			Refusal   jsontext.Value `json:"refusal"`
			ToolCalls jsontext.Value `json:"tool_calls"`
		} `json:"message"`
	} `json:"choices"`
	Usage struct {
		PromptTokens     uint32 `json:"prompt_tokens"`
		CompletionTokens uint32 `json:"completion_tokens"`
	} `json:"usage"`
}

func (o *OpenAIChat) ask(ctx context.Context, state []byte, group []questions.Question) (Result, error) {
	q, err := onlyVerdict(group)
	if err != nil {
		return Result{}, err
	}
	body, err := encode(map[string]any{
		"model": o.options.Model, "stream": false, "max_tokens": o.options.Predict, "n": 1,
		"temperature": o.options.Temperature, "seed": seedOf(o.options.Temperature), "messages": verdictMessages(q, state),
		"response_format": map[string]any{"type": "json_schema",
			"json_schema": map[string]any{"name": VerdictQuestion, "strict": true, "schema": verdictSchema(q)}},
	})
	if err != nil {
		return Result{}, err
	}
	raw, err := o.endpoint.post(ctx, "/v1/chat/completions", body, maxReply)
	if err != nil {
		return Result{}, err
	}
	var reply chatReply
	if err := decode(raw, &reply); err != nil {
		return Result{}, err
	}
	a, err := reply.verdict(q, o.options.expected())
	if err != nil {
		return Result{}, err
	}
	return Result{Answers: questions.Answers{q.Name: a}, Model: reply.Model, Fingerprint: o.options.fingerprint("openai-chat"),
		InputTokens: int(reply.Usage.PromptTokens), OutputTokens: int(reply.Usage.CompletionTokens)}, nil
}

func (r chatReply) verdict(q questions.Question, model string) (questions.Answer, error) {
	if err := checkModel(r.Model, model); err != nil {
		return questions.Answer{}, err
	}
	if len(r.Choices) != 1 {
		return questions.Answer{}, fail(BadReply, "the reply has not exactly one choice")
	}
	c := r.Choices[0]
	if c.FinishReason == "length" {
		return questions.Answer{}, fail(CutReply, "the verdict was cut")
	}
	if c.FinishReason != "stop" || c.Message.Role != "assistant" || !isAbsent(c.Message.Refusal, `""`) || !isAbsent(c.Message.ToolCalls, `[]`) {
		return questions.Answer{}, fail(BadReply, "the verdict was refused, or is something else")
	}
	return parseVerdict(c.Message.Content, q)
}

// isAbsent takes null and the given empty value for absent.
func isAbsent(v jsontext.Value, empty string) bool {
	return len(v) == 0 || string(v) == "null" || string(v) == empty
}
