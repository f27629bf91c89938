package inference

import (
	"context"
	"slices"

	"gatewright.dev/gatewright/internal/questions"
)

// OllamaOptions configures an Ollama.
type OllamaOptions struct {
	ServerOptions
	// Head and Tail are what the model's chat format writes before and after a user's message; ChatML gives the commonest.
	Head, Tail string
	// ContextTokens is the window to ask for; 0 is DefaultContextTokens.
	ContextTokens int
}

const (
	// DefaultContextTokens holds a state at the default body limit in all but the worst cases, and those are refused.
	DefaultContextTokens = 16384
	// topLogprobs is the most that the server gives.
	topLogprobs = 20
	// maxBytesPerToken: text has three to five bytes a token. A prompt that seems to have had more was cut by the server,
	// which older versions do without a word.
	maxBytesPerToken = 8
)

// ChatML returns the head and tail of the chat format of that name, with an empty passage of thought so that a model
// which would think first answers at once.
func ChatML() (head, tail string) {
	return "<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
}

// Ollama reads any model behind Ollama by the probability of the next token being a label. The server lists 20 tokens and
// no more: a label outside of them means that the question was not answered.
type Ollama struct {
	endpoint *endpoint
	options  OllamaOptions
}

// NewOllama returns a client, or says which option is wrong.
func NewOllama(o OllamaOptions) (*Ollama, error) {
	o.ServerOptions = withLabelCoverage(o.ServerOptions)
	if o.ContextTokens == 0 {
		o.ContextTokens = DefaultContextTokens
	}
	e, err := newEndpoint(o.ServerOptions)
	if err != nil {
		return nil, err
	}
	return &Ollama{endpoint: e, options: o}, nil
}

// Decide asks the questions one by one; the server keeps the state between them where it can.
func (o *Ollama) Decide(ctx context.Context, r Request) (Result, error) {
	return decide(ctx, r, o.options.Calibration, o.ask)
}

func (o *Ollama) ask(ctx context.Context, state []byte, group []questions.Question) (Result, error) {
	result := Result{
		Answers: questions.Answers{}, Model: o.options.expected(),
		Fingerprint: o.options.fingerprint("ollama-labels", o.options.Head, o.options.Tail),
	}
	for _, q := range group {
		reply, err := o.generate(ctx, state, q)
		if len(result.Answers) > 0 {
			err = afterSending(err)
		}
		if err != nil {
			return Result{}, err
		}
		a, err := reply.answer(q)
		if err != nil {
			return Result{}, err
		}
		if err := o.options.checkCoverage(q.Name, a.Coverage); err != nil {
			return Result{}, err
		}
		result.Answers[q.Name] = a
		result.InputTokens += reply.PromptTokens
		result.OutputTokens += reply.OutputTokens
	}
	return result, nil
}

type ollamaReply struct {
	Model        string `json:"model"`
	Done         bool   `json:"done"`
	DoneReason   string `json:"done_reason"`
	PromptTokens int    `json:"prompt_eval_count"`
	OutputTokens int    `json:"eval_count"`
	Logprobs     []struct {
		Top []struct {
			Token   string   `json:"token"`
			LogProb *float64 `json:"logprob"`
		} `json:"top_logprobs"`
	} `json:"logprobs"`
	Message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"message"`
}

func (o *Ollama) generate(ctx context.Context, state []byte, q questions.Question) (ollamaReply, error) {
	prompt := o.options.Head + questions.Instruction + "\n\n" + questions.StateBlock(state) + q.QuestionBlock() + o.options.Tail + questions.Cue
	body, err := encode(map[string]any{
		"model": o.options.Model, "prompt": prompt, "raw": true, "stream": false, "think": false,
		"logprobs": true, "top_logprobs": topLogprobs, "truncate": false, "shift": false, "keep_alive": "24h",
		"options": map[string]any{"temperature": 0, "num_predict": 1, "seed": 1, "num_ctx": o.options.ContextTokens},
	})
	if err != nil {
		return ollamaReply{}, err
	}
	raw, err := o.endpoint.post(ctx, "/api/generate", body, maxReply)
	if err != nil {
		return ollamaReply{}, err
	}
	var reply ollamaReply
	if err := decode(raw, &reply); err != nil {
		return ollamaReply{}, err
	}
	return reply, reply.check(o.options.expected(), len(prompt), o.options.ContextTokens)
}

// check says whether the pinned model read the whole prompt.
func (r ollamaReply) check(model string, promptBytes, window int) error {
	if err := checkModel(r.Model, model); err != nil {
		return err
	}
	switch {
	case !r.Done:
		return fail(CutReply, "the reply is not finished")
	case r.PromptTokens <= 0:
		return fail(BadReply, "the reply does not say how much was read")
	case r.PromptTokens+2 > window || r.PromptTokens*maxBytesPerToken < promptBytes:
		return fail(TooLong, "the server may have read only part of the prompt")
	default:
		return nil
	}
}

func (r ollamaReply) answer(q questions.Question) (questions.Answer, error) {
	if len(r.Logprobs) != 1 || len(r.Logprobs[0].Top) == 0 {
		return questions.Answer{}, fail(BadReply, "question %s: no probabilities for exactly one token", q.Name)
	}
	labels, seen := q.PromptLabels(), map[string]float64{}
	for _, t := range r.Logprobs[0].Top {
		if !slices.Contains(labels, t.Token) {
			continue // half a character and another half may have the same text
		}
		if _, twice := seen[t.Token]; twice || t.LogProb == nil {
			return questions.Answer{}, fail(BadReply, "question %s: a label is listed twice or without a number", q.Name)
		}
		seen[t.Token] = *t.LogProb
	}
	logprobs, all := pick(labels, seen)
	if !all {
		return questions.Answer{}, fail(LowCoverage, "question %s: a label is not among the likeliest tokens", q.Name)
	}
	return labelAnswer(q, logprobs)
}
