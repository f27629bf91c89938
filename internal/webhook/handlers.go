package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gatewright.dev/gatewright/internal/names"
)

// injector answers about pods.
type injector struct {
	// namespace is Gatewright's own.
	namespace string
}

// Handle implements admission.Handler.
func (i injector) Handle(_ context.Context, req admission.Request) admission.Response {
	var pod corev1.Pod
	if err := json.Unmarshal(req.Object.Raw, &pod); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading pod: %w", err))
	}
	found := Inject(&pod, req.Namespace, i.namespace)
	out := admission.Allowed(found.Skipped)
	if found.Warning != "" {
		out = out.WithWarnings(found.Warning)
	}
	if len(found.Patches) == 0 {
		return out
	}
	data, err := json.Marshal(found.Patches)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("encoding patch: %w", err))
	}
	kind := admissionv1.PatchTypeJSONPatch
	out.Patch, out.PatchType = data, &kind
	return out
}

// Register puts all answers on a server. reader lists policies, from a cache; namespace is Gatewright's own.
func Register(s ctrlwebhook.Server, scheme *runtime.Scheme, reader client.Reader, namespace string) {
	policies, floors, shared := toolPolicies(), clusterToolPolicies(), make(slots, atOnce)
	policies.slots, floors.slots = shared, shared
	s.Register(ToolPolicyPath, admission.WithValidator(scheme, policies))
	s.Register(ClusterToolPolicyPath, admission.WithValidator(scheme, floors))
	s.Register(DeciderModelPath, admission.WithValidator(scheme, deciderModels()))
	s.Register(ProtectPath, &admission.Webhook{Handler: &protector{reader: reader, exempt: ownAccounts(namespace)}})
	s.Register(InjectPath, &admission.Webhook{Handler: injector{namespace: namespace}})
}

// ownAccounts are the user names of the installation's own service accounts that write, and of the controllers of the
// cluster that take away what belongs to a namespace or owner that is gone.
func ownAccounts(namespace string) []string {
	const prefix = "system:serviceaccount:"
	out := []string{prefix + "kube-system:namespace-controller", prefix + "kube-system:generic-garbage-collector"}
	for _, name := range []string{names.ManagerServiceAccount, names.GateServiceAccount} {
		out = append(out, prefix+namespace+":"+name)
	}
	return out
}
