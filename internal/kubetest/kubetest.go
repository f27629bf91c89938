// Package kubetest gives tests a real API server: kube-apiserver and etcd on this machine, with the CRDs of config/crd
// installed and RBAC on. There are no controllers behind it, so nothing makes pods or collects garbage.
//
// A package whose tests share one server says so:
//
//	func TestMain(m *testing.M) { kubetest.Main(m) }
//
// Without that each Start has a server of its own, which takes some four seconds.
package kubetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// RequireVariable set to 1 lets tests fail that lack the binaries. Otherwise they are skipped.
const RequireVariable = "GATEWRIGHT_REQUIRE_APISERVER"

// Server is a running API server with its store.
type Server struct {
	env    *envtest.Environment
	config *rest.Config
}

// shared is the server of a package that has Main.
var shared struct {
	mu      sync.Mutex
	isOn    bool
	server  *Server
	failure error
}

// Main runs the tests of a package, with one server for all that Start one, and stops it.
func Main(m *testing.M) {
	shared.mu.Lock()
	shared.isOn = true
	shared.mu.Unlock()
	m.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		return
	}
	if err := shared.server.env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the API server:", err)
	}
}

// Start gives the server of this package, or one of the test's own where the package has no Main. It skips the test
// where the binaries are missing, and fails it instead if RequireVariable is 1.
func Start(t testing.TB) *Server {
	t.Helper()
	requireBinaries(t)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.isOn {
		return startOwn(t)
	}
	if shared.server == nil && shared.failure == nil {
		shared.server, shared.failure = start()
	}
	if shared.failure != nil {
		t.Fatal(shared.failure)
	}
	return shared.server
}

// Own starts a server for this test alone, which may stop it or change what holds for the whole cluster.
func Own(t testing.TB) *Server {
	t.Helper()
	requireBinaries(t)
	return startOwn(t)
}

func startOwn(t testing.TB) *Server {
	t.Helper()
	s, err := start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.env.Stop() })
	return s
}

// Config is that of a user whom nothing is forbidden (system:masters). Each call gives another copy.
func (s *Server) Config() *rest.Config { return rest.CopyConfig(s.config) }

// EtcdURL is where its etcd answers, with metrics under /metrics.
func (s *Server) EtcdURL() string { return s.env.ControlPlane.Etcd.URL.String() }

// Stop stops the server before its test ends. Only a server of the test's Own may be stopped.
func (s *Server) Stop() error { return s.env.ControlPlane.APIServer.Stop() }

func start() (*Server, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	env := &envtest.Environment{
		CRDDirectoryPaths:        []string{filepath.Join(root, "config", "crd", "bases")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 2 * time.Minute, // a busy machine takes long
		ControlPlaneStopTimeout:  time.Minute,
	}
	env.ControlPlane.Etcd = &envtest.Etcd{Path: binary(root, "etcd")}
	env.ControlPlane.GetAPIServer().Path = binary(root, "kube-apiserver")
	env.ControlPlane.KubectlPath = binary(root, "kubectl")
	config, err := env.Start()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the API server: %w", err), env.Stop())
	}
	return &Server{env, config}, nil
}

// binaries are what hack/kube.sh builds.
var binaries = []string{"etcd", "kube-apiserver", "kubectl"}

func binary(root, name string) string { return filepath.Join(root, ".cache", "kube", "bin", name) }

func requireBinaries(t testing.TB) {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range binaries {
		if _, err := os.Stat(binary(root, name)); err == nil {
			continue
		}
		const text = "%s is not in .cache/kube/bin: build it with `make kube`"
		if os.Getenv(RequireVariable) == "1" {
			t.Fatalf(text, name)
		}
		t.Skipf(text, name)
	}
}

// Root is the folder of the module that the tests belong to.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("finding the module: no go.mod above the working directory")
		}
		dir = parent
	}
}
