package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatewright.dev/gatewright/internal/questions"
)

// kind is what is asked over and over, each time of another call.
type kind struct {
	name      string
	state     func(n int) string
	questions []question
	// again needs a call of the same tool before it.
	again bool
}

type question struct{ name, instructions string }

var shortQuestions = []question{
	{"asked", "Did the user ask for this call?"}, {"money", "Would money move?"}, {"same", "Is it the order that the user means?"},
}

var kinds = []kind{
	{name: "new state, one question", state: newState, questions: shortQuestions[:1]},
	{name: "new state, three questions", state: newState, questions: shortQuestions},
	{name: "same tool again, one question", state: sameTool, questions: shortQuestions[:1], again: true},
	{name: "new state, one built-in question", state: newState, questions: builtIn("asked")},
	{name: "new state, three built-in questions", state: newState, questions: builtIn("asked", "declined", "matches_request")},
}

func builtIn(names ...string) []question {
	var out []question
	for _, name := range names {
		q, ok := questions.Builtin(name)
		if !ok {
			panic("no question " + name)
		}
		out = append(out, question{name, q.Instructions})
	}
	return out
}

var asked int

// serial numbers the calls, so that no state is seen twice.
func serial() int { asked++; return asked }

// newState differs from every other one at its beginning, sameTool only after the policy's line and the tool.
func newState(n int) string {
	return state(n, fmt.Sprintf("Rule %d. Refunds above 100 need a manager.", n))
}
func sameTool(n int) string { return state(n, "Refunds above 100 need a manager.") }

// turns are what users say. No two of them begin alike, nor do they in a shop.
var turns = []string{
	"The lamp of order %d arrived broken, please give me my money back.",
	"Order %d came without its shade, I want the money for it.",
	"Please refund order %d, it is not the lamp that I asked for.",
	"I sent the lamp of order %d back last week, where is my money?",
}

// state is a call of about 200 tokens.
func state(n int, note string) string {
	text, err := questions.RenderState(questions.State{
		Tool: questions.Tool{
			Name: "refund_order", Server: "shop", Class: "money", Note: note,
			Description: "Refunds an order to the card that paid for it. The amount must not exceed what was paid. A refund cannot be taken back, " +
				"so look the order up first and tell the customer how many days it takes until the money arrives. Never refund an order that was never paid, and never to another card than the one that paid.",
		},
		UserTurns: []string{fmt.Sprintf(turns[n%len(turns)], 1000+n)},
		Arguments: map[string]any{"order": 1000 + n, "amount": 40},
		Facts:     questions.Facts{SchemaValid: questions.True},
	})
	if err != nil {
		panic(err) // the state is a constant but for a number
	}
	return string(text)
}

// body sends the state as text, which both servers show to the model as it is.
func body(state func(int) string, asked []question, n int) []byte {
	all := map[string]any{}
	for _, q := range asked {
		all[q.name] = map[string]string{"type": "noul", "instructions": q.instructions}
	}
	text, err := json.Marshal(map[string]any{"state": state(n), "questions": all})
	if err != nil {
		panic(err) // all of it is text
	}
	return text
}

type row struct {
	kind       kind
	ours, peer []sample
}

type table struct {
	rows  []row
	first []sample
}

func wall(s sample) time.Duration { return s.wall }
func cpu(s sample) time.Duration  { return s.cpu }

func tokens(s sample) int   { return s.tokens }
func computed(s sample) int { return s.tokens - s.reused }

// quantile of one figure.
func quantile[T cmp.Ordered](all []sample, of func(sample) T, q float64) T {
	values := make([]T, len(all))
	for i, s := range all {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[int(q*float64(len(values)-1)+0.5)]
}

// ms is a quantile in milliseconds.
func ms(all []sample, of func(sample) time.Duration, q float64) float64 {
	return float64(quantile(all, of, q).Microseconds()) / 1000
}

// ratio is the median of the ratios of processor time, round by round.
func ratio(a, b []sample) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = float64(a[i].cpu) / float64(b[i].cpu)
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

func (t *table) row(name string) row {
	i := slices.IndexFunc(t.rows, func(r row) bool { return r.kind.name == name })
	return t.rows[i]
}

// bar is something that must hold, as a ratio of two figures.
type bar struct {
	name        string
	ratio, most float64
}

// bars compare processor time, which other work on the machine moves least.
func (t *table) bars() []bar {
	one, three, again := t.row(kinds[0].name), t.row(kinds[1].name), t.row(kinds[2].name)
	return []bar{
		{"three questions against one", ratio(three.ours, one.ours), 1.4},
		{"one question against llama-server", ratio(one.ours, one.peer), 1},
		{"three questions against llama-server", ratio(three.ours, three.peer), 1},
		{"the same tool again against a new state", ratio(again.ours, one.ours), 0.5},
		{"the same tool again against llama-server", ratio(again.ours, again.peer), 1},
		{"the first call after a start against the 95th percentile of warm ones", ms(t.first, cpu, 0.5) / ms(one.ours, cpu, 0.95), 1.2},
	}
}

// write gives the table, and the names of the bars that are missed.
func (t *table) write(o *options) (text string, missed []string) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Decider server beside llama-server\n\n%s.\n\n", machine())
	fmt.Fprintf(&b, "Gemma 3 270M in Q4_K_M, %d thread(s) each, %d requests of each kind in turns, the same prompts token for token. The peer is\n"+
		"llama-server b11434 with `--swa-full -np 1 --poll 0`. Milliseconds of processor time (median) and on the clock (median, least);\n"+
		"ratios are taken round by round, and their median is shown.\n\n", o.threads, o.rounds)
	b.WriteString("| request | tokens, computed by the decider | decider, CPU | llama-server, CPU | decider, clock | llama-server, clock |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, r := range t.rows {
		fmt.Fprintf(&b, "| %s | %d, %d | %.0f | %.0f | %.0f, %.0f | %.0f, %.0f |\n", r.kind.name, quantile(r.ours, tokens, 0.5), quantile(r.ours, computed, 0.5),
			ms(r.ours, cpu, 0.5), ms(r.peer, cpu, 0.5), ms(r.ours, wall, 0.5), ms(r.ours, wall, 0), ms(r.peer, wall, 0.5), ms(r.peer, wall, 0))
	}
	fmt.Fprintf(&b, "| first call after a start | %d, %d | %.0f | | %.0f, %.0f | |\n\n", quantile(t.first, tokens, 0.5), quantile(t.first, computed, 0.5),
		ms(t.first, cpu, 0.5), ms(t.first, wall, 0.5), ms(t.first, wall, 0))
	b.WriteString("| bar, by processor time | measured | at most | |\n| --- | --- | --- | --- |\n")
	for _, x := range t.bars() {
		verdict := "holds"
		if !(x.ratio <= x.most) {
			verdict = "missed"
			missed = append(missed, x.name)
		}
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %s |\n", x.name, x.ratio, x.most, verdict)
	}
	return b.String(), missed
}
