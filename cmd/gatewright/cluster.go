package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spf13/cobra"

	"gatewright.dev/gatewright/internal/doctor"
)

// clusterOptions say which cluster is asked, and as whom.
type clusterOptions struct {
	kubeconfig, context, namespace string
	allNamespaces                  bool
}

func addCluster(c *cobra.Command, o *clusterOptions, namespaceHelp string) {
	c.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "file that says where the API server is; as kubectl finds it by default")
	c.Flags().StringVar(&o.context, "context", "", "context of that file; its current one by default")
	c.Flags().StringVarP(&o.namespace, "namespace", "n", "", namespaceHelp)
}

func (o *clusterOptions) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context})
}

// isThere says whether there is a file that names an API server.
func (o *clusterOptions) isThere() bool {
	raw, err := o.loader().RawConfig()
	return err == nil && len(raw.Clusters) > 0
}

// config finds the API server.
func (o *clusterOptions) config() (*rest.Config, error) {
	config, err := o.loader().ClientConfig()
	if err != nil {
		return nil, exit{exitUsage, "finding the API server: " + err.Error() + ": name a file with --kubeconfig"}
	}
	config.UserAgent = "gatewright/" + version
	config.QPS, config.Burst = 50, 100
	return config, nil
}

// ownNamespace is the one that is named, or that of the context.
func (o *clusterOptions) ownNamespace() (string, error) {
	if o.namespace != "" {
		return o.namespace, nil
	}
	namespace, _, err := o.loader().Namespace()
	if err != nil {
		return "", fmt.Errorf("reading the namespace of the context: %w", err)
	}
	return namespace, nil
}

// client reads and writes what the doctor knows.
func (o *clusterOptions) client() (client.Client, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	scheme, err := doctor.NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("asking the API server: %w", err)
	}
	return c, nil
}

// user is who the API server takes this user for.
func (o *clusterOptions) user(ctx context.Context) (string, error) {
	c, err := o.client()
	if err != nil {
		return "", err
	}
	var review authenticationv1.SelfSubjectReview
	if err := c.Create(ctx, &review); err != nil {
		return "", fmt.Errorf("asking the API server who you are: %w", err)
	}
	if review.Status.UserInfo.Username == "" {
		return "", errors.New("the API server does not say who you are")
	}
	return review.Status.UserInfo.Username, nil
}

// gathered reads a cluster.
func (o *clusterOptions) gathered(ctx context.Context, system, only string) (*doctor.Snapshot, error) {
	c, err := o.client()
	if err != nil {
		return nil, err
	}
	return doctor.Gather(ctx, c, system, only, time.Now())
}
