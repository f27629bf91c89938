package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/console"
	"gatewright.dev/gatewright/internal/serve"
	"gatewright.dev/gatewright/internal/strictjson"
)

func newPending() *cobra.Command {
	var (
		o      placeOptions
		output format
	)
	c := &cobra.Command{
		Use: "pending", Short: "List the calls that wait for a person", Long: placeHelp, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			at, err := o.place(c)
			if err != nil {
				return err
			}
			all, err := at.list(c.Context())
			if err != nil {
				return err
			}
			waiting := slices.DeleteFunc(all, func(a approval.Approval) bool { return a.State != approval.Pending })
			slices.SortStableFunc(waiting, func(x, y approval.Approval) int { return x.Call.ExpiresAt.Compare(y.Call.ExpiresAt) })
			return output.print(c.OutOrStdout(), waiting, func(w io.Writer) error { return printPending(w, waiting, time.Now()) })
		},
	}
	addPlace(c, &o)
	c.Flags().BoolVarP(&o.cluster.allNamespaces, "all-namespaces", "A", false, "calls of all namespaces, in a cluster")
	addOutput(c, &output)
	return c
}

// printPending lists what waits, that which ends first at the top.
func printPending(w io.Writer, waiting []approval.Approval, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "NAME\tCALLER\tFOR\tTOOL\tCLASS\tWHY\tMESSAGE\tARGUMENTS\tLEFT")
	for i := range waiting {
		a := &waiting[i]
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cell(a.Name), cell(a.Call.Caller), cell(a.Call.OnBehalfOf), cell(a.Call.Tool),
			cell(a.Call.Class), cell(why(&a.Call)), console.OneLine(a.Call.Message), beginning(exactly(a.Call.Arguments)), left(a.Call.ExpiresAt.Sub(now)))
	}
	return t.Flush()
}

// why are the reasons to ask, in short.
func why(c *approval.Call) string {
	var reasons []string
	for _, r := range c.Reasons {
		if !slices.Contains(reasons, r.Reason) {
			reasons = append(reasons, r.Reason)
		}
	}
	return strings.Join(reasons, ",")
}

// left is the time that is left, in minutes, or in seconds when it is short.
func left(d time.Duration) string {
	switch {
	case d <= 0:
		return "none"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return fmt.Sprintf("%dm", int(d.Minutes()))
}

// exactly gives arguments as they will run: in canonical form, with an escape for whatever would not be seen.
func exactly(arguments json.RawMessage) string {
	tree, err := strictjson.Parse(arguments, strictjson.Limits{})
	if err != nil {
		return console.OneLine(string(arguments))
	}
	text, err := strictjson.Canonical(tree)
	if err != nil {
		return console.OneLine(string(arguments))
	}
	return console.EscapeJSON(string(text))
}

// beginning is enough of the arguments to tell calls apart in a list; approve shows all of them.
func beginning(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}

func newApprove() *cobra.Command {
	var (
		o   placeOptions
		v   = serve.Verdict{Outcome: "Approve"}
		yes bool
	)
	c := &cobra.Command{
		Use: "approve NAME", Short: "Show a call that waits, and let it run once",
		Long: "Shows exactly what will run and asks. An approval covers this one call, with these arguments, once.\n\n" + placeHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			at, err := o.place(c)
			if err != nil {
				return err
			}
			found, err := at.find(c.Context(), args[0])
			if err != nil {
				return err
			}
			if err := printCall(c.OutOrStdout(), found); err != nil {
				return err
			}
			if found.State != approval.Pending {
				return exit{exitError, found.Name + " is " + string(found.State) + ": only a pending call can be approved"}
			}
			if !yes {
				if err := confirmed(c.InOrStdin(), c.OutOrStdout()); err != nil {
					return err
				}
			}
			v.ID = found.ID // what was shown, and nothing that has come into its place meanwhile
			return at.decide(c.Context(), c.OutOrStdout(), found.Name, v)
		},
	}
	addPlace(c, &o)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask; for scripts")
	c.Flags().StringVarP(&v.Message, "message", "m", "", "what is kept beside the decision")
	return c
}

func newReject() *cobra.Command {
	var (
		o placeOptions
		v = serve.Verdict{Outcome: "Reject"}
	)
	c := &cobra.Command{
		Use: "reject NAME -m MESSAGE", Short: "Refuse a call that waits", Long: placeHelp, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			at, err := o.place(c)
			if err != nil {
				return err
			}
			return at.decide(c.Context(), c.OutOrStdout(), args[0], v)
		},
	}
	addPlace(c, &o)
	c.Flags().StringVarP(&v.Message, "message", "m", "", "what the agent is told")
	return c
}

// printCall shows a call as it will run. What came from outside is printed so that it cannot move the cursor or pass for
// something else.
func printCall(w io.Writer, a *serve.Shown) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	safe := func(name, value string) {
		if value != "" {
			_, _ = fmt.Fprintf(t, "%s\t%s\n", cell(name), value) // names of arguments come from the call too
		}
	}
	row := func(name, value string) { safe(name, console.OneLine(value)) }
	c := &a.Call
	row("message", c.Message)
	for _, note := range console.Beware(c.Message) {
		row("  beware", note)
	}
	row("tool", c.Tool)
	row("  does", c.ToolDescription)
	row("server", c.Server)
	row("class", c.Class+" ("+c.Base+")")
	safe("arguments", exactly(c.Arguments))
	printArguments(row, c)
	row("caller", c.Caller)
	row("session", c.Session)
	printWords(row, c)
	for _, question := range slices.Sorted(maps.Keys(c.Answers)) {
		row("decider says", question+": "+c.Answers[question])
	}
	printReasons(row, c)
	for _, p := range c.Policies {
		row("policy", p)
	}
	for _, o := range a.AlsoPending {
		row("also waits", o.Name+" "+o.Tool+map[bool]string{true: " (same session)"}[o.SameSession]+" "+o.Message)
	}
	row("state", string(a.State))
	if d := a.Decision; d != nil {
		row("decided by", strings.TrimSpace(d.By.String()+" at "+d.At.Format(time.RFC3339)+" "+d.Message))
	}
	row("expires", c.ExpiresAt.Format(time.RFC3339))
	return t.Flush()
}

// printArguments says what in the arguments hides, and where each value came from.
func printArguments(row func(name, value string), c *approval.Call) {
	for _, note := range bewareOf(c.Arguments) {
		row("  beware", note)
	}
	for _, pointer := range slices.Sorted(maps.Keys(c.Sources)) {
		row("  "+pointer, "from "+c.Sources[pointer])
	}
	for _, pointer := range c.Sensitive {
		row("  "+pointer, "is sensitive: length and digest are shown")
	}
}

// bewareOf says what in names and values of arguments hides or passes for something else.
func bewareOf(arguments json.RawMessage) (notes []string) {
	for d := json.NewDecoder(bytes.NewReader(arguments)); ; {
		token, err := d.Token()
		if err != nil {
			return notes
		}
		text, _ := token.(string)
		for _, note := range console.Beware(text) {
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
}

// printWords prints whose call it is and what they have said, with whose word that is.
func printWords(row func(name, value string), c *approval.Call) {
	said := func(name, s string) {
		if s == "" {
			return
		}
		if c.AttestedBy == "" {
			row(name, s+"   (claimed by the agent)")
			return
		}
		row(name, s+"   (attested by "+c.AttestedBy+")")
	}
	said("on behalf of", c.OnBehalfOf)
	if c.OmittedTurns > 0 {
		row("before that", fmt.Sprintf("%d turns that are not shown", c.OmittedTurns))
	}
	for _, turn := range c.EarlierTurns {
		said("said before", turn)
	}
	said("user's words", c.UserRequest)
	for _, who := range c.InbandClaims {
		row("beware", "the "+who+" in the conversation claims that this was approved already")
	}
}

func printReasons(row func(name, value string), c *approval.Call) {
	messages := map[string]string{}
	for _, r := range c.Reasons {
		messages[r.Key] = r.Message
	}
	for _, key := range c.ConfirmReasons {
		row("because", key)
		row("  meaning", messages[key])
	}
}

// confirmed asks. A script has nobody to ask, and has to say so.
func confirmed(in io.Reader, out io.Writer) error {
	if f, ok := in.(*os.File); ok {
		if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
			return exit{exitUsage, "standard input is no terminal, so nobody can be asked: --yes approves without asking"}
		}
	}
	_, _ = fmt.Fprint(out, "\nLet this call run once? [y/N] ")
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if s := strings.ToLower(strings.TrimSpace(line)); s != "y" && s != "yes" {
		return exit{exitError, "nothing was decided"}
	}
	return nil
}
