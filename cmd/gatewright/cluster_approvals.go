package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approval/objects"
	"gatewright.dev/gatewright/internal/approverapi"
	"gatewright.dev/gatewright/internal/serve"
)

const placeHelp = "In a cluster the calls are ToolApprovals, read and decided as who you are there. A gate of gatewright serve has a desk instead.\n" +
	"--kubeconfig, --context, -n and -A ask a cluster; --url, GATEWRIGHT_URL and --approver-secret, or a file of its default name, a\n" +
	"desk. Without any of these it is the cluster of your kubeconfig, and a desk on this machine if there is none."

// place is where calls wait for people.
type place interface {
	list(ctx context.Context) ([]approval.Approval, error)
	find(ctx context.Context, name string) (*serve.Shown, error)
	decide(ctx context.Context, w io.Writer, name string, v serve.Verdict) error
}

// placeOptions say where that is.
type placeOptions struct {
	desk    deskOptions
	cluster clusterOptions
}

func addPlace(c *cobra.Command, o *placeOptions) {
	addDesk(c, &o.desk)
	addCluster(c, &o.cluster, "namespace of the callers; that of the context by default")
}

// place picks a cluster or a desk by what was given.
func (o *placeOptions) place(c *cobra.Command) (place, error) {
	isGiven := func(flags ...string) bool { return slices.ContainsFunc(flags, c.Flags().Changed) }
	asksCluster, asksDesk := isGiven("kubeconfig", "context", "namespace", "all-namespaces"), isGiven("url", "approver-secret")
	_, err := os.Stat(o.desk.secret)
	switch {
	case asksCluster && asksDesk:
		return nil, exit{exitUsage, "--url and --approver-secret are for a desk, --kubeconfig, --context, -n and -A for a cluster: give one or the other"}
	case asksCluster:
		return o.inCluster()
	case asksDesk || os.Getenv("GATEWRIGHT_URL") != "" || err == nil || !o.cluster.isThere():
		return &o.desk, nil
	}
	return o.inCluster()
}

func (o *placeOptions) inCluster() (place, error) {
	config, err := o.cluster.config()
	if err != nil {
		return nil, err
	}
	namespace, err := o.cluster.ownNamespace()
	if err != nil {
		return nil, err
	}
	if o.cluster.allNamespaces {
		namespace = ""
	}
	c, err := objects.NewClient(config)
	if err != nil {
		return nil, fmt.Errorf("asking the API server: %w", err)
	}
	return &clusterApprovals{client: c, namespace: namespace, user: o.cluster.user, timeout: o.desk.timeout}, nil
}

// clusterApprovals are the ToolApprovals of a namespace.
type clusterApprovals struct {
	client    *objects.Client
	namespace string
	// user says who decides, as the API server has it.
	user    func(context.Context) (string, error)
	timeout time.Duration
}

func (a *clusterApprovals) list(ctx context.Context) ([]approval.Approval, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	return a.client.List(ctx, a.namespace, time.Now())
}

// find shows a call, with the others of its caller that wait.
func (a *clusterApprovals) find(ctx context.Context, name string) (*serve.Shown, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	found, err := a.client.Get(ctx, a.namespace, name, time.Now())
	if err != nil {
		return nil, a.explained(name, err)
	}
	all, err := a.client.List(ctx, a.namespace, time.Now())
	if err != nil {
		return nil, err
	}
	return &serve.Shown{Approval: found, AlsoPending: approverapi.Others(&found, all)}, nil
}

// decide decides in the name of the user that the API server knows, and says so.
func (a *clusterApprovals) decide(ctx context.Context, w io.Writer, name string, v serve.Verdict) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	user, err := a.user(ctx)
	if err != nil {
		return err
	}
	d := approval.Decision{Outcome: approval.Rejected, Message: v.Message, ID: v.ID, By: approval.Approver{Type: approval.KubernetesUser, Name: user}}
	done := "rejected"
	if v.Outcome == "Approve" {
		d.Outcome, done = approval.Approved, "approved"
	}
	if err := a.client.Decide(ctx, a.namespace, name, d, time.Now()); err != nil {
		return a.explained(name, err)
	}
	_, err = fmt.Fprintf(w, "%s %s\n", cell(name), done)
	return err
}

// explained adds what to do.
func (a *clusterApprovals) explained(name string, err error) error {
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return fmt.Errorf("%s/%s: %w: name its namespace with -n", a.namespace, name, err)
	case errors.Is(err, objects.ErrRefused):
		return fmt.Errorf("%s/%s: %w: see kubectl auth can-i approve toolapprovals -n %s", a.namespace, name, err, a.namespace)
	}
	return fmt.Errorf("%s/%s: %w", a.namespace, name, err)
}
