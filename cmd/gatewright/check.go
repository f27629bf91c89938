package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/strictjson"
)

// checkOptions say which calls to send where.
type checkOptions struct {
	files     []string
	url       string
	tokenFile string
	caFile    string
	timeout   time.Duration
	dryRun    bool
	output    format
}

func newCheck() *cobra.Command {
	var o checkOptions
	c := &cobra.Command{
		Use:   "check -f call.json",
		Short: "Ask a gate about a call",
		Long: "Sends ToolCallReview requests to a gate and prints what it decides. A file without a uid gets a new one.\n" +
			"Exit status: 0 if every call is allowed, 3 if one is not, 1 if one could not be asked about.",
		Example: "  gatewright check -f testdata/calls/pods-are-listed.json\n  gatewright check -f call.json --output json",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return check(c, o) },
	}
	c.Flags().StringArrayVarP(&o.files, "file", "f", nil, "file with a ToolCallReview, - for standard input; may be repeated (required)")
	c.Flags().StringVar(&o.url, "url", envOr("GATEWRIGHT_URL", "http://127.0.0.1:8470"), "address of the gate; GATEWRIGHT_URL by default")
	c.Flags().StringVar(&o.tokenFile, "token-file", os.Getenv("GATEWRIGHT_TOKEN_FILE"), "file with the bearer token; GATEWRIGHT_TOKEN_FILE by default")
	c.Flags().StringVar(&o.caFile, "ca-file", os.Getenv("GATEWRIGHT_CA_FILE"), "file with the only authorities to trust for the gate; GATEWRIGHT_CA_FILE by default, else the system's")
	c.Flags().DurationVar(&o.timeout, "timeout", 12*time.Second, "how long to wait for each answer")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "decide and record, and raise or use no approval")
	addOutput(c, &o.output)
	return c
}

func envOr(name, def string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return def
}

// checked is one call with what became of it.
type checked struct {
	File     string           `json:"file"`
	Tool     string           `json:"tool,omitempty"`
	Response *review.Response `json:"response,omitempty"`
	Error    string           `json:"error,omitempty"`
}

func check(c *cobra.Command, o checkOptions) error {
	if len(o.files) == 0 {
		return exit{exitUsage, "-f is required: name a file with a ToolCallReview"}
	}
	var results []checked
	code := exitOK
	for _, file := range o.files {
		r := checkFile(c.Context(), c.InOrStdin(), file, o)
		results = append(results, r)
		switch {
		case r.Error != "":
			code = exitError
		case r.Response.Outcome != review.Allow && code == exitOK:
			code = exitNotAllow
		}
	}
	err := o.output.print(c.OutOrStdout(), results, func(w io.Writer) error { return printChecked(w, results) })
	if err != nil {
		return err
	}
	if code != exitOK {
		return exit{code: code}
	}
	return nil
}

func checkFile(ctx context.Context, stdin io.Reader, file string, o checkOptions) checked {
	out := checked{File: file}
	call, err := readCall(stdin, file)
	if err == nil {
		call.Request.DryRun = call.Request.DryRun || o.dryRun
		out.Tool = call.Request.Tool.Name
		out.Response, err = ask(ctx, call, o)
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

// readCall reads a ToolCallReview as strictly as a gate does, and gives it a uid if it has none.
func readCall(stdin io.Reader, file string) (*review.ToolCallReview, error) {
	data, err := readFile(stdin, file)
	if err != nil {
		return nil, err
	}
	var call review.ToolCallReview
	if err := strictjson.Decode(data, strictjson.Limits{}, &call); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if call.Request == nil {
		return nil, fmt.Errorf("%s: /request is required", file)
	}
	if call.Request.UID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, err
		}
		call.Request.UID = id.String()
	}
	return &call, nil
}

func readFile(stdin io.Reader, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(stdin, int64(strictjson.DefaultLimits.MaxBytes)+1))
	}
	return os.ReadFile(file)
}

// maxAnswer bounds the answer of a gate.
const maxAnswer = 4 << 20

func ask(ctx context.Context, call *review.ToolCallReview, o checkOptions) (*review.Response, error) {
	x := exchange{url: o.url, caFile: o.caFile, method: http.MethodPost, path: review.Path, timeout: o.timeout, limit: maxAnswer}
	if o.tokenFile != "" {
		token, err := os.ReadFile(o.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("reading token: %w", err)
		}
		x.token = string(token)
	}
	status, data, err := x.send(ctx, call)
	if err != nil {
		return nil, err
	}
	return readAnswer(status, data, call.Request.UID)
}

func readAnswer(status int, data []byte, uid string) (*review.Response, error) {
	if status != http.StatusOK {
		return nil, refusal(status, data)
	}
	var answer review.ToolCallReview
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if answer.Response == nil || answer.Response.UID != uid {
		return nil, errors.New("the answer belongs to another call")
	}
	return answer.Response, nil
}

func printChecked(w io.Writer, results []checked) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "TOOL\tCLASS\tOUTCOME\tBY\tREASON\tANSWERS\tMS")
	for _, r := range results {
		if r.Error != "" {
			_, _ = fmt.Fprintf(t, "%s\t-\terror\t-\t%s\t\t\n", cell(r.Tool), cell(r.Error))
			continue
		}
		d := r.Response.Decision
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%.2f\n", cell(r.Tool), cell(d.Class), r.Response.Outcome, cell(r.Response.By), cell(r.Response.Reason),
			cell(review.AnswersText(d.Answers)), d.Milliseconds)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		if r.Response != nil && len(results) == 1 {
			_, _ = fmt.Fprintf(w, "\n%s\n", cell(r.Response.Message))
			if r.Response.Approval != nil {
				_, _ = fmt.Fprintf(w, "waits for approval %s until %s\n", cell(r.Response.Approval.Name), r.Response.Approval.ExpiresAt.Format(time.RFC3339))
			}
		}
	}
	return nil
}

// cell keeps a table in shape and a terminal safe: nothing that a call brought along is printed as a control character.
func cell(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) { // nor as a mark that turns the direction of text round, or that nobody sees
			return '\uFFFD'
		}
		return r
	}, s)
}
