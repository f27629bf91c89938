package main

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/webhook"
)

func TestWebhookFlags(t *testing.T) {
	t.Setenv("TMPDIR", "/scratch")
	tests := map[string]struct {
		args    []string
		want    webhook.Options
		wantErr string
	}{
		"the manager makes the certificate by default": {
			nil, webhook.Options{CertSource: webhook.CertSourceRotator, CertDir: filepath.Join("/scratch", "gatewright-webhook"), Port: names.WebhookPort}, "",
		},
		"cert-manager mounts it": {
			[]string{"-webhook-cert-source=cert-manager"},
			webhook.Options{CertSource: webhook.CertSourceCertManager, CertDir: "/etc/gatewright/webhook", Port: names.WebhookPort}, "",
		},
		"a folder, a port and names of one's own": {
			[]string{"-webhook-cert-dir=/certs", "-webhook-port=8443", "-webhook-dns-name=a.example.com", "-webhook-dns-name=b.example.com"},
			webhook.Options{CertSource: webhook.CertSourceRotator, CertDir: "/certs", Port: 8443, DNSNames: []string{"a.example.com", "b.example.com"}}, "",
		},
		"a source that is none": {[]string{"-webhook-cert-source=vault"}, webhook.Options{}, "use rotator or cert-manager"},
		"a name that is none":   {[]string{"-webhook-dns-name=a_b"}, webhook.Options{}, "is no DNS name"},
		"a port that is none":   {[]string{"-webhook-port=70000"}, webhook.Options{}, "port 70000"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var c webhookConfig
			f := flag.NewFlagSet("manager", flag.ContinueOnError)
			c.BindFlags(f)
			if err := f.Parse(tt.args); err != nil {
				t.Fatal(err)
			}
			err := c.Validate()
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("err = %v, want %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Namespace = "here"
			if diff := cmp.Diff(tt.want, c.options("here")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
