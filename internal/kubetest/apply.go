package kubetest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// fieldOwner is who applies manifests in tests.
const fieldOwner = "kubetest"

// Apply applies all manifests of files, or of the YAML files of folders, in the order of their names. Paths are relative
// to the root of the module. It applies them as the user whom nothing is forbidden.
func (s *Server) Apply(t testing.TB, paths ...string) {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(root, path)
		}
		objects, err := ReadManifests(path)
		if err != nil {
			t.Fatal(err)
		}
		s.ApplyObjects(t, objects...)
	}
}

// ApplyObjects applies objects one after another.
func (s *Server) ApplyObjects(t testing.TB, objects ...*unstructured.Unstructured) {
	t.Helper()
	client, mapper := s.dynamic(t)
	for _, o := range objects {
		if err := applyTo(t, client, mapper, o); err != nil {
			t.Fatalf("applying %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// DeleteObjects deletes objects; what is not there is deleted already.
func (s *Server) DeleteObjects(t testing.TB, objects ...*unstructured.Unstructured) {
	t.Helper()
	client, mapper := s.dynamic(t)
	for _, o := range objects {
		r, err := resource(client, mapper, o)
		if err == nil {
			err = r.Delete(detached(t.Context()), o.GetName(), metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatalf("deleting %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

func (s *Server) dynamic(t testing.TB) (dynamic.Interface, meta.RESTMapper) {
	t.Helper()
	client, err := dynamic.NewForConfig(s.Config())
	if err != nil {
		t.Fatalf("making client: %v", err)
	}
	mapper, err := newMapper(s.Config())
	if err != nil {
		t.Fatalf("making client: %v", err)
	}
	return client, mapper
}

func newMapper(c *rest.Config) (meta.RESTMapper, error) {
	found, err := discovery.NewDiscoveryClientForConfig(c)
	if err != nil {
		return nil, err
	}
	return restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found)), nil
}

func applyTo(t testing.TB, client dynamic.Interface, mapper meta.RESTMapper, o *unstructured.Unstructured) error {
	r, err := resource(client, mapper, o)
	if err != nil {
		return err
	}
	_, err = r.Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: fieldOwner, Force: true})
	return err
}

func resource(client dynamic.Interface, mapper meta.RESTMapper, o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return client.Resource(mapping.Resource), nil
	}
	return client.Resource(mapping.Resource).Namespace(o.GetNamespace()), nil
}

// ReadManifests reads the objects of a YAML file, or of the YAML files of a folder and its folders. A file without a
// kind is an error; kustomization.yaml, which is not for an API server, is passed over.
func ReadManifests(path string) ([]*unstructured.Unstructured, error) {
	files, err := manifests(path)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		of, err := decode(data)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		objects = append(objects, of...)
	}
	return objects, nil
}

func manifests(path string) (files []string, err error) {
	err = filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".yaml") && entry.Name() != "kustomization.yaml" {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

func decode(data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			return nil, err
		}
		if len(o.Object) > 0 { // a document may be a comment
			objects = append(objects, o)
		}
	}
}

// Kubectl runs kubectl with a kubeconfig file and gives what it wrote, errors included, and whether it failed.
func (s *Server) Kubectl(t testing.TB, kubeconfig string, args ...string) (string, error) {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), binary(root, "kubectl"), args...) //nolint:gosec // a test says what it runs
	// A home of its own: kubectl keeps what it has discovered, by host and port.
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir())
	out, err := command.CombinedOutput()
	return string(out), err
}
