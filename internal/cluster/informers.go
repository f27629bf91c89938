package cluster

import (
	"context"
	"fmt"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
)

// kind is a kind of objects that the gate watches.
type kind struct {
	group     schema.GroupVersion
	resource  string
	namespace string // empty: of the whole cluster
	labels    string
	of        runtime.Object
}

func kinds(namespace string) []kind {
	return []kind{
		{group: v1alpha1.GroupVersion, resource: "toolpolicies", of: &v1alpha1.ToolPolicy{}},
		{group: v1alpha1.GroupVersion, resource: "clustertoolpolicies", of: &v1alpha1.ClusterToolPolicy{}},
		{group: v1alpha1.GroupVersion, resource: "decidermodels", of: &v1alpha1.DeciderModel{}},
		{group: appsv1.SchemeGroupVersion, resource: "controllerrevisions", namespace: namespace, labels: names.ModelLabel, of: &appsv1.ControllerRevision{}},
	}
}

// path is where the API server serves the objects.
func (k kind) path() string {
	if k.namespace == "" {
		return "/apis/" + k.group.String() + "/" + k.resource
	}
	return "/apis/" + k.group.String() + "/namespaces/" + k.namespace + "/" + k.resource
}

// WatchedPaths are what a Contact has to see watched.
func WatchedPaths(namespace string) []string {
	var out []string
	for _, k := range kinds(namespace) {
		out = append(out, k.path())
	}
	return out
}

// PingPath is what a Contact reads of the API server's store.
var PingPath = "/apis/" + v1alpha1.GroupVersion.String() + "/toolpolicies"

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme, nil
}

// clientFor talks about one group of kinds.
func clientFor(config *rest.Config, scheme *runtime.Scheme, group schema.GroupVersion) (*rest.RESTClient, error) {
	c := rest.CopyConfig(config)
	c.GroupVersion, c.APIPath = &group, "/apis"
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	return rest.RESTClientFor(c)
}

// informers are caches of everything that a snapshot is made of.
type informers struct {
	all map[string]cache.SharedIndexInformer // by resource
}

// newInformers watches nothing yet. Changed is told of every change.
func newInformers(config *rest.Config, namespace string, wrap func(http.RoundTripper) http.RoundTripper, changed func()) (*informers, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Wrap(wrap)
	config.Timeout = 0 // a watch lasts
	out := &informers{all: map[string]cache.SharedIndexInformer{}}
	for _, k := range kinds(namespace) {
		client, err := clientFor(config, scheme, k.group)
		if err != nil {
			return nil, fmt.Errorf("making a client for %s: %w", k.resource, err)
		}
		watch := cache.NewFilteredListWatchFromClient(client, k.resource, k.namespace, func(o *metav1.ListOptions) { o.LabelSelector = k.labels })
		i := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(watch, client), k.of, 0, cache.Indexers{})
		if err := i.SetTransform(stripManagedFields); err != nil {
			return nil, err
		}
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
		}); err != nil {
			return nil, err
		}
		out.all[k.resource] = i
	}
	return out, nil
}

// stripManagedFields leaves out what is of no use here and often most of an object.
func stripManagedFields(o any) (any, error) {
	if object, err := meta.Accessor(o); err == nil {
		object.SetManagedFields(nil)
	}
	return o, nil
}

// run watches until the context ends.
func (i *informers) run(ctx context.Context) {
	done := make(chan struct{}, len(i.all))
	for _, informer := range i.all {
		go func() {
			informer.RunWithContext(ctx)
			done <- struct{}{}
		}()
	}
	for range i.all {
		<-done
	}
}

// syncLook is how often a start looks whether all is there.
const syncLook = 50 * time.Millisecond

func (i *informers) isSynced() bool {
	for _, informer := range i.all {
		if !informer.HasSynced() {
			return false
		}
	}
	return true
}

// list gives the objects of a resource. They are shared and must not be changed.
func list[T runtime.Object](i *informers, resource string) []T {
	stored := i.all[resource].GetStore().List()
	out := make([]T, 0, len(stored))
	for _, o := range stored {
		if typed, ok := o.(T); ok {
			out = append(out, typed)
		}
	}
	return out
}
