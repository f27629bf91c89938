package chart_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/internal/names"
)

// find gives the only object of a kind and name.
func find(t *testing.T, objects []object, kind, name string) object {
	t.Helper()
	for _, o := range objects {
		if o.kind() == kind && o.name() == name && !isHook(o) {
			return o
		}
	}
	t.Fatalf("no %s %s", kind, name)
	return nil
}

func has(objects []object, kind, name string) bool {
	return slices.ContainsFunc(objects, func(o object) bool { return o.kind() == kind && (name == "" || o.name() == name) && !isHook(o) })
}

func args(t *testing.T, workload object) []string {
	t.Helper()
	containers := list(workload, "spec", "template", "spec", "containers")
	if len(containers) != 1 {
		t.Fatalf("%d containers", len(containers))
	}
	var all []string
	for _, a := range list(containers[0], "args") {
		all = append(all, fmt.Sprint(a))
	}
	return all
}

func TestValues(t *testing.T) {
	tests := map[string]struct {
		values []string
		check  func(*testing.T, []object)
	}{
		"by default the gate is a StatefulSet that keeps the audit log of each replica": {
			check: func(t *testing.T, objects []object) {
				set := find(t, objects, "StatefulSet", names.GateService)
				claims := list(set, "spec", "volumeClaimTemplates")
				if len(claims) != 1 || text(claims[0], "metadata", "name") != "audit" {
					t.Errorf("claims %v", claims)
				}
				if got := text(set, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"); got != "Retain" {
					t.Errorf("the log goes with the gate: %s", got)
				}
			},
		},
		"with NATS the gate is a Deployment without a claim, and each has a log of its own in the stream": {
			values: []string{`audit={"sink":"nats","nats":{"url":"nats://nats.example:4222/AUDIT"}}`},
			check: func(t *testing.T, objects []object) {
				if has(objects, "StatefulSet", "") {
					t.Error("there is a StatefulSet")
				}
				got := args(t, find(t, objects, "Deployment", names.GateService))
				for _, want := range []string{"-audit-log=none", "-audit-sink=nats://nats.example:4222/AUDIT?subject=AUDIT.$(POD_NAME)"} {
					if !slices.Contains(got, want) {
						t.Errorf("%s is not in %v", want, got)
					}
				}
			},
		},
		"network policies deny by default": {
			check: func(t *testing.T, objects []object) {
				deny := find(t, objects, "NetworkPolicy", "gatewright-default-deny")
				if diff := cmp.Diff(map[string]any{"podSelector": map[string]any{}, "policyTypes": []any{"Ingress", "Egress"}}, deny["spec"]); diff != "" {
					t.Error(diff)
				}
			},
		},
		"network policies can be left to others": {
			values: []string{`networkPolicy={"enabled":false}`},
			check: func(t *testing.T, objects []object) {
				if has(objects, "NetworkPolicy", "") {
					t.Error("there is a NetworkPolicy")
				}
			},
		},
		"only gate, evaluator and manager reach deciders": {
			check: func(t *testing.T, objects []object) {
				policy := find(t, objects, "NetworkPolicy", "gatewright-decider")
				var got []string
				for _, rule := range list(policy, "spec", "ingress") {
					for _, peer := range list(rule, "from") {
						got = append(got, text(peer, "podSelector", "matchLabels", names.ComponentLabel))
					}
				}
				slices.Sort(got)
				if diff := cmp.Diff([]string{names.ComponentEvaluator, names.ComponentGate, names.ComponentManager}, got); diff != "" {
					t.Error(diff)
				}
			},
		},
		"the API server can be named by its addresses": {
			values: []string{`networkPolicy={"apiServerCIDRs":["192.0.2.10/32"],"apiServerPorts":[6443]}`},
			check: func(t *testing.T, objects []object) {
				spec, err := yaml.Marshal(find(t, objects, "NetworkPolicy", "gatewright-gate")["spec"])
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(string(spec), "cidr: 192.0.2.10/32") {
					t.Errorf("%s", spec)
				}
			},
		},
		"one replica has no disruption budget, which would stop every drain": {
			values: []string{`gate={"replicas":1}`},
			check: func(t *testing.T, objects []object) {
				if has(objects, "PodDisruptionBudget", "gatewright-gate") || !has(objects, "PodDisruptionBudget", "gatewright-manager") {
					t.Error("want a budget of the manager alone")
				}
			},
		},
		"CRDs stay at an uninstall unless told otherwise": {
			check: func(t *testing.T, objects []object) {
				for _, kept := range []bool{true, false} {
					if !kept {
						objects = render(t, `crds={"keep":false}`)
					}
					crd := find(t, objects, "CustomResourceDefinition", "toolpolicies.gatewright.dev")
					if got := text(crd, "metadata", "annotations", "helm.sh/resource-policy") == "keep"; got != kept {
						t.Errorf("kept: %v, want %v", got, kept)
					}
				}
			},
		},
		"CRDs can be left to others": {
			values: []string{`crds={"install":false}`},
			check: func(t *testing.T, objects []object) {
				if has(objects, "CustomResourceDefinition", "") {
					t.Error("there is a CRD")
				}
			},
		},
		"injection can be left out, and validation stays": {
			values: []string{`webhook={"injection":false}`},
			check: func(t *testing.T, objects []object) {
				if has(objects, "MutatingWebhookConfiguration", "") || !has(objects, "ValidatingWebhookConfiguration", "gatewright") {
					t.Error("want validation alone")
				}
			},
		},
		"cert-manager makes the certificate of the webhooks if told so": {
			values: []string{`webhook={"certificates":"CertManager"}`},
			check: func(t *testing.T, objects []object) {
				certificate := find(t, objects, "Certificate", "gatewright-webhook")
				if got := text(certificate, "spec", "secretName"); got != names.WebhookTLSSecret {
					t.Errorf("secret %s", got)
				}
				for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
					if got := text(find(t, objects, kind, "gatewright"), "metadata", "annotations", "cert-manager.io/inject-ca-from"); got != names.Namespace+"/gatewright-webhook" {
						t.Errorf("%s: %q", kind, got)
					}
				}
				if got := args(t, find(t, objects, "Deployment", "gatewright-manager")); !slices.Contains(got, "-webhook-cert-source=cert-manager") {
					t.Errorf("%v", got)
				}
			},
		},
		"a digest pins the image, also that of deciders": {
			values: []string{
				`image={"digest":"sha256:` + strings.Repeat("a", 64) + `"}`, `deciderImage={"digest":"sha256:` + strings.Repeat("b", 64) + `"}`,
			},
			check: func(t *testing.T, objects []object) {
				manager := find(t, objects, "Deployment", "gatewright-manager")
				got := append(args(t, manager), text(list(manager, "spec", "template", "spec", "containers")[0], "image"))
				for _, want := range []string{
					"-tool-image=gatewright@sha256:" + strings.Repeat("a", 64), "-decider-image=gatewright-decider@sha256:" + strings.Repeat("b", 64),
					"gatewright@sha256:" + strings.Repeat("a", 64),
				} {
					if !slices.Contains(got, want) {
						t.Errorf("%s is not in %v", want, got)
					}
				}
			},
		},
		"monitoring brings monitors, rules and the dashboard": {
			values: []string{`monitoring={"serviceMonitor":{"enabled":true},"prometheusRule":{"enabled":true},"dashboard":{"enabled":true}}`, prometheus},
			check: func(t *testing.T, objects []object) {
				if groups := list(find(t, objects, "PrometheusRule", "gatewright"), "spec", "groups"); len(groups) == 0 {
					t.Error("no alerts")
				}
				if board := text(find(t, objects, "ConfigMap", "gatewright-dashboard"), "data", "gatewright.json"); !strings.Contains(board, `"panels"`) {
					t.Errorf("no dashboard: %.100s", board)
				}
				for _, component := range []string{"manager", "gate"} {
					monitor := find(t, objects, "ServiceMonitor", "gatewright-"+component)
					service := find(t, objects, "Service", "gatewright-"+component+"-metrics")
					if diff := cmp.Diff(at(monitor, "spec", "selector", "matchLabels", names.ComponentLabel), at(service, "metadata", "labels", names.ComponentLabel)); diff != "" {
						t.Errorf("the monitor of the %s does not find its Service\n%s", component, diff)
					}
				}
			},
		},
		"labels that change with an upgrade are not on what guards approvals": {
			values: []string{`commonLabels={"team":"platform"}`},
			check: func(t *testing.T, objects []object) {
				for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
					labels, _ := at(find(t, objects, kind, "gatewright-approvals"), "metadata", "labels").(map[string]any)
					for _, label := range []string{"team", "app.kubernetes.io/version", "helm.sh/chart"} {
						if labels[label] != nil {
							t.Errorf("%s has the label %s", kind, label)
						}
					}
				}
				if got := text(find(t, objects, "Deployment", "gatewright-manager"), "metadata", "labels", "team"); got != "platform" {
					t.Errorf("the manager has not the label: %q", got)
				}
			},
		},
		"the web page is served where it is asked for, by the names that are given": {
			values: []string{`gate.console={"enabled":true,"hosts":["gate.example"]}`},
			check: func(t *testing.T, objects []object) {
				got := args(t, find(t, objects, "StatefulSet", names.GateService))
				if !slices.Contains(got, "-console") || !slices.Contains(got, "-console-host=gate.example") {
					t.Errorf("arguments %q", got)
				}
			},
		},
		"the webhooks are reached by everybody unless it is said from where the API server calls": {
			check: func(t *testing.T, objects []object) {
				rule := list(find(t, objects, "NetworkPolicy", "gatewright-manager"), "spec", "ingress")[0]
				if at(rule, "from") != nil || list(rule, "ports") == nil {
					t.Errorf("rule %v", rule)
				}
			},
		},
		"the webhooks are reached from where the API server calls": {
			values: []string{`networkPolicy={"webhookClients":[{"ipBlock":{"cidr":"192.0.2.0/28"}}]}`},
			check: func(t *testing.T, objects []object) {
				rules := list(find(t, objects, "NetworkPolicy", "gatewright-manager"), "spec", "ingress")
				want := []any{map[string]any{"ipBlock": map[string]any{"cidr": "192.0.2.0/28"}}}
				if diff := cmp.Diff(want, list(rules[0], "from")); diff != "" || len(rules) != 1 {
					t.Errorf("%d rules, (-want +got):\n%s", len(rules), diff)
				}
			},
		},
		"the web page is off unless it is asked for": {
			values: []string{`gate.console={"hosts":["gate.example"]}`},
			check: func(t *testing.T, objects []object) {
				for _, arg := range args(t, find(t, objects, "StatefulSet", names.GateService)) {
					if strings.HasPrefix(arg, "-console") {
						t.Errorf("argument %s", arg)
					}
				}
			},
		},
		"without the approver's role nothing of it is there": {
			values: []string{`rbac={"approverRole":false}`},
			check: func(t *testing.T, objects []object) {
				for _, name := range []string{"gatewright-approver", "gatewright-auditor", "gatewright-labeler"} {
					if has(objects, "ClusterRole", name) {
						t.Errorf("%s is there", name)
					}
				}
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.check(t, render(t, test.values...)) })
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	tests := map[string]struct{ value, want string }{
		"a name that is not there":               {`gate={"replica":3}`, "replica"},
		"no replica":                             {`gate={"replicas":0}`, "replicas"},
		"a sink that is not there":               {`audit={"sink":"kafka"}`, "sink"},
		"NATS without an address":                {`audit={"sink":"nats"}`, "url"},
		"an address of NATS without a stream":    {`audit={"sink":"nats","nats":{"url":"nats://nats:4222"}}`, "url"},
		"a digest that is none":                  {`image={"digest":"sha256:abc"}`, "digest"},
		"a staleness without a unit":             {`gate={"maxStaleness":"300"}`, "maxStaleness"},
		"an address of the API server, no range": {`networkPolicy={"apiServerCIDRs":["192.0.2.10"]}`, "apiServerCIDRs"},
		"two Secrets to pull images with":        {`imagePullSecrets=[{"name":"a"},{"name":"b"}]`, "imagePullSecrets"},
		"a source of certificates not there":     {`webhook={"certificates":"Manual"}`, "certificates"},
		"a Secret whose name goes on as a flag":  {`imagePullSecrets=[{"name":"a\n- -leader-elect=false"}]`, "imagePullSecrets"},
		"a DNS name that goes on as a flag":      {`gate={"dnsNames":["a.example\n- -log-level=debug"]}`, "dnsNames"},
		"a DNS name that the manager refuses":    {`gate={"dnsNames":["a_b.example"]}`, "dnsNames"},
		"a host that goes on as a flag":          {`gate={"console":{"enabled":true,"hosts":["a\n- -authorize-tools=false"]}}`, "hosts"},
		"a class of priority that is a mapping":  {`gate={"priorityClassName":"a: b"}`, "priorityClassName"},
		"a class of storage that goes on":        {`audit={"file":{"storageClassName":"a\n      accessModes: [ReadWriteMany]"}}`, "storageClassName"},
		"an address of NATS that goes on":        {`audit={"sink":"nats","nats":{"url":"nats://nats:4222\n- -authorize-tools=false #/LOG"}}`, "url"},
		"a name of the cluster that goes on":     {`clusterName="a\n- -authorize-tools=false"`, "clusterName"},
		"an image that goes on":                  {`image={"repository":"a\n        command: [sh]"}`, "repository"},
	}
	helm := tool(t, "helm")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, helm, "template", "gatewright", ".", "--set-json", test.value)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error about %s", err, test.want)
			}
		})
	}
}

func TestEveryPodIsRestricted(t *testing.T) {
	seen := 0
	for _, sink := range []string{`audit={"sink":"file"}`, `audit={"sink":"stdout"}`} {
		for _, o := range render(t, sink) {
			spec := at(o, "spec", "template", "spec")
			if o.kind() == "Pod" {
				spec = o["spec"]
			}
			if spec == nil {
				continue
			}
			seen++
			if at(spec, "securityContext", "runAsNonRoot") != true || text(spec, "securityContext", "seccompProfile", "type") != "RuntimeDefault" {
				t.Errorf("%s: pod %v", o.id(), at(spec, "securityContext"))
			}
			for _, c := range list(spec, "containers") {
				want := map[string]any{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": []any{"ALL"}}}
				if diff := cmp.Diff(want, at(c, "securityContext")); diff != "" {
					t.Errorf("%s: %s", o.id(), diff)
				}
				if text(c, "resources", "limits", "memory") == "" {
					t.Errorf("%s has no limit of memory", o.id())
				}
			}
		}
	}
	if seen < 6 {
		t.Errorf("only %d pods seen", seen)
	}
}

// The parts know each other by names.Name..., and the chart writes the same.
func TestTheChartUsesTheNamesOfTheCode(t *testing.T) {
	objects := render(t)
	for _, account := range []string{names.ManagerServiceAccount, names.GateServiceAccount, names.EvaluatorServiceAccount, names.DeciderServiceAccount} {
		find(t, objects, "ServiceAccount", account)
	}
	ports := func(o object, kind string) []string {
		var all []string
		for _, p := range list(list(o, "spec", "template", "spec", "containers")[0], "ports") {
			all = append(all, fmt.Sprintf("%s %v", text(p, "name"), at(p, kind)))
		}
		slices.Sort(all)
		return all
	}
	gate, manager := find(t, objects, "StatefulSet", names.GateService), find(t, objects, "Deployment", "gatewright-manager")
	if diff := cmp.Diff([]string{fmt.Sprintf("https %d", names.GatePort), fmt.Sprintf("status %d", names.GateStatusPort)}, ports(gate, "containerPort")); diff != "" {
		t.Error(diff)
	}
	wantPorts := []string{
		fmt.Sprintf("metrics %d", names.ManagerMetricsPort), fmt.Sprintf("probes %d", names.ManagerProbePort), fmt.Sprintf("webhook %d", names.WebhookPort),
	}
	if diff := cmp.Diff(wantPorts, ports(manager, "containerPort")); diff != "" {
		t.Error(diff)
	}
	find(t, objects, "Service", names.GateService)
	find(t, objects, "Service", names.WebhookService)
	var secrets []string
	for _, v := range list(gate, "spec", "template", "spec", "volumes") {
		if name := text(v, "secret", "secretName"); name != "" {
			secrets = append(secrets, name)
		}
	}
	slices.Sort(secrets)
	want := []string{names.GateClientSecret, names.GateKeysSecret, names.GateTLSSecret, names.ExternalTokensSecret}
	slices.Sort(want)
	if diff := cmp.Diff(want, secrets); diff != "" {
		t.Error(diff)
	}
	command := list(list(gate, "spec", "template", "spec", "containers")[0], "command")
	if diff := cmp.Diff([]any{names.BinaryPath + "/gate"}, command); diff != "" {
		t.Error(diff)
	}
}

// The gate reads Gatewright's kinds and writes approvals and Leases; nothing of it may grow unnoticed.
func TestTheGateMayDoLittle(t *testing.T) {
	writes := map[string]bool{}
	for _, o := range parse(t, mustRead(t, "files/rbac/gate.yaml")) {
		for _, rule := range list(o, "rules") {
			for _, resource := range list(rule, "resources") {
				for _, verb := range list(rule, "verbs") {
					if resource == "*" || verb == "*" || resource == "secrets" {
						t.Errorf("the gate may %v %v", verb, resource)
					}
					if !slices.Contains([]any{"get", "list", "watch"}, verb) {
						writes[fmt.Sprintf("%v %v", verb, resource)] = true
					}
				}
			}
		}
	}
	want := map[string]bool{
		"create toolapprovals": true, "update toolapprovals": true, "update toolapprovals/status": true,
		"create tokenreviews": true, "create subjectaccessreviews": true, "create leases": true, "delete leases": true,
	}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Errorf("what the gate may write (-want +got)\n%s", diff)
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The code that compares what is in force with its own copy expects the namespace of the installation in it.
func TestAnotherNamespaceIsWrittenEverywhere(t *testing.T) {
	out, err := run(t, tool(t, "helm"), "template", "gatewright", ".", "--namespace", "other")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(out, "\n") {
		if strings.Contains(line, names.Namespace) {
			t.Errorf("line %d: %s", i+1, line)
		}
	}
	if !strings.Contains(out, "system:serviceaccount:other:gatewright-gate") {
		t.Error("no admission policy knows the gate of this namespace")
	}
}
