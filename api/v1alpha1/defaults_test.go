package v1alpha1_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
)

// unobserved is the status of every kind before anybody has looked at the object.
var unobserved = map[string]any{"observedGeneration": int64(-1)}

// policyDefaults are those that both kinds of policy have.
func policyDefaults(more map[string]any) map[string]any {
	all := map[string]any{
		"spec.mode":                      "Enforce",
		"spec.contextTrust":              "Caller",
		"spec.timeoutMilliseconds":       int64(2000),
		"spec.clarifyLimit":              int64(2),
		"spec.classes[].decider":         "Skip",
		"spec.tools[].server":            "",
		"spec.tools[].onSchemaViolation": "Block",
		"spec.tools[].permit":            "None",
		"spec.factsFrom[].from":          "Caller",
		"spec.factsFrom[].presence":      "Optional",
		"spec.approvals.ttlSeconds":      int64(900),
		"spec.approvals.permitSeconds":   int64(30),
		"spec.approvals.budget.beyond":   "Block",
		"status":                         unobserved,
	}
	maps.Copy(all, more)
	return all
}

var wantDefaults = map[string]map[string]any{
	"ToolPolicy":        policyDefaults(map[string]any{"spec.unknownTools": "Block"}),
	"ClusterToolPolicy": policyDefaults(map[string]any{"spec.unknownTools": "Defer", "spec.minimumMode": "Audit"}),
	"DeciderModel": {
		"spec.readout": "Auto", "spec.contextTokens": int64(4096), "spec.requireVerified": "Required",
		"spec.container.port": int64(8080), "spec.container.maxInFlight": int64(1),
		"spec.external.protocol": "SystemOne", "spec.external.maxInFlight": int64(1), "spec.pod.replicas": int64(1),
		"status": unobserved,
	},
	"ToolApproval":      {"status": unobserved},
	"DeciderEvaluation": {"spec.repeats": int64(3), "status": unobserved},
}

// A default that is weaker than it should be opens every policy that leaves the field out, so all of them stand here.
func TestDefaultsOfTheSchema(t *testing.T) {
	got := map[string]map[string]any{}
	for kind, s := range schemas(t) {
		got[kind] = map[string]any{}
		walk("", openAPI(s), func(path string, p *apiextensions.JSONSchemaProps) {
			if p.Default != nil && !isForeign(path) {
				got[kind][path] = *p.Default
			}
		})
	}
	if diff := cmp.Diff(wantDefaults, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	tests := map[string]struct {
		kind, spec, want string
	}{
		"an empty policy blocks unknown tools and is enforced": {
			kind: "ToolPolicy", spec: `{}`,
			want: `{mode: Enforce, contextTrust: Caller, timeoutMilliseconds: 2000, clarifyLimit: 2, unknownTools: Block}`,
		},
		"an empty floor leaves unknown tools to others": {
			kind: "ClusterToolPolicy", spec: `{}`,
			want: `{mode: Enforce, contextTrust: Caller, timeoutMilliseconds: 2000, clarifyLimit: 2, unknownTools: Defer, minimumMode: Audit}`,
		},
		"what is said stays": {
			kind: "ToolPolicy", spec: `{mode: Audit, timeoutMilliseconds: 10, unknownTools: Confirm, disclose: Full, captureState: Encrypted, contextTrust: Attested, clarifyLimit: 1, attestors: [{name: d, publicKey: k}]}`,
			want: `{mode: Audit, timeoutMilliseconds: 10, unknownTools: Confirm, disclose: Full, captureState: Encrypted, contextTrust: Attested, clarifyLimit: 1, attestors: [{name: d, publicKey: k}]}`,
		},
		"parts have theirs": {
			kind: "ToolPolicy",
			spec: `{classes: [{name: Write}], tools: [{name: t, class: Write}], factsFrom: [{name: f}], approvals: {budget: {confirmations: 1, windowSeconds: 60}}}`,
			want: `{mode: Enforce, contextTrust: Caller, timeoutMilliseconds: 2000, clarifyLimit: 2, unknownTools: Block,
				classes: [{name: Write, decider: Skip}], tools: [{name: t, server: "", class: Write, onSchemaViolation: Block, permit: None}],
				factsFrom: [{name: f, from: Caller, presence: Optional}],
				approvals: {ttlSeconds: 900, permitSeconds: 30, budget: {confirmations: 1, windowSeconds: 60, beyond: Block}}}`,
		},
		"a null counts as left out": {
			kind: "ToolPolicy", spec: `{mode: null, unknownTools: null, subjects: null}`,
			want: `{mode: Enforce, contextTrust: Caller, timeoutMilliseconds: 2000, clarifyLimit: 2, unknownTools: Block}`,
		},
		"a server is asked one thing at a time and must be verified": {
			kind: "DeciderModel", spec: `{runtime: External, external: {url: "https://d.example.com", model: m}}`,
			want: `{runtime: External, readout: Auto, contextTokens: 4096, requireVerified: Required,
				external: {url: "https://d.example.com", model: m, protocol: SystemOne, maxInFlight: 1}}`,
		},
		"an image listens on 8080": {
			kind: "DeciderModel", spec: `{runtime: Container, pod: {}, container: {image: "r.example.com/j@sha256:` + digest + `"}}`,
			want: `{runtime: Container, readout: Auto, contextTokens: 4096, requireVerified: Required, pod: {replicas: 1},
				container: {image: "r.example.com/j@sha256:` + digest + `", port: 8080, maxInFlight: 1}}`,
		},
		"cases are repeated three times": {
			kind: "DeciderEvaluation", spec: `{deciderRef: {name: d}, caseSet: {type: ConfigMap, configMapName: c, sha256: ` + digest + `}}`,
			want: `{deciderRef: {name: d}, caseSet: {type: ConfigMap, configMapName: c, sha256: ` + digest + `}, repeats: 3}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := object(t, tt.kind, tt.spec)
			if errs := schemas(t)[tt.kind].Admit(got); len(errs) > 0 {
				t.Fatal(errs)
			}
			want := object(t, tt.kind, tt.want)
			want["status"] = unobserved
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
