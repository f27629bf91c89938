package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
)

// What is read, by the names that NotSeen has for it.
const (
	seesNamespaces      = "namespaces"
	seesPods            = "pods"
	seesServiceAccounts = "serviceaccounts"
	seesNetworkPolicies = "networkpolicies"
	seesEndpointSlices  = "endpointslices of " + names.GateService
	seesAuthorities     = "configmaps " + names.AuthorityConfigMap
	seesToolPolicies    = "toolpolicies"
	seesFloors          = "clustertoolpolicies"
	seesDeciders        = "decidermodels"
	seesDefinitions     = "customresourcedefinitions"
	seesValidating      = "validatingwebhookconfigurations"
	seesMutating        = "mutatingwebhookconfigurations"
	seesPolicies        = "validatingadmissionpolicies"
	seesBindings        = "validatingadmissionpolicybindings"
)

// NewScheme knows the kinds that Gather reads.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("making the scheme: %w", err)
		}
	}
	return s, nil
}

// Gather reads what Diagnose looks at. namespace is that of the installation, only the one namespace of agents that is
// asked about, empty for all. It gives an error only if nothing at all can be read.
func Gather(ctx context.Context, c client.Reader, namespace, only string, now time.Time) (*Snapshot, error) {
	wanted, err := NewWanted(namespace)
	if err != nil {
		return nil, err
	}
	g := &gatherer{ctx: ctx, client: c, into: &Snapshot{Namespace: namespace, Only: only, Now: now, Wanted: wanted}}
	s := g.into
	s.Namespaces = list(g, seesNamespaces, &corev1.NamespaceList{}, func(l *corev1.NamespaceList) []corev1.Namespace { return l.Items })
	g.workloads()
	g.kinds()
	g.clusterWide()
	s.EndpointSlices = list(g, seesEndpointSlices, &discoveryv1.EndpointSliceList{}, func(l *discoveryv1.EndpointSliceList) []discoveryv1.EndpointSlice { return l.Items },
		client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: names.GateService})
	for _, name := range []string{names.AuthoritySecret, names.GateTLSSecret, names.GateClientSecret, names.DeciderTLSSecret, names.WebhookTLSSecret} {
		g.certificate(name)
	}
	if g.seen == 0 {
		errs := make([]error, len(s.NotSeen))
		for i, n := range s.NotSeen {
			errs[i] = fmt.Errorf("reading %s: %w", n.What, n.Err)
		}
		return nil, errors.Join(errs...)
	}
	return s, nil
}

type gatherer struct {
	ctx    context.Context
	client client.Reader
	into   *Snapshot
	seen   int
}

func (g *gatherer) failed(what string, err error) {
	g.into.NotSeen = append(g.into.NotSeen, NotSeen{what, err})
}

// list reads one kind. A kind that the API server does not have is empty: Definitions says that it is missing.
func list[L client.ObjectList, T any](g *gatherer, what string, l L, items func(L) []T, options ...client.ListOption) []T {
	switch err := g.client.List(g.ctx, l, options...); {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return nil
	case err != nil:
		g.failed(what, err)
		return nil
	}
	g.seen++
	return items(l)
}

// certificate reads the public part of a Secret and forgets the rest.
func (g *gatherer) certificate(name string) {
	var secret corev1.Secret
	err := g.client.Get(g.ctx, client.ObjectKey{Namespace: g.into.Namespace, Name: name}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		g.into.Certificates = append(g.into.Certificates, Certificate{Secret: name, Err: errors.New("is missing")})
		return
	case err != nil:
		g.failed("secret "+name, err)
		return
	}
	g.seen++
	c := Certificate{Secret: name, CA: string(secret.Data["ca.crt"])}
	block, _ := pem.Decode(secret.Data[corev1.TLSCertKey])
	if block == nil {
		c.Err = errors.New("holds no certificate yet")
		g.into.Certificates = append(g.into.Certificates, c)
		return
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		c.Err = fmt.Errorf("cannot be read: %w", err)
	} else {
		c.NotBefore, c.NotAfter = parsed.NotBefore, parsed.NotAfter
	}
	g.into.Certificates = append(g.into.Certificates, c)
}
