package inference

import (
	"github.com/go-json-experiment/json/jsontext"

	"gatewright.dev/gatewright/internal/questions"
)

// systemOneReply is a reply whose answers are exactly those asked for.
type systemOneReply struct {
	answers                   questions.Answers
	model, fingerprint        string
	inputTokens, outputTokens int
}

type wireReply struct {
	Model       string                    `json:"model"`
	Fingerprint string                    `json:"fingerprint"`
	Answers     map[string]jsontext.Value `json:"answers"`
	Truncated   jsontext.Value            `json:"truncated"`
	Usage       struct {
		InputTokens  uint32 `json:"input_tokens"`
		OutputTokens uint32 `json:"output_tokens"`
	} `json:"usage"`
	Success *bool          `json:"success"`
	Result  jsontext.Value `json:"result"`
}

// wireAnswer has no confidence: servers compute it by formulas that do not agree. Truncated and Coverage are extensions.
type wireAnswer struct {
	Type          string         `json:"type"`
	Noul          *float64       `json:"noul"`
	Choice        *string        `json:"choice"`
	Score         *float64       `json:"score"`
	Probabilities jsontext.Value `json:"probabilities"`
	Coverage      *float64       `json:"coverage"`
	Truncated     jsontext.Value `json:"truncated"`
}

// parseSystemOne returns all answers asked for and no other, or an error. It unwraps one envelope with a result member.
func parseSystemOne(body []byte, asked []questions.Question) (systemOneReply, error) {
	var reply wireReply
	if err := decode(body, &reply); err != nil {
		return systemOneReply{}, err
	}
	if reply.Answers == nil && reply.Result != nil {
		if reply.Success != nil && !*reply.Success {
			return systemOneReply{}, fail(BadReply, "the envelope says that the call failed")
		}
		envelope := reply
		reply = wireReply{}
		if err := decode(envelope.Result, &reply); err != nil {
			return systemOneReply{}, err
		}
		if wasCut(envelope.Truncated) {
			return systemOneReply{}, fail(TooLong, "the server read only part of the request")
		}
	}
	if wasCut(reply.Truncated) {
		return systemOneReply{}, fail(TooLong, "the server read only part of the request")
	}
	answers, err := parseAnswers(reply.Answers, asked)
	if err != nil {
		return systemOneReply{}, err
	}
	return systemOneReply{answers: answers, model: reply.Model, fingerprint: reply.Fingerprint,
		inputTokens: int(reply.Usage.InputTokens), outputTokens: int(reply.Usage.OutputTokens)}, nil
}

// wasCut takes everything but an absent, null or false flag for a yes.
func wasCut(flag jsontext.Value) bool {
	return len(flag) > 0 && string(flag) != "false" && string(flag) != "null"
}

func parseAnswers(raw map[string]jsontext.Value, asked []questions.Question) (questions.Answers, error) {
	if len(raw) != len(asked) {
		return nil, fail(BadReply, "%d questions were asked and %d answered", len(asked), len(raw))
	}
	answers := make(questions.Answers, len(asked))
	for _, q := range asked {
		value, ok := raw[q.Name]
		if !ok {
			return nil, fail(BadReply, "question %s: answer is missing", q.Name)
		}
		a, err := parseAnswer(value, q)
		if err != nil {
			return nil, err
		}
		answers[q.Name] = a
	}
	if err := questions.CheckAll(asked, answers); err != nil {
		return nil, fail(BadReply, "%v", err)
	}
	return answers, nil
}

func parseAnswer(value jsontext.Value, q questions.Question) (questions.Answer, error) {
	var w wireAnswer
	if err := decode(value, &w); err != nil {
		return questions.Answer{}, fail(BadReply, "question %s: answer is not the expected JSON", q.Name)
	}
	if wasCut(w.Truncated) {
		return questions.Answer{}, fail(TooLong, "question %s: the server read only part of the request", q.Name)
	}
	if w.Type != wireTypes[q.Type] {
		return questions.Answer{}, fail(BadReply, "question %s: answer has another type", q.Name)
	}
	a := questions.Answer{Type: q.Type, Coverage: 1}
	if w.Coverage != nil {
		a.Coverage = *w.Coverage
	}
	if w.fill(&a) {
		return a, nil
	}
	return questions.Answer{}, fail(BadReply, "question %s: answer lacks its value or its probabilities", q.Name)
}

// fill copies what the answer's type needs, and says whether all of it was there.
func (w wireAnswer) fill(a *questions.Answer) bool {
	if a.Type == questions.YesNo {
		if w.Noul == nil {
			return false
		}
		a.Probability = *w.Noul
		return true
	}
	var numbers map[string]*float64
	if w.Probabilities == nil || decode(w.Probabilities, &numbers) != nil {
		return false
	}
	a.Probabilities = make(map[string]float64, len(numbers))
	for label, p := range numbers {
		if p == nil {
			return false
		}
		a.Probabilities[label] = *p
	}
	switch {
	case a.Type == questions.Choice && w.Choice != nil:
		a.Choice = *w.Choice
		return true
	case a.Type == questions.Score && w.Score != nil:
		a.Score = *w.Score
		return true
	default:
		return false
	}
}
