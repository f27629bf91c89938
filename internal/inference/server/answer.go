package server

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/questions"
)

// sumTolerance absorbs the rounding of adding up 26 doubles, and nothing else: an engine does not round.
const sumTolerance = 1e-6

// checkReply says whether a reply is exactly one distribution for each question. A fault is a bug of the engine.
func checkReply(asked []questions.Question, reply engine.Reply) error {
	if len(reply.Distributions) != len(asked) {
		return fmt.Errorf("the engine answered %d of %d questions", len(reply.Distributions), len(asked))
	}
	if reply.PromptTokens < 0 || reply.ReusedTokens < 0 || reply.ReusedTokens > reply.PromptTokens {
		return errors.New("the engine counted its tokens wrongly")
	}
	for i, d := range reply.Distributions {
		if len(d.Probabilities) != len(asked[i].PromptLabels()) {
			return fmt.Errorf("question %s: the engine gave %d probabilities for %d labels", asked[i].Name, len(d.Probabilities), len(asked[i].PromptLabels()))
		}
		sum := 0.0
		for _, p := range append([]float64{d.Coverage}, d.Probabilities...) {
			if math.IsNaN(p) || p < 0 || p > 1+sumTolerance {
				return fmt.Errorf("question %s: the engine gave a number that is no probability", asked[i].Name)
			}
		}
		for _, p := range d.Probabilities {
			sum += p
		}
		if math.Abs(sum-1) > sumTolerance {
			return fmt.Errorf("question %s: the engine's probabilities do not sum to 1", asked[i].Name)
		}
	}
	return nil
}

// answerBody writes the reply to a request. Answers stand in the order of the questions, probabilities in that of the
// options, and no number is rounded.
func answerBody(info engine.Info, asked []questions.Question, reply engine.Reply) ([]byte, error) {
	var buf bytes.Buffer
	w := writer{enc: jsontext.NewEncoder(&buf)}
	w.put(jsontext.BeginObject)
	w.text("model", info.Model)
	w.text("fingerprint", info.Fingerprint)
	w.text("sha256", info.SHA256)
	w.open("answers")
	for i, q := range asked {
		w.answer(q, reply.Distributions[i])
	}
	w.put(jsontext.EndObject)
	w.open("usage")
	w.count("input_tokens", reply.PromptTokens)
	w.count("output_tokens", len(asked))
	w.count("reused_tokens", reply.ReusedTokens)
	w.put(jsontext.EndObject)
	w.put(jsontext.EndObject)
	return buf.Bytes(), w.err
}

// writer keeps the first error.
type writer struct {
	enc *jsontext.Encoder
	err error
}

func (w *writer) put(t jsontext.Token) {
	if w.err == nil {
		w.err = w.enc.WriteToken(t)
	}
}

func (w *writer) key(name string) { w.put(jsontext.String(name)) }

func (w *writer) open(name string) {
	w.key(name)
	w.put(jsontext.BeginObject)
}

func (w *writer) text(name, value string) {
	w.key(name)
	w.put(jsontext.String(value))
}

func (w *writer) count(name string, n int) {
	w.key(name)
	w.put(jsontext.Int(int64(n)))
}

// number writes what is a probability but for the last bit of its sum.
func (w *writer) number(name string, f float64) {
	w.key(name)
	w.put(jsontext.Float(f))
}

func (w *writer) answer(q questions.Question, d engine.Distribution) {
	p := make([]float64, len(d.Probabilities))
	for i := range p {
		p[i] = min(d.Probabilities[i], 1)
	}
	a := q.FromDistribution(p, min(d.Coverage, 1))
	w.open(q.Name)
	switch q.Type {
	case questions.YesNo:
		w.text("type", "noul")
		w.number("noul", a.Probability)
	case questions.Choice:
		w.text("type", "choice")
		w.text("choice", a.Choice)
		w.number("confidence", choiceConfidence(p))
		w.probabilities(q, p)
	case questions.Score:
		w.text("type", "score")
		w.number("score", a.Score)
		w.number("confidence", scoreConfidence(p))
		w.open("legend")
		for i, level := range q.Levels {
			w.text(strconv.Itoa(i), level)
		}
		w.put(jsontext.EndObject)
		w.probabilities(q, p)
	default:
		w.err = errors.New("a question has no type")
	}
	w.number("coverage", a.Coverage)
	w.put(jsontext.EndObject)
}

func (w *writer) probabilities(q questions.Question, p []float64) {
	w.open("probabilities")
	for i, label := range q.Labels() {
		w.number(label, p[i])
	}
	w.put(jsontext.EndObject)
}

// choiceConfidence is 0 where all of N options are equally likely and 1 where one is certain: (N*top - 1) / (N - 1).
func choiceConfidence(p []float64) float64 {
	top := 0.0
	for _, v := range p {
		top = max(top, v)
	}
	n := float64(len(p))
	return unit((n*top - 1) / (n - 1))
}

// scoreConfidence compares the mean distance from the likeliest level with that of levels drawn evenly from the middle
// of the scale: 1 if one level is certain, 0 if the answer is spread as widely or more.
func scoreConfidence(p []float64) float64 {
	mode := 0
	for i, v := range p {
		if v > p[mode] {
			mode = i
		}
	}
	n := float64(len(p))
	distance, even := 0.0, 0.0
	for i, v := range p {
		distance += v * math.Abs(float64(i-mode))
		even += math.Abs(float64(i)-(n-1)/2) / n
	}
	return unit(1 - distance/even)
}

func unit(f float64) float64 { return max(0, min(f, 1)) }
