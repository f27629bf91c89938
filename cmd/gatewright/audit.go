package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
)

func newAudit() *cobra.Command {
	c := &cobra.Command{Use: "audit", Short: "Check and search the audit log, and judge what is in it again"}
	c.AddCommand(newAuditVerify(), newAuditQuery(), newAuditReplay(), newAuditMissed(), newAuditSample(), newAuditExport(), newAuditKey(), newAuditKeyPair())
	return c
}

// auditQuery says what to print of a log.
type auditQuery struct {
	filter       audit.Filter
	outcomes     []string
	since, until string
	limit        int
	follow       bool
	output       format
}

func newAuditQuery() *cobra.Command {
	var q auditQuery
	c := &cobra.Command{
		Use: "query FILE|DIR", Short: "Print records of an audit log",
		Long: "Prints the records that all given flags select, oldest first, from all files of the log: a file stands for those before it\n" +
			"too. JSON has one record on each line, YAML one in each document. It does not check the chain: gatewright audit verify does.",
		Example: "  gatewright audit query gatewright-audit.jsonl --outcome Block,Confirm --since 1h\n" +
			"  gatewright audit query gatewright-audit.jsonl --tool 'file.*' --limit 10 --follow",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := q.complete(time.Now()); err != nil {
				return exit{exitUsage, err.Error()}
			}
			return q.run(c.Context(), c.OutOrStdout(), args[0])
		},
	}
	f := c.Flags()
	f.StringSliceVar(&q.outcomes, "outcome", nil, "Allow, Clarify, Confirm or Block; several with commas")
	f.StringVar(&q.filter.Tool, "tool", "", "name of the tool, or a prefix and a star")
	f.StringVar(&q.filter.Caller, "caller", "", "NAMESPACE/NAME of the service account")
	f.StringVar(&q.filter.Reason, "reason", "", "reason of the outcome")
	f.StringVar(&q.filter.By, "by", "", "start of what decided, as in rule: or approval:NAME")
	f.StringVar(&q.filter.Policy, "policy", "", "policy that applied: [[KIND/]NAMESPACE/]NAME[@GENERATION]")
	f.StringVar(&q.since, "since", "", "from then on: a time as in RFC 3339, or how long ago, as in 1h")
	f.StringVar(&q.until, "until", "", "before then, in the same form")
	f.StringVar(&q.filter.ID, "id", "", "id of the decision, or uid of the request")
	f.StringVar(&q.filter.Kind, "kind", "", "kind of record, as in decision, label or checkpoint")
	f.StringVar(&q.filter.Class, "class", "", "class of the call")
	f.IntVar(&q.limit, "limit", 0, "only the newest so many; 0 for all")
	f.BoolVar(&q.follow, "follow", false, "wait for new records at the end, until interrupted")
	addOutput(c, &q.output)
	return c
}

// complete takes the clock once, so that 1h ago is the same instant for the whole log.
func (q *auditQuery) complete(now time.Time) (err error) {
	if q.filter.Since, err = instant(q.since, now); err != nil {
		return fmt.Errorf("--since: %w", err)
	}
	if q.filter.Until, err = instant(q.until, now); err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	if q.limit < 0 {
		return errors.New("--limit: want a number from 0")
	}
	if q.follow && q.until != "" {
		return errors.New("--follow waits for what comes, --until excludes it: give one of the two")
	}
	for _, o := range q.outcomes {
		q.filter.Outcomes = append(q.filter.Outcomes, review.Outcome(o))
	}
	return q.filter.Validate()
}

func instant(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(s); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q: want a time as in 2026-01-02T15:04:05Z, or how long ago, as in 1h30m", s)
	}
	return t, nil
}

func (q *auditQuery) run(ctx context.Context, w io.Writer, path string) error {
	parts, err := audit.Parts(path)
	if err != nil {
		return err
	}
	skip, err := q.older(ctx, parts)
	if err != nil {
		return err
	}
	show, err := q.output.records(w)
	if err != nil {
		return err
	}
	each := func(e audit.Entry) error {
		if skip > 0 {
			skip--
			return nil
		}
		return show(&e)
	}
	if !q.follow {
		return audit.QueryParts(ctx, parts, q.filter, each)
	}
	newest := parts[len(parts)-1]
	if err := audit.QueryParts(ctx, parts[:len(parts)-1], q.filter, each); err != nil {
		return err
	}
	in, err := os.Open(newest)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	err = audit.Query(ctx, audit.Follow(ctx, in, audit.DefaultPoll), q.filter, each)
	if errors.Is(err, context.Canceled) {
		return nil // whoever follows ends it so
	}
	if err != nil {
		return fmt.Errorf("%s: %w", newest, err)
	}
	return nil
}

// older counts the selected records before the newest ones. Reading the files twice takes no memory, however many there
// are. A torn end is left to the second reading.
func (q *auditQuery) older(ctx context.Context, parts []string) (int, error) {
	if q.limit == 0 {
		return 0, nil
	}
	for _, part := range parts {
		info, err := os.Stat(part)
		if err != nil {
			return 0, err
		}
		if !info.Mode().IsRegular() {
			return 0, fmt.Errorf("%s: --limit needs a regular file, which can be read twice", part)
		}
	}
	n := 0
	err := audit.QueryParts(ctx, parts, q.filter, func(audit.Entry) error {
		n++
		return nil
	})
	if errors.Is(err, audit.ErrTorn) {
		err = nil
	}
	return max(0, n-q.limit), err
}

// records gives a function that prints one record at once, for logs of any length and those that go on.
func (f format) records(w io.Writer) (func(*audit.Entry) error, error) {
	switch f {
	case formatJSON:
		out := json.NewEncoder(w)
		return func(e *audit.Entry) error { return out.Encode(e) }, nil
	case formatYAML:
		return func(e *audit.Entry) error { return printDocument(w, e) }, nil
	case formatTable:
	}
	t := columns{w: w}
	show := func(e *audit.Entry) error { return t.print(auditCells(e)) }
	return show, t.print([]string{"TIME", "CALLER", "TOOL", "CLASS", "OUTCOME", "BY", "REASON", "MS"})
}

func printDocument(w io.Writer, e *audit.Entry) error {
	out, err := yaml.Marshal(e)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "---\n%s", out)
	return err
}

const auditTime = "2006-01-02T15:04:05.000Z"

func auditCells(e *audit.Entry) []string {
	when := e.Time.UTC().Format(auditTime)
	if e.Kind != audit.KindDecision {
		return []string{when, "-", "-", "-", cell(e.Kind), "-", cell(ofTheLog(e)), "-"}
	}
	caller := e.Caller.Namespace + "/" + e.Caller.ServiceAccount
	return []string{
		when, cell(caller), cell(e.Tool), cell(e.Class), cell(string(e.Outcome)), cell(e.By), cell(e.Reason),
		strconv.FormatFloat(e.Milliseconds, 'f', 2, 64),
	}
}

// ofTheLog says in a word what a record that is no decision tells.
func ofTheLog(e *audit.Entry) string {
	switch {
	case e.Torn != nil:
		return e.Torn.File
	case e.Rotated != nil:
		return e.Rotated.File
	case e.Dropped != nil:
		return e.Dropped.File
	case e.Checkpoint != nil:
		return e.Checkpoint.KID
	case e.Label != nil:
		return string(e.Label.Outcome) + " " + e.Label.Decision
	case e.Unrecorded > 0:
		return strconv.FormatUint(e.Unrecorded, 10) + " decisions"
	}
	return ""
}

// columns is a table that is printed row by row: a column is as wide as its widest cell so far, up to a limit, and from
// the start as wide as these cells usually are.
type columns struct {
	w      io.Writer
	widths []int
}

// usualWidths of the columns of audit query but the last, which needs none.
func usualWidths() []int { return []int{len(auditTime), 16, 16, 11, 7, 18, 18} }

// widest keeps one long cell from pushing all later rows out of sight.
const widest = 48

func (c *columns) print(cells []string) error {
	if c.widths == nil {
		c.widths = usualWidths()
	}
	var row strings.Builder
	for i, text := range cells {
		row.WriteString(text)
		if i == len(cells)-1 {
			break
		}
		n := utf8.RuneCountInString(text)
		c.widths[i] = min(max(c.widths[i], n), widest)
		row.WriteString(strings.Repeat(" ", max(c.widths[i]-n, 0)+2))
	}
	row.WriteByte('\n')
	_, err := io.WriteString(c.w, row.String())
	return err
}
