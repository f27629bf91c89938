package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"gatewright.dev/gatewright/internal/audit"
)

func newAuditVerify() *cobra.Command {
	var o struct{ head, keys, checkpoints, asOf string }
	c := &cobra.Command{
		Use: "verify FILE|DIR|FILE...", Short: "Check the chain of an audit log and its signatures",
		Long: "Checks that no line was changed, moved or left out, and prints the head: the number of the last line and its digest.\n" +
			"A file stands for the full files before it too, a folder for the log in it; several files are the parts of one chain, oldest\n" +
			"first. What is kept outside the log shows that lines were cut off at the end, or that the log was written anew: signed\n" +
			"checkpoints (--checkpoints; the file beside the log is taken if there is one) and a head that was noted down (--head).\n" +
			"Signatures are checked with --key, which is the gate's key file or the public keys in it. The end of the log may then be\n" +
			"without one for ten minutes at most, by this machine's clock; for a copy, --as-of says when it was made.\n" +
			"Exit status: 0 if the log is whole, 4 if it is not, 1 if a file cannot be read.",
		Example: "  gatewright audit verify gatewright-audit.jsonl --key gatewright-audit-key.json\n" +
			"  gatewright audit verify gatewright-audit.jsonl --head 1200:sha256:...",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, paths []string) error {
			var e audit.Evidence
			if c.Flags().Changed("head") {
				kept, err := audit.ParseHead(o.head)
				if err != nil {
					return exit{exitUsage, "--head: " + err.Error()}
				}
				e.Heads = append(e.Heads, kept)
			}
			if err := asOf(&e, o.asOf); err != nil {
				return err
			}
			parts, err := audit.Parts(paths...)
			if err != nil {
				return err
			}
			beside := ""
			if len(paths) == 1 {
				beside = parts[len(parts)-1] + audit.CheckpointSuffix // the file in use has the name of the log
			}
			isMissing, err := evidence(&e, o.keys, o.checkpoints, beside)
			if err != nil {
				return err
			}
			if isMissing && e.Keys != nil {
				if _, err := fmt.Fprintf(c.OutOrStdout(), "no checkpoints outside: there is no %s, so lines that were cut off at the end do not show; if they are kept elsewhere, give --checkpoints\n", cell(beside)); err != nil {
					return err
				}
			}
			return verifyLog(c.Context(), c.OutOrStdout(), parts, e)
		},
	}
	c.Flags().StringVar(&o.head, "head", "", "SEQ:DIGEST that was noted down; the line SEQ must still have it")
	c.Flags().StringVar(&o.keys, "key", "", "file with the keys that the log is signed with; without it signatures are not checked")
	c.Flags().StringVar(&o.checkpoints, "checkpoints", "", "file with checkpoints that were kept outside the log; by default the one beside it, if there is one")
	c.Flags().StringVar(&o.asOf, "as-of", "", "when the log was copied, as in 2026-01-02T15:04:05Z; by default it is taken to be in use now")
	return c
}

func asOf(e *audit.Evidence, text string) (err error) {
	if text == "" {
		return nil
	}
	if e.Now, err = time.Parse(time.RFC3339, text); err != nil {
		return exit{exitUsage, "--as-of: want a time as in 2026-01-02T15:04:05Z"}
	}
	return nil
}

// evidence reads keys and checkpoints: those given, or those in the file beside the log. It says whether that is missing.
func evidence(e *audit.Evidence, keys, checkpoints, beside string) (isMissing bool, err error) {
	if keys != "" {
		if e.Keys, err = audit.ReadPublicKeys(keys); err != nil {
			return false, fmt.Errorf("--key %s: %w", cell(keys), err)
		}
	}
	from := cmp.Or(checkpoints, beside)
	if from == "" {
		return false, nil
	}
	e.Checkpoints, err = audit.ReadCheckpoints(from)
	if checkpoints == "" && errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("checkpoints: %w", err)
	}
	return false, nil
}

func verifyLog(ctx context.Context, w io.Writer, parts []string, e audit.Evidence) error {
	v, err := audit.NewVerifier(e)
	if err != nil {
		return exit{exitFailed, err.Error()}
	}
	for i, file := range parts {
		if err := verifyPart(ctx, w, v, file, i == 0); err != nil {
			return err
		}
	}
	total, err := v.End()
	if broken, ok := errors.AsType[*audit.Break](err); ok {
		return endBreak(w, parts, total, broken)
	}
	if err != nil {
		return err
	}
	return printWhole(w, total, e)
}

func verifyPart(ctx context.Context, w io.Writer, v *audit.Verifier, file string, first bool) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	found, err := v.Part(&interruptible{ctx.Err, in})
	if broken, ok := errors.AsType[*audit.Break](err); ok {
		if err := printBreak(w, file, found.Head.Seq, broken, first); err != nil {
			return err
		}
		return exit{exitFailed, fmt.Sprintf("%s: the chain breaks at line %d", cell(file), broken.Line)}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	text := fmt.Sprintf("%s: %d records", cell(file), found.Records)
	if found.Recovered > 0 {
		text += fmt.Sprintf(", %d of them of kind recovered", found.Recovered)
	}
	if found.Dropped > 0 {
		text += fmt.Sprintf(", %d old files dropped", found.Dropped)
	}
	if found.Unrecorded > 0 {
		text += fmt.Sprintf(", and %d refusals without a record", found.Unrecorded)
	}
	_, err = fmt.Fprintln(w, text)
	return err
}

// endBreak is a break that only shows when all parts were read.
func endBreak(w io.Writer, parts []string, total audit.Summary, b *audit.Break) error {
	switch b.What {
	case audit.BreakCut:
		return exit{exitFailed, fmt.Sprintf("lines are missing at the end: expected %s, found %s", b.Expected, b.Found)}
	case audit.BreakUnsigned:
		return exit{exitFailed, unsigned(total, b)}
	}
	if err := printBreak(w, parts[0], 0, b, true); err != nil {
		return err
	}
	return exit{exitFailed, fmt.Sprintf("%s: the chain breaks at line %d, and ends with %d", cell(parts[0]), b.Line, total.Head.Seq)}
}

// unsigned says what to make of records without a signature: what a forger leaves, a gate that was stopped hard can too.
func unsigned(total audit.Summary, b *audit.Break) string {
	if total.Signed == 0 {
		return fmt.Sprintf("nothing in the log is signed with the keys given: there are %s: it was written by somebody without the key, or its signatures were taken out. "+
			"A log that was kept without a key until now is signed once a gate has taken it over; without --key only its chain is checked", b.Found)
	}
	return fmt.Sprintf("the end of the log is not signed: from record %d on there are %s: they were written by somebody without the key, or its signatures were taken out. "+
		"A gate that was killed signs its last records when it starts again; for a copy of a log in use give --as-of", b.From, b.Found)
}

func printWhole(w io.Writer, total audit.Summary, e audit.Evidence) error {
	if e.Keys != nil {
		if _, err := fmt.Fprintf(w, "signed up to %d, %d records behind that\n", total.Signed, total.Head.Seq-total.Signed); err != nil {
			return err
		}
	} else if total.Checkpoints > 0 {
		if _, err := fmt.Fprintf(w, "%d checkpoints, whose signatures were not checked: give --key\n", total.Checkpoints); err != nil {
			return err
		}
	}
	if total.Adopted > 0 {
		if _, err := fmt.Fprintf(w, "taken over as they were: records up to %d, so that no signature says who wrote them\n", total.Adopted); err != nil {
			return err
		}
	}
	text := "none, the log is empty"
	if total.Head.Seq > 0 {
		text = total.Head.String()
	}
	_, err := fmt.Fprintln(w, "head", text)
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
	if b.From > 0 && b.From <= last {
		_, _ = fmt.Fprintf(t, "changed\tsomewhere from record %d to %d: the records before are those that were signed or noted down\n", b.From, last+1)
	}
	_, _ = fmt.Fprintf(t, "means\t%s\n", meaning(b, first))
	return t.Flush()
}

func meaning(b *audit.Break, first bool) string {
	switch b.What {
	case audit.BreakSequence:
		return meaningOfSequence(b, first)
	case audit.BreakPrevious:
		if b.Line == 1 {
			return "this file does not follow the one before it, or the last line there or the first line here was changed"
		}
		return "the line before this one was changed, or this one"
	case audit.BreakHead:
		return "this is not the line whose digest was noted down: the log was written anew, or this line was changed"
	case audit.BreakCheckpoint:
		return "this is not what the gate has signed: the log was written anew from some record on"
	case audit.BreakSignature:
		return "this signature is not that of its key: the log was written anew by somebody who does not have the key"
	case audit.BreakKey:
		return "this was signed with another key: the log is not of this gate, or its key was rotated and the new one not given"
	case audit.BreakTorn:
		return "the last line is not finished: a gate is writing it now, or a crash or somebody cut it off"
	}
	return "this line was changed, or something else than a gate wrote it"
}

func meaningOfSequence(b *audit.Break, first bool) string {
	switch {
	case b.Line == 1 && !first && b.Found == "1":
		return "this file starts a chain of its own: verify it by itself"
	case b.Line == 1:
		return "the lines before this one are not here, and no record says that they were dropped: give all files of the chain, oldest first"
	}
	return "lines are missing, moved or stand twice"
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
