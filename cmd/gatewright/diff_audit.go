package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/capture"
	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/serve"
)

// recordSide are decisions about recorded calls, each judged again at its own time.
type recordSide []evaluation.Sided

// Decisions implements evaluation.Side.
func (s recordSide) Decisions() []evaluation.Sided { return s }

// compareRecords judges the calls of an audit log by both folders. What cannot be judged is refused by name, with a count.
func (o *diffOptions) compareRecords(ctx context.Context, stderr io.Writer) (_ *evaluation.Difference, err error) {
	if err := o.records.query.complete(o.now()); err != nil {
		return nil, exit{exitUsage, err.Error()}
	}
	store, err := capture.Open(o.records.kept, capture.Options{Identity: o.records.secret})
	if err != nil {
		return nil, fmt.Errorf("--capture-dir: %w", err)
	}
	labels, err := labelsOf(ctx, o.log)
	if err != nil {
		return nil, err
	}
	o.records.llama = o.llama
	var sides [2]recordSide
	refused := map[string]string{} // why, by decision
	for i, folder := range []string{o.left, o.right} {
		r, err := o.records.replayer(ctx, folder, store, stderr)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
		sides[i], err = o.recordSide(ctx, r, labels, refused)
		r.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
	}
	d := evaluation.Compare(o.left, sides[0], o.right, sides[1])
	counts := map[string]int{}
	for _, why := range refused {
		counts[why]++
	}
	err = printRefused(stderr, counts)
	if d.Compared == 0 {
		err = errors.Join(err, errors.New("no record could be judged by both folders"))
	}
	return d, err
}

func (o *diffOptions) recordSide(ctx context.Context, r *serve.Replayer, labels map[string]evaluation.Label, refused map[string]string) (recordSide, error) {
	var out recordSide
	err := o.records.decisions(ctx, o.log, func(e *audit.Entry) error {
		got, err := r.Judge(ctx, e)
		if err != nil {
			refused[e.ID] = whyNot(err)
			return ctx.Err()
		}
		a := got.Response
		out = append(out, evaluation.Sided{
			Case: e.ID, Label: labels[e.ID], Tool: e.Tool, Base: a.Decision.Base, Outcome: a.Outcome, Reason: a.Reason, By: a.By,
		})
		return ctx.Err()
	})
	return out, err
}

// labelsOf are the last words of people about decisions.
func labelsOf(ctx context.Context, path string) (map[string]evaluation.Label, error) {
	marks, err := marksOf(ctx, path)
	out := map[string]evaluation.Label{}
	for decision, mark := range marks {
		switch mark.Outcome {
		case review.Allow:
			out[decision] = evaluation.LabelAllow
		case review.Block:
			out[decision] = evaluation.LabelBlock
		case review.Clarify, review.Confirm:
		}
	}
	return out, err
}
