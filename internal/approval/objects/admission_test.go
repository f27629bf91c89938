package objects_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approval/objects"
)

// live is a call that is raised now, as the API server's clock has it.
func live(tool string, change ...func(c *approval.Call)) approval.Call {
	now := time.Now()
	c := approval.Call{
		Binding: approval.Binding{
			PolicyDigest: "sha256:01", Caller: "shop/agent", Server: "payments", Tool: tool, ArgumentsDigest: "sha256:02",
			UserTurnsDigest: "sha256:04", ConfirmReasons: []string{"Irreversible"},
		},
		Class: "Payments", Base: "Destructive", Message: "Refund 5 EUR?", Arguments: json.RawMessage(`{"amount":5}`),
		Approvers: approval.Approvers{Channels: []approval.Channel{approval.ChannelKubernetes}}, RaisedAt: now, ExpiresAt: now.Add(10 * time.Minute),
	}
	for _, f := range change {
		f(&c)
	}
	c.CallKey = approval.CallKey(c.Caller, c.Server, c.Tool, c.ArgumentsDigest, c.Session, c.OnBehalfOf, c.UserTurnsDigest)
	return c
}

// try is one attempt at an approval that waits, or was decided.
type try struct {
	t    *testing.T
	of   *cluster
	gate *objects.Store
	name string
}

func (w *try) as(config *rest.Config) dynamic.ResourceInterface {
	return dynamic.NewForConfigOrDie(config).Resource(approvals).Namespace(shop)
}

func (w *try) patch(config *rest.Config, patch string, subresources ...string) error {
	_, err := w.as(config).Patch(w.t.Context(), w.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	return err
}

func (w *try) admin() *rest.Config { return w.of.User(w.t, "admin-of-shop", "shop-admins") }

func (w *try) account(name string) *rest.Config { return w.of.ServiceAccount(w.t, shop, name) }

// decidedAt approves and says that it was at another time than now. With fields, it claims that others wrote those then.
func (w *try) decidedAt(after time.Duration, fields string) error {
	at := time.Now().Add(after).UTC().Format(time.RFC3339)
	decision := fmt.Sprintf(`"spec":{"decision":{"outcome":"Approve","at":%q}}`, at)
	if fields == "" {
		return w.patch(w.of.user(w.t, "kim"), "{"+decision+"}")
	}
	managed := fmt.Sprintf(`"metadata":{"managedFields":[{"manager":"m","operation":"Update","apiVersion":%q,"time":%q,"fieldsType":"FieldsV1","fieldsV1":%s}]}`,
		v1alpha1.GroupVersion, at, fields)
	return w.patch(w.of.user(w.t, "kim"), "{"+managed+","+decision+"}")
}

func (w *try) approved() {
	w.t.Helper()
	if err := w.patch(w.of.user(w.t, "kim"), approve); err != nil {
		w.t.Fatal(err)
	}
}

// create makes the waiting object again under another name, changed.
func (w *try) create(config *rest.Config, change func(o *unstructured.Unstructured)) error {
	o, err := w.as(w.of.Config()).Get(w.t.Context(), w.name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	o.SetName(w.name + "9")
	o.SetResourceVersion("")
	o.SetUID("")
	change(o)
	_, err = w.as(config).Create(w.t.Context(), o, metav1.CreateOptions{})
	return err
}

func unchanged(*unstructured.Unstructured) {}

const (
	approve   = `{"spec":{"decision":{"outcome":"Approve"}}}`
	reject    = `{"spec":{"decision":{"outcome":"Reject","message":"no"}}}`
	approveBy = `{"spec":{"decision":{"outcome":"Approve","by":{"type":%q,"name":%q}}}}`
)

// What somebody may do who has everything in the namespace that RBAC can give but the verb approve, and what others may.
// Each attempt is refused by the reason that is written down, or is not refused.
func TestWhoMayDoWhatToAnApproval(t *testing.T) {
	cluster := install(t)
	store := cluster.open(t, clock.RealClock{}, seals(t, clock.RealClock{}))
	i := 0
	for name, test := range map[string]struct {
		do   func(w *try) error
		want string
	}{
		"an admin of the namespace cannot forge one":               {func(w *try) error { return w.create(w.admin(), unchanged) }, "only the gate creates approvals"},
		"an admin of the namespace cannot forge one with decision": {func(w *try) error { return w.create(w.admin(), withDecision("admin-of-shop")) }, "only the gate creates approvals"},
		"an admin of the namespace cannot approve":                 {func(w *try) error { return w.patch(w.admin(), approve) }, "needs the verb approve"},
		"an admin of the namespace cannot reject":                  {func(w *try) error { return w.patch(w.admin(), reject) }, "needs the verb approve"},
		"an admin of the namespace cannot approve as another":      {func(w *try) error { return w.patch(w.admin(), fmt.Sprintf(approveBy, "KubernetesUser", "kim")) }, "must name the user who decides"},
		"an admin of the namespace cannot approve for a chat user": {func(w *try) error { return w.patch(w.admin(), fmt.Sprintf(approveBy, "Attested", "jo")) }, "only the gate speaks for users"},
		"an admin of the namespace cannot approve for OIDC users":  {func(w *try) error { return w.patch(w.admin(), fmt.Sprintf(approveBy, "OIDC", "jo")) }, "only the gate speaks for users"},
		"an admin of the namespace cannot write the status": {func(w *try) error {
			return w.patch(w.admin(), `{"status":{"observedGeneration":7}}`, "status")
		}, "only the gate and the manager write the status"},
		"an admin of the namespace cannot delete one": {func(w *try) error {
			return w.as(w.admin()).Delete(w.t.Context(), w.name, metav1.DeleteOptions{})
		}, "goes by itself"},
		"an admin of the namespace cannot delete all": {func(w *try) error {
			return w.as(w.admin()).DeleteCollection(w.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
		}, "goes by itself"},
		"an admin of the namespace cannot have it collected": {func(w *try) error {
			return w.patch(w.admin(), `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"00000000-0000-0000-0000-000000000000"}]}}`)
		}, "owners and finalizers"},
		"an admin of the namespace cannot keep it for ever": {func(w *try) error {
			return w.patch(w.admin(), `{"metadata":{"finalizers":["shop.example.com/keep"]}}`)
		}, "owners and finalizers"},
		"an admin of the namespace cannot change the call": {func(w *try) error {
			return w.patch(w.admin(), `{"spec":{"call":{"arguments":"{\"amount\":5000}"}}}`)
		}, "cannot be changed"},
		"an admin of the namespace cannot make it last": {func(w *try) error {
			return w.patch(w.admin(), `{"spec":{"call":{"expiresAt":"2099-01-01T00:00:00Z"}}}`)
		}, "cannot be changed"},
		"an admin of the namespace cannot change the seal": {func(w *try) error { return w.patch(w.admin(), `{"spec":{"seal":"x.y"}}`) }, "cannot be changed"},
		"an admin of the namespace cannot revive one": {func(w *try) error {
			w.approved()
			return w.patch(w.admin(), `{"spec":{"decision":null}}`)
		}, "once"},
		"an admin of the namespace may label one": {func(w *try) error { return w.patch(w.admin(), `{"metadata":{"labels":{"seen":"yes"}}}`) }, ""},

		"an approver may approve": {func(w *try) error { return w.patch(w.of.user(w.t, "kim"), approve) }, ""},
		"an approver may reject":  {func(w *try) error { return w.patch(w.of.user(w.t, "kim"), reject) }, ""},
		"an approver may name themselves": {func(w *try) error {
			return w.patch(w.of.user(w.t, "kim"), fmt.Sprintf(approveBy, "KubernetesUser", "kim"))
		}, ""},
		"an approver cannot approve as another": {func(w *try) error {
			return w.patch(w.of.user(w.t, "kim"), fmt.Sprintf(approveBy, "KubernetesUser", "lee"))
		}, "must name the user who decides"},
		"an approver cannot bring evidence": {func(w *try) error {
			return w.patch(w.of.user(w.t, "kim"), `{"spec":{"decision":{"outcome":"Approve","evidence":"e","by":{"type":"KubernetesUser","name":"kim"}}}}`)
		}, "must name the user who decides"},
		"an approver cannot speak for an issuer": {func(w *try) error {
			return w.patch(w.of.user(w.t, "kim"), `{"spec":{"decision":{"outcome":"Approve","by":{"type":"KubernetesUser","issuer":"i","name":"kim"}}}}`)
		}, "must name the user who decides"},
		"an approver may say when they decide": {func(w *try) error { return w.decidedAt(0, "") }, ""},
		"an approver may be a little late":     {func(w *try) error { return w.decidedAt(-40*time.Second, "") }, ""},
		"an approver cannot date a decision back": {func(w *try) error {
			return w.decidedAt(-5*time.Minute, "")
		}, "decision.at is not when"},
		"an approver cannot date it ahead": {func(w *try) error { return w.decidedAt(5*time.Minute, "") }, "decision.at is not when"},
		"an approver cannot forge who wrote the decision when": {func(w *try) error {
			return w.decidedAt(5*time.Minute, `{"f:spec":{"f:decision":{"f:at":{},"f:outcome":{},"f:by":{}}}}`)
		}, "decision.at is not when"},
		"an approver cannot have it forgotten when the decision was written": {func(w *try) error {
			return w.patch(w.of.user(w.t, "kim"), fmt.Sprintf(`{"metadata":{"managedFields":[{}]},"spec":{"decision":{"outcome":"Approve","at":%q}}}`, time.Now().UTC().Format(time.RFC3339)))
		}, "decision.at is not when"},
		"the gate cannot date one back": {func(w *try) error {
			return w.patch(w.of.gateWithPatch(w.t), fmt.Sprintf(`{"spec":{"decision":{"outcome":"Approve","at":%q,"by":{"type":"Attested","name":"jo"}}}}`,
				time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)))
		}, "decision.at is not when"},
		"an approver cannot change their mind":    {func(w *try) error { w.approved(); return w.patch(w.of.user(w.t, "kim"), reject) }, "once"},
		"an approver cannot take a decision back": {func(w *try) error { w.approved(); return w.patch(w.of.user(w.t, "kim"), `{"spec":{"decision":null}}`) }, "once"},
		"an approver cannot change the words": {func(w *try) error {
			w.approved()
			return w.patch(w.of.user(w.t, "kim"), `{"spec":{"decision":{"message":"yes"}}}`)
		}, "once"},
		"an approver cannot write the status without RBAC": {func(w *try) error {
			return w.patch(w.of.user(w.t, "kim"), `{"status":{"observedGeneration":7}}`, "status")
		}, "forbidden"},
		"a cluster admin may approve under their name": {func(w *try) error { return w.patch(w.of.Config(), approve) }, ""},
		"a cluster admin cannot approve as another":    {func(w *try) error { return w.patch(w.of.Config(), fmt.Sprintf(approveBy, "KubernetesUser", "kim")) }, "must name the user who decides"},
		"a cluster admin cannot delete one":            {func(w *try) error { return w.as(w.of.Config()).Delete(w.t.Context(), w.name, metav1.DeleteOptions{}) }, "goes by itself"},

		"the caller cannot approve although it is named": {func(w *try) error { return w.patch(w.account("agent"), approve) }, "nobody decides about their own call"},
		"a service account that is named may approve":    {func(w *try) error { return w.patch(w.account("bot"), approve) }, ""},
		"a service account that is not named cannot":     {func(w *try) error { return w.patch(w.account("stranger"), approve) }, "a service account decides only where"},
		"the gate cannot approve for a user of the cluster": {func(w *try) error {
			return w.patch(w.of.gateWithPatch(w.t), fmt.Sprintf(approveBy, "KubernetesUser", "kim"))
		}, "must name the user who decides"},
		"the gate cannot approve by itself":          {func(w *try) error { return w.patch(w.of.gateWithPatch(w.t), approve) }, "needs the verb approve"},
		"the gate writes for a user of a front door": {func(w *try) error { return w.patch(w.of.gateWithPatch(w.t), fmt.Sprintf(approveBy, "Attested", "jo")) }, ""},
		"the gate cannot create a decided one":       {func(w *try) error { return w.create(w.of.gate, withDecision("kim")) }, "created without a decision"},
		"the gate cannot create one for another namespace": {func(w *try) error {
			return w.create(w.of.gate, func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, "shopping/agent", "spec", "call", "caller")
			})
		}, "in the namespace of its caller"},
		"the manager deletes one": {func(w *try) error {
			return w.as(w.of.manager).Delete(w.t.Context(), w.name, metav1.DeleteOptions{})
		}, ""},
		"the manager cannot approve": {func(w *try) error {
			o, err := w.as(w.of.manager).Get(w.t.Context(), w.name, metav1.GetOptions{})
			if err == nil {
				_ = unstructured.SetNestedMap(o.Object, map[string]any{"outcome": "Approve"}, "spec", "decision")
				_, err = w.as(w.of.manager).Update(w.t.Context(), o, metav1.UpdateOptions{})
			}
			return err
		}, "needs the verb approve"},
	} {
		i++
		tool := fmt.Sprintf("tool-%d", i)
		t.Run(name, func(t *testing.T) {
			a, err := store.Raise(t.Context(), live(tool))
			if err != nil {
				t.Fatal(err)
			}
			err = test.do(&try{t, cluster, store, a.Name})
			if test.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	cluster.clear(t)
}

func withDecision(name string) func(o *unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedMap(o.Object, map[string]any{"outcome": "Approve", "by": map[string]any{"type": "KubernetesUser", "name": name}}, "spec", "decision")
	}
}

// Who has decided, and when, is filled in from what the API server knows of the request.
func TestAdmissionFillsInWhoDecidedAndWhen(t *testing.T) {
	cluster := install(t)
	store := cluster.open(t, clock.RealClock{}, seals(t, clock.RealClock{}))
	a, err := store.Raise(t.Context(), live("fill"))
	if err != nil {
		t.Fatal(err)
	}
	w := &try{t, cluster, store, a.Name}
	if err := w.patch(cluster.user(t, "kim"), `{"spec":{"decision":{"outcome":"Approve","message":"fine"}}}`); err != nil {
		t.Fatal(err)
	}
	want := &v1alpha1.ApprovalDecision{Outcome: v1alpha1.Approve, Message: "fine", By: &v1alpha1.Approver{Type: v1alpha1.ApproverKubernetesUser, Name: "kim"}}
	got := cluster.object(t, a.Name).Spec.Decision
	if got.At == nil || time.Since(got.At.Time).Abs() > time.Minute {
		t.Errorf("decided at %v, want the time of the request", got.At)
	}
	got.At = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := store.Consume(t.Context(), a.ID); err != nil {
		t.Errorf("what kubectl approved cannot be used: %v", err)
	}
	cluster.clear(t)
}
