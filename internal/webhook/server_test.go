package webhook

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// asked is an API server that asks the webhooks of a manager in this process, whose certificate the manager made.
type asked struct {
	*kubetest.Server
	client client.Client
}

// The API server asks through HTTPS, by the authority that the rotator wrote into the configurations, so that every test
// below has passed through certificates, readiness and the server of Setup.
func TestOnAnAPIServer(t *testing.T) {
	s := startAsked(t)
	t.Run("manifests that must be refused", s.refusesManifests)
	t.Run("what cannot be changed", s.refusesChanges)
	t.Run("warnings", s.warns)
	t.Run("self-protection", s.protects)
	t.Run("injection", s.injects)
	t.Run("certificates", s.hasCertificates)
}

func startAsked(t *testing.T) asked {
	t.Helper()
	s := kubetest.Start(t)
	log.SetLogger(funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, prefix, args) }, funcr.Options{Verbosity: -1}))
	s.EnsureNamespace(t, names.Namespace)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(s.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	port, probes := freePort(t), freePort(t)
	askLocally(t, c, port)
	asked{s, c}.withoutAnAnswer(t)
	m, err := ctrl.NewManager(s.Config(), ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: fmt.Sprintf("127.0.0.1:%d", probes),
	})
	if err != nil {
		t.Fatal(err)
	}
	err = Setup(m, Options{Namespace: names.Namespace, Host: "127.0.0.1", Port: port, CertDir: filepath.Join(t.TempDir(), "certificate"), DNSNames: []string{"localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	a := asked{s, c}
	eventually(t, "the manager to be ready", func() error { return probe(t, fmt.Sprintf("http://127.0.0.1:%d/readyz", probes)) })
	eventually(t, "the API server to ask", func() error {
		_, err := a.create(t, s.Config(), "ToolPolicy", "default", `{"apiVersion":"gatewright.dev/v1alpha1","kind":"ToolPolicy","metadata":{"name":"probe"},"spec":{"tools":[{"name":"a","class":"None"}]}}`)
		if err == nil || !strings.Contains(err.Error(), "is invalid") {
			return fmt.Errorf("it says %w", err)
		}
		return nil
	})
	return a
}

// askLocally installs the configurations with the address of this process in place of a Service. Without an authority
// nothing can be asked yet: the rotator has to write it.
func askLocally(t *testing.T, c client.Client, port int) {
	t.Helper()
	local := func(config *admissionregistrationv1.WebhookClientConfig) {
		url := fmt.Sprintf("https://localhost:%d%s", port, *config.Service.Path)
		config.URL, config.Service = &url, nil
	}
	validating, mutating := Validating(names.Namespace), Mutating(names.Namespace)
	for i := range validating.Webhooks {
		local(&validating.Webhooks[i].ClientConfig)
	}
	for i := range mutating.Webhooks {
		local(&mutating.Webhooks[i].ClientConfig)
	}
	for _, o := range []client.Object{validating, mutating} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Delete(context.WithoutCancel(t.Context()), o); err != nil {
				t.Error(err)
			}
		})
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func probe(t *testing.T, url string) error {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	return nil
}

func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	end := time.NewTimer(2 * time.Minute) // a busy machine takes long
	defer end.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-end.C:
			t.Fatalf("waiting for %s: %v", what, err)
		case <-tick.C:
		}
	}
}

var resources = map[string]string{
	"ToolPolicy": "toolpolicies", "ClusterToolPolicy": "clustertoolpolicies", "DeciderModel": "decidermodels",
	"ToolApproval": "toolapprovals", "DeciderEvaluation": "deciderevaluations",
}

// create sends a manifest as it is written, as kubectl does: fields that are not known are errors.
func (a asked) create(t *testing.T, config *rest.Config, kind, namespace, manifest string) (warnings []string, err error) {
	t.Helper()
	seen := &warningRecorder{}
	config = rest.CopyConfig(config)
	config.WarningHandler = seen
	config.GroupVersion, config.APIPath = &v1alpha1.GroupVersion, "/apis"
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Post().NamespaceIfScoped(namespace, namespace != "").Resource(resources[kind]).SetHeader("Content-Type", "application/yaml").
		Param("fieldValidation", "Strict").Body([]byte(manifest)).Do(t.Context()).Error()
	return seen.texts, err
}

type warningRecorder struct{ texts []string }

func (w *warningRecorder) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// What an API server never sees: kubectl finds no place to send it to, or cannot read it.
var onlyForFiles = map[string]string{
	"broken-indentation.yaml":        "is no YAML",
	"misspelt-kind.yaml":             "no such kind",
	"no-api-version.yaml":            "no such kind",
	"other-version.yaml":             "no such version",
	"our-kind-in-another-group.yaml": "no such group",
	"text-instead-of-object.yaml":    "no object",
	"no-name.yaml":                   "kubectl wants a name",
	"same-name-twice.yaml":           "an API server takes them one after the other",
	"namespace-on-cluster-kind.yaml": "kubectl sends it without",
	"key-that-is-not-text.yaml":      "YAML for JSON has text alone",
}

// refusesManifests sends every bad manifest of test/testdata/invalid and compares what its author reads.
func (a asked) refusesManifests(t *testing.T) {
	root, err := kubetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	a.EnsureNamespace(t, "team-a")
	var text strings.Builder
	count := 0
	for _, dir := range []string{"", "compile", "webhook"} {
		files, err := filepath.Glob(filepath.Join(root, "test", "testdata", "invalid", dir, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if onlyForFiles[filepath.Base(file)] != "" {
				continue
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			kind := kindOf(t, data)
			if kind == "ToolApproval" { // a gate writes these, and no admin reads the answer
				continue
			}
			count++
			name := filepath.Join(dir, filepath.Base(file))
			_, err = a.create(t, a.Config(), kind, namespaceOf(kind, data), string(data))
			if err == nil {
				t.Errorf("%s was taken", name)
				continue
			}
			if apierrors.IsInternalError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), "is forbidden: User") {
				t.Errorf("%s was not refused for what is wrong with it: %v", name, err)
			}
			if want := wantOf(data); dir == "webhook" && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v\nwant it to hold: %s", name, err, want)
			}
			fmt.Fprintf(&text, "== %s\n%s\n", name, err)
		}
	}
	if count < 60 {
		t.Errorf("%d manifests, want at least 60", count)
	}
	golden(t, filepath.Join("testdata", "refused.golden"), text.String())
}

// wantOf is the part of the message that a manifest names in its first line.
func wantOf(manifest []byte) string {
	first, _, _ := strings.Cut(string(manifest), "\n")
	want, isThere := strings.CutPrefix(first, "# want: ")
	if !isThere {
		return "a first line that says what is wanted"
	}
	return want
}

func kindOf(t *testing.T, manifest []byte) string {
	t.Helper()
	for line := range strings.Lines(string(manifest)) {
		if kind, ok := strings.CutPrefix(strings.TrimSpace(line), "kind: "); ok {
			return kind
		}
	}
	t.Fatalf("no kind in %s", manifest)
	return ""
}

func namespaceOf(kind string, manifest []byte) string {
	if kind != "ToolPolicy" {
		return ""
	}
	for line := range strings.Lines(string(manifest)) {
		if namespace, ok := strings.CutPrefix(line, "  namespace: "); ok {
			return strings.TrimSpace(namespace)
		}
	}
	return "default"
}

func fromYAML(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := kubetest.ReadManifests(path)
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	return objects[0]
}

// hasCertificates looks at what the rotator left: a Secret of type TLS, and its authority in every webhook.
func (a asked) hasCertificates(t *testing.T) {
	var secret corev1.Secret
	if err := a.client.Get(t.Context(), secretKey(names.Namespace), &secret); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"ca.crt", "tls.crt", "tls.key"} {
		if len(secret.Data[key]) == 0 {
			t.Errorf("the Secret has no %s", key)
		}
	}
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	if err := a.client.Get(t.Context(), client.ObjectKey{Name: ValidatingName}, &validating); err != nil {
		t.Fatal(err)
	}
	for _, w := range validating.Webhooks {
		if string(w.ClientConfig.CABundle) != string(secret.Data["ca.crt"]) {
			t.Errorf("webhook %s has another authority than the Secret", w.Name)
		}
	}
}
