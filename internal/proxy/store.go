package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"gatewright.dev/gatewright/permit"
	"gatewright.dev/gatewright/permit/leasestore"
	"gatewright.dev/gatewright/permit/natsstore"
)

// Stores of used permits.
const (
	StoreFile  = "file"
	StoreNATS  = "nats"
	StoreLease = "lease"
)

type closingStore interface {
	permit.Store
	io.Closer
}

func (c *Config) validateStore() error {
	switch {
	case c.Store != StoreFile && c.Store != StoreNATS && c.Store != StoreLease:
		return fmt.Errorf("--permit-store %q is none of file, nats and lease", c.Store)
	case c.Store == StoreNATS && c.NATSURL == "":
		return errors.New("--nats-url is required for --permit-store nats")
	case c.Store != StoreNATS && c.NATSURL != "":
		return errors.New("--nats-url has no effect without --permit-store nats")
	case c.Store == StoreLease && c.LeaseNamespace == "":
		return errors.New("--lease-namespace is required for --permit-store lease: the namespace of the Leases, the same for all replicas")
	case c.Store != StoreLease && c.LeaseNamespace+c.Kubeconfig != "":
		return errors.New("--lease-namespace and --kubeconfig have no effect without --permit-store lease")
	case c.Replicas < 1:
		return errors.New("--replicas is less than 1")
	case c.Store == StoreFile && c.Replicas > 1:
		return errors.New("--replicas of more than 1 need --permit-store nats or lease: with files each would let a permit be used once")
	}
	return nil
}

func (c *Config) openStore(ctx context.Context) (closingStore, error) {
	switch c.Store {
	case StoreNATS:
		store, err := natsstore.Open(ctx, natsstore.Options{
			URL: c.NATSURL, CredentialsFile: c.NATSCreds, CAFile: c.NATSCA, Bucket: c.NATSBucket,
		})
		if err != nil {
			return nil, fmt.Errorf("--nats-url: %w", err)
		}
		return store, nil
	case StoreLease:
		return c.openLeases() //nolint:contextcheck,nolintlint // it lives until it is closed; contextcheck sees this only with both packages at hand
	}
	store, err := permit.OpenFile(c.PermitLog, nil)
	if err != nil {
		return nil, fmt.Errorf("--permit-log %s: %w", c.PermitLog, err)
	}
	return store, nil
}

func (c *Config) openLeases() (closingStore, error) {
	config, err := c.cluster()
	if err != nil {
		return nil, err
	}
	pod, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the name of this machine: %w", err)
	}
	store, err := leasestore.Open(leasestore.Options{Config: config, Namespace: c.LeaseNamespace, Identity: pod, Timeout: c.LeaseTimeout})
	if err != nil {
		return nil, fmt.Errorf("--permit-store lease: %w", err)
	}
	return store, nil
}

// cluster finds the API server by the file that is named, or as a pod does. No file is looked for: a proxy must not keep
// permits in whichever cluster somebody worked with last.
func (c *Config) cluster() (*rest.Config, error) {
	if c.Kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("--permit-store lease: %w: name a file with --kubeconfig outside of a pod", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return config, nil
}
