// Package chart_test checks the chart: what it renders, that it takes no wrong value, and that config/ installs the same.
package chart_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

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

// tool is the path of a program that make chart builds. Rendering takes a minute in all, so it is done by make chart only.
func tool(t *testing.T, name string) string {
	t.Helper()
	if os.Getenv("GATEWRIGHT_REQUIRE_HELM") != "1" {
		t.Skip("make chart runs this")
	}
	path, err := filepath.Abs(filepath.Join("../../.cache/bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is not built: run make chart", name)
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
