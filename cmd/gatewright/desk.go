package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/loopback"
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

func (o *deskOptions) list(ctx context.Context) ([]approval.Approval, error) {
	var all []approval.Approval
	if err := o.send(ctx, http.MethodGet, serve.ApprovalsPath, nil, &all); err != nil {
		return nil, err
	}
	return all, nil
}

func (o *deskOptions) find(ctx context.Context, name string) (*serve.Shown, error) {
	var found serve.Shown
	if err := o.send(ctx, http.MethodGet, serve.ApprovalsPath+"/"+url.PathEscape(name), nil, &found); err != nil {
		return nil, err
	}
	return &found, nil
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
	if u, err := url.Parse(o.url); err != nil || u.Scheme != "https" && !loopback.IsHost(u.Hostname()) {
		return exit{exitUsage, "--url " + cell(o.url) + " is neither https nor on this machine: the approver's secret would go over the network in plain text"}
	}
	secret, err := readSecret(o.secret)
	if err != nil {
		return err
	}
	x := exchange{url: o.url, token: secret, method: method, path: path, timeout: o.timeout, limit: maxApprovals}
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

// readSecret reads an approver's own secret: one line, with or without a name in front.
func readSecret(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the approver's secret: %w", err)
	}
	lines := slices.DeleteFunc(strings.Split(string(data), "\n"), func(s string) bool {
		s = strings.TrimSpace(s)
		return s == "" || strings.HasPrefix(s, "#")
	})
	if len(lines) != 1 {
		return "", exit{exitUsage, fmt.Sprintf("%s holds %d secrets: name a file with your own alone", path, len(lines))}
	}
	secret := strings.TrimSpace(lines[0])
	if _, own, isNamed := strings.Cut(secret, ":"); isNamed {
		secret = own
	}
	if strings.HasPrefix(secret, "sha256:") {
		return "", exit{exitUsage, path + " holds the digest of a secret, which opens nothing: name a file with the secret itself"}
	}
	return secret, nil
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
