package objects

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// exploredServer is what a store needs of an API server, in memory: a name is taken once, an update fails if somebody was
// first, and lists show what is there. Versions count the writes of one object, so that two ways to a state look alike.
type exploredServer struct {
	approvals map[string]*v1alpha1.ToolApproval
	leases    map[string]*coordinationv1.Lease
	now       func() time.Time
	faults    serverFaults
	policy    *admissionregistrationv1.ValidatingAdmissionPolicy
	binding   *admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// serverFaults are what an API server must not do, each put in on purpose.
type serverFaults struct {
	// takesNamesTwice lets a second object, or Lease, be created under a name.
	takesNamesTwice bool
	// hides leaves approvals out of lists.
	hides func(*v1alpha1.ToolApproval) bool
	// twists changes approvals on their way out.
	twists func(*v1alpha1.ToolApproval)
}

// exploredRequest is one request in parts.
type exploredRequest struct {
	*http.Request
	kind, namespace, name string
	isStatus              bool
}

func partsOf(r *http.Request) exploredRequest {
	out := exploredRequest{Request: r}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")[3:] // apis, group, version
	if len(parts) > 2 && parts[0] == "namespaces" {
		out.namespace, parts = parts[1], parts[2:]
	}
	out.kind = parts[0]
	if len(parts) > 1 {
		out.name = parts[1]
	}
	out.isStatus = len(parts) > 2 && parts[2] == "status"
	return out
}

// isOurs says whether a request is about approvals or Leases, and no look at the admission policy.
func (r exploredRequest) isOurs() bool { return r.kind == resource || r.kind == "leases" }

func (s *exploredServer) answer(r exploredRequest) *http.Response {
	switch r.kind {
	case resource:
		return s.answerApprovals(r)
	case "leases":
		return s.answerLeases(r)
	}
	if strings.HasSuffix(r.kind, "bindings") {
		return reply(http.StatusOK, s.binding)
	}
	return reply(http.StatusOK, s.policy)
}

func (s *exploredServer) answerApprovals(r exploredRequest) *http.Response {
	key := r.namespace + "/" + r.name
	switch {
	case r.Method == http.MethodGet && r.name == "":
		return reply(http.StatusOK, s.list(r))
	case r.Method == http.MethodGet:
		if o := s.approvals[key]; o != nil {
			return reply(http.StatusOK, s.shown(o))
		}
		return refusal(http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodPost:
		return s.create(r)
	}
	var o v1alpha1.ToolApproval
	decodeBody(r.Request, &o)
	have := s.approvals[key]
	switch {
	case have == nil:
		return refusal(http.StatusNotFound, metav1.StatusReasonNotFound)
	case have.ResourceVersion != o.ResourceVersion:
		return refusal(http.StatusConflict, metav1.StatusReasonConflict)
	}
	changed := have.DeepCopy()
	if r.isStatus {
		changed.Status = o.Status
	} else {
		changed.Spec.Decision = o.Spec.Decision
	}
	changed.ResourceVersion = next(have.ResourceVersion)
	s.approvals[key] = changed
	return reply(http.StatusOK, changed)
}

func (s *exploredServer) create(r exploredRequest) *http.Response {
	var o v1alpha1.ToolApproval
	decodeBody(r.Request, &o)
	key := o.Namespace + "/" + o.Name
	if s.approvals[key] != nil {
		if !s.faults.takesNamesTwice {
			return refusal(http.StatusConflict, metav1.StatusReasonAlreadyExists)
		}
		key += " again"
	}
	o.CreationTimestamp, o.ResourceVersion = metav1.NewTime(s.now()), "1"
	s.approvals[key] = &o
	return reply(http.StatusCreated, &o)
}

func (s *exploredServer) list(r exploredRequest) *v1alpha1.ToolApprovalList {
	selector := fields.ParseSelectorOrDie(r.URL.Query().Get("fieldSelector"))
	out := &v1alpha1.ToolApprovalList{}
	for _, key := range slices.Sorted(maps.Keys(s.approvals)) {
		o := s.approvals[key]
		isHidden := s.faults.hides != nil && s.faults.hides(o)
		if isHidden || r.namespace != "" && o.Namespace != r.namespace ||
			!selector.Matches(fields.Set{fieldID: o.Spec.Call.ID, fieldCallKey: string(o.Spec.Call.CallKey), fieldName: o.Name}) {
			continue
		}
		out.Items = append(out.Items, *s.shown(o))
	}
	return out
}

func (s *exploredServer) shown(o *v1alpha1.ToolApproval) *v1alpha1.ToolApproval {
	o = o.DeepCopy()
	if s.faults.twists != nil {
		s.faults.twists(o)
	}
	return o
}

func (s *exploredServer) answerLeases(r exploredRequest) *http.Response {
	switch {
	case r.Method == http.MethodPost:
		var l coordinationv1.Lease
		decodeBody(r.Request, &l)
		if s.leases[l.Name] != nil && !s.faults.takesNamesTwice {
			return refusal(http.StatusConflict, metav1.StatusReasonAlreadyExists)
		}
		l.Namespace, l.CreationTimestamp = r.namespace, metav1.NewTime(s.now())
		s.leases[l.Name] = &l
		return reply(http.StatusCreated, &l)
	case r.Method == http.MethodDelete:
		delete(s.leases, r.name)
		return reply(http.StatusOK, &metav1.Status{Status: metav1.StatusSuccess})
	case r.name != "":
		if l := s.leases[r.name]; l != nil {
			return reply(http.StatusOK, l)
		}
		return refusal(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		panic(err)
	}
	list := &coordinationv1.LeaseList{}
	for _, name := range slices.Sorted(maps.Keys(s.leases)) {
		if selector.Matches(labels.Set(s.leases[name].Labels)) {
			list.Items = append(list.Items, *s.leases[name])
		}
	}
	return reply(http.StatusOK, list)
}

func next(version string) string {
	var n int
	_, _ = fmt.Sscan(version, &n)
	return fmt.Sprint(n + 1)
}

func decodeBody(r *http.Request, into any) {
	data, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		panic(err)
	}
}

func reply(status int, o any) *http.Response {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(data))}
}

func refusal(status int, reason metav1.StatusReason) *http.Response {
	return reply(status, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(status),
	})
}
