// Package leasestore remembers used permits as Leases of a Kubernetes API server, for tool servers of several replicas that
// have nothing else to share. A use is the creation of a Lease, which the API server lets one of several do.
//
// A Lease costs the API server a write of some 600 bytes, and stays for as long as the permit is remembered. That is meant
// for tens of permits a second; natsstore takes more.
package leasestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/permit"
)

const (
	// DefaultTimeout bounds one use.
	DefaultTimeout = 2 * time.Second
	// TidyInterval is how often Leases are deleted whose time is over.
	TidyInterval = time.Minute
	// grace is how much longer they stay: longer than the clocks of replicas differ.
	grace = 10 * time.Minute
	// longest is for how long a permit may have to be remembered.
	longest = time.Hour
	// DefaultQPS bounds the requests a second of one replica where Config says nothing. The 5 of client-go would keep calls
	// waiting past DefaultTimeout at some tens of permits a second.
	DefaultQPS = 100
	// DefaultBurst is how many of them may come at once.
	DefaultBurst = 200
)

// Options of Open.
type Options struct {
	// Config of a service account that may create, list and delete Leases in Namespace, and better in no other. Where it
	// bounds no rate, DefaultQPS and DefaultBurst hold.
	Config *rest.Config
	// Namespace of the Leases. All replicas name the same one.
	Namespace string
	// Identity is who has used a permit, in records: the name of the pod.
	Identity string
	// Timeout of one use, DefaultTimeout if zero.
	Timeout time.Duration
	// Clock, the system's if nil.
	Clock clock.PassiveClock
}

// Store is a permit.SharedStore in an API server.
type Store struct {
	leases  coordination.LeaseInterface
	http    *http.Client
	options Options
	latest  atomic.Int64 // the latest time that was seen, in nanoseconds: a clock that is set back makes nothing good again
	stop    context.CancelFunc
	stopped sync.WaitGroup
}

var _ permit.SharedStore = (*Store)(nil)

// Open makes a store, which deletes Leases whose time is over until it is closed. It does not connect.
func Open(o Options) (*Store, error) {
	if o.Namespace == "" {
		return nil, errors.New("opening store of used permits: no namespace is named")
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	config := rest.CopyConfig(o.Config)
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS, config.Burst = DefaultQPS, DefaultBurst
	}
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("opening store of used permits: %w", err)
	}
	client, err := coordination.NewForConfigAndClient(config, connections)
	if err != nil {
		return nil, fmt.Errorf("opening store of used permits: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Store{leases: client.Leases(o.Namespace), http: connections, options: o, stop: stop}
	s.stopped.Go(func() { s.tidy(ctx) })
	return s, nil
}

// SharedByReplicas implements permit.SharedStore.
func (s *Store) SharedByReplicas() {}

// Use implements permit.Store. A Lease that is there says that the permit was used, also when its time is over.
func (s *Store) Use(ctx context.Context, jti string, until time.Time) error {
	if err := permit.CheckUse(ctx, jti); err != nil {
		return err
	}
	now := s.now()
	left := until.Sub(now)
	if left <= 0 || left > longest {
		return fmt.Errorf("permit would have to be remembered for %s, and the store remembers for up to %s", left, longest)
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	at, seconds := metav1.NewMicroTime(now), int32(left/time.Second)+1
	_, err := s.leases.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name(jti), Labels: map[string]string{names.LeaseLabel: names.LeasePermit}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &s.options.Identity, AcquireTime: &at, LeaseDurationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%w: lease %s is there", permit.ErrUsed, name(jti))
	}
	if err != nil {
		return fmt.Errorf("writing down a used permit: %w", err)
	}
	return nil
}

// Ready says whether permits can be used now.
func (s *Store) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	if _, err := s.leases.List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1}); err != nil {
		return fmt.Errorf("reading leases: %w", err)
	}
	return nil
}

// Close ends the deleting and connections that nothing waits for. A use is possible all the same.
func (s *Store) Close() error {
	s.stop()
	s.stopped.Wait()
	utilnet.CloseIdleConnectionsFor(s.http.Transport)
	return nil
}

// name is the same at every replica, whatever signs an id has.
func name(jti string) string {
	sum := sha256.Sum256([]byte(jti))
	return names.PermitLeasePrefix + hex.EncodeToString(sum[:])
}

func (s *Store) now() time.Time {
	now := s.options.Clock.Now()
	for {
		latest := s.latest.Load()
		if n := now.UnixNano(); n <= latest {
			return time.Unix(0, latest)
		} else if s.latest.CompareAndSwap(latest, n) {
			return now
		}
	}
}

const selector = names.LeaseLabel + "=" + names.LeasePermit

func (s *Store) tidy(ctx context.Context) {
	ticker := time.NewTicker(TidyInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = s.Tidy(ctx) // what stays is deleted a minute later, and counts for nothing meanwhile
		}
	}
}

// Tidy deletes the Leases whose time is over. All replicas may do so at once.
func (s *Store) Tidy(ctx context.Context) error {
	o := metav1.ListOptions{LabelSelector: selector, Limit: 500}
	for {
		page, err := s.leases.List(ctx, o)
		if err != nil {
			return fmt.Errorf("reading leases: %w", err)
		}
		for i := range page.Items {
			if err := s.deleteIfOver(ctx, &page.Items[i]); err != nil {
				return fmt.Errorf("deleting leases: %w", err)
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return nil
		}
	}
}

func (s *Store) deleteIfOver(ctx context.Context, l *coordinationv1.Lease) error {
	if l.Spec.AcquireTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return nil // not of this store's making
	}
	until := l.Spec.AcquireTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second)
	if s.now().Before(until.Add(grace)) {
		return nil
	}
	err := s.leases.Delete(ctx, l.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(l.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
