package objects

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/names"
)

// Indexes of the cache.
const (
	byCallKey   = "callKey"
	byCaller    = "caller"
	byNamespace = cache.NamespaceIndex
)

// seen is what watching has shown, a moment late, and what this store itself has made since.
type seen struct {
	approvals, leases cache.SharedIndexInformer

	mu sync.Mutex
	// own are the objects that this store made and that watching has not shown yet, by namespace/name.
	own map[string]*v1alpha1.ToolApproval
}

// WatchedPaths are what a Store watches, as the API server serves it. While one of these watches is broken, Find and IsEmpty
// know nothing of what came since: whoever goes by them has to see the watches open.
func WatchedPaths(namespace string) []string {
	return []string{
		"/apis/" + v1alpha1.GroupVersion.String() + "/" + resource,
		"/apis/" + coordinationv1.SchemeGroupVersion.String() + "/namespaces/" + namespace + "/leases",
	}
}

func newSeen(c *Client, l leases, noticed func(*v1alpha1.ToolApproval)) (*seen, error) {
	s := &seen{own: map[string]*v1alpha1.ToolApproval{}}
	s.approvals = cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return c.page(ctx, "", o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.watch(ctx, o)
		},
	}, &v1alpha1.ToolApproval{}, 0, cache.Indexers{byCallKey: indexCallKey, byCaller: indexCaller, byNamespace: cache.MetaNamespaceIndexFunc})
	labels := names.LeaseLabel + " in (" + names.LeaseUse + "," + names.LeaseRejection + "," + names.LeaseRaise + ")"
	s.leases = cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = labels
			return l.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = labels
			return l.Watch(ctx, o)
		},
	}, &coordinationv1.Lease{}, 0, cache.Indexers{byCallKey: indexCallLabel, byCaller: indexRaise})
	for _, informer := range []cache.SharedIndexInformer{s.approvals, s.leases} {
		if err := informer.SetTransform(withoutManagers); err != nil {
			return nil, err
		}
	}
	notice := func(o any) {
		if a, ok := o.(*v1alpha1.ToolApproval); ok {
			noticed(a)
		}
	}
	_, err := s.approvals.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: notice, UpdateFunc: func(_, o any) { notice(o) }})
	return s, err
}

func indexCallKey(o any) ([]string, error) {
	if a, ok := o.(*v1alpha1.ToolApproval); ok {
		return []string{string(a.Spec.Call.CallKey)}, nil
	}
	return nil, nil
}

func indexCallLabel(o any) ([]string, error) {
	if l, ok := o.(*coordinationv1.Lease); ok && l.Labels[names.CallLabel] != "" {
		return []string{l.Labels[names.CallLabel]}, nil
	}
	return nil, nil
}

// withoutManagers drops who has written which field: nothing here asks, and it takes as much room as the rest.
func withoutManagers(o any) (any, error) {
	if m, err := meta.Accessor(o); err == nil {
		m.SetManagedFields(nil)
	}
	return o, nil
}

func (s *seen) run(ctx context.Context, all *sync.WaitGroup) {
	all.Go(func() { s.approvals.RunWithContext(ctx) })
	all.Go(func() { s.leases.RunWithContext(ctx) })
}

func (s *seen) isSynced() bool { return s.approvals.HasSynced() && s.leases.HasSynced() }

func (s *seen) wait(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), s.approvals.HasSynced, s.leases.HasSynced) {
		return fmt.Errorf("waiting for approvals: %w", context.Cause(ctx))
	}
	return nil
}

func (s *seen) isEmpty() bool {
	return len(s.approvals.GetIndexer().ListKeys()) == 0 && len(s.leases.GetIndexer().ListKeys()) == 0 && len(s.unseen()) == 0
}

// add keeps what this store has made until watching shows it.
func (s *seen) add(o *v1alpha1.ToolApproval) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own[o.Namespace+"/"+o.Name] = o
}

// unseen gives what this store has made and watching has not shown.
func (s *seen) unseen() []*v1alpha1.ToolApproval {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*v1alpha1.ToolApproval
	for key, o := range s.own {
		if _, isSeen, err := s.approvals.GetIndexer().GetByKey(key); isSeen && err == nil {
			delete(s.own, key)
			continue
		}
		out = append(out, o)
	}
	return out
}

// forgetOwn drops what this store has made and what can count no more.
func (s *seen) forgetOwn(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, o := range s.own {
		if !now.Before(o.Spec.Call.ExpiresAt.Time) {
			delete(s.own, key)
		}
	}
}

// of gives what an index holds under a key, own ones included that match.
func (s *seen) of(index, key string, matches func(*v1alpha1.ToolApproval) bool) []*v1alpha1.ToolApproval {
	var out []*v1alpha1.ToolApproval
	for _, o := range s.unseen() {
		if matches(o) {
			out = append(out, o)
		}
	}
	indexed, err := s.approvals.GetIndexer().ByIndex(index, key)
	if err != nil {
		panic(err) // an index that was never made
	}
	for _, o := range indexed {
		if a, ok := o.(*v1alpha1.ToolApproval); ok {
			out = append(out, a)
		}
	}
	return out
}

func (s *seen) ofCall(callKey string) []*v1alpha1.ToolApproval {
	return s.of(byCallKey, callKey, func(o *v1alpha1.ToolApproval) bool { return string(o.Spec.Call.CallKey) == callKey })
}

func (s *seen) ofNamespace(namespace string) []*v1alpha1.ToolApproval {
	return s.of(byNamespace, namespace, func(o *v1alpha1.ToolApproval) bool { return o.Namespace == namespace })
}

// ofCaller gives those that say they are a caller's. Whether a gate has put them where they are, only their seal says.
func (s *seen) ofCaller(caller string) []*v1alpha1.ToolApproval {
	return s.of(byCaller, caller, func(o *v1alpha1.ToolApproval) bool { return o.Spec.Call.Caller == caller })
}

// used says when an approval was used, as far as watching has shown.
func (s *seen) used(namespace, id string) *time.Time {
	o, isSeen, err := s.leases.GetIndexer().GetByKey(namespace + "/" + useName(id))
	if err != nil || !isSeen {
		return nil
	}
	l, _ := o.(*coordinationv1.Lease)
	return madeAt(l)
}

// rejections gives those that Leases keep for the key of a call and that still count, as far as watching has shown.
func (s *seen) rejections(callKey string, now time.Time) []approval.Approval {
	indexed, err := s.leases.GetIndexer().ByIndex(byCallKey, callLabel(callKey))
	if err != nil {
		panic(err) // an index that was never made
	}
	var out []approval.Approval
	for _, o := range indexed {
		l, _ := o.(*coordinationv1.Lease)
		if a := rejected(l, now); a != nil {
			out = append(out, *a)
		}
	}
	return out
}
