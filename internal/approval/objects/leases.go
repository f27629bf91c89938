package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/names"
)

// leases are those in the gate's namespace. A Lease that was made is never changed: that it is there is all it says.
type leases struct {
	coordination.LeaseInterface
	namespace string
}

func newLeases(config *rest.Config, namespace string) (leases, error) {
	client, err := coordination.NewForConfig(config)
	if err != nil {
		return leases{}, err
	}
	return leases{client.Leases(namespace), namespace}, nil
}

func useName(id string) string { return names.UseLeasePrefix + id }

func rejectionName(b approval.Binding) string {
	return names.RejectionLeasePrefix + strings.TrimPrefix(b.Digest(), "sha256:")
}

// callLabel is a key of a call as the value of a label, which is shorter: calls with one label need not be the same.
func callLabel(callKey string) string {
	text := strings.TrimPrefix(callKey, "sha256:")
	return text[:min(len(text), 40)]
}

// rejections gives those that Leases keep for the key of a call and that still count, as the API server has them.
func (l leases) rejections(ctx context.Context, callKey string, now time.Time) ([]approval.Approval, error) {
	list, err := l.List(ctx, metav1.ListOptions{LabelSelector: names.CallLabel + "=" + callLabel(callKey)})
	if err != nil {
		return nil, unavailable("reading leases", err)
	}
	var out []approval.Approval
	for i := range list.Items {
		if a := rejected(&list.Items[i], now); a != nil {
			out = append(out, *a)
		}
	}
	return out, nil
}

// find gives a Lease as it stands in the API server, nil if there is none.
func (l leases) find(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	lease, err := l.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable("reading lease", err)
	}
	return lease, nil
}

// used says when an approval was used, nil if it was not.
func (l leases) used(ctx context.Context, id string) (*time.Time, error) {
	lease, err := l.find(ctx, useName(id))
	if err != nil {
		return nil, err
	}
	return madeAt(lease), nil
}

// make makes a Lease that lasts until a time. It says whether this call made it: of several one does.
func (l leases) make(ctx context.Context, kind, name, holder string, now, until time.Time, extra metav1.ObjectMeta) (bool, error) {
	at, seconds := metav1.NewMicroTime(now), int32(until.Sub(now)/time.Second)+1
	labels := map[string]string{names.LeaseLabel: kind, names.NameLabel: names.Name, names.ComponentLabel: names.ComponentGate}
	maps.Copy(labels, extra.Labels)
	_, err := l.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: extra.Annotations, Labels: labels},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &at, LeaseDurationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	return err == nil, err
}

func madeAt(l *coordinationv1.Lease) *time.Time {
	if l == nil {
		return nil
	}
	at := l.CreationTimestamp.UTC()
	if l.Spec.AcquireTime != nil {
		at = l.Spec.AcquireTime.UTC()
	}
	return &at
}

// until says when a Lease stands for nothing any more. One that does not say so stands for ever.
func until(l *coordinationv1.Lease) time.Time {
	if l.Spec.AcquireTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return time.Unix(1<<40, 0)
	}
	return l.Spec.AcquireTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second)
}

// rejected gives the approval that a Lease keeps as rejected, nil if that counts no more.
func rejected(l *coordinationv1.Lease, now time.Time) *approval.Approval {
	if l == nil {
		return nil
	}
	var a approval.Approval
	if err := json.Unmarshal([]byte(l.Annotations[names.RejectionAnnotation]), &a); err != nil || !now.Before(a.Call.ExpiresAt) {
		return nil
	}
	a.State = approval.Rejected
	return &a
}

// leaseRetention is how long a Lease stays after its time: longer than clocks differ, and than its approval is looked at.
const leaseRetention = approval.Retention + 10*time.Minute

// Tidy deletes the Leases whose time is long over. A gate calls it now and then; several at once do no harm.
func (s *Store) Tidy(ctx context.Context) error {
	now := s.now()
	s.seen.forgetOwn(now)
	for _, o := range s.seen.leases.GetStore().List() {
		l, ok := o.(*coordinationv1.Lease)
		if !ok || now.Before(until(l).Add(leaseRetention)) {
			continue
		}
		bounded, cancel := s.bounded(ctx)
		err := s.leases.Delete(bounded, l.Name, onlyThis(l))
		cancel()
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting leases: %w", err)
		}
	}
	return nil
}

// onlyThis deletes a Lease and none that was made since under its name.
func onlyThis(l *coordinationv1.Lease) metav1.DeleteOptions {
	return metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(l.UID))}
}
