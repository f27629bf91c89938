package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/keyring"
	"gatewright.dev/gatewright/internal/names"
)

// keyForm is how the keys of one part of the gate are made and read.
type keyForm struct {
	make  func(clock.PassiveClock) ([]byte, error)
	check func([]byte) error
}

// gateKeys are the keys of a gate, by name in their Secret.
var gateKeys = map[string]keyForm{
	names.KeySeal:   {keyring.NewFile, keyring.CheckFile},
	names.KeyPermit: {keyring.NewFile, keyring.CheckFile},
	names.KeyAudit:  {audit.NewKeyFile, audit.CheckKeyFile},
}

// KeyReconciler makes the keys of the gates, once. It never writes over a key: what one has signed could no longer be
// verified, and a person has to know when keys are damaged.
type KeyReconciler struct {
	client    client.Client
	namespace string
	clock     clock.PassiveClock
	events    events.EventRecorder
	broken    prometheus.Gauge
}

func setupKeys(mgr ctrl.Manager, p *parts) error {
	return ctrl.NewControllerManagedBy(mgr).Named("keys").
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(theOne), builder.WithPredicates(named(p.Namespace, names.GateKeysSecret))).
		WatchesRawSource(atStart()).
		Complete(newKeyReconciler(mgr.GetClient(), p))
}

func newKeyReconciler(c client.Client, p *parts) *KeyReconciler {
	r := &KeyReconciler{
		client: c, namespace: p.Namespace, clock: p.Clock, events: p.events,
		broken: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gatewright_manager_keys_unreadable", Help: "Keys of the gates that are missing in their Secret or cannot be read.",
		}),
	}
	p.Registry.MustRegister(r.broken)
	return r
}

// Reconcile makes the Secret with the keys where there is none, and else says what is wrong with it.
func (r *KeyReconciler) Reconcile(ctx context.Context, _ reconcile.Request) (ctrl.Result, error) {
	var held corev1.Secret
	switch err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: names.GateKeysSecret}, &held); {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, r.create(ctx)
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reading the keys of the gates: %w", err)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(gateKeys)) {
		if err := checkKeys(held.Data, name); err != nil {
			errs = append(errs, err)
		}
	}
	r.broken.Set(float64(len(errs)))
	if err := errors.Join(errs...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "keys of the gates cannot be read, and are left as they are: restore the Secret from a backup, or delete it to lose all keys and get new ones",
			"secret", held.Name)
		r.events.Eventf(&held, nil, corev1.EventTypeWarning, reasonUnreadable, "Keep", "%s", shorten(err.Error()))
	}
	return ctrl.Result{}, nil
}

func checkKeys(data map[string][]byte, name string) error {
	value, ok := data[name]
	if !ok {
		return fmt.Errorf("%s is missing", name)
	}
	if err := gateKeys[name].check(value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (r *KeyReconciler) create(ctx context.Context) error {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: names.GateKeysSecret, Labels: ownLabels()}, Data: map[string][]byte{},
	}
	for name, form := range gateKeys {
		data, err := form.make(r.clock)
		if err != nil {
			return fmt.Errorf("making keys of the gates: %w", err)
		}
		s.Data[name] = data
	}
	if err := r.client.Create(ctx, s, client.FieldOwner(managerName)); err != nil {
		return fmt.Errorf("creating the keys of the gates: %w", err)
	}
	r.broken.Set(0)
	ctrl.LoggerFrom(ctx).Info("keys of the gates made", "secret", s.Name)
	r.events.Eventf(s, nil, corev1.EventTypeNormal, reasonIssued, "Make", "keys for seals, permits and the audit log")
	return nil
}
