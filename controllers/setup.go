// Package controllers holds the reconcilers of an installation. Each reads first, judges in a pure function, and writes
// last. Setup registers them all.
package controllers

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"gatewright.dev/gatewright/internal/names"
)

// managerName is the field owner of what the manager applies, the reporter of its events, and the value of managed-by on
// the objects that it makes.
const managerName = "gatewright-manager"

// managedByLabel says on an object that the manager made it and may change it.
const managedByLabel = "app.kubernetes.io/managed-by"

// Options of all controllers.
type Options struct {
	// Namespace is Gatewright's own; names.Namespace by default.
	Namespace string
	// Clock is the time; the system's by default.
	Clock clock.WithTicker
	// GatePoll is how often each gate is asked what it serves; 2 s by default.
	GatePoll time.Duration
	// GateDNSNames are further names by which callers reach the gate, for its certificate.
	GateDNSNames []string
	// Registry takes the metrics; that of controller-runtime by default.
	Registry prometheus.Registerer
	// Client asks the gates; by default one with a short time limit.
	Client *http.Client
	// Deciders says what the pods of deciders are made of.
	Deciders DeciderOptions
}

// parts is what every reconciler is made of.
type parts struct {
	Options
	events events.EventRecorder
	gates  *Gates
}

// Setup registers every reconciler with a manager. They run on the replica that leads.
func Setup(mgr ctrl.Manager, o Options) error {
	o.setDefaults()
	p := &parts{Options: o, events: mgr.GetEventRecorder(managerName)}
	p.gates = newGates(mgr.GetClient(), o)
	if err := mgr.Add(p.gates); err != nil {
		return fmt.Errorf("adding the observer of gates: %w", err)
	}
	for name, setup := range map[string]func(ctrl.Manager, *parts) error{
		"policies":          setupPolicies,
		"approvals":         setupApprovals,
		"deciders":          setupDeciders,
		"evaluations":       setupEvaluations,
		"external tokens":   setupTokens,
		"certificates":      setupCertificates,
		"keys":              setupKeys,
		"authority bundles": setupBundles,
	} {
		if err := setup(mgr, p); err != nil {
			return fmt.Errorf("setting up %s: %w", name, err)
		}
	}
	return nil
}

func (o *Options) setDefaults() {
	if o.Namespace == "" {
		o.Namespace = names.Namespace
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.GatePoll <= 0 {
		o.GatePoll = defaultGatePoll
	}
	if o.Registry == nil {
		o.Registry = metrics.Registry
	}
	if o.Client == nil {
		o.Client = &http.Client{Timeout: gateTimeout}
	}
}
