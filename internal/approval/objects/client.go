package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
)

const resource = "toolapprovals"

// Fields that the API server selects by.
const (
	fieldID      = "spec.call.id"
	fieldCallKey = "spec.call.callKey"
	fieldName    = "metadata.name"
)

// ErrRefused says that the API server does not let this user do it. Its text says why.
var ErrRefused = errors.New("the API server refuses")

// Client reads ToolApprovals and decides about them, as whoever its configuration is for.
type Client struct{ rest rest.Interface }

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		panic(err) // types of ours that cannot be registered
	}
	return s
}()

var parameters = runtime.NewParameterCodec(scheme)

// NewClient makes a client.
func NewClient(config *rest.Config) (*Client, error) {
	c := rest.CopyConfig(config)
	c.GroupVersion, c.APIPath = &v1alpha1.GroupVersion, "/apis"
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if c.UserAgent == "" {
		c.UserAgent = "gatewright"
	}
	r, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, err
	}
	return &Client{r}, nil
}

// Get gives an approval as it stands in the API server. Whoever goes by it verifies its seal.
func (c *Client) Get(ctx context.Context, namespace, name string, now time.Time) (approval.Approval, error) {
	o, err := c.get(ctx, namespace, name)
	if err != nil {
		return approval.Approval{}, err
	}
	return read(o, nil, now)
}

func (c *Client) get(ctx context.Context, namespace, name string) (*v1alpha1.ToolApproval, error) {
	o := &v1alpha1.ToolApproval{}
	err := c.rest.Get().Namespace(namespace).Resource(resource).Name(name).Do(ctx).Into(o)
	if apierrors.IsNotFound(err) {
		return nil, approval.ErrNotFound
	}
	if err != nil {
		return nil, unavailable("reading approval", err)
	}
	return o, nil
}

// list gives what a field selects, in one namespace or, if that is empty, in all.
func (c *Client) list(ctx context.Context, namespace, field, value string) ([]v1alpha1.ToolApproval, error) {
	o := metav1.ListOptions{}
	if field != "" {
		o.FieldSelector = fields.OneTermEqualSelector(field, value).String()
	}
	list, err := c.page(ctx, namespace, o)
	if err != nil {
		return nil, unavailable("reading approvals", err)
	}
	return list.Items, nil
}

func (c *Client) page(ctx context.Context, namespace string, o metav1.ListOptions) (*v1alpha1.ToolApprovalList, error) {
	list := &v1alpha1.ToolApprovalList{}
	r := c.rest.Get().Resource(resource).VersionedParams(&o, parameters)
	if namespace != "" {
		r = r.Namespace(namespace)
	}
	return list, r.Do(ctx).Into(list)
}

func (c *Client) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return c.rest.Get().Resource(resource).VersionedParams(&o, parameters).Watch(ctx)
}

func (c *Client) create(ctx context.Context, o *v1alpha1.ToolApproval) (*v1alpha1.ToolApproval, error) {
	made := &v1alpha1.ToolApproval{}
	return made, c.rest.Post().Namespace(o.Namespace).Resource(resource).Body(o).Do(ctx).Into(made)
}

func (c *Client) update(ctx context.Context, o *v1alpha1.ToolApproval, subresource ...string) error {
	return c.rest.Put().Namespace(o.Namespace).Resource(resource).Name(o.Name).SubResource(subresource...).Body(o).Do(ctx).Error()
}

// badCall says that an object does not fit the schema, by the names of its fields alone: the values are arguments.
func badCall(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		return nil
	}
	kind, where := approval.ErrBadCall, []string{}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			where = append(where, cause.Field)
			if cause.Type == metav1.CauseTypeFieldValueInvalid && strings.Contains(cause.Message, "at most") || cause.Type == "FieldValueTooLong" || cause.Type == "FieldValueTooMany" {
				kind = approval.ErrTooLarge
			}
		}
	}
	return fmt.Errorf("%w: %s", kind, strings.Join(where, ", "))
}

// Decide records what a person said about a pending call, as approval.Store does. Who the person is, the API server says:
// a decision of a KubernetesUser has to be made with that user's own credentials. It gives ErrRefused where the API server
// does not let them.
func (c *Client) Decide(ctx context.Context, namespace, name string, d approval.Decision, now time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var err error
	for range attempts {
		var o *v1alpha1.ToolApproval
		if o, err = c.get(ctx, namespace, name); err != nil {
			return err
		}
		if err = c.decide(ctx, o, d, now); !apierrors.IsConflict(err) {
			return err
		}
	}
	return unavailable("writing decision", err)
}

// attempts is how often something is tried that others may do at the same moment.
const attempts = 5

func (c *Client) decide(ctx context.Context, o *v1alpha1.ToolApproval, d approval.Decision, now time.Time) error {
	a, err := read(o, nil, now)
	if err != nil {
		return err
	}
	if err := a.Call.Approvers.Check(a.ID, &a.Call, &d, now); err != nil {
		return err
	}
	switch a.State {
	case approval.Expired:
		return approval.ErrExpired
	case approval.Pending:
	case approval.Approved, approval.Rejected, approval.Consumed:
		return approval.ErrDecided
	}
	d.At = time.Time{} // admission fills it in: this clock is the approver's
	o.Spec.Decision = writeDecision(&d)
	err = c.update(ctx, o)
	switch {
	case err == nil || apierrors.IsConflict(err):
		return err
	case apierrors.IsNotFound(err):
		return approval.ErrNotFound
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case badCall(err) != nil:
		return fmt.Errorf("%w: the decision does not fit the schema", approval.ErrTooLarge)
	}
	return unavailable("writing decision", err)
}
