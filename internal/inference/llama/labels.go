package llama

import (
	"bytes"
	"context"
	"fmt"
	"unicode/utf8"

	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/questions"
)

// readable refuses what the tokenizer cannot hold, and what is too long by its bytes alone: even if every token were the
// longest word of the vocabulary it would not fit, and splitting it into words would take time for nothing.
func (e *Engine) readable(state []byte) error {
	if !utf8.Valid(state) || bytes.IndexByte(state, 0) >= 0 {
		return &engine.Error{Reason: engine.Unreadable, Detail: "the state is not UTF-8 or holds a NUL"}
	}
	if n := len(state)/e.description.longestWord + 1; n > e.info.ContextTokens {
		return tooLong("", n, e.info.ContextTokens)
	}
	return nil
}

func tooLong(question string, tokens, limit int) error {
	return &engine.Error{
		Reason: engine.TooLong, Question: question, Tokens: tokens, Limit: limit,
		Detail: fmt.Sprintf("at least %d tokens, the window has %d", tokens, limit),
	}
}

// askLabels lays out all prompts before it computes the first, so that what does not fit costs nothing.
func (e *Engine) askLabels(ctx context.Context, state []byte, asked []questions.Question) (engine.Reply, error) {
	shared, seams, err := e.layout.shared(e.network, state)
	if err != nil {
		return engine.Reply{}, err
	}
	prompts := make([]prompt, len(asked))
	for i, q := range asked {
		own, err := e.layout.own(e.network, q)
		if err != nil {
			return engine.Reply{}, err
		}
		prompts[i] = e.layout.prompt(shared, own, seams)
		if n := len(prompts[i].tokens); n > e.info.ContextTokens {
			return engine.Reply{}, tooLong(q.Name, n, e.info.ContextTokens)
		}
	}
	var reply engine.Reply
	for i, q := range asked {
		reused, err := e.compute(ctx, prompts[i])
		if err != nil {
			return engine.Reply{}, err
		}
		d, err := e.read(q)
		if err != nil {
			return engine.Reply{}, err
		}
		reply.Distributions = append(reply.Distributions, d)
		reply.PromptTokens += len(prompts[i].tokens)
		reply.ReusedTokens += reused
	}
	return reply, nil
}

// compute brings the cache to the end of the prompt and returns how many tokens lay there already.
func (e *Engine) compute(ctx context.Context, p prompt) (reused int, err error) {
	n := e.computed.common(p)
	reused = e.computed.keep(n)
	if err := e.network.cut(reused); err != nil {
		return 0, e.lost(ctx, err)
	}
	for ; n < len(p.ends); n++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		at := len(e.computed.tokens)
		piece := p.tokens[at:p.ends[n]]
		if err := e.network.extend(piece, at, n == len(p.ends)-1); err != nil {
			return 0, e.lost(ctx, err)
		}
		e.computed.add(piece)
	}
	return reused, nil
}

// lost forgets the cache, of which nobody knows what it holds now. A computation that was stopped did not fail.
func (e *Engine) lost(ctx context.Context, err error) error {
	e.computed.keep(0)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return failed(err)
}

func (e *Engine) read(q questions.Question) (engine.Distribution, error) {
	scores, err := e.network.logits()
	if err != nil {
		return engine.Distribution{}, failed(err)
	}
	letters := q.PromptLabels()
	labels := make([]token, len(letters))
	for i, letter := range letters {
		labels[i] = e.layout.labels[letter]
	}
	p, coverage, ok := readLabels(scores, labels, e.temperature(q.Type))
	if !ok {
		return engine.Distribution{}, &engine.Error{Reason: engine.Failed, Question: q.Name, Detail: "the model gave a score that is no number"}
	}
	if coverage < e.minCoverage {
		return engine.Distribution{}, &engine.Error{
			Reason: engine.LowCoverage, Question: q.Name,
			Detail: fmt.Sprintf("the answers hold %.3f of the probability, at least %.3f is asked for", coverage, e.minCoverage),
		}
	}
	return engine.Distribution{Probabilities: p, Coverage: coverage}, nil
}
