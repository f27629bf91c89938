package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"gatewright.dev/gatewright/controllers"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=gatewright-system,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",namespace=gatewright-system,resources=events,verbs=create;patch

// leaderLease is the Lease that the leading replica holds.
const leaderLease = "gatewright-manager"

// run serves until the context ends, or until something that the manager needs fails.
func run(ctx context.Context, c config, stderr io.Writer) error {
	log := logr.FromSlogHandler(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: c.logLevel}))
	ctrl.SetLogger(log)
	cluster, err := clusterConfig(c.kubeconfig)
	if err != nil {
		return err
	}
	mgr, err := newManager(cluster, c, log)
	if err != nil {
		return err
	}
	log.Info("manager starts", "version", version, "namespace", c.namespace)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	log.Info("manager ends")
	return nil
}

func clusterConfig(path string) (*rest.Config, error) {
	var (
		cluster *rest.Config
		err     error
	)
	if path == "" {
		cluster, err = rest.InClusterConfig()
	} else {
		cluster, err = clientcmd.BuildConfigFromFlags("", path)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	cluster.UserAgent = "gatewright-manager/" + version
	return cluster, nil
}

// newManager makes a manager with all controllers and webhooks, which has not started.
func newManager(cluster *rest.Config, c config, log logr.Logger) (ctrl.Manager, error) {
	scheme, err := controllers.NewScheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cluster, ctrl.Options{
		Scheme:                  scheme,
		Logger:                  log,
		Cache:                   controllers.CacheOptions(c.namespace),
		Metrics:                 metricsserver.Options{BindAddress: c.metricsListen},
		HealthProbeBindAddress:  c.probeListen,
		LeaderElection:          c.leaderElect,
		LeaderElectionID:        leaderLease,
		LeaderElectionNamespace: c.namespace,
		// The process ends right after the manager has, so that the next leader need not wait for the lease to run out.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &c.shutdownTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding liveness check: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding readiness check: %w", err)
	}
	err = controllers.Setup(mgr, controllers.Options{
		Namespace: c.namespace, GatePoll: c.gatePoll, GateDNSNames: c.gateDNSNames, Deciders: c.deciders,
	})
	if err != nil {
		return nil, err
	}
	if err := addWebhooks(mgr, c.webhooks, c.namespace); err != nil {
		return nil, err
	}
	return mgr, nil
}
