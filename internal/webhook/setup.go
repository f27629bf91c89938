package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"gatewright.dev/gatewright/internal/names"
)

// CertSource says who makes the certificate by which the API server knows the webhooks.
type CertSource string

// Certificate sources.
const (
	// CertSourceRotator lets the manager make it, renew it, and write its authority into the webhook configurations.
	CertSourceRotator CertSource = "rotator"
	// CertSourceCertManager takes tls.crt and tls.key from files that somebody mounts and renews. The authority is written
	// into the webhook configurations by whoever follows their annotation CertManagerAnnotation.
	CertSourceCertManager CertSource = "cert-manager"
)

// CertSources lists all of them.
func CertSources() []CertSource { return []CertSource{CertSourceRotator, CertSourceCertManager} }

// Options of Setup.
type Options struct {
	// Namespace is Gatewright's own.
	Namespace string
	// Host and Port that the server listens on. An empty host is every address; port 0 is names.WebhookPort.
	Host string
	Port int
	// CertSource is CertSourceRotator when empty.
	CertSource CertSource
	// CertDir has tls.crt and tls.key. With CertSourceRotator they are written there, and it may be an empty folder that
	// goes with the pod.
	CertDir string
	// DNSNames are names of the webhook's Service beside NAME.NAMESPACE.svc.
	DNSNames []string
	// Clock says when to look at the certificate again. Nil is the clock of this machine.
	Clock clock.WithTicker
}

// Validate says what is wrong with the options.
func (o Options) Validate() error {
	switch {
	case o.Namespace == "":
		return errors.New("the webhooks need the namespace of their Service")
	case o.CertDir == "":
		return errors.New("the webhooks need a folder for their certificate")
	case o.CertSource != "" && !slices.Contains(CertSources(), o.CertSource):
		return fmt.Errorf("certificate source %q is not known: use %s or %s", o.CertSource, CertSourceRotator, CertSourceCertManager)
	case o.Port < 0 || o.Port > 65535:
		return fmt.Errorf("port %d is none: use 1 to 65535", o.Port)
	}
	return nil
}

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,verbs=get;list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,resourceNames=gatewright,verbs=update
// +kubebuilder:rbac:groups="",namespace=gatewright-system,resources=secrets,verbs=get;list;watch;create
// +kubebuilder:rbac:groups="",namespace=gatewright-system,resources=secrets,resourceNames=gatewright-webhook-tls,verbs=update
// +kubebuilder:rbac:groups=gatewright.dev,resources=toolpolicies;clustertoolpolicies,verbs=get;list;watch

// Setup adds the webhooks to a manager: their server, which starts once it has a certificate, and who makes that. The
// manager is not ready before. Every replica answers, leader or not.
func Setup(m manager.Manager, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Port == 0 {
		o.Port = names.WebhookPort
	}
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{Host: o.Host, Port: o.Port, CertDir: o.CertDir, TLSOpts: []func(*tls.Config){atLeastTLS12}})
	Register(server, m.GetScheme(), m.GetClient(), o.Namespace)
	certified := make(chan struct{})
	if err := m.AddReadyzCheck("webhooks", ready(certified, server)); err != nil {
		return fmt.Errorf("adding readiness check: %w", err)
	}
	if err := certify(m, o, certified); err != nil {
		return err
	}
	return m.Add(runnable(func(ctx context.Context) error {
		select {
		case <-certified:
			return m.Add(server)
		case <-ctx.Done():
			return nil
		}
	}))
}

func atLeastTLS12(c *tls.Config) { c.MinVersion = tls.VersionTLS12 }

// certify sees to it that there is a certificate, and closes certified when the server can start.
func certify(m manager.Manager, o Options, certified chan struct{}) error {
	if o.CertSource == CertSourceCertManager {
		return m.Add(runnable(func(ctx context.Context) error { return waitForFiles(ctx, o.Clock, o.CertDir, certified) }))
	}
	mirror := &certificateFiles{reader: m.GetAPIReader(), writer: m.GetClient(), key: secretKey(o.Namespace), dir: o.CertDir, clock: o.Clock}
	if err := m.Add(mirror); err != nil {
		return fmt.Errorf("adding certificate files: %w", err)
	}
	host := names.WebhookService + "." + o.Namespace + ".svc"
	certificates := &rotator.CertRotator{
		SecretKey: secretKey(o.Namespace), CertDir: o.CertDir,
		CAName: "gatewright-webhook-authority", CAOrganization: "gatewright",
		DNSName: host, ExtraDNSNames: append([]string{host + ".cluster.local"}, o.DNSNames...),
		IsReady: certified,
		Webhooks: []rotator.WebhookInfo{
			{Name: ValidatingName, Type: rotator.Validating},
			{Name: MutatingName, Type: rotator.Mutating},
		},
		FieldOwner: "gatewright-webhook-certificates", ControllerName: "webhook-certificates",
	}
	return rotatorWithSecret(m, mirror, certificates)
}

func secretKey(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: names.WebhookTLSSecret}
}

// rotatorWithSecret adds the rotator once the Secret that it updates is there: it gives up on a missing one.
func rotatorWithSecret(m manager.Manager, mirror *certificateFiles, r *rotator.CertRotator) error {
	return m.Add(runnable(func(ctx context.Context) error {
		if err := mirror.ensureSecret(ctx); err != nil {
			return err
		}
		if err := rotator.AddRotator(m, r); err != nil {
			return fmt.Errorf("adding certificate rotator: %w", err)
		}
		return nil
	}))
}

// ready says no until there is a certificate, and then what the server says.
func ready(certified <-chan struct{}, server ctrlwebhook.Server) func(*http.Request) error {
	started := server.StartedChecker()
	return func(r *http.Request) error {
		select {
		case <-certified:
			return started(r)
		default:
			return errors.New("the webhooks have no certificate yet")
		}
	}
}

// waitForFiles waits until somebody has mounted a certificate.
func waitForFiles(ctx context.Context, c clock.WithTicker, dir string, found chan<- struct{}) error {
	ticker := c.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		_, certErr := os.Stat(filepath.Join(dir, certFile))
		_, keyErr := os.Stat(filepath.Join(dir, keyFile))
		if certErr == nil && keyErr == nil {
			close(found)
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// runnable runs in every replica.
type runnable func(context.Context) error

// Start implements manager.Runnable.
func (r runnable) Start(ctx context.Context) error { return r(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (runnable) NeedLeaderElection() bool { return false }
