package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/deciders"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/inference/workload"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/pki"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/served"
)

const modelHash = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

var ownFingerprint = "sha256:" + strings.Repeat("b", 64)

// certificates of an installation, as they are mounted.
type certificates struct {
	authority *pki.Authority
	dir       string
}

func newCertificates(t *testing.T) *certificates {
	t.Helper()
	a, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &certificates{a, t.TempDir()}
}

// mount issues a certificate and gives its folder.
func (c *certificates) mount(t *testing.T, r pki.Request) string {
	t.Helper()
	data, err := c.authority.Issue(time.Now(), r)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(c.dir, r.Name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	for name, value := range data {
		if err := os.WriteFile(filepath.Join(dir, name), value, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// decider is a decider pod: it wants a client certificate of the installation, and answers every question with yes.
type decider struct {
	server *httptest.Server
	hosts  []string
	model  string
}

func (c *certificates) decider(t *testing.T, serverName string) *decider {
	t.Helper()
	d := &decider{model: "small"}
	held, err := OpenCertificate(c.mount(t, pki.Request{Name: "decider", DNSNames: []string{serverName}, Usage: x509.ExtKeyUsageServerAuth}))
	if err != nil {
		t.Fatal(err)
	}
	d.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.hosts = append(d.hosts, r.Host)
		var body struct {
			Questions map[string]any `json:"questions"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		answers := map[string]any{}
		for q := range body.Questions {
			answers[q] = map[string]any{"type": "noul", "noul": 0.75, "coverage": 1}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"model": d.model, "fingerprint": ownFingerprint, "answers": answers, "usage": map[string]any{"input_tokens": 1, "output_tokens": 1}})
	}))
	d.server.TLS = held.ServerConfig()
	d.server.TLS.ClientAuth, d.server.TLS.ClientCAs = tls.RequireAndVerifyClientCert, held.held.Load().pool
	d.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	d.server.StartTLS()
	t.Cleanup(d.server.Close)
	return d
}

// dial reaches the decider whatever its Service is called.
func (d *decider) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, d.server.Listener.Addr().String())
}

var asked = inference.Request{
	Tenant: "shop", State: questions.State{Tool: questions.Tool{Name: "orders.ship"}, UserTurns: []string{"ship it"}},
	Questions: []questions.Question{{Name: "mine", Type: questions.YesNo, Instructions: "Is it?"}},
}

func llama(change func(*v1alpha1.DeciderModel)) *v1alpha1.DeciderModel {
	m := &v1alpha1.DeciderModel{ObjectMeta: metav1.ObjectMeta{Name: "small", UID: types.UID("u1")}, Spec: v1alpha1.DeciderModelSpec{
		Runtime: v1alpha1.RuntimeLlamaCpp, ContextTokens: 4096,
		Artifact: &v1alpha1.Artifact{Type: v1alpha1.ArtifactBundled, SHA256: modelHash, Bundled: &v1alpha1.BundledArtifact{Name: "small.gguf"}},
	}}
	if change != nil {
		change(m)
	}
	return m
}

func external(change func(*v1alpha1.DeciderModel)) *v1alpha1.DeciderModel {
	m := llama(nil)
	m.Spec.Runtime, m.Spec.Artifact = v1alpha1.RuntimeExternal, nil
	m.Spec.External = &v1alpha1.ExternalRuntime{URL: "https://deciders.example", Model: "small", MaxInFlight: 1}
	if change != nil {
		change(m)
	}
	return m
}

func embedded(hash string) *v1alpha1.DeciderModel {
	return llama(func(m *v1alpha1.DeciderModel) {
		m.Spec.Runtime, m.Spec.Artifact.SHA256 = v1alpha1.RuntimeEmbedded, v1alpha1.SHA256(hash)
		m.Spec.Artifact.Bundled.Name = inference.EmbeddedName
	})
}

// revise writes the revision that a model asks for.
func revise(t *testing.T, m *v1alpha1.DeciderModel) *appsv1.ControllerRevision {
	t.Helper()
	c, err := workload.NewRevision(workload.Install{Namespace: "gatewright-system", DeciderImage: "decider:1"}, m)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newSet(t *testing.T, o DeciderOptions) *deciderSet {
	t.Helper()
	o.Namespace, o.Log = "gatewright-system", slog.New(slog.DiscardHandler)
	if o.Pods == nil {
		o.Pods = http.DefaultTransport
	}
	s := newDeciderSet(o)
	t.Cleanup(func() {
		for _, r := range s.kept {
			r.guard.Close()
		}
	})
	return s
}

// What is served, by what the API server holds.
func TestWhichRevisionIsServed(t *testing.T) {
	tokens := t.TempDir()
	withToken := func(name string) *v1alpha1.DeciderModel {
		return external(func(m *v1alpha1.DeciderModel) {
			m.Spec.External.TokenSecretRef = &v1alpha1.SecretReference{Name: v1alpha1.ObjectName(name)}
		})
	}
	for name, text := range map[string]string{"token": "s3cret\n", "two-words": "a b", "empty": " \n"} {
		for _, file := range []string{name, workload.TokenFile(withToken(name).Spec.External)} {
			if err := os.WriteFile(filepath.Join(tokens, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	elsewhere := withToken("token")
	elsewhere.Spec.External.URL = "https://elsewhere.example"
	for name, test := range map[string]struct {
		model  *v1alpha1.DeciderModel
		sha256 string // in status.active
		change func(*appsv1.ControllerRevision)
		want   served.Decider // without its revision
	}{
		"our server whose bytes the manager has seen": {llama(nil), modelHash, nil, served.Decider{SHA256: modelHash, Verified: true, Available: true}},
		"our server whose bytes nobody has seen":      {llama(nil), "", nil, served.Decider{Available: true}},
		"our server with other bytes":                 {llama(nil), strings.Repeat("c", 64), nil, served.Decider{Available: true}},
		"the embedded judge": {embedded(deciders.EmbeddedHash()), "", nil,
			served.Decider{SHA256: deciders.EmbeddedHash(), Verified: true, Available: true, Fingerprint: inference.EmbeddedFingerprint()}},
		"another file than the embedded judge":                  {embedded(modelHash), "", nil, served.Decider{Error: "nothing is asked of it"}},
		"a server of somebody else":                             {external(nil), "", nil, served.Decider{Available: true}},
		"one that says that its bytes are known":                {external(nil), modelHash, nil, served.Decider{Available: true}},
		"one with a token":                                      {withToken("token"), "", nil, served.Decider{Available: true}},
		"one that names the Secret of a server at another host": {elsewhere, "", nil, served.Decider{Error: "not mounted"}},
		"one whose token is missing":                            {withToken("missing"), "", nil, served.Decider{Error: "not mounted"}},
		"one whose token has two words":                         {withToken("two-words"), "", nil, served.Decider{Error: "no token of one word"}},
		"one whose token is empty":                              {withToken("empty"), "", nil, served.Decider{Error: "no token of one word"}},
		"a revision that somebody has changed": {llama(nil), modelHash, func(c *appsv1.ControllerRevision) {
			c.Data.Raw = bytes.Replace(c.Data.Raw, []byte("4096"), []byte("8192"), 1)
		}, served.Decider{Error: "named for"}},
		"a revision with another image": {llama(nil), modelHash, func(c *appsv1.ControllerRevision) {
			c.Annotations[workload.ImageAnnotation] = "evil:1"
		}, served.Decider{Error: "named for"}},
		"a revision of another model": {llama(nil), modelHash, func(c *appsv1.ControllerRevision) {
			c.OwnerReferences[0].UID = "other"
		}, served.Decider{Error: "belongs to something else"}},
		"a revision of nobody":       {llama(nil), modelHash, func(c *appsv1.ControllerRevision) { c.OwnerReferences = nil }, served.Decider{Error: "belongs to something else"}},
		"a revision that is no JSON": {llama(nil), modelHash, func(c *appsv1.ControllerRevision) { c.Data.Raw = []byte("{") }, served.Decider{Error: "reading revision"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := revise(t, test.model)
			m := test.model.DeepCopy()
			m.Status.Active = &v1alpha1.DeciderRevision{Name: v1alpha1.ObjectName(c.Name), SHA256: v1alpha1.SHA256(test.sha256)}
			if test.change != nil {
				test.change(c)
			}
			s := newSet(t, DeciderOptions{Tokens: tokens})
			p, _ := s.place([]*v1alpha1.DeciderModel{m}, map[string]*appsv1.ControllerRevision{c.Name: c})
			got := p.active["small"].state()
			if !strings.Contains(got.Error, test.want.Error) || (got.Error == "") != (test.want.Error == "") {
				t.Errorf("error %q, want %q", got.Error, test.want.Error)
			}
			test.want.Revision = c.Name
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(served.Decider{}, "Error")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			d := p.serve([]*v1alpha1.DeciderModel{m})["small"]
			if (d != nil) != (got.Error == "") || d != nil && d.Verified != got.Verified {
				t.Errorf("in the snapshot: %+v", d)
			}
		})
	}
}

// servedOf gives what is served of a model whose active revision is that of another spec, and whose candidate of a third.
func servedOf(t *testing.T, m, active, candidate *v1alpha1.DeciderModel) *gate.ServedDecider {
	t.Helper()
	m = m.DeepCopy()
	one, two := revise(t, active), revise(t, candidate)
	m.Status.Active = &v1alpha1.DeciderRevision{Name: v1alpha1.ObjectName(one.Name)}
	if m.Status.Candidate == nil {
		m.Status.Candidate = &v1alpha1.DeciderRevision{}
	}
	m.Status.Candidate.Name = v1alpha1.ObjectName(two.Name)
	p, _ := newSet(t, DeciderOptions{}).place([]*v1alpha1.DeciderModel{m}, map[string]*appsv1.ControllerRevision{one.Name: one, two.Name: two})
	d := p.serve([]*v1alpha1.DeciderModel{m})["small"]
	if d == nil {
		t.Fatalf("nothing is served: %+v", p)
	}
	return d
}

// Calls go to what is active, so a spec that asks for something else must not open it.
func TestWhoMayReferToADeciderWhoseSpecHasChanged(t *testing.T) {
	const all, none, listed = v1alpha1.NamespacesAll, v1alpha1.NamespacesNone, v1alpha1.NamespacesListed
	for name, test := range map[string]struct {
		spec, active *v1alpha1.DeciderModel
		from         v1alpha1.NamespaceSelection // empty: the default
		want         []string                    // of shop, which is listed, and payroll
	}{
		"a server in the cluster, by default":                       {llama(nil), llama(nil), "", []string{"shop", "payroll"}},
		"a server in the cluster, listed":                           {llama(nil), llama(nil), listed, []string{"shop"}},
		"a server at a URL, by default":                             {external(nil), external(nil), "", nil},
		"a server at a URL, all":                                    {external(nil), external(nil), all, []string{"shop", "payroll"}},
		"a server at a URL, listed":                                 {external(nil), external(nil), listed, []string{"shop"}},
		"a URL is active and a server in the cluster is to come":    {llama(nil), external(nil), "", nil},
		"so, and it is to be open to all":                           {llama(nil), external(nil), all, nil},
		"so, and it is to be closed":                                {llama(nil), external(nil), none, nil},
		"so, and namespaces are listed":                             {llama(nil), external(nil), listed, []string{"shop"}},
		"a URL is active and the embedded judge is to come":         {embedded(deciders.EmbeddedHash()), external(nil), "", nil},
		"a server in the cluster is active and a URL is to come":    {external(nil), llama(nil), "", nil},
		"so, and the server at the URL is to be open to all":        {external(nil), llama(nil), all, []string{"shop", "payroll"}},
		"so, and the server at the URL is to be for what is listed": {external(nil), llama(nil), listed, []string{"shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.from != "" {
				test.spec.Spec.AllowedNamespaces = &v1alpha1.NamespaceAllowance{From: test.from}
			}
			if test.from == listed {
				test.spec.Spec.AllowedNamespaces.Namespaces = []v1alpha1.Namespace{"shop"}
			}
			d := servedOf(t, test.spec, test.active, llama(nil))
			var got []string
			for _, ns := range []string{"shop", "payroll"} {
				if d.Allowed(ns) {
					got = append(got, ns)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A candidate hears of live calls only while the manager says so.
func TestWhichCandidateIsCompared(t *testing.T) {
	shadowing, now := &v1alpha1.Rollout{Shadow: &v1alpha1.ShadowComparison{Decisions: 10}}, metav1.NewTime(noon)
	for name, test := range map[string]struct {
		spec, candidate *v1alpha1.DeciderModel
		rollout         *v1alpha1.Rollout
		status          v1alpha1.DeciderRevision
		want            bool
	}{
		"one that is to be compared":            {llama(nil), llama(nil), shadowing, v1alpha1.DeciderRevision{Shadow: &v1alpha1.ShadowResult{}}, true},
		"one that was never evaluated":          {llama(nil), llama(nil), shadowing, v1alpha1.DeciderRevision{}, false},
		"one that is evaluated, or fell short":  {llama(nil), llama(nil), shadowing, v1alpha1.DeciderRevision{Evaluation: "e", Since: &now}, false},
		"one that was compared on enough calls": {llama(nil), llama(nil), shadowing, v1alpha1.DeciderRevision{Shadow: &v1alpha1.ShadowResult{Compared: 10}}, false},
		"one that failed on all of them":        {llama(nil), llama(nil), shadowing, v1alpha1.DeciderRevision{Shadow: &v1alpha1.ShadowResult{Failed: 10}}, false},
		"a spec without shadow":                 {llama(nil), llama(nil), &v1alpha1.Rollout{}, v1alpha1.DeciderRevision{Shadow: &v1alpha1.ShadowResult{}}, false},
		"a spec without rollout":                {llama(nil), llama(nil), nil, v1alpha1.DeciderRevision{Shadow: &v1alpha1.ShadowResult{}}, false},
		"one at a URL":                          {external(nil), external(nil), shadowing, v1alpha1.DeciderRevision{Shadow: &v1alpha1.ShadowResult{}}, true},
		"one at a URL that the spec has left":   {llama(nil), external(nil), shadowing, v1alpha1.DeciderRevision{Shadow: &v1alpha1.ShadowResult{}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.spec.Spec.Rollout, test.spec.Status.Candidate = test.rollout, &test.status
			if got := servedOf(t, test.spec, embedded(deciders.EmbeddedHash()), test.candidate).Candidate; (got != nil) != test.want {
				t.Errorf("candidate %+v, want one %v", got, test.want)
			}
		})
	}
}

// A revision is kept with its breaker and its queue as long as it is in use, whatever place it has.
func TestARevisionIsKept(t *testing.T) {
	s := newSet(t, DeciderOptions{})
	first, second := llama(nil), llama(func(m *v1alpha1.DeciderModel) { m.Spec.ContextTokens = 8192 })
	one, two := revise(t, first), revise(t, second)
	revisions := map[string]*appsv1.ControllerRevision{one.Name: one, two.Name: two}
	at := func(active, candidate string) *v1alpha1.DeciderModel {
		m := second.DeepCopy()
		m.Spec.Rollout = &v1alpha1.Rollout{Shadow: &v1alpha1.ShadowComparison{Decisions: 1}}
		for name, into := range map[string]**v1alpha1.DeciderRevision{active: &m.Status.Active, candidate: &m.Status.Candidate} {
			if name != "" {
				*into = &v1alpha1.DeciderRevision{Name: v1alpha1.ObjectName(name), SHA256: modelHash}
			}
		}
		if m.Status.Candidate != nil {
			m.Status.Candidate.Shadow = &v1alpha1.ShadowResult{}
		}
		return m
	}
	m := at(one.Name, two.Name)
	p, unused := s.place([]*v1alpha1.DeciderModel{m}, revisions)
	d := p.serve([]*v1alpha1.DeciderModel{m})["small"]
	if d.Decider != inference.Decider(p.active["small"].revision.guard) || d.Candidate == nil || d.Candidate.Revision != two.Name || len(unused) != 0 {
		t.Fatalf("%+v, unused %v", d, unused)
	}
	candidate := p.candidates["small"].revision
	m = at(two.Name, "")
	p, unused = s.place([]*v1alpha1.DeciderModel{m}, revisions)
	d = p.serve([]*v1alpha1.DeciderModel{m})["small"]
	if p.active["small"].revision != candidate || d.Candidate != nil {
		t.Error("the candidate was made anew when it became active")
	}
	if len(unused) != 1 || unused[0].name != one.Name {
		t.Errorf("unused %v", unused)
	}
	unused[0].guard.Close()
	m.Spec.Pod = &v1alpha1.DeciderPod{Replicas: new(int32(3))}
	p, unused = s.place([]*v1alpha1.DeciderModel{m}, revisions)
	if next := p.active["small"].revision; next == candidate || next.tally != candidate.tally || len(unused) != 1 || unused[0] != candidate {
		t.Errorf("with more replicas: %+v, unused %v", next, unused)
	}
	unused[0].guard.Close()
	p, unused = s.place(nil, revisions)
	if len(p.active) != 0 || len(unused) != 1 {
		t.Errorf("without models: %+v, unused %v", p, unused)
	}
	unused[0].guard.Close()
}

// The gate and its decider know each other by certificates of the installation, and a new one is presented without a restart.
func TestADeciderPodIsAskedWithCertificates(t *testing.T) {
	c := newCertificates(t)
	for name, test := range map[string]struct {
		serverName string
		client     *certificates
		model      string
		want       inference.Reason
	}{
		"both are of the installation":      {names.DeciderServerName, c, "small", ""},
		"a server with another name":        {"evil.internal", c, "small", inference.Unreachable},
		"a gate of another installation":    {names.DeciderServerName, newCertificates(t), "small", inference.Unreachable},
		"a server that has another model":   {names.DeciderServerName, c, "large", inference.ModelMismatch},
		"a server in nobody's installation": {names.DeciderServerName, &certificates{c.authority, filepath.Join(t.TempDir(), "x")}, "small", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := c.decider(t, test.serverName)
			d.model = test.model
			held, err := OpenCertificate(test.client.mount(t, pki.Request{Name: "gate", Usage: x509.ExtKeyUsageClientAuth}))
			if err != nil {
				t.Fatal(err)
			}
			m := llama(nil)
			r := revise(t, m)
			m.Status.Active = &v1alpha1.DeciderRevision{Name: v1alpha1.ObjectName(r.Name), SHA256: modelHash}
			s := newSet(t, DeciderOptions{Pods: held.Transport(names.DeciderServerName, d.dial)})
			p, _ := s.place([]*v1alpha1.DeciderModel{m}, map[string]*appsv1.ControllerRevision{r.Name: r})
			result, err := p.active["small"].revision.guard.Decide(t.Context(), asked)
			if got := inference.ReasonOf(err); got != test.want {
				t.Fatalf("%v", err)
			}
			state := p.active["small"].state()
			if state.Available != (test.want != inference.Unreachable) || (state.Error == "") != state.Available {
				t.Errorf("state %+v", state)
			}
			if test.want == "" && (result.Fingerprint != ownFingerprint || state.Fingerprint != ownFingerprint || d.hosts[0] != r.Name+".gatewright-system.svc:8443") {
				t.Errorf("%+v, %+v, asked at %v", result, state, d.hosts)
			}
		})
	}
}

func TestARenewedCertificateIsPresented(t *testing.T) {
	c := newCertificates(t)
	dir := c.mount(t, pki.Request{Name: "gate", DNSNames: []string{"one.test"}, Usage: x509.ExtKeyUsageServerAuth})
	held, err := OpenCertificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	server.TLS = held.ServerConfig()
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.authority.Bundle())
	presented := func() string {
		conn, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{ServerName: "any.test", RootCAs: pool, InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if got := conn.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
			t.Errorf("speaks %s", got)
		}
		return conn.ConnectionState().PeerCertificates[0].DNSNames[0]
	}
	if got := presented(); got != "one.test" {
		t.Error(got)
	}
	before := held.ids()
	c.mount(t, pki.Request{Name: "gate", DNSNames: []string{"two.test"}, Usage: x509.ExtKeyUsageServerAuth})
	if err := held.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := presented(); got != "two.test" || cmp.Equal(before, held.ids()) {
		t.Error(got)
	}
	for name, file := range map[string]string{"a key of another certificate": "tls.key", "an authority that is none": "ca.crt", "no certificate": "tls.crt"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, file)
			good, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = os.WriteFile(path, good, 0o600) }()
			if err := os.WriteFile(path, []byte("-----"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := held.Reload(); err == nil {
				t.Error("it was taken")
			}
			if got := presented(); got != "two.test" {
				t.Error(got)
			}
		})
	}
}
