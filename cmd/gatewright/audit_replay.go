package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/capture"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/serve"
)

// replayOptions say by what recorded calls are judged again.
type replayOptions struct {
	query                   auditQuery
	manifests, kept, secret string
	recorded                bool
	llama                   serve.LlamaConfig
}

func (o *replayOptions) bind(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.manifests, "manifests", "", "folder with the policies to judge by (required)")
	f.StringVar(&o.kept, "capture-dir", "", "folder that serve keeps calls in (required)")
	f.StringVar(&o.secret, "capture-key", "", "file with the private key, for calls that are kept encrypted")
	f.BoolVar(&o.recorded, "recorded-answers", false, "go by what deciders said at the time, and ask none")
	addLlama(c, &o.llama)
	f.StringVar(&o.query.since, "since", "", "from then on: a time as in RFC 3339, or how long ago, as in 168h")
	f.StringVar(&o.query.until, "until", "", "before then, in the same form")
	f.StringVar(&o.query.filter.ID, "id", "", "id of one decision, or uid of its request")
	f.StringVar(&o.query.filter.Tool, "tool", "", "name of the tool, or a prefix and a star")
	addOutput(c, &o.query.output)
}

// open completes the options and makes a replayer.
func (o *replayOptions) open(c *cobra.Command) (*serve.Replayer, error) {
	if o.manifests == "" || o.kept == "" {
		return nil, exit{exitUsage, "--manifests and --capture-dir are required: name the policies to judge by, and the calls that were kept"}
	}
	if err := o.query.complete(time.Now()); err != nil {
		return nil, exit{exitUsage, err.Error()}
	}
	store, err := capture.Open(o.kept, capture.Options{Identity: o.secret})
	if err != nil {
		return nil, fmt.Errorf("--capture-dir: %w", err)
	}
	return o.replayer(c.Context(), o.manifests, store, c.ErrOrStderr())
}

// seen is what a command has found in a log: how much, and how it is printed for people.
type seen struct {
	report any
	found  int
	print  func(io.Writer) error
}

// run lets a command look at recorded calls and prints what it has seen. The exit status says whether that is anything.
func (o *replayOptions) run(c *cobra.Command, look func(*serve.Replayer) (seen, error)) error {
	r, err := o.open(c)
	if err != nil {
		return err
	}
	defer r.Close()
	s, err := look(r)
	if err != nil {
		return err
	}
	if err := o.query.output.print(c.OutOrStdout(), s.report, s.print); err != nil {
		return err
	}
	if s.found > 0 {
		return exit{exitNotAllow, ""}
	}
	return nil
}

// replayer judges kept calls by the policies of a folder.
func (o *replayOptions) replayer(ctx context.Context, folder string, kept *capture.Store, stderr io.Writer) (*serve.Replayer, error) {
	return serve.NewReplayer(ctx, serve.ReplayOptions{
		Manifests: folder, Kept: kept, Recorded: o.recorded, Llama: o.llama, Log: warnings(stderr),
	})
}

// Change is a decision that would be another one now.
type change struct {
	ID     string  `json:"id"`
	Tool   string  `json:"tool"`
	Caller string  `json:"caller"`
	Was    verdict `json:"was"`
	Is     verdict `json:"is"`
	// Looser says that the call would now run, or run without a person.
	Looser bool `json:"looser"`
}

type verdict struct {
	Outcome review.Outcome `json:"outcome"`
	Reason  string         `json:"reason"`
	By      string         `json:"by"`
}

// replayReport is what audit replay prints.
type replayReport struct {
	Judged  int      `json:"judged"`
	Same    int      `json:"same"`
	Changes []change `json:"changes"`
	// Refused counts records that could not be judged again, by why.
	Refused map[string]int `json:"refused"`
}

func newAuditReplay() *cobra.Command {
	var o replayOptions
	c := &cobra.Command{
		Use: "replay FILE|DIR --manifests DIR --capture-dir DIR", Short: "Judge recorded calls by other policies",
		Long: "Judges the calls of a log again, each at its own time, by the policies and deciders of a folder, and lists what changes.\n" +
			"It needs the calls themselves (captureState in the policy, --capture-dir of serve); records that hold digests only are\n" +
			"refused and counted. What a person decided is not replayed: an approved call counts as unchanged if it still needs one.\n" +
			"Exit status: 0 if nothing changes, 3 if something does.",
		Example: "  gatewright audit replay gatewright-audit.jsonl --manifests new --capture-dir calls",
		Args:    cobra.ExactArgs(1),
	}
	o.bind(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return o.run(c, func(r *serve.Replayer) (seen, error) {
			report, err := o.replay(c.Context(), r, args[0])
			if err != nil {
				return seen{}, err
			}
			return seen{report, len(report.Changes), func(w io.Writer) error { return printReplay(w, report) }}, nil
		})
	}
	return c
}

func (o *replayOptions) replay(ctx context.Context, r *serve.Replayer, path string) (*replayReport, error) {
	report := &replayReport{Refused: map[string]int{}, Changes: []change{}}
	err := o.decisions(ctx, path, func(e *audit.Entry) error {
		now, err := r.Judge(ctx, e)
		if err != nil {
			report.Refused[whyNot(err)]++
			return ctx.Err()
		}
		report.Judged++
		is := verdict{now.Response.Outcome, now.Response.Reason, now.Response.By}
		if sameVerdict(e, is) {
			report.Same++
			return nil
		}
		report.Changes = append(report.Changes, change{
			ID: e.ID, Tool: e.Tool, Caller: e.Caller.Namespace + "/" + e.Caller.ServiceAccount,
			Was: verdict{e.Outcome, e.Reason, e.By}, Is: is, Looser: rank(is.Outcome) < rank(e.Outcome),
		})
		return nil
	})
	slices.SortStableFunc(report.Changes, func(a, b change) int {
		return cmp.Compare(rank(a.Is.Outcome)-rank(a.Was.Outcome), rank(b.Is.Outcome)-rank(b.Was.Outcome))
	})
	return report, err
}

// decisions calls each with the selected decisions of a log.
func (o *replayOptions) decisions(ctx context.Context, path string, each func(*audit.Entry) error) error {
	parts, err := audit.Parts(path)
	if err != nil {
		return err
	}
	filter := o.query.filter
	filter.Kind = audit.KindDecision
	err = audit.QueryParts(ctx, parts, filter, func(e audit.Entry) error { return each(&e) })
	if errors.Is(err, audit.ErrTorn) {
		return nil // a gate may be writing the last line
	}
	return err
}

// rank orders outcomes: a smaller one lets more through.
func rank(o review.Outcome) int {
	return slices.Index([]review.Outcome{review.Allow, review.Confirm, review.Clarify, review.Block}, o)
}

// sameVerdict leaves out what a person decided: with an approval a call was allowed, and without one it waits for one.
func sameVerdict(e *audit.Entry, is verdict) bool {
	if e.Approval != nil && (e.Outcome == review.Allow || e.Outcome == review.Confirm || e.Reason == "ApprovalRejected") {
		return is.Outcome == review.Confirm
	}
	return e.Outcome == is.Outcome
}

// whyNot names why a record could not be judged again.
func whyNot(err error) string {
	for _, known := range []error{serve.ErrDigestOnly, serve.ErrNotJudged, capture.ErrNotFound, capture.ErrNoKey, capture.ErrCorrupt, gate.ErrOtherState} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return err.Error()
}

func printReplay(w io.Writer, r *replayReport) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(r.Changes) > 0 {
		_, _ = fmt.Fprintln(t, "DECISION\tTOOL\tCALLER\tWAS\tIS\tREASON\tBY\t")
	}
	for _, c := range r.Changes {
		mark := ""
		if c.Looser {
			mark = "lets more through"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cell(c.ID), cell(c.Tool), cell(c.Caller), cell(string(c.Was.Outcome)), cell(string(c.Is.Outcome)), cell(c.Is.Reason), cell(c.Is.By), mark)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d judged again: %d the same, %d changed\n", r.Judged, r.Same, len(r.Changes))
	return errors.Join(err, printRefused(w, r.Refused))
}

func printRefused(w io.Writer, refused map[string]int) error {
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		if _, err := fmt.Fprintf(w, "%d not judged again: %s\n", refused[why], cell(why)); err != nil {
			return err
		}
	}
	return nil
}
