package inference

import (
	"context"

	"gatewright.dev/gatewright/internal/questions"
)

// LlamaServerOptions configures a LlamaServer. Model is the alias of the served model or the name of its file.
type LlamaServerOptions struct {
	ServerOptions
	// Slots is how many slots the server has (its -np); 0 means one. A request keeps one slot for all its questions.
	Slots int
}

// LlamaServer reads any chat model behind llama-server by the probability of the next token being a label. Untrusted text
// is tokenised apart, as plain text, so that nothing in it can become a control token.
type LlamaServer struct {
	endpoint *endpoint
	options  LlamaServerOptions
	slots    chan int
	layouts  layoutCache
}

// depths are how many of the likeliest tokens are asked for, in turn, until all labels are among them.
var depths = []int{256, 4096, 32768}

// NewLlamaServer returns a client, or says which option is wrong.
func NewLlamaServer(o LlamaServerOptions) (*LlamaServer, error) {
	o.ServerOptions = withLabelCoverage(o.ServerOptions)
	e, err := newEndpoint(o.ServerOptions)
	if err != nil {
		return nil, err
	}
	// Tokens travel as numbers, so bodies are longer than the text: up to ten bytes for each.
	limit := e.maxBody
	e.maxBody = 16 * limit
	l := &LlamaServer{endpoint: e, options: o, slots: make(chan int, max(o.Slots, 1))}
	l.options.MaxBody = limit
	for i := range cap(l.slots) {
		l.slots <- i
	}
	return l, nil
}

// Decide asks the questions one by one on one slot, which keeps the state between them.
func (l *LlamaServer) Decide(ctx context.Context, r Request) (Result, error) {
	select {
	case slot := <-l.slots:
		defer func() { l.slots <- slot }()
		return decide(ctx, r, l.options.Calibration, func(ctx context.Context, state []byte, group []questions.Question) (Result, error) {
			return l.ask(ctx, slot, state, group)
		})
	case <-ctx.Done():
		return Result{}, asError(ctx, ctx.Err())
	}
}

func (l *LlamaServer) ask(ctx context.Context, slot int, state []byte, group []questions.Question) (Result, error) {
	if len(state) > l.options.MaxBody {
		return Result{}, fail(TooLong, "state has %d bytes, the limit is %d", len(state), l.options.MaxBody)
	}
	lay, err := l.layout(ctx)
	if err != nil {
		return Result{}, err
	}
	result, err := l.answers(ctx, slot, state, group, lay)
	return result, afterSending(err)
}

func (l *LlamaServer) answers(ctx context.Context, slot int, state []byte, group []questions.Question, lay *layout) (Result, error) {
	shown, err := l.tokenize(ctx, questions.StateBlock(state), false, false)
	if err != nil {
		return Result{}, err
	}
	result := Result{Answers: questions.Answers{}, Model: l.options.expected(), Fingerprint: lay.fingerprint}
	for _, q := range group {
		asked, err := l.tokenize(ctx, q.QuestionBlock(), false, false)
		if err != nil {
			return Result{}, err
		}
		prompt := concat(lay.head, shown, asked, lay.tail)
		a, err := l.read(ctx, slot, prompt, q, lay)
		if err != nil {
			return Result{}, err
		}
		result.Answers[q.Name] = a
		result.InputTokens += len(prompt)
		result.OutputTokens++
	}
	return result, nil
}

func concat(parts ...[]int) []int {
	var all []int
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// read asks deeper until every label is listed. A label that never shows up has no number, and none is made up.
func (l *LlamaServer) read(ctx context.Context, slot int, prompt []int, q questions.Question, lay *layout) (questions.Answer, error) {
	labels := q.PromptLabels()
	for _, label := range labels {
		if _, ok := lay.labels[label]; !ok {
			return questions.Answer{}, fail(QuestionNotSupported, "question %s: label %s is not one token of this model", q.Name, label)
		}
	}
	for _, depth := range depths {
		seen, listed, err := l.complete(ctx, slot, prompt, depth, lay)
		if err != nil {
			return questions.Answer{}, err
		}
		logprobs, all := pick(labels, seen)
		if all {
			a, err := labelAnswer(q, logprobs)
			if err != nil {
				return questions.Answer{}, err
			}
			return a, l.options.checkCoverage(q.Name, a.Coverage)
		}
		if listed < depth {
			break // the whole vocabulary was listed
		}
	}
	return questions.Answer{}, fail(LowCoverage, "question %s: a label is not among the likeliest tokens", q.Name)
}

func pick(labels []string, seen map[string]float64) ([]float64, bool) {
	var logprobs []float64
	for _, label := range labels {
		lp, ok := seen[label]
		if !ok {
			return nil, false
		}
		logprobs = append(logprobs, lp)
	}
	return logprobs, true
}

type completionRequest struct {
	Prompt      []int    `json:"prompt"`
	NPredict    int      `json:"n_predict"`
	Temperature float64  `json:"temperature"`
	Samplers    []string `json:"samplers"`
	NProbs      int      `json:"n_probs"`
	CachePrompt bool     `json:"cache_prompt"`
	IDSlot      int      `json:"id_slot"`
	Seed        int      `json:"seed"`
	Stream      bool     `json:"stream"`
}

type completionReply struct {
	Model         string `json:"model"`
	Truncated     *bool  `json:"truncated"`
	Probabilities []struct {
		Top []struct {
			ID      *int     `json:"id"`
			Token   string   `json:"token"`
			LogProb *float64 `json:"logprob"`
		} `json:"top_logprobs"`
	} `json:"completion_probabilities"`
}

// complete returns the log-probabilities of the labels among the likeliest tokens, and how many tokens were listed.
// They are over the full vocabulary and from before sampling, which is why no grammar is set: it would not change them.
func (l *LlamaServer) complete(ctx context.Context, slot int, prompt []int, depth int, lay *layout) (map[string]float64, int, error) {
	body, err := encode(completionRequest{Prompt: prompt, NPredict: 1, Samplers: []string{}, NProbs: depth, CachePrompt: true, IDSlot: slot, Seed: 1})
	if err != nil {
		return nil, 0, err
	}
	// One listed token takes about 100 bytes: id, text, bytes and number.
	raw, err := l.endpoint.post(ctx, "/completion", body, max(maxReply, depth*200))
	if err != nil {
		return nil, 0, err
	}
	var reply completionReply
	if err := decode(raw, &reply); err != nil {
		return nil, 0, err
	}
	if reply.Truncated != nil && *reply.Truncated {
		return nil, 0, fail(TooLong, "the server read only part of the prompt")
	}
	if reply.Truncated == nil || len(reply.Probabilities) != 1 || len(reply.Probabilities[0].Top) == 0 {
		return nil, 0, fail(BadReply, "the reply has no probabilities for exactly one token")
	}
	if reply.Model != "" && !lay.isNamed(reply.Model) {
		return nil, 0, fail(ModelMismatch, "the reply does not carry the pinned model name")
	}
	return lay.match(reply)
}

// match finds labels by token id and insists on their text: another tokenizer would give the id to another text.
func (lay *layout) match(reply completionReply) (map[string]float64, int, error) {
	seen := map[string]float64{}
	for _, t := range reply.Probabilities[0].Top {
		if t.ID == nil {
			return nil, 0, fail(BadReply, "a listed token has no id")
		}
		label, ok := lay.byID[*t.ID]
		if !ok {
			continue
		}
		if t.Token != label {
			return nil, 0, fail(ModelMismatch, "the token of a label stands for another text")
		}
		if _, twice := seen[label]; twice || t.LogProb == nil {
			return nil, 0, fail(BadReply, "a label is listed twice or without a number")
		}
		seen[label] = *t.LogProb
	}
	return seen, len(reply.Probabilities[0].Top), nil
}
