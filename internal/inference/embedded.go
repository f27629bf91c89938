package inference

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"gatewright.dev/gatewright/internal/inference/judge"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/models"
)

// EmbeddedName is the name of the bundled model file.
const EmbeddedName = models.JudgeName

// Embedded is the decider inside the gate: it computes its answers and waits for nothing.
type Embedded struct {
	judge       *judge.Judge
	fingerprint string
}

// LoadEmbedded reads the bundled model file, which takes some milliseconds: load it once.
func LoadEmbedded() (*Embedded, error) {
	m, err := judge.Load(models.Judge)
	if err != nil {
		return nil, err
	}
	return NewEmbedded(judge.New(m)), nil
}

// EmbeddedFingerprint is the fingerprint of the bundled judge, without loading it.
func EmbeddedFingerprint() string {
	sum := sha256.Sum256(models.Judge)
	return embeddedFingerprint(EmbeddedName, hex.EncodeToString(sum[:]))
}

func embeddedFingerprint(name, hash string) string {
	return fingerprintOf(append([]string{name, hash}, judge.Versions()...)...)
}

// NewEmbedded makes a decider of a judge.
func NewEmbedded(j *judge.Judge) *Embedded {
	return &Embedded{judge: j, fingerprint: embeddedFingerprint(j.Name(), j.Hash())}
}

// Fingerprint identifies the model file and everything else that an answer depends on.
func (e *Embedded) Fingerprint() string { return e.fingerprint }

// ModelHash is the SHA-256 of the model file, in hexadecimal: what a DeciderModel pins.
func (e *Embedded) ModelHash() string { return e.judge.Hash() }

// Name is the name of the model.
func (e *Embedded) Name() string { return e.judge.Name() }

// Explain says which facts drove the answers to a request, the most strongest of each.
func (e *Embedded) Explain(r *Request, most int) ([]judge.Drivers, error) {
	return e.judge.Explain(&r.State, r.Questions, most)
}

// Decide answers at once. A request with a question that the judge does not answer is refused whole.
func (e *Embedded) Decide(ctx context.Context, r Request) (Result, error) {
	if err := r.validate(); err != nil {
		return Result{}, err
	}
	for _, q := range r.Questions {
		if !e.judge.Answers(q) {
			return Result{}, fail(QuestionNotSupported, "%s does not answer %s", e.judge.Name(), q.Name)
		}
	}
	if err := ctx.Err(); err != nil {
		return Result{}, asError(ctx, err)
	}
	answers, err := e.judge.Answer(&r.State, r.Questions)
	switch {
	case errors.Is(err, judge.ErrTooLong):
		return Result{}, fail(TooLong, "%v", err)
	case err != nil:
		return Result{}, fail(StateUnreadable, "%v", err)
	}
	if err := questions.CheckAll(r.Questions, answers); err != nil {
		return Result{}, fail(BadReply, "%v", err)
	}
	return Result{Answers: answers, Model: e.judge.Name(), Fingerprint: e.fingerprint}, nil
}
