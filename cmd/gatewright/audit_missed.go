package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/serve"
)

// missed is a call that was allowed and should not have been.
type missed struct {
	ID      string           `json:"id"`
	Tool    string           `json:"tool"`
	Class   string           `json:"class"`
	Reason  string           `json:"reason"`
	By      string           `json:"by"`
	WouldBe []review.WouldBe `json:"wouldBe,omitempty"`
	Bars    []serve.Bar      `json:"bars,omitempty"`
	Stops   []serve.Stop     `json:"stops,omitempty"`
	// NotJudged says why the call could not be judged again.
	NotJudged string `json:"notJudged,omitempty"`
}

func newAuditMissed() *cobra.Command {
	var o replayOptions
	c := &cobra.Command{
		Use: "missed FILE|DIR --manifests DIR --capture-dir DIR", Short: "Show what would have stopped calls that should not have run",
		Long: "Shows each decision that was Allow and that somebody labelled block, with what would have stopped it: what policies in mode\n" +
			"Audit said, what deciders had answered, and which class, rule or source of a value of these policies stops it when the call\n" +
			"is judged again. A call that was not kept shows only what its record holds.\n" +
			"Exit status: 0 if there is none, 3 if there is.",
		Example: "  gatewright audit missed gatewright-audit.jsonl --manifests policies --capture-dir calls --recorded-answers",
		Args:    cobra.ExactArgs(1),
	}
	o.bind(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return o.run(c, func(r *serve.Replayer) (seen, error) {
			all, err := o.missed(c.Context(), r, args[0])
			return seen{all, len(all), func(w io.Writer) error { return printMissed(w, all) }}, err
		})
	}
	return c
}

func (o *replayOptions) missed(ctx context.Context, r *serve.Replayer, path string) ([]missed, error) {
	marks, err := marksOf(ctx, path)
	if err != nil {
		return nil, err
	}
	all := []missed{}
	err = o.decisions(ctx, path, func(e *audit.Entry) error {
		if mark := marks[e.ID]; mark == nil || mark.Outcome != review.Block || e.Outcome != review.Allow {
			return nil
		}
		m := missed{ID: e.ID, Tool: e.Tool, Class: e.Class, Reason: e.Reason, By: e.By, WouldBe: e.WouldBe, Bars: serve.Bars(e)}
		stops, err := r.WhatWouldStop(ctx, e)
		if err != nil {
			m.NotJudged = whyNot(err)
		}
		m.Stops = stops
		all = append(all, m)
		return ctx.Err()
	})
	return all, err
}

func printMissed(w io.Writer, all []missed) error {
	for _, m := range all {
		_, _ = fmt.Fprintf(w, "%s: %s, class %s, was allowed by %s, %s\n", cell(m.ID), cell(m.Tool), cell(m.Class), cell(m.By), cell(m.Reason))
		for _, b := range m.WouldBe {
			_, _ = fmt.Fprintf(w, "  %s in mode Audit said %s, %s\n", cell(b.Policy), cell(string(b.Outcome)), cell(b.Reason))
		}
		for _, b := range m.Bars {
			_, _ = fmt.Fprintf(w, "  %s answered %s to %s for %s: a threshold on it would have decided\n", cell(b.Decider), cell(b.Answer), cell(b.Question), cell(b.Policy))
		}
		for _, s := range m.Stops {
			_, _ = fmt.Fprintf(w, "  %s: %s, %s by %s\n", cell(s.Change), cell(string(s.Outcome)), cell(s.Reason), cell(s.By))
		}
		if m.NotJudged != "" {
			_, _ = fmt.Fprintf(w, "  not judged again: %s\n", cell(m.NotJudged))
		}
	}
	_, err := fmt.Fprintf(w, "%d calls that should not have run\n", len(all))
	return err
}
