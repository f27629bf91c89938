package chart_test

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the files of config/ that are rendered from the chart")

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

func byID(objects []object) map[string]object {
	found := map[string]object{}
	for _, o := range objects {
		found[o.id()] = o
	}
	return found
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
	chart, kustomized := byID(plain(render(t))), byID(plain(parse(t, out)))
	maps.DeleteFunc(kustomized, func(_ string, o object) bool { return o.kind() == "Namespace" })
	if diff := cmp.Diff(slices.Sorted(maps.Keys(chart)), slices.Sorted(maps.Keys(kustomized))); diff != "" {
		t.Errorf("config/default does not install the same objects as the chart (-chart +config)\n%s", diff)
	}
	for id, o := range kustomized {
		if diff := cmp.Diff(chart[id], o); diff != "" && chart[id] != nil {
			t.Errorf("%s is another in config/default than in the chart (-chart +config)\n%s", id, diff)
		}
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
