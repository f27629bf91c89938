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
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
)

func newAudit() *cobra.Command {
	c := &cobra.Command{Use: "audit", Short: "Check and search the audit log"}
	c.AddCommand(newAuditVerify(), newAuditQuery())
	return c
}

func newAuditVerify() *cobra.Command {
	var kept string
	c := &cobra.Command{
		Use: "verify FILE...", Short: "Check the chain of an audit log",
		Long: "Checks that no line was changed, moved or left out, and prints the head: the number of the last line and its digest.\n" +
			"Note the head down elsewhere: given with --head, it shows later that lines were cut off at the end, or that the log was\n" +
			"written anew. Several files are the parts of one chain, oldest first.\n" +
			"Exit status: 0 if the chain is whole, 4 if it breaks, 1 if a file cannot be read.",
		Example: "  gatewright audit verify gatewright-audit.jsonl --head 1200:sha256:...",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			v := auditVerifier{out: c.OutOrStdout()}
			if c.Flags().Changed("head") {
				var err error
				if v.kept, err = audit.ParseHead(kept); err != nil {
					return exit{exitUsage, "--head: " + err.Error()}
				}
			}
			return v.verify(c.Context(), files)
		},
	}
	c.Flags().StringVar(&kept, "head", "", "SEQ:DIGEST that was noted down; the line SEQ must still have it")
	return c
}

// auditVerifier goes through the parts of one chain.
type auditVerifier struct {
	out  io.Writer
	kept audit.Head
	head audit.Head // so far
}

func (v *auditVerifier) verify(ctx context.Context, files []string) error {
	for i, file := range files {
		if err := v.part(ctx, file, i == 0); err != nil {
			return err
		}
	}
	if v.head.Seq < v.kept.Seq {
		return exit{exitFailed, fmt.Sprintf("lines are missing at the end: expected at least %d, found %d", v.kept.Seq, v.head.Seq)}
	}
	text := "none, the log is empty"
	if v.head.Seq > 0 {
		text = v.head.String()
	}
	_, err := fmt.Fprintln(v.out, "head", text)
	return err
}

func (v *auditVerifier) part(ctx context.Context, file string, first bool) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	found, err := audit.VerifyKept(&interruptible{ctx.Err, in}, v.head, v.kept)
	v.head = found.Head
	if broken, ok := errors.AsType[*audit.Break](err); ok {
		if err := printBreak(v.out, file, found.Head.Seq, broken, first); err != nil {
			return err
		}
		return exit{exitFailed, fmt.Sprintf("%s: the chain breaks at line %d", cell(file), broken.Line)}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	recovered := ""
	if found.Recovered > 0 {
		recovered = fmt.Sprintf(", %d of them of kind recovered", found.Recovered)
	}
	_, err = fmt.Fprintf(v.out, "%s: %d records%s\n", cell(file), found.Records, recovered)
	return err
}

// printBreak says where the chain breaks. last is the number of the last line that follows from the one before it.
func printBreak(w io.Writer, file string, last uint64, b *audit.Break, first bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(t, "file\t%s\n", cell(file))
	_, _ = fmt.Fprintf(t, "line\t%d, from byte %d\n", b.Line, b.Offset)
	_, _ = fmt.Fprintf(t, "sequence\t%d should stand here\n", last+1)
	_, _ = fmt.Fprintf(t, "expected\t%s\n", cell(b.Expected))
	_, _ = fmt.Fprintf(t, "found\t%s\n", cell(b.Found))
	_, _ = fmt.Fprintf(t, "means\t%s\n", meaning(b, first))
	return t.Flush()
}

func meaning(b *audit.Break, first bool) string {
	switch {
	case b.What == "sequence" && b.Line == 1 && !first && b.Found == "1":
		return "this file starts a chain of its own: verify it by itself"
	case b.What == "sequence" && b.Line == 1:
		return "the lines before this one are not here: give all files of the chain, oldest first"
	case b.What == "sequence":
		return "lines are missing, moved or stand twice"
	case b.What == "previous" && b.Line == 1:
		return "this file does not follow the one before it, or the last line there or the first line here was changed"
	case b.What == "previous":
		return "the line before this one was changed, or this one"
	case b.What == "head":
		return "this is not the line whose digest was noted down: the log was written anew, or this line was changed"
	case b.What == "torn":
		return "the last line is not finished: a gate is writing it now, or a crash or somebody cut it off"
	}
	return "this line was changed, or something else than a gate wrote it"
}

// interruptible is a reader that ends with its context.
type interruptible struct {
	err func() error
	io.Reader
}

// Read implements io.Reader.
func (r *interruptible) Read(p []byte) (int, error) {
	if err := r.err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
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
		Use: "query FILE", Short: "Print records of an audit log",
		Long: "Prints the records that all given flags select, oldest first. JSON has one record on each line, YAML one in each document.\n" +
			"It does not check the chain: gatewright audit verify does.",
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

func (q *auditQuery) run(ctx context.Context, w io.Writer, file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	skip, err := q.older(ctx, in)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	show, err := q.output.records(w)
	if err != nil {
		return err
	}
	var records io.Reader = in
	if q.follow {
		records = audit.Follow(ctx, in, audit.DefaultPoll)
	}
	err = audit.Query(ctx, records, q.filter, func(e audit.Entry) error {
		if skip > 0 {
			skip--
			return nil
		}
		return show(&e)
	})
	if q.follow && errors.Is(err, context.Canceled) {
		return nil // whoever follows ends it so
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// older counts the selected records before the newest ones. Reading the file twice takes no memory, however many there
// are. A torn end is left to the second reading.
func (q *auditQuery) older(ctx context.Context, in *os.File) (int, error) {
	if q.limit == 0 {
		return 0, nil
	}
	info, err := in.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, errors.New("--limit needs a regular file, which can be read twice")
	}
	n := 0
	err = audit.Query(ctx, io.NewSectionReader(in, 0, info.Size()), q.filter, func(audit.Entry) error {
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
		file := ""
		if e.Torn != nil {
			file = e.Torn.File
		}
		return []string{when, "-", "-", "-", cell(e.Kind), "-", cell(file), "-"}
	}
	caller := e.Caller.Namespace + "/" + e.Caller.ServiceAccount
	return []string{
		when, cell(caller), cell(e.Tool), cell(e.Class), cell(string(e.Outcome)), cell(e.By), cell(e.Reason),
		strconv.FormatFloat(e.Milliseconds, 'f', 2, 64),
	}
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
