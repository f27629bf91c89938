package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
)

type rollbackOptions struct {
	kubeconfig, context string
	to                  string
	clear, list         bool
}

func newModelRollback() *cobra.Command {
	var o rollbackOptions
	c := &cobra.Command{
		Use:   "rollback NAME",
		Short: "Go back to an earlier revision of a DeciderModel in a cluster",
		Long: "Asks for an earlier revision of a DeciderModel, by default the one that served before. It becomes the candidate and has to\n" +
			"pass what spec.rollout asks for, as it did before; evaluations that were run already count. It stays asked for until\n" +
			"--clear, whatever the spec says.",
		Example: "  gatewright model rollback judge\n  gatewright model rollback judge --list\n  gatewright model rollback judge --clear",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cluster, err := o.connect()
			if err != nil {
				return err
			}
			return o.run(c.Context(), cluster, args[0], c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "file that says where the API server is; as kubectl finds it by default")
	f.StringVar(&o.context, "context", "", "context of that file; its current one by default")
	f.StringVar(&o.to, "to", "", "revision to go back to; the one that served before by default")
	f.BoolVar(&o.clear, "clear", false, "ask for what the spec says again")
	f.BoolVar(&o.list, "list", false, "list the revisions, and change nothing")
	return c
}

func (o *rollbackOptions) connect() (client.Client, error) {
	at := clusterOptions{kubeconfig: o.kubeconfig, context: o.context}
	config, err := at.config()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}

func (o *rollbackOptions) run(ctx context.Context, cluster client.Client, name string, out io.Writer) error {
	if o.clear && o.to != "" || o.list && (o.clear || o.to != "") {
		return exit{exitUsage, "--to, --clear and --list exclude each other"}
	}
	var m v1alpha1.DeciderModel
	if err := cluster.Get(ctx, client.ObjectKey{Name: name}, &m); err != nil {
		return fmt.Errorf("reading DeciderModel %s: %w", name, err)
	}
	if o.list {
		return listRevisions(out, &m)
	}
	before := m.DeepCopy()
	said := "DeciderModel " + name + " follows its spec again"
	if o.clear {
		delete(m.Annotations, names.RollbackAnnotation)
	} else {
		to, err := revisionToGoBackTo(&m, o.to)
		if err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, names.RollbackAnnotation, to)
		said = fmt.Sprintf("DeciderModel %s is to serve revision %s; follow it with kubectl get dm %s -w", name, to, name)
	}
	if err := cluster.Patch(ctx, &m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("asking for the revision: %w", err)
	}
	_, err := fmt.Fprintln(out, said)
	return err
}

// revisionToGoBackTo is the one that is named, or that which served before.
func revisionToGoBackTo(m *v1alpha1.DeciderModel, to string) (string, error) {
	history := m.Status.History
	switch {
	case to == "" && len(history) == 0:
		return "", errors.New("no revision served before this one")
	case to == "":
		return string(history[0].Name), nil
	case m.Status.Active != nil && string(m.Status.Active.Name) == to:
		return to, nil
	case slices.ContainsFunc(history, func(r v1alpha1.DeciderRevision) bool { return string(r.Name) == to }):
		return to, nil
	}
	var known []string
	for _, r := range history {
		known = append(known, string(r.Name))
	}
	return "", fmt.Errorf("revision %s is not in the history: %s", to, strings.Join(known, ", "))
}

func listRevisions(out io.Writer, m *v1alpha1.DeciderModel) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "REVISION\tPLACE\tFINGERPRINT\tEVALUATION\tSINCE")
	row := func(place string, r *v1alpha1.DeciderRevision) {
		since := ""
		if r.Since != nil {
			since = r.Since.UTC().Format("2006-01-02 15:04")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Name, place, r.Fingerprint, r.Evaluation, since)
	}
	if m.Status.Candidate != nil {
		row("candidate", m.Status.Candidate)
	}
	if m.Status.Active != nil {
		row("active", m.Status.Active)
	}
	for i := range m.Status.History {
		row("earlier", &m.Status.History[i])
	}
	return w.Flush()
}
