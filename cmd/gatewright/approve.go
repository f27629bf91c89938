package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/serve"
)

// deskOptions say where a person decides.
type deskOptions struct {
	url, secret string
	timeout     time.Duration
}

func addDesk(c *cobra.Command, o *deskOptions) {
	c.Flags().StringVar(&o.url, "url", envOr("GATEWRIGHT_URL", "http://127.0.0.1:8470"), "address of the gate; GATEWRIGHT_URL by default")
	c.Flags().StringVar(&o.secret, "approver-secret", "gatewright-approver-secret", "file with the approver's secret, as gatewright serve made it")
	c.Flags().DurationVar(&o.timeout, "timeout", 12*time.Second, "how long to wait for the gate")
}

func newPending() *cobra.Command {
	var (
		o      deskOptions
		output format
	)
	c := &cobra.Command{
		Use: "pending", Short: "List the calls that wait for a person", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := o.list(c.Context())
			if err != nil {
				return err
			}
			waiting := slices.DeleteFunc(all, func(a approval.Approval) bool { return a.State != approval.Pending })
			return output.print(c.OutOrStdout(), waiting, func(w io.Writer) error { return printPending(w, waiting) })
		},
	}
	addDesk(c, &o)
	addOutput(c, &output)
	return c
}

func printPending(w io.Writer, waiting []approval.Approval) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "NAME\tCALLER\tTOOL\tCLASS\tMESSAGE\tARGUMENTS\tEXPIRES")
	for _, a := range waiting {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cell(a.Name), cell(a.Call.Caller), cell(a.Call.Tool), cell(a.Call.Class), cell(a.Call.Message), cell(beginning(string(a.Call.Arguments))), a.Call.ExpiresAt.Format(time.RFC3339))
	}
	return t.Flush()
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
		o   deskOptions
		yes bool
	)
	c := &cobra.Command{
		Use: "approve NAME", Short: "Show a call that waits, and let it run once",
		Long: "Shows exactly what will run and asks. An approval covers this one call, with these arguments, once.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			found, err := o.find(c.Context(), args[0])
			if err != nil {
				return err
			}
			if err := printCall(c.OutOrStdout(), found); err != nil {
				return err
			}
			if found.State != approval.Pending {
				return exit{exitError, found.Name + " is " + string(found.State) + ": only a pending call can be approved"}
			}
			if !yes && !confirmed(c.InOrStdin(), c.OutOrStdout()) {
				return exit{exitError, "nothing was decided"}
			}
			return o.decide(c.Context(), c.OutOrStdout(), found.Name, serve.Verdict{Outcome: "Approve"})
		},
	}
	addDesk(c, &o)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask; for scripts")
	return c
}

func newReject() *cobra.Command {
	var (
		o       deskOptions
		message string
	)
	c := &cobra.Command{
		Use: "reject NAME -m MESSAGE", Short: "Refuse a call that waits", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.decide(c.Context(), c.OutOrStdout(), args[0], serve.Verdict{Outcome: "Reject", Message: message})
		},
	}
	addDesk(c, &o)
	c.Flags().StringVarP(&message, "message", "m", "", "what the agent is told")
	return c
}

// printCall shows a call as it will run. What came from outside is printed so that it cannot move the cursor or pass for
// something else.
func printCall(w io.Writer, a *approval.Approval) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			_, _ = fmt.Fprintf(t, "%s\t%s\n", cell(name), cell(value)) // names of arguments come from the call too
		}
	}
	row("message", a.Call.Message)
	row("tool", a.Call.Tool)
	row("server", a.Call.Server)
	row("class", a.Call.Class+" ("+a.Call.Base+")")
	row("arguments", string(a.Call.Arguments))
	for _, pointer := range slices.Sorted(maps.Keys(a.Call.Sources)) {
		row("  "+pointer, "from "+a.Call.Sources[pointer])
	}
	row("caller", a.Call.Caller)
	row("on behalf of", claimed(a.Call.OnBehalfOf))
	row("user's words", claimed(a.Call.UserRequest))
	for _, question := range slices.Sorted(maps.Keys(a.Call.Answers)) {
		row("  "+question, a.Call.Answers[question])
	}
	for _, reason := range a.Call.ConfirmReasons {
		row("because", reason)
	}
	row("state", string(a.State))
	row("expires", a.Call.ExpiresAt.Format(time.RFC3339))
	return t.Flush()
}

// claimed marks what only the agent says.
func claimed(s string) string {
	if s == "" {
		return ""
	}
	return s + "   (claimed by the agent)"
}

func confirmed(in io.Reader, out io.Writer) bool {
	_, _ = fmt.Fprint(out, "\nLet this call run once? Type yes: ")
	line, err := bufio.NewReader(in).ReadString('\n')
	return (err == nil || err == io.EOF) && strings.TrimSpace(line) == "yes"
}

func (o *deskOptions) list(ctx context.Context) ([]approval.Approval, error) {
	var all []approval.Approval
	if err := o.send(ctx, http.MethodGet, serve.ApprovalsPath, nil, &all); err != nil {
		return nil, err
	}
	return all, nil
}

func (o *deskOptions) find(ctx context.Context, name string) (*approval.Approval, error) {
	all, err := o.list(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Name == name {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("there is no approval %s: gatewright pending lists what waits", cell(name))
}

func (o *deskOptions) decide(ctx context.Context, w io.Writer, name string, v serve.Verdict) error {
	if err := o.send(ctx, http.MethodPost, serve.ApprovalsPath+"/"+url.PathEscape(name), v, nil); err != nil {
		return err
	}
	done := map[string]string{"Approve": "approved", "Reject": "rejected"}[v.Outcome]
	_, err := fmt.Fprintf(w, "%s %s\n", cell(name), done)
	return err
}

// send sends one request with the approver's secret.
func (o *deskOptions) send(ctx context.Context, method, path string, in, out any) error {
	if u, err := url.Parse(o.url); err != nil || u.Scheme != "https" && !isLoopback(u.Hostname()) {
		return exit{exitUsage, "--url " + cell(o.url) + " is neither https nor on this machine: the approver's secret would go over the network in plain text"}
	}
	secret, err := os.ReadFile(o.secret)
	if err != nil {
		return fmt.Errorf("reading the approver's secret: %w", err)
	}
	x := exchange{url: o.url, token: string(secret), method: method, path: path, timeout: o.timeout, limit: maxApprovals}
	status, data, err := x.send(ctx, in)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return refusal(status, data)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// maxApprovals bounds a list of approvals: 1,000 of 32 KiB each.
const maxApprovals = 40 << 20

// refusal is the error object of a gate as an error.
func refusal(status int, data []byte) error {
	var e review.Error
	if err := json.Unmarshal(data, &e); err != nil || e.Code == "" {
		return fmt.Errorf("the gate answered HTTP %d", status)
	}
	return fmt.Errorf("the gate answered HTTP %d %s%s: %s", status, cell(e.Code), fieldText(e.Field), cell(e.Message))
}

func fieldText(field string) string {
	if field == "" {
		return ""
	}
	return " " + cell(field)
}
