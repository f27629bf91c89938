package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/strictjson"
)

func newLabels() *cobra.Command {
	c := &cobra.Command{Use: "labels", Short: "What people said about calls, as cases to evaluate with"}
	c.AddCommand(newLabelsExport())
	return c
}

func newLabelsExport() *cobra.Command {
	var (
		o     placeOptions
		m     markedCalls
		texts bool
	)
	c := &cobra.Command{
		Use: "export", Short: "Write what people decided and marked as evaluation cases, one JSON object a line", Args: cobra.NoArgs,
		Long: "Writes each approval that a person decided and the gate still keeps: approved is allow, rejected is block. With --audit it\n" +
			"writes the decisions of a log that somebody marked with gatewright label. With --texts the lines are cases that gatewright\n" +
			"eval reads, of the calls whose policies let more than digests be kept (captureState); without it they hold digests in the\n" +
			"place of arguments and words.\n\n" + placeHelp,
		Example: "  gatewright labels export --texts\n" +
			"  gatewright labels export --texts --audit gatewright-audit.jsonl --capture-dir calls",
		RunE: func(c *cobra.Command, _ []string) error {
			if m.log != "" || m.kept.folder != "" {
				return m.export(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), texts)
			}
			at, err := o.place(c)
			if err != nil {
				return err
			}
			all, err := at.list(c.Context())
			if err != nil {
				return err
			}
			return exportLabels(c.OutOrStdout(), c.ErrOrStderr(), all, texts)
		},
	}
	addPlace(c, &o)
	c.Flags().BoolVarP(&o.cluster.allNamespaces, "all-namespaces", "A", false, "approvals of all namespaces, in a cluster")
	c.Flags().StringVar(&m.log, "audit", "", "file or folder of an audit log: write the decisions in it that somebody marked, instead of approvals")
	m.kept.bind(c, ", for --audit with --texts")
	c.Flags().BoolVar(&texts, "texts", false, "write arguments and the user's words; they are private")
	return c
}

// exportLabels writes what was decided. What would be no case by itself is refused by name, and the rest is written.
func exportLabels(out, errs io.Writer, all []approval.Approval, texts bool) error {
	refused := 0
	for i := range all {
		a := &all[i]
		if a.Decision == nil {
			continue
		}
		line, err := labelOf(a, texts)
		if err != nil {
			refused++
			_, _ = fmt.Fprintf(errs, "%s is not exported: %s\n", cell(a.Name), err)
			continue
		}
		if err := writeLine(out, line); err != nil {
			return err
		}
	}
	if refused > 0 {
		return exit{exitError, fmt.Sprintf("%d decided approvals were not exported", refused)}
	}
	return nil
}

func writeLine(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// digestLabel is a label that gives nothing away.
type digestLabel struct {
	ID              string           `json:"id"`
	Source          string           `json:"source"`
	Tool            evaluation.Tool  `json:"tool"`
	Class           string           `json:"class"`
	Label           evaluation.Label `json:"label"`
	ArgumentsDigest string           `json:"argumentsDigest"`
	UserTurnsDigest string           `json:"userTurnsDigest"`
	PolicyDigest    string           `json:"policyDigest"`
	DecidedBy       string           `json:"decidedBy"`
}

// source is what exported cases name as where they come from.
const labelSource = "approvals"

var caseClasses = map[string]string{"ReadOnly": "read-only", "Write": "write", "Destructive": "destructive", "External": "external"}

var errDigestsOnly = errors.New("captureState of its policies lets digests out only: set it to Plain or Encrypted for calls to come, or export without --texts")

var errNotWhole = errors.New("holds digests only in the place of sensitive arguments, so the call cannot be made again")

func labelOf(a *approval.Approval, texts bool) (any, error) {
	label := map[approval.State]evaluation.Label{approval.Approved: evaluation.LabelAllow, approval.Rejected: evaluation.LabelBlock}[a.Decision.Outcome]
	class := caseClasses[a.Call.Base]
	if label == "" || class == "" {
		return nil, fmt.Errorf("outcome %q or class %q is unknown", a.Decision.Outcome, a.Call.Base)
	}
	tool := evaluation.Tool{Name: a.Call.Tool, Description: a.Call.ToolDescription}
	if !texts {
		return digestLabel{
			ID: a.ID, Source: labelSource, Tool: tool, Class: class, Label: label, ArgumentsDigest: a.Call.ArgumentsDigest,
			UserTurnsDigest: a.Call.UserTurnsDigest, PolicyDigest: a.Call.PolicyDigest, DecidedBy: a.Decision.By.String(),
		}, nil
	}
	if state := a.Call.CaptureState; state != string(v1alpha1.CapturePlain) && state != string(v1alpha1.CaptureEncrypted) {
		return nil, errDigestsOnly
	}
	if a.Call.OmittedTurns > 0 {
		return nil, fmt.Errorf("%d turns of its user were not kept", a.Call.OmittedTurns)
	}
	tree, err := strictjson.Parse(a.Call.Arguments, strictjson.Limits{})
	arguments, ok := tree.(map[string]any)
	if err != nil || !ok {
		return nil, errors.New("its arguments are no JSON object")
	}
	if digest, err := strictjson.Digest(arguments); err != nil || digest != a.Call.ArgumentsDigest {
		return nil, errNotWhole
	}
	out := evaluation.Case{
		ID: a.ID, Source: labelSource, UserRequest: a.Call.UserRequest, Conversation: []evaluation.Turn{}, Tool: tool,
		Arguments: arguments, Class: class, Label: label, Why: strings.TrimSpace("decided by " + a.Decision.By.String() + ". " + a.Decision.Message),
	}
	for _, turn := range a.Call.EarlierTurns {
		out.Conversation = append(out.Conversation, evaluation.Turn{Role: "user", Content: turn})
	}
	return out, checkCase(&out)
}

// checkCase lets nothing out that gatewright eval would not read.
func checkCase(c *evaluation.Case) error {
	var line bytes.Buffer
	if err := writeLine(&line, c); err != nil {
		return err
	}
	if _, err := evaluation.ReadCases(&line, "case"); err != nil {
		return fmt.Errorf("it is no case: %w", err)
	}
	return nil
}
