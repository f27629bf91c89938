package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"

	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/webhook"
)

// mountedCertificate is where a certificate is mounted that somebody else makes.
const mountedCertificate = "/etc/gatewright/webhook"

// webhookConfig is what the webhooks are started with.
type webhookConfig struct {
	certSource string
	certDir    string
	port       int
	dnsNames   []string
}

// BindFlags declares the flags with their defaults.
func (c *webhookConfig) BindFlags(f *flag.FlagSet) {
	f.StringVar(&c.certSource, "webhook-cert-source", string(webhook.CertSourceRotator),
		"who makes the certificate of the webhooks: rotator, which is this manager, or cert-manager, which mounts files and writes the authority by annotation")
	f.StringVar(&c.certDir, "webhook-cert-dir", "",
		"`folder` with tls.crt and tls.key (default: with rotator one of its own among temporary files, with cert-manager "+mountedCertificate+")")
	f.IntVar(&c.port, "webhook-port", names.WebhookPort, "`port` on which the API server asks the webhooks, by HTTPS")
	f.Func("webhook-dns-name", "further DNS `name` by which the API server reaches the webhooks, for their certificate; may be repeated", func(s string) error {
		c.dnsNames = append(c.dnsNames, s)
		return nil
	})
}

// Validate says what is wrong with the flags.
func (c *webhookConfig) Validate() error {
	for _, name := range c.dnsNames {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("-webhook-dns-name %q is no DNS name", name)
		}
	}
	return c.options(names.Namespace).Validate()
}

func (c *webhookConfig) options(namespace string) webhook.Options {
	o := webhook.Options{Namespace: namespace, Port: c.port, CertSource: webhook.CertSource(c.certSource), CertDir: c.certDir, DNSNames: c.dnsNames}
	if o.CertDir == "" {
		o.CertDir = filepath.Join(os.TempDir(), "gatewright-webhook")
		if o.CertSource == webhook.CertSourceCertManager {
			o.CertDir = mountedCertificate
		}
	}
	return o
}

// addWebhooks adds the webhooks to a manager that has not started. It is not ready before they answer.
func addWebhooks(mgr ctrl.Manager, c webhookConfig, namespace string) error {
	if err := webhook.Setup(mgr, c.options(namespace)); err != nil {
		return fmt.Errorf("adding webhooks: %w", err)
	}
	return nil
}
