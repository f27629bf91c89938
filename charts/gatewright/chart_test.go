// Package chart_test checks the chart: what it renders, that it takes no wrong value, and that config/ installs the same.
package chart_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the files of config/ that are rendered from the chart")

const config = "../../config"

// object is one rendered manifest.
type object map[string]any

func (o object) kind() string { return text(o, "kind") }
func (o object) name() string { return text(o, "metadata", "name") }
func (o object) id() string {
	return fmt.Sprintf("%s/%s/%s", o.kind(), text(o, "metadata", "namespace"), o.name())
}

// at follows names into nested objects; nil where there is nothing.
func at(o any, path ...string) any {
	for _, name := range path {
		switch m := o.(type) {
		case object:
			o = m[name]
		case map[string]any:
			o = m[name]
		default:
			return nil
		}
	}
	return o
}

func text(o any, path ...string) string {
	s, _ := at(o, path...).(string)
	return s
}

func list(o any, path ...string) []any {
	l, _ := at(o, path...).([]any)
	return l
}

// tool is the path of a program that make tools builds. Without it the test is skipped, unless it is required.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../.cache/bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("GATEWRIGHT_REQUIRE_HELM") == "1" {
			t.Fatalf("%s is not built: run make chart", name)
		}
		t.Skipf("%s is not built: make chart builds it", name)
	}
	return path
}

func run(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, stderr.String())
	}
	return stdout.String(), nil
}

func parse(t *testing.T, manifests string) []object {
	t.Helper()
	var objects []object
	for document := range strings.SplitSeq("\n"+manifests, "\n---") {
		var o object
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(o) > 0 {
			objects = append(objects, o)
		}
	}
	return objects
}

// render gives what helm would install with values, hooks of tests included.
func render(t *testing.T, values ...string) []object {
	t.Helper()
	args := []string{"template", "gatewright", ".", "--namespace", "gatewright-system"}
	for _, value := range values {
		args = append(args, "--set-json", value)
	}
	out, err := run(t, tool(t, "helm"), args...)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, out)
}

func isHook(o object) bool { return text(o, "metadata", "annotations", "helm.sh/hook") != "" }

// plain takes away what only a release of helm has, and hooks.
func plain(objects []object) []object {
	var kept []object
	for _, o := range objects {
		if isHook(o) {
			continue
		}
		for _, metadata := range []any{o["metadata"], at(o, "spec", "template", "metadata")} {
			strip(metadata)
		}
		kept = append(kept, o)
	}
	slices.SortFunc(kept, func(a, b object) int { return strings.Compare(a.id(), b.id()) })
	return kept
}

func strip(metadata any) {
	m, _ := metadata.(map[string]any)
	labels, _ := m["labels"].(map[string]any)
	for _, label := range []string{"app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"} {
		delete(labels, label)
	}
	if annotations, ok := m["annotations"].(map[string]any); ok {
		delete(annotations, "helm.sh/resource-policy")
		if len(annotations) == 0 {
			delete(m, "annotations")
		}
	}
}

// fileOf is the file of config/ that an object is rendered into; empty where the chart takes the object from config/.
func fileOf(o object) string {
	component := text(o, "metadata", "labels", "app.kubernetes.io/component")
	switch o.kind() {
	case "ServiceAccount", "RoleBinding", "ClusterRoleBinding":
		return "rbac/accounts.yaml"
	case "NetworkPolicy":
		return "network-policy/network-policy.yaml"
	case "Deployment", "StatefulSet", "Service", "PodDisruptionBudget":
		return component + "/" + component + ".yaml"
	default:
		return ""
	}
}

func TestConfigIsRenderedFromTheChart(t *testing.T) {
	files := map[string]string{}
	for _, o := range plain(render(t)) {
		file := fileOf(o)
		if file == "" {
			continue
		}
		data, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if files[file] == "" {
			files[file] = "# Rendered from charts/gatewright by `make manifests`: change it there.\n"
		}
		files[file] += "---\n" + string(data)
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(config, file)
		if *update {
			if err := os.WriteFile(path, []byte(files[file]), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(files[file], string(got)); diff != "" {
			t.Errorf("%s is not what the chart renders: run make manifests (-chart +file)\n%s", path, diff)
		}
	}
}

func TestKustomizeInstallsWhatTheChartDoes(t *testing.T) {
	out, err := run(t, tool(t, "kustomize"), "build", filepath.Join(config, "default"))
	if err != nil {
		t.Fatal(err)
	}
	got := slices.DeleteFunc(plain(parse(t, out)), func(o object) bool { return o.kind() == "Namespace" })
	if diff := cmp.Diff(plain(render(t)), got); diff != "" {
		t.Errorf("config/default is not what the chart installs (-chart +config)\n%s", diff)
	}
}

// What the chart does not own is copied into it, since a chart cannot read outside of its folder.
func TestTheChartHasCopiesOfConfig(t *testing.T) {
	folders := map[string]string{"crds": "crd/bases", "rbac": "rbac", "admission": "admission", "webhook": "webhook", "monitoring": "monitoring"}
	seen := 0
	for folder, source := range folders {
		copies, err := filepath.Glob(filepath.Join("files", folder, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range copies {
			seen++
			got, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join(config, source, filepath.Base(name)))
			if err != nil {
				t.Errorf("%s: %v: run make manifests", name, err)
				continue
			}
			if !bytes.Equal(want, got) {
				t.Errorf("%s is not its original in config/%s: run make manifests", name, source)
			}
		}
	}
	bases, err := filepath.Glob(filepath.Join(config, "crd/bases/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if crds, _ := filepath.Glob("files/crds/*.yaml"); len(crds) != len(bases) || len(bases) == 0 {
		t.Errorf("the chart has %d CRDs and config/crd/bases %d", len(crds), len(bases))
	}
	if seen < len(bases)+4 {
		t.Errorf("only %d copies seen", seen)
	}
}
