package gate

import (
	"fmt"
	"time"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/policy/sources"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/strictjson"
)

// pendingCall is what the person sees: exactly the arguments that would run, who asks for it in which words, and why the
// person is asked.
func (d *decision) pendingCall() (approval.Call, error) {
	r, j := &d.in.request, d.judgement
	arguments, err := strictjson.Canonical(redact(r.Arguments, d.terms.Sensitive))
	if err != nil {
		return approval.Call{}, fmt.Errorf("writing arguments: %w", err)
	}
	b := d.binding()
	b.ConfirmReasons = d.verdict.ConfirmKeys()
	call := approval.Call{
		Binding: b, Message: j.ConfirmMessage(), ToolDescription: j.ToolDescription(), UserRequest: d.words.latest,
		Arguments: arguments, Sensitive: d.terms.Sensitive, Sources: sourceTexts(j.Sources()),
		Reasons: confirmReasons(&d.verdict), InbandClaims: d.claims, Fingerprint: d.fingerprint, Policies: d.policies,
		CaptureState: string(d.terms.CaptureState), Approvers: d.gate.approvers(j.Approvers()), RaisedAt: r.Now,
		ExpiresAt: r.Now.Add(time.Duration(d.terms.Approvals.TTLSeconds) * time.Second),
	}
	call.Class, call.Base = j.Class()
	call.Answers, call.Probabilities = answerTexts(j)
	call.EarlierTurns, call.OmittedTurns = readable(d.words.earlier)
	return call, nil
}

// maxEarlierTurns is how many bytes of earlier turns a person is shown, beside the latest: about two pages.
const maxEarlierTurns = 8 << 10

// readable keeps the newest turns that a person will read, whole, and says how many it leaves out.
func readable(turns []string) (shown []string, omitted int) {
	first, size := len(turns), 0
	for first > 0 && size+len(turns[first-1]) <= maxEarlierTurns {
		first--
		size += len(turns[first])
	}
	return turns[first:], first
}

// confirmReasons are the reasons to ask, in parts and in words.
func confirmReasons(v *policy.Verdict) []approval.Reason {
	var out []approval.Reason
	for _, o := range v.Obligations {
		if o.Outcome == policy.Confirm {
			out = append(out, approval.Reason{Key: o.Key(), Policy: o.Policy, By: o.By, Reason: string(o.Reason), Message: o.Message})
		}
	}
	return out
}

func sourceTexts(findings []sources.Finding) map[string]string {
	out := make(map[string]string, len(findings))
	for _, f := range findings {
		out[f.Pointer] = string(f.Certain())
	}
	return out
}

// answerTexts are the decider's answers in words, and the number behind each: the probability of yes or of the choice,
// or the level.
func answerTexts(j *policy.Judgement) (texts map[string]string, numbers map[string]float64) {
	answers, _ := j.Answers()
	texts, numbers = make(map[string]string, len(answers)), make(map[string]float64, len(answers))
	for name, a := range answers {
		switch a.Type {
		case questions.YesNo:
			texts[name], numbers[name] = fmt.Sprintf("yes %.0f %%", a.Probability*100), a.Probability
		case questions.Choice:
			texts[name] = a.Choice
			if p, ok := a.Probabilities[a.Choice]; ok {
				texts[name], numbers[name] = fmt.Sprintf("%s %.0f %%", a.Choice, p*100), p
			}
		case questions.Score:
			texts[name], numbers[name] = fmt.Sprintf("level %.2f", a.Score), a.Score
		}
	}
	return texts, numbers
}
