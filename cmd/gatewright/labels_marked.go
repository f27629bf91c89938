package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/evaluation"
)

// markedCalls are decisions of an audit log that somebody marked.
type markedCalls struct {
	log  string
	kept keptCalls
}

// export writes each with the last word about it. What would be no case by itself is refused by name, and the rest is written.
func (m *markedCalls) export(ctx context.Context, out, errs io.Writer, texts bool) error {
	if m.log == "" || texts != (m.kept.folder != "") {
		return exit{exitUsage, "--capture-dir is for --audit with --texts, which needs it: the log has digests only"}
	}
	if err := m.kept.open(); err != nil {
		return err
	}
	marks, err := marksOf(ctx, m.log)
	if err != nil {
		return err
	}
	decisions := replayOptions{}
	refused := 0
	err = decisions.decisions(ctx, m.log, func(e *audit.Entry) error {
		mark, ok := marks[e.ID]
		if !ok {
			return nil
		}
		line, err := m.lineOf(e, mark, texts)
		if err != nil {
			refused++
			_, err = fmt.Fprintf(errs, "%s is not exported: %s\n", cell(e.ID), cell(whyNot(err)))
			return err
		}
		return writeLine(out, line)
	})
	if err != nil {
		return err
	}
	if refused > 0 {
		return exit{exitError, fmt.Sprintf("%d marked decisions were not exported", refused)}
	}
	return nil
}

// markedSource is what cases name as where they come from if their tool has no server.
const markedSource = "audit"

func (m *markedCalls) lineOf(e *audit.Entry, mark *audit.Label, texts bool) (any, error) {
	label := map[review.Outcome]evaluation.Label{review.Allow: evaluation.LabelAllow, review.Block: evaluation.LabelBlock}[mark.Outcome]
	class := caseClasses[e.Base]
	if label == "" || class == "" {
		return nil, fmt.Errorf("label %q or class %q is unknown", mark.Outcome, e.Base)
	}
	if !texts {
		return digestLabel{
			ID: e.ID, Source: markedSource, Tool: evaluation.Tool{Name: e.Tool}, Class: class, Label: label, ArgumentsDigest: e.ArgumentsDigest,
			UserTurnsDigest: e.UserTurnsDigest, PolicyDigest: e.PolicyDigest, DecidedBy: mark.By,
		}, nil
	}
	s, err := m.kept.call(e)
	if err != nil {
		return nil, err
	}
	said := s.Request.Context
	if said.Attestation != "" {
		return nil, errors.New("a front door attested it, which a case cannot be")
	}
	out := evaluation.Case{
		ID: e.ID, Source: markedSource, Kind: string(e.Outcome), UserRequest: said.UserRequest, Conversation: []evaluation.Turn{},
		Tool: evaluation.Tool{Name: e.Tool}, Arguments: s.Request.Arguments, Facts: said.Facts, Class: class, Label: label, Why: "marked by " + mark.By,
	}
	if s.Request.Tool.Server != "" {
		out.Source = s.Request.Tool.Server
	}
	for _, message := range said.Messages {
		out.Conversation = append(out.Conversation, evaluation.Turn{Role: string(message.Role), Content: message.Content})
	}
	return out, checkCase(&out)
}

// marksOf are the last words of people about decisions.
func marksOf(ctx context.Context, path string) (map[string]*audit.Label, error) {
	parts, err := audit.Parts(path)
	if err != nil {
		return nil, err
	}
	out := map[string]*audit.Label{}
	err = audit.QueryParts(ctx, parts, audit.Filter{Kind: audit.KindLabel}, func(e audit.Entry) error {
		if e.Label != nil {
			out[e.Label.Decision] = e.Label
		}
		return nil
	})
	if errors.Is(err, audit.ErrTorn) {
		err = nil // a gate may be writing the last line
	}
	return out, err
}
