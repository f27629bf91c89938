package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spf13/cobra"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
)

// auditSample draws decisions for a person to look at.
type auditSample struct {
	query    auditQuery
	kept     keptCalls
	perClass int
	seed     uint64
}

func newAuditSample() *cobra.Command {
	var s auditSample
	c := &cobra.Command{
		Use: "sample FILE|DIR", Short: "Draw decisions for a person to mark",
		Long: "Draws so many decisions of each class and outcome, each with the same chance, so that a rare class is looked at as much as\n" +
			"a common one. The same seed draws the same decisions from the same log. With --capture-dir each call is shown as\n" +
			"it was judged, with what its user said. Mark each with gatewright label.",
		Example: "  gatewright audit sample gatewright-audit.jsonl --per-class 5 --since 168h --capture-dir calls",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if s.perClass < 1 {
				return exit{exitUsage, "--per-class: want a number from 1"}
			}
			s.query.filter.Kind = audit.KindDecision
			if err := s.query.complete(time.Now()); err != nil {
				return exit{exitUsage, err.Error()}
			}
			if s.kept.folder != "" && s.query.output != formatTable {
				return exit{exitUsage, "--capture-dir shows calls to a person: leave out --output"}
			}
			if err := s.kept.open(); err != nil {
				return err
			}
			return s.run(c.Context(), c.OutOrStdout(), args[0])
		},
	}
	f := c.Flags()
	f.IntVar(&s.perClass, "per-class", 10, "how many of each class and outcome")
	f.Uint64Var(&s.seed, "seed", 1, "of the draw")
	f.StringSliceVar(&s.query.outcomes, "outcome", []string{string(review.Allow), string(review.Confirm)}, "outcomes to draw from")
	f.StringVar(&s.query.filter.Caller, "caller", "", "NAMESPACE/NAME of the service account")
	f.StringVar(&s.query.since, "since", "", "from then on: a time as in RFC 3339, or how long ago, as in 168h")
	f.StringVar(&s.query.until, "until", "", "before then, in the same form")
	s.kept.bind(c, ", to show each call with what its user said; they are private")
	addOutput(c, &s.query.output)
	return c
}

// stratum is what is drawn from by itself.
type stratum struct {
	class   string
	outcome review.Outcome
	seen    int
	drawn   []audit.Entry
}

func (s *auditSample) run(ctx context.Context, w io.Writer, path string) error {
	parts, err := audit.Parts(path)
	if err != nil {
		return err
	}
	strata := map[string]*stratum{}
	random := rand.New(rand.NewPCG(s.seed, 0)) //nolint:gosec // a draw that can be repeated, not a secret
	err = audit.QueryParts(ctx, parts, s.query.filter, func(e audit.Entry) error {
		key := e.Class + "\x00" + string(e.Outcome)
		if strata[key] == nil {
			strata[key] = &stratum{class: e.Class, outcome: e.Outcome}
		}
		strata[key].offer(random, s.perClass, e)
		return nil
	})
	if err != nil && !errors.Is(err, audit.ErrTorn) { // a gate may be writing the last line
		return err
	}
	return s.print(w, strata)
}

// offer keeps each of those seen with the same chance (a reservoir).
func (s *stratum) offer(random *rand.Rand, n int, e audit.Entry) {
	s.seen++
	if len(s.drawn) < n {
		s.drawn = append(s.drawn, e)
		return
	}
	if i := random.IntN(s.seen); i < n {
		s.drawn[i] = e
	}
}

func (s *auditSample) print(w io.Writer, strata map[string]*stratum) error {
	var all []*stratum
	for _, x := range strata {
		slices.SortFunc(x.drawn, func(a, b audit.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b *stratum) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.outcome, b.outcome))
	})
	if s.query.output == formatTable {
		if err := printSample(w, all); err != nil || s.kept.store == nil {
			return err
		}
		return s.showAll(w, all)
	}
	show, err := s.query.output.records(w)
	if err != nil {
		return err
	}
	for _, x := range all {
		for i := range x.drawn {
			if err := show(&x.drawn[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *auditSample) showAll(w io.Writer, all []*stratum) error {
	for _, x := range all {
		for i := range x.drawn {
			if err := s.kept.show(w, &x.drawn[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func printSample(w io.Writer, all []*stratum) error {
	t := columns{w: w, widths: []int{len("019b0000-0000-7000-8000-000000000000"), 11, 7, 16, 16, 9}}
	if err := t.print([]string{"DECISION", "CLASS", "OUTCOME", "TOOL", "CALLER", "KEPT", "REASON"}); err != nil {
		return err
	}
	for _, x := range all {
		for i := range x.drawn {
			e := &x.drawn[i]
			row := []string{cell(e.ID), cell(e.Class), cell(string(e.Outcome)), cell(e.Tool), cell(e.Caller.Namespace + "/" + e.Caller.ServiceAccount), cell(cmp.Or(e.Captured, "no")), cell(e.Reason)}
			if err := t.print(row); err != nil {
				return err
			}
		}
	}
	for _, x := range all {
		if _, err := fmt.Fprintf(w, "%s %s: %d of %d\n", cell(cmp.Or(x.class, "no class")), cell(string(x.outcome)), len(x.drawn), x.seen); err != nil {
			return err
		}
	}
	return nil
}
