package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gatewright.dev/gatewright/controllers"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/pki"
	"gatewright.dev/gatewright/internal/testkit"
	"gatewright.dev/gatewright/internal/webhook"
)

// asManager set to 1 lets this test binary be a manager: a process has one, with the metrics that it registers.
const asManager = "GATEWRIGHT_TEST_AS_MANAGER"

func TestMain(m *testing.M) {
	if os.Getenv(asManager) == "1" {
		main()
	}
	m.Run()
}

// certified is an API server that asks the webhooks of a manager in this process, and who else has a hand in certificates.
type certified struct {
	*kubetest.Server
	admin   client.Client
	webhook string // address
	log     *testkit.Log
}

// newCertified installs what the manager needs, with webhook configurations that lead to this process and that an annotation
// marks, if it is not empty. They hold no authority.
func newCertified(t *testing.T, annotation string) *certified {
	t.Helper()
	s := kubetest.Own(t)
	scheme, err := controllers.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(s.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	s.EnsureNamespace(t, names.Namespace)
	s.Apply(t, "config/rbac")
	_, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	c := &certified{Server: s, admin: admin, webhook: net.JoinHostPort("localhost", port), log: &testkit.Log{}}
	local := func(o metav1.Object, config *admissionregistrationv1.WebhookClientConfig) {
		url := "https://" + c.webhook + *config.Service.Path
		config.URL, config.Service = &url, nil
		if annotation != "" {
			o.SetAnnotations(map[string]string{webhook.CertManagerAnnotation: annotation})
		}
	}
	validating, mutating := webhook.Validating(names.Namespace), webhook.Mutating(names.Namespace)
	for i := range validating.Webhooks {
		local(validating, &validating.Webhooks[i].ClientConfig)
	}
	local(mutating, &mutating.Webhooks[0].ClientConfig)
	for _, o := range []client.Object{validating, mutating} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// runs the manager as its service account until the test ends, or until the function is called.
func (c *certified) runs(t *testing.T, flags ...string) (stop func()) {
	t.Helper()
	_, port, err := net.SplitHostPort(c.webhook)
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{
		"-kubeconfig", c.KubeconfigOf(t, c.ServiceAccount(t, names.Namespace, names.ManagerServiceAccount)),
		"-metrics-listen", "0", "-probe-listen", "0", "-webhook-port", port, "-gate-poll", "1s",
	}, flags...)
	command := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], args...)
	command.Env = append(os.Environ(), asManager+"=1")
	command.Stderr = c.log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		if err := errors.Join(command.Process.Signal(syscall.SIGTERM), command.Wait()); err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// asks writes a policy that only a webhook refuses, and says what was answered instead.
func (c *certified) asks(t *testing.T) error {
	t.Helper()
	p := testkit.ToolPolicy("bad", testkit.InNamespace("default"), testkit.WithTool("a", "None"))
	err := c.admin.Create(t.Context(), p, client.DryRunAll)
	if apierrors.IsInvalid(err) && strings.Contains(err.Error(), "spec.tools[0].class") {
		return nil
	}
	return fmt.Errorf("the webhooks are not asked: %w", err)
}

// presented is the certificate that the webhooks show.
func (c *certified) presented(t *testing.T) (*x509.Certificate, error) {
	t.Helper()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}
	conn, err := d.DialContext(t.Context(), "tcp", c.webhook)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// trust writes an authority into every webhook, as cert-manager does that follows their annotation.
func (c *certified) trust(t *testing.T, bundle []byte) {
	t.Helper()
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	if err := c.admin.Get(t.Context(), client.ObjectKey{Name: webhook.ValidatingName}, &validating); err != nil {
		t.Fatal(err)
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.CABundle = bundle
	}
	if err := c.admin.Update(t.Context(), &validating); err != nil {
		t.Fatal(err)
	}
}

// trusted is the authority of the webhooks; all have the same.
func (c *certified) trusted(t *testing.T) string {
	t.Helper()
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	if err := c.admin.Get(t.Context(), client.ObjectKey{Name: webhook.ValidatingName}, &validating); err != nil {
		t.Fatal(err)
	}
	for _, w := range validating.Webhooks {
		if string(w.ClientConfig.CABundle) != string(validating.Webhooks[0].ClientConfig.CABundle) {
			t.Errorf("webhook %s has an authority of its own", w.Name)
		}
	}
	return string(validating.Webhooks[0].ClientConfig.CABundle)
}

// issuer is who makes certificates in place of the manager.
type issuer struct{ *pki.Authority }

func newIssuer(t *testing.T) issuer {
	t.Helper()
	a, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return issuer{a}
}

func (i issuer) issue(t *testing.T, names ...string) map[string][]byte {
	t.Helper()
	data, err := i.Issue(time.Now(), pki.Request{Name: names[0], DNSNames: names, Usage: x509.ExtKeyUsageServerAuth})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// mount writes a Secret into a folder as a kubelet does: into a new one, which a link then points to.
func mount(t *testing.T, dir string, data map[string][]byte) {
	t.Helper()
	folder := filepath.Join(dir, "..data-"+rand.Text())
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, value := range data {
		if err := os.WriteFile(filepath.Join(folder, name), value, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "..data.new")
	if err := errors.Join(os.Symlink(filepath.Base(folder), link), os.Rename(link, filepath.Join(dir, "..data"))); err != nil {
		t.Fatal(err)
	}
}

// With certificates by cert-manager the manager makes none for its webhooks and writes no authority: both come from whoever
// follows the annotation. A gate's certificate of somebody else stays too, and agents are told to trust what it says.
func TestManagerWithCertificatesOfSomebodyElse(t *testing.T) {
	t.Parallel()
	c := newCertified(t, names.Namespace+"/gatewright-webhook")
	certManager, company := newIssuer(t), newIssuer(t)
	dir := t.TempDir()
	first := certManager.issue(t, "localhost")
	mount(t, dir, first)
	ofGate := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: names.GateTLSSecret, Labels: map[string]string{"controller.cert-manager.io/fao": "true"}},
		Type:       corev1.SecretTypeTLS, Data: company.issue(t, "gate.example.com"),
	}
	agents := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "agents", Labels: map[string]string{names.InjectLabel: names.InjectEnabled}}}
	for _, o := range []client.Object{ofGate, agents} {
		if err := c.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	c.runs(t, "-webhook-cert-source=cert-manager", "-webhook-cert-dir", dir)

	within(t, "the webhooks show the mounted certificate", c.log, func() error { return c.shows(t, first) })
	within(t, "agents are told what to trust", c.log, func() error { return c.bundleIs(t, company) })
	if err := c.asks(t); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("the API server trusts the webhooks although nobody has said so: %v", err)
	}
	if got := c.trusted(t); got != "" {
		t.Errorf("the manager has written an authority:\n%s", got)
	}
	c.trust(t, certManager.Bundle())
	within(t, "the API server asks", c.log, func() error { return c.asks(t) })

	t.Run("a renewed certificate is shown without a restart", func(t *testing.T) {
		second := certManager.issue(t, "localhost")
		mount(t, dir, second)
		within(t, "the webhooks show the new one", c.log, func() error { return c.shows(t, second) })
		within(t, "the API server asks", c.log, func() error { return c.asks(t) })
	})
	t.Run("a gate's certificate of another authority reaches the agents", func(t *testing.T) {
		other := newIssuer(t)
		ofGate.Data = other.issue(t, "gate.example.com")
		if err := c.admin.Update(t.Context(), ofGate); err != nil {
			t.Fatal(err)
		}
		within(t, "agents are told what to trust now", c.log, func() error { return c.bundleIs(t, other) })
	})
	t.Run("nothing of somebody else was written over", func(t *testing.T) {
		var held corev1.Secret
		if err := c.admin.Get(t.Context(), client.ObjectKeyFromObject(ofGate), &held); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ofGate, &held); diff != "" {
			t.Errorf("the gate's certificate (-want +got):\n%s", diff)
		}
		err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: names.WebhookTLSSecret}, &corev1.Secret{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("the manager made a certificate for its webhooks: %v", err)
		}
		if got := c.trusted(t); got != string(certManager.Bundle()) {
			t.Errorf("the webhooks have another authority:\n%s", got)
		}
	})
}

// shows says whether the webhooks show a certificate.
func (c *certified) shows(t *testing.T, want map[string][]byte) error {
	t.Helper()
	parsed, err := pki.ParseCertificates(want[pki.KeyCertificate])
	if err != nil {
		return err
	}
	got, err := c.presented(t)
	if err != nil {
		return err
	}
	if !got.Equal(parsed[0]) {
		return fmt.Errorf("they show %s of %s", got.SerialNumber, got.Issuer)
	}
	return nil
}

// bundleIs says whether the pods of a namespace of agents are told to trust an issuer.
func (c *certified) bundleIs(t *testing.T, want issuer) error {
	t.Helper()
	var m corev1.ConfigMap
	if err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: "agents", Name: names.AuthorityConfigMap}, &m); err != nil {
		return err
	}
	if m.Data[pki.KeyCA] != string(want.Bundle()) {
		return errors.New("they are told something else")
	}
	return nil
}

// A manager that was away for long finds a certificate near its end, and makes another: the Secret, the webhooks and what the
// API server trusts follow, and nobody has to do anything.
func TestTheCertificateOfTheWebhooksRenewsItself(t *testing.T) {
	t.Parallel()
	c := newCertified(t, "")
	stop := c.runs(t, "-webhook-cert-dir", t.TempDir(), "-webhook-dns-name", "localhost")
	secret := client.ObjectKey{Namespace: names.Namespace, Name: names.WebhookTLSSecret}
	var old corev1.Secret
	within(t, "a certificate is made and shown", c.log, func() error {
		if err := c.admin.Get(t.Context(), secret, &old); err != nil {
			return err
		}
		return c.shows(t, old.Data)
	})
	if ends := endOf(t, old.Data); time.Until(ends) < 180*24*time.Hour {
		t.Errorf("a new certificate ends on %s", ends)
	}
	within(t, "the API server trusts its authority", c.log, func() error {
		if authority := c.trusted(t); authority == "" || authority != string(old.Data[pki.KeyCA]) {
			return fmt.Errorf("it trusts\n%s", authority)
		}
		return nil
	})
	stop()

	// What is held instead ends tomorrow, and is of an authority that ends with it.
	late, err := pki.NewAuthority(time.Now().Add(24*time.Hour - pki.AuthorityLife))
	if err != nil {
		t.Fatal(err)
	}
	old.Data, err = late.Issue(time.Now(), pki.Request{Name: "webhooks", DNSNames: []string{"localhost"}, Usage: x509.ExtKeyUsageServerAuth})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.admin.Update(t.Context(), &old); err != nil {
		t.Fatal(err)
	}
	c.trust(t, late.Bundle())
	c.runs(t, "-webhook-cert-dir", t.TempDir(), "-webhook-dns-name", "localhost")
	within(t, "another one is made and shown", c.log, func() error {
		var now corev1.Secret
		if err := c.admin.Get(t.Context(), secret, &now); err != nil {
			return err
		}
		if ends := endOf(t, now.Data); time.Until(ends) < 180*24*time.Hour {
			return fmt.Errorf("the certificate ends on %s", ends)
		}
		if got := c.trusted(t); got != string(now.Data[pki.KeyCA]) || got == string(late.Bundle()) {
			return errors.New("the API server trusts another authority")
		}
		return c.shows(t, now.Data)
	})
}

func endOf(t *testing.T, data map[string][]byte) time.Time {
	t.Helper()
	certs, err := pki.ParseCertificates(data[pki.KeyCertificate])
	if err != nil {
		return time.Time{}
	}
	return certs[0].NotAfter
}
