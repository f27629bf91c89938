package chart_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/names"
)

const (
	// toStream sends records to a stream.
	toStream = `audit={"sink":"nats","nats":{"url":"nats://nats.example:4222/AUDIT"}}`
	// prometheus may read metrics.
	prometheus = `networkPolicy.monitoring=[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"monitoring"}}}]`
)

// openPorts are the ports at which a policy lets pods reach any address.
func openPorts(t *testing.T, objects []object, policy string) []string {
	t.Helper()
	var got []string
	for _, rule := range list(find(t, objects, "NetworkPolicy", policy), "spec", "egress") {
		if at(rule, "to") != nil {
			continue
		}
		for _, port := range list(rule, "ports") {
			got = append(got, fmt.Sprint(at(port, "port")))
		}
	}
	slices.Sort(got)
	return slices.Compact(got)
}

func TestGatesReachWhereRecordsGo(t *testing.T) {
	tests := map[string]struct {
		values []string
		want   []string
	}{
		"a file needs no port":                         {want: []string{"443", "53", "6443"}},
		"a stream's port is opened":                    {values: []string{toStream}, want: []string{"4222", "443", "53", "6443"}},
		"a stream without a port has that of NATS":     {values: []string{`audit={"sink":"nats","nats":{"url":"nats://user:word@nats.example/AUDIT"}}`}, want: []string{"4222", "443", "53", "6443"}},
		"each server of a stream has its port":         {values: []string{`audit={"sink":"nats","nats":{"url":"nats://a.example:4333,b.example:4334/AUDIT"}}`}, want: []string{"4333", "4334", "443", "53", "6443"}},
		"the address of a stream that is not used":     {values: []string{`audit={"sink":"stdout","nats":{"url":"nats://nats.example:4222/AUDIT"}}`}, want: []string{"443", "53", "6443"}},
		"a collector among the flags":                  {values: []string{`gate.extraArgs=["-audit-sink=otlp+http://otel.example:4318"]`}, want: []string{"4318", "443", "53", "6443"}},
		"a collector as a word of its own":             {values: []string{`gate.extraArgs=["--audit-sink","otlp+http://otel.example"]`}, want: []string{"443", "53", "6443", "80"}},
		"other flags open nothing":                     {values: []string{`gate.extraArgs=["-permit-issuer=http://issuer.example:8080"]`}, want: []string{"443", "53", "6443"}},
		"places that are named stand for all":          {values: []string{toStream, `networkPolicy.external=[{"to":[{"podSelector":{}}],"ports":[{"port":4222}]}]`}, want: []string{"443", "53", "6443"}},
		"a range of ports covers the stream's":         {values: []string{toStream, `networkPolicy.external=[{"to":[{"podSelector":{}}],"ports":[{"port":4000,"endPort":5000}]}]`}, want: []string{"443", "53", "6443"}},
		"a place with all of its ports covers it, too": {values: []string{toStream, `networkPolicy.external=[{"to":[{"podSelector":{}}]}]`}, want: []string{"443", "53", "6443"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := render(t, test.values...)
			if diff := cmp.Diff(test.want, openPorts(t, objects, "gatewright-gate")); diff != "" {
				t.Errorf("ports to any address (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff([]string{"443", "53"}, openPorts(t, objects, "gatewright-evaluator")); diff != "" && len(test.values) < 2 {
				t.Errorf("ports of evaluations (-want +got)\n%s", diff)
			}
		})
	}
}

func TestTheGracePeriodFollowsTheDelay(t *testing.T) {
	tests := map[string]struct {
		delay, staleness string
		want             any
	}{
		"the default":                 {"5s", "5m", float64(45)},
		"none":                        {"0s", "1s", float64(40)},
		"a part of a second is one":   {"1500ms", "1000ms", float64(42)},
		"units together, and at most": {"9m60s", "59m60s", float64(640)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := find(t, render(t, fmt.Sprintf(`gate={"shutdownDelay":%q,"maxStaleness":%q}`, test.delay, test.staleness)), "StatefulSet", names.GateService)
			if diff := cmp.Diff(test.want, at(set, "spec", "template", "spec", "terminationGracePeriodSeconds")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAFileThatJustFitsIsTaken(t *testing.T) {
	tests := map[string]string{
		"exactly the size":                     `audit.file={"size":"1.5Gi","rotateMiB":512,"keepMiB":1024}`,
		"decimal units":                        `audit.file={"size":"2G","rotateMiB":883,"keepMiB":1024}`,
		"plain bytes":                          `audit.file={"size":"10485760","rotateMiB":4,"keepMiB":6}`,
		"nothing is deleted":                   `audit.file={"size":"1Gi","rotateMiB":1024,"keepMiB":0}`,
		"no file is ever full":                 `audit.file={"size":"1Gi","rotateMiB":0,"keepMiB":2048}`,
		"there is no volume where there is no": `audit={"sink":"stdout","file":{"size":"1Gi"}}`,
	}
	for name, value := range tests {
		t.Run(name, func(t *testing.T) { render(t, value) })
	}
}

func TestValuesThatTheProgramsRefuseAreRefused(t *testing.T) {
	monitor := `monitoring={"serviceMonitor":{"enabled":true}}`
	tests := map[string]struct {
		values []string
		want   string
	}{
		"a staleness of more than an hour":      {[]string{`gate={"maxStaleness":"2h"}`}, "gate.maxStaleness is 2h"},
		"just more than an hour":                {[]string{`gate={"maxStaleness":"1h1ms"}`}, "gate.maxStaleness"},
		"a staleness of less than a second":     {[]string{`gate={"maxStaleness":"999ms"}`}, "gate.maxStaleness"},
		"a staleness beyond all numbers":        {[]string{`gate={"maxStaleness":"99999999999999999999h"}`}, "maxStaleness"},
		"a delay of more than ten minutes":      {[]string{`gate={"shutdownDelay":"11m"}`}, "gate.shutdownDelay is 11m"},
		"files that are kept beyond the volume": {[]string{`audit.file={"keepMiB":20480}`}, "audit.file.keepMiB"},
		"files that fit but for the one in use": {[]string{`audit.file={"size":"10Gi","keepMiB":10000}`}, "audit.file.rotateMiB"},
		"a MiB too much of decimal units":       {[]string{`audit.file={"size":"2G","rotateMiB":884,"keepMiB":1024}`}, "audit.file.size 2G"},
		"a label that selects the parts":        {[]string{`commonLabels={"app.kubernetes.io/component":"other"}`}, "app.kubernetes.io/component"},
		"a label of the release":                {[]string{`commonLabels={"helm.sh/chart":"other"}`}, "helm.sh/chart"},
		"a label that means something to us":    {[]string{`commonLabels={"gatewright.dev/inject":"enabled"}`}, "gatewright.dev/inject"},
		"monitors whom no policy lets in":       {[]string{monitor}, "networkPolicy.monitoring"},
		"a stream beside the places that are open": {
			[]string{toStream, `networkPolicy.external=[{"ports":[{"port":443}]},{"ports":[{"port":4222,"protocol":"UDP"}]}]`}, "networkPolicy.external has no entry with port 4222",
		},
	}
	helm := tool(t, "helm")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			args := []string{"template", "gatewright", "."}
			for _, value := range test.values {
				args = append(args, "--set-json", value)
			}
			if _, err := run(t, helm, args...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
	t.Run("monitors need no policy where there is none", func(t *testing.T) { render(t, monitor, `networkPolicy.enabled=false`) })
}

// Secrets that others have put into the namespace may be read, since deciders name them, and not be written.
func TestTheManagerWritesItsOwnSecrets(t *testing.T) {
	got := map[string][]string{}
	for _, o := range parse(t, mustRead(t, "files/rbac/manager.yaml")) {
		for _, rule := range list(o, "rules") {
			if !slices.Contains(list(rule, "resources"), any("secrets")) {
				continue
			}
			for _, verb := range list(rule, "verbs") {
				if slices.Contains([]any{"get", "list", "watch", "create"}, verb) {
					continue
				}
				what := fmt.Sprintf("%s: %v", o.kind(), verb)
				if list(rule, "resourceNames") == nil {
					got[what] = append(got[what], "any")
				}
				for _, name := range list(rule, "resourceNames") {
					got[what] = append(got[what], fmt.Sprint(name))
				}
			}
		}
	}
	for _, secrets := range got {
		slices.Sort(secrets)
	}
	want := map[string][]string{
		"Role: patch":  {names.ExternalTokensSecret},
		"Role: update": {names.AuthoritySecret, names.GateClientSecret, names.DeciderTLSSecret, names.GateTLSSecret, names.WebhookTLSSecret},
	}
	slices.Sort(want["Role: update"])
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Secrets that the manager may change (-want +got)\n%s", diff)
	}
}

// Each kind that the gate may read is one that it follows, or asks for.
func TestTheGateReadsWhatItUses(t *testing.T) {
	got := map[string]bool{}
	for _, o := range parse(t, mustRead(t, "files/rbac/gate.yaml")) {
		for _, rule := range list(o, "rules") {
			if !slices.Contains(list(rule, "verbs"), any("get")) {
				continue
			}
			for _, resource := range list(rule, "resources") {
				what := fmt.Sprint(resource)
				for _, name := range list(rule, "resourceNames") {
					what += " " + fmt.Sprint(name)
				}
				got[what] = true
			}
		}
	}
	want := map[string]bool{
		"toolpolicies": true, "clustertoolpolicies": true, "decidermodels": true, "toolapprovals": true, "leases": true, "controllerrevisions": true,
		"validatingadmissionpolicies " + names.ApprovalPolicy: true, "validatingadmissionpolicybindings " + names.ApprovalPolicy: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the gate may read (-want +got)\n%s", diff)
	}
}
