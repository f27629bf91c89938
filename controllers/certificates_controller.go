package controllers

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/pki"
)

// Reasons of events on Secrets.
const (
	reasonIssued     = "Issued"
	reasonUnreadable = "Unreadable"
	reasonNotOurs    = "NotManaged"
)

// certificateAge bounds how long the certificates are not looked at: what was made while the clock was ahead does not hold
// once it is right again, and no event says so. A look reads from a cache.
const certificateAge = 10 * time.Minute

// CertificateReconciler keeps the authority and the certificates of the parts of an installation.
type CertificateReconciler struct {
	client    client.Client
	namespace string
	clock     clock.PassiveClock
	events    events.EventRecorder
	wanted    map[string]pki.Request // by name of the Secret
	ends      *prometheus.GaugeVec
}

// +kubebuilder:rbac:groups="",namespace=gatewright-system,resources=secrets,verbs=get;list;watch;create
// +kubebuilder:rbac:groups="",namespace=gatewright-system,resources=secrets,resourceNames=gatewright-authority;gatewright-gate-tls;gatewright-decider-client-tls;gatewright-decider-tls,verbs=update

func setupCertificates(mgr ctrl.Manager, p *parts) error {
	r := newCertificateReconciler(mgr.GetClient(), p)
	return ctrl.NewControllerManagedBy(mgr).Named("certificates").
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(theOne), builder.WithPredicates(named(p.Namespace, r.secrets()...))).
		WatchesRawSource(atStart()).
		Complete(r)
}

func newCertificateReconciler(c client.Client, p *parts) *CertificateReconciler {
	r := &CertificateReconciler{
		client: c, namespace: p.Namespace, clock: p.Clock, events: p.events, wanted: certificates(p.Namespace, p.GateDNSNames),
		ends: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "gatewright_manager_certificate_end_timestamp_seconds",
			Help: "When the certificate in a Secret of Gatewright's ends, in seconds since 1970.",
		}, []string{"secret"}),
	}
	p.Registry.MustRegister(r.ends)
	return r
}

// certificates are those of the parts, by name of their Secret.
func certificates(namespace string, more []string) map[string]pki.Request {
	service := names.GateService
	gate := []string{service, service + "." + namespace, service + "." + namespace + ".svc", service + "." + namespace + ".svc.cluster.local"}
	return map[string]pki.Request{
		names.GateTLSSecret:    {Name: names.GateService, DNSNames: append(gate, more...), Usage: x509.ExtKeyUsageServerAuth},
		names.GateClientSecret: {Name: "gatewright-decider-client", Usage: x509.ExtKeyUsageClientAuth},
		names.DeciderTLSSecret: {Name: "gatewright-decider", DNSNames: []string{names.DeciderServerName}, Usage: x509.ExtKeyUsageServerAuth},
	}
}

func (r *CertificateReconciler) secrets() []string {
	return append(slices.Sorted(maps.Keys(r.wanted)), names.AuthoritySecret)
}

// Reconcile looks at all certificates. Secrets that somebody else made, or that cannot be read, stay as they are.
func (r *CertificateReconciler) Reconcile(ctx context.Context, _ reconcile.Request) (ctrl.Result, error) {
	held, err := r.read(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := r.clock.Now()
	authority, err := r.authority(ctx, now, held[names.AuthoritySecret])
	if err != nil || authority == nil {
		return ctrl.Result{}, err
	}
	next := authority.NextChange()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(r.wanted)) {
		at, err := r.leaf(ctx, now, authority, name, held[name])
		errs = append(errs, err)
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	if err := errors.Join(errs...); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: min(max(next.Sub(now), time.Second), certificateAge)}, nil
}

func (r *CertificateReconciler) read(ctx context.Context) (map[string]*corev1.Secret, error) {
	held := map[string]*corev1.Secret{}
	for _, name := range r.secrets() {
		var s corev1.Secret
		switch err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, &s); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("reading Secret %s: %w", name, err)
		default:
			held[name] = &s
		}
	}
	return held, nil
}

// authority gives the authority as it should be now, written. Nil: there is one that cannot be read. It is not replaced:
// nobody would trust anybody until every pod had read the new one, and whoever can damage a Secret could make that happen.
func (r *CertificateReconciler) authority(ctx context.Context, now time.Time, held *corev1.Secret) (*pki.Authority, error) {
	if held == nil {
		made, err := pki.NewAuthority(now)
		if err != nil {
			return nil, err
		}
		return made, r.writeAuthority(ctx, nil, made, "there was none")
	}
	is, err := pki.ParseAuthority(held.Data)
	if err != nil {
		r.refuse(ctx, held, reasonUnreadable, "the authority cannot be read: no certificate is renewed until it is restored, or deleted to make a new one: "+err.Error())
		return nil, nil
	}
	should, err := is.Advance(now)
	if err != nil {
		return nil, err
	}
	if should == is {
		r.ends.WithLabelValues(held.Name).Set(float64(is.NotAfter().Unix()))
		return is, nil
	}
	return should, r.writeAuthority(ctx, held, should, "its successor is on the way")
}

func (r *CertificateReconciler) writeAuthority(ctx context.Context, held *corev1.Secret, a *pki.Authority, why string) error {
	data, err := a.Data()
	if err != nil {
		return err
	}
	r.ends.WithLabelValues(names.AuthoritySecret).Set(float64(a.NotAfter().Unix()))
	return r.write(ctx, names.AuthoritySecret, held, data, why)
}

// leaf writes one certificate if it has to change, and says when it is due again.
func (r *CertificateReconciler) leaf(ctx context.Context, now time.Time, a *pki.Authority, name string, held *corev1.Secret) (time.Time, error) {
	var data map[string][]byte
	if held != nil {
		if held.Labels[managedByLabel] != managerName {
			r.refuse(ctx, held, reasonNotOurs, "was made by somebody else, who has to renew it: it is used as it is")
			return time.Time{}, nil
		}
		data = held.Data
	}
	should, err := a.Renew(now, data, r.wanted[name])
	if err != nil {
		return time.Time{}, err
	}
	r.ends.WithLabelValues(name).Set(float64(should.NotAfter.Unix()))
	if held != nil && maps.EqualFunc(held.Data, should.Data, slices.Equal[[]byte]) {
		return should.RenewAt, nil
	}
	why := should.Renewed
	if why == "" {
		why = "another authority is trusted"
	}
	return should.RenewAt, r.write(ctx, name, held, should.Data, why)
}

// write creates a Secret, or updates the one that was read: if it has changed meanwhile, the next pass looks again.
func (r *CertificateReconciler) write(ctx context.Context, name string, held *corev1.Secret, data map[string][]byte, why string) error {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name, Labels: ownLabels()}, Type: corev1.SecretTypeTLS, Data: data,
	}
	var err error
	if held == nil {
		err = r.client.Create(ctx, s, client.FieldOwner(managerName))
	} else {
		s = held.DeepCopy()
		s.Data = data
		err = r.client.Update(ctx, s, client.FieldOwner(managerName))
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s: %w", name, err)
	}
	ctrl.LoggerFrom(ctx).Info("certificate written", "secret", name, "why", why)
	r.events.Eventf(s, nil, corev1.EventTypeNormal, reasonIssued, "Issue", "%s", why)
	return nil
}

// refuse says that a Secret is left as it is.
func (r *CertificateReconciler) refuse(ctx context.Context, s *corev1.Secret, reason, why string) {
	kind := corev1.EventTypeNormal
	if reason == reasonUnreadable {
		kind = corev1.EventTypeWarning
		ctrl.LoggerFrom(ctx).Error(errors.New(why), "a Secret cannot be read", "secret", s.Name)
	}
	r.events.Eventf(s, nil, kind, reason, "Keep", "%s", shorten(why))
}

func ownLabels() map[string]string {
	return map[string]string{names.NameLabel: names.Name, managedByLabel: managerName}
}

// theOne maps every event to one request, for controllers that look at everything they keep at once.
func theOne(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} }

// atStart is a source of one request, for what has to be made where nothing is there yet.
func atStart() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{})
		return nil
	})
}

// named lets through events of objects of a namespace that have one of some names.
func named(namespace string, list ...string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetNamespace() == namespace && slices.Contains(list, o.GetName())
	})
}
