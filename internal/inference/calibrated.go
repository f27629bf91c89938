package inference

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"gatewright.dev/gatewright/internal/questions"
)

// Calibrated applies temperatures to the answers of a decider. They were fitted for one fingerprint and are applied to no
// other: a number belongs to its model.
type Calibrated struct {
	// Decider answers without temperatures of its own.
	Decider Decider
	// For is the fingerprint that it must have.
	For string
	// Temperatures by type of question.
	Temperatures Calibration
}

// CalibratedFingerprint is the fingerprint of a decider with these temperatures, of which neutral ones do not count.
func CalibratedFingerprint(base string, t Calibration) string {
	parts := []string{"calibrated", base}
	for _, kind := range slices.Sorted(maps.Keys(t)) {
		if milli := t[kind]; milli != 0 && milli != 1000 {
			parts = append(parts, string(kind)+"="+strconv.Itoa(milli))
		}
	}
	if len(parts) == 2 {
		return base
	}
	return fingerprintOf(parts...)
}

// Decide implements Decider. An answer of another fingerprint is ModelMismatch.
func (c *Calibrated) Decide(ctx context.Context, r Request) (Result, error) {
	result, err := c.Decider.Decide(ctx, r)
	if err != nil {
		return Result{}, err
	}
	if result.Fingerprint != c.For {
		return Result{}, fail(ModelMismatch, "the calibration is for another fingerprint than the one that answered")
	}
	answers := make(questions.Answers, len(r.Questions))
	for _, q := range r.Questions {
		answers[q.Name] = q.Calibrate(result.Answers[q.Name], c.Temperatures[q.Type])
	}
	if err := questions.CheckAll(r.Questions, answers); err != nil {
		return Result{}, fail(BadReply, "after calibration: %v", err)
	}
	result.Answers, result.Fingerprint = answers, CalibratedFingerprint(c.For, c.Temperatures)
	return result, nil
}
