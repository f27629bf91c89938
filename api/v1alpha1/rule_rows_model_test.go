package v1alpha1_test

// modelRules are those of a DeciderModel.
func modelRules() map[string]ruleRow {
	return map[string]ruleRow{
		"a file is pinned where it is loaded": {
			kinds: models, at: "spec",
			message: "artifact is required for runtime Embedded and LlamaCpp and only allowed there: pin the file with its sha256",
			good: []string{
				`{runtime: Embedded, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}}`,
				`{runtime: LlamaCpp, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}}`,
			},
			bad: []string{
				`{runtime: Embedded}`,
				`{runtime: LlamaCpp}`,
				`{runtime: External, external: {url: "https://d.example.com", model: m}, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}}`,
			},
		},
		"an image is for Container": {
			kinds: models, at: "spec",
			message: "container is required for runtime Container and only allowed there",
			good: []string{
				`{runtime: Container, container: {image: "registry.example.com/judge@sha256:00000000000000000000000000000000000000000000000000000000000000aa"}}`,
			},
			bad: []string{
				`{runtime: Container}`,
				`{runtime: Embedded, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}, container: {image: "registry.example.com/judge@sha256:00000000000000000000000000000000000000000000000000000000000000aa"}}`,
			},
		},
		"a server is for External": {
			kinds: models, at: "spec",
			message: "external is required for runtime External and only allowed there",
			good: []string{
				`{runtime: External, external: {url: "https://d.example.com", model: m}}`,
			},
			bad: []string{
				`{runtime: External}`,
				`{runtime: Embedded, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}, external: {url: "https://d.example.com", model: m}}`,
			},
		},
		"the embedded judge has no pod": {
			kinds: models, at: "spec",
			message: "pod is not for runtime Embedded, which runs inside the gate: remove pod",
			good: []string{
				`{runtime: LlamaCpp, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}, pod: {replicas: 2}}`,
				`{runtime: Embedded, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}}`,
			},
			bad: []string{
				`{runtime: Embedded, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}, pod: {}}`,
			},
		},
		"url is for its type of artifact": {
			kinds: models, at: "spec.artifact",
			message: "url is required for type URL and only allowed there",
			good: []string{
				`{runtime: LlamaCpp, artifact: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: URL, url: "https://m.example.com/j.gguf"}}`,
			},
			bad: []string{
				`{runtime: LlamaCpp, artifact: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: URL}}`,
				`{runtime: LlamaCpp, artifact: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: Bundled, bundled: {name: j}, url: "https://m.example.com/j.gguf"}}`,
			},
		},
		"oci is for its type of artifact": {
			kinds: models, at: "spec.artifact",
			message: "oci is required for type OCI and only allowed there",
			good: []string{
				`{runtime: LlamaCpp, artifact: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: OCI, oci: {image: "registry.example.com/judge@sha256:00000000000000000000000000000000000000000000000000000000000000aa", path: /j.gguf}}}`,
			},
			bad: []string{
				`{runtime: LlamaCpp, artifact: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: OCI}}`,
				`{runtime: LlamaCpp, artifact: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: Bundled, bundled: {name: j}, oci: {image: "registry.example.com/judge@sha256:00000000000000000000000000000000000000000000000000000000000000aa", path: /j.gguf}}}`,
			},
		},
		"persistentVolumeClaim is for its type of artifact": {
			kinds: models, at: "spec.artifact",
			message: "persistentVolumeClaim is required for type PersistentVolumeClaim and only allowed there",
			good: []string{
				`{runtime: LlamaCpp, artifact: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: PersistentVolumeClaim, persistentVolumeClaim: {claimName: c, path: /j.gguf}}}`,
			},
			bad: []string{
				`{runtime: LlamaCpp, artifact: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: PersistentVolumeClaim}}`,
				`{runtime: LlamaCpp, artifact: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: Bundled, bundled: {name: j}, persistentVolumeClaim: {claimName: c, path: /j.gguf}}}`,
			},
		},
		"bundled is for its type of artifact": {
			kinds: models, at: "spec.artifact",
			message: "bundled is required for type Bundled and only allowed there",
			good: []string{
				`{runtime: LlamaCpp, artifact: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: Bundled, bundled: {name: j}}}`,
			},
			bad: []string{
				`{runtime: LlamaCpp, artifact: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: Bundled}}`,
				`{runtime: LlamaCpp, artifact: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: URL, url: "https://m.example.com/j.gguf", bundled: {name: j}}}`,
			},
		},
		"listed namespaces are listed": {
			kinds: models, at: "spec.allowedNamespaces",
			message: "namespaces is required for from Listed and only allowed there",
			good: []string{
				`{runtime: Embedded, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}, allowedNamespaces: {from: All}}`,
				`{runtime: Embedded, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}, allowedNamespaces: {from: None}}`,
				`{runtime: Embedded, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}, allowedNamespaces: {from: Listed, namespaces: [a]}}`,
			},
			bad: []string{
				`{runtime: Embedded, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}, allowedNamespaces: {from: Listed}}`,
				`{runtime: Embedded, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}, allowedNamespaces: {from: All, namespaces: [a]}}`,
			},
		},
		"cases of a rollout in a ConfigMap": {
			kinds: models, at: "spec.rollout.evaluation.caseSet",
			message: "configMapName is required for type ConfigMap and only allowed there",
			good: []string{
				`{runtime: Embedded, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}, rollout: {evaluation: {floors: {}, caseSet: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: ConfigMap, configMapName: c}}}}`,
			},
			bad: []string{
				`{runtime: Embedded, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}, rollout: {evaluation: {floors: {}, caseSet: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: ConfigMap}}}}`,
				`{runtime: Embedded, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}, rollout: {evaluation: {floors: {}, caseSet: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: OCI, configMapName: c, oci: {image: "registry.example.com/judge@sha256:00000000000000000000000000000000000000000000000000000000000000aa", path: /c}}}}}`,
			},
		},
		"cases of a rollout in an image": {
			kinds: models, at: "spec.rollout.evaluation.caseSet",
			message: "oci is required for type OCI and only allowed there",
			good: []string{
				`{runtime: Embedded, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}, rollout: {evaluation: {floors: {}, caseSet: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: OCI, oci: {image: "registry.example.com/judge@sha256:00000000000000000000000000000000000000000000000000000000000000aa", path: /c}}}}}`,
			},
			bad: []string{
				`{runtime: Embedded, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}, rollout: {evaluation: {floors: {}, caseSet: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: OCI}}}}`,
				`{runtime: Embedded, artifact: {type: Bundled, sha256: 00000000000000000000000000000000000000000000000000000000000000aa, bundled: {name: j}}, rollout: {evaluation: {floors: {}, caseSet: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: ConfigMap, configMapName: c, oci: {image: "registry.example.com/judge@sha256:00000000000000000000000000000000000000000000000000000000000000aa", path: /c}}}}}`,
			},
		},
	}
}

// changeRules are those of the kinds that may not be changed.
func changeRules() map[string]ruleRow {
	return map[string]ruleRow{
		"cases of an evaluation in a ConfigMap": {
			kinds: evals, at: "spec.caseSet",
			message: "configMapName is required for type ConfigMap and only allowed there",
			good: []string{
				`{deciderRef: {name: d}, caseSet: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: ConfigMap, configMapName: c}}`,
			},
			bad: []string{
				`{deciderRef: {name: d}, caseSet: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: ConfigMap}}`,
				`{deciderRef: {name: d}, caseSet: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: OCI, configMapName: c, oci: {image: "registry.example.com/judge@sha256:00000000000000000000000000000000000000000000000000000000000000aa", path: /c}}}`,
			},
		},
		"cases of an evaluation in an image": {
			kinds: evals, at: "spec.caseSet",
			message: "oci is required for type OCI and only allowed there",
			good: []string{
				`{deciderRef: {name: d}, caseSet: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: OCI, oci: {image: "registry.example.com/judge@sha256:00000000000000000000000000000000000000000000000000000000000000aa", path: /c}}}`,
			},
			bad: []string{
				`{deciderRef: {name: d}, caseSet: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: OCI}}`,
				`{deciderRef: {name: d}, caseSet: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: ConfigMap, configMapName: c, oci: {image: "registry.example.com/judge@sha256:00000000000000000000000000000000000000000000000000000000000000aa", path: /c}}}`,
			},
		},
		"an evaluation is not changed": {
			kinds: evals, at: "spec",
			message: "spec cannot be changed: create another DeciderEvaluation",
			old:     `{deciderRef: {name: d}, caseSet: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: ConfigMap, configMapName: c}}`,
			good: []string{
				`{deciderRef: {name: d}, caseSet: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: ConfigMap, configMapName: c}}`,
			},
			bad: []string{
				`{deciderRef: {name: d}, caseSet: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: ConfigMap, configMapName: other}}`,
				`{deciderRef: {name: d}, caseSet: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: ConfigMap, configMapName: c}, repeats: 5}`,
				`{deciderRef: {name: d}, caseSet: {sha256: 00000000000000000000000000000000000000000000000000000000000000aa, type: ConfigMap, configMapName: c}, floors: {recallPercent: 1}}`,
			},
		},
		"a call that waits is not changed": {
			kinds: approvals, at: "spec",
			message: "call is what the person sees and cannot be changed",
			old:     `{seal: s, call: {id: 00112233445566778899aabbccddeeff, callKey: "sha256:00aa", caller: a/b, tool: t, class: Write, argumentsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", arguments: "{}", userTurnsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", message: m, confirmReasons: [Irreversible], policyDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", approvers: {selfApproval: Forbid}, raisedAt: "2026-11-30T11:50:00Z", expiresAt: "2026-11-30T12:00:00Z"}}`,
			good: []string{
				`{seal: s, call: {id: 00112233445566778899aabbccddeeff, callKey: "sha256:00aa", caller: a/b, tool: t, class: Write, argumentsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", arguments: "{}", userTurnsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", message: m, confirmReasons: [Irreversible], policyDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", approvers: {selfApproval: Forbid}, raisedAt: "2026-11-30T11:50:00Z", expiresAt: "2026-11-30T12:00:00Z"}}`,
				`{seal: s, call: {id: 00112233445566778899aabbccddeeff, callKey: "sha256:00aa", caller: a/b, tool: t, class: Write, argumentsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", arguments: "{}", userTurnsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", message: m, confirmReasons: [Irreversible], policyDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", approvers: {selfApproval: Forbid}, raisedAt: "2026-11-30T11:50:00Z", expiresAt: "2026-11-30T12:00:00Z"}, decision: {outcome: Approve}}`,
			},
			bad: []string{
				`{seal: s, call: {id: 00112233445566778899aabbccddeeff, callKey: "sha256:00aa", caller: a/b, tool: other, class: Write, argumentsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", arguments: "{}", userTurnsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", message: m, confirmReasons: [Irreversible], policyDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", approvers: {selfApproval: Forbid}, raisedAt: "2026-11-30T11:50:00Z", expiresAt: "2026-11-30T12:00:00Z"}}`,
			},
		},
		"a seal is not changed": {
			kinds: approvals, at: "spec",
			message: "seal cannot be changed",
			old:     `{seal: s, call: {id: 00112233445566778899aabbccddeeff, callKey: "sha256:00aa", caller: a/b, tool: t, class: Write, argumentsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", arguments: "{}", userTurnsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", message: m, confirmReasons: [Irreversible], policyDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", approvers: {selfApproval: Forbid}, raisedAt: "2026-11-30T11:50:00Z", expiresAt: "2026-11-30T12:00:00Z"}}`,
			good: []string{
				`{seal: s, call: {id: 00112233445566778899aabbccddeeff, callKey: "sha256:00aa", caller: a/b, tool: t, class: Write, argumentsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", arguments: "{}", userTurnsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", message: m, confirmReasons: [Irreversible], policyDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", approvers: {selfApproval: Forbid}, raisedAt: "2026-11-30T11:50:00Z", expiresAt: "2026-11-30T12:00:00Z"}}`,
			},
			bad: []string{
				`{seal: other, call: {id: 00112233445566778899aabbccddeeff, callKey: "sha256:00aa", caller: a/b, tool: t, class: Write, argumentsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", arguments: "{}", userTurnsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", message: m, confirmReasons: [Irreversible], policyDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", approvers: {selfApproval: Forbid}, raisedAt: "2026-11-30T11:50:00Z", expiresAt: "2026-11-30T12:00:00Z"}}`,
			},
		},
		"a decision is made once": {
			kinds: approvals, at: "spec",
			message: "decision can be made once",
			old:     `{seal: s, call: {id: 00112233445566778899aabbccddeeff, callKey: "sha256:00aa", caller: a/b, tool: t, class: Write, argumentsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", arguments: "{}", userTurnsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", message: m, confirmReasons: [Irreversible], policyDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", approvers: {selfApproval: Forbid}, raisedAt: "2026-11-30T11:50:00Z", expiresAt: "2026-11-30T12:00:00Z"}, decision: {outcome: Reject}}`,
			good: []string{
				`{seal: s, call: {id: 00112233445566778899aabbccddeeff, callKey: "sha256:00aa", caller: a/b, tool: t, class: Write, argumentsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", arguments: "{}", userTurnsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", message: m, confirmReasons: [Irreversible], policyDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", approvers: {selfApproval: Forbid}, raisedAt: "2026-11-30T11:50:00Z", expiresAt: "2026-11-30T12:00:00Z"}, decision: {outcome: Reject}}`,
			},
			bad: []string{
				`{seal: s, call: {id: 00112233445566778899aabbccddeeff, callKey: "sha256:00aa", caller: a/b, tool: t, class: Write, argumentsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", arguments: "{}", userTurnsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", message: m, confirmReasons: [Irreversible], policyDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", approvers: {selfApproval: Forbid}, raisedAt: "2026-11-30T11:50:00Z", expiresAt: "2026-11-30T12:00:00Z"}}`,
				`{seal: s, call: {id: 00112233445566778899aabbccddeeff, callKey: "sha256:00aa", caller: a/b, tool: t, class: Write, argumentsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", arguments: "{}", userTurnsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", message: m, confirmReasons: [Irreversible], policyDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", approvers: {selfApproval: Forbid}, raisedAt: "2026-11-30T11:50:00Z", expiresAt: "2026-11-30T12:00:00Z"}, decision: {outcome: Approve}}`,
				`{seal: s, call: {id: 00112233445566778899aabbccddeeff, callKey: "sha256:00aa", caller: a/b, tool: t, class: Write, argumentsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", arguments: "{}", userTurnsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", message: m, confirmReasons: [Irreversible], policyDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", approvers: {selfApproval: Forbid}, raisedAt: "2026-11-30T11:50:00Z", expiresAt: "2026-11-30T12:00:00Z"}, decision: {outcome: Reject, message: changed}}`,
				`{seal: s, call: {id: 00112233445566778899aabbccddeeff, callKey: "sha256:00aa", caller: a/b, tool: t, class: Write, argumentsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", arguments: "{}", userTurnsDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", message: m, confirmReasons: [Irreversible], policyDigest: "sha256:00000000000000000000000000000000000000000000000000000000000000aa", approvers: {selfApproval: Forbid}, raisedAt: "2026-11-30T11:50:00Z", expiresAt: "2026-11-30T12:00:00Z"}, decision: {outcome: Reject, by: {type: KubernetesUser, name: other}}}`,
			},
		},
	}
}
