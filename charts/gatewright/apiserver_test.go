package chart_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatewright.dev/gatewright/internal/kubetest"
)

// A real API server takes every object, knows each of its fields, and finds nothing to change the second time.
func TestAnAPIServerTakesConfigDefault(t *testing.T) {
	if os.Getenv("GATEWRIGHT_REQUIRE_HELM") != "1" {
		t.Skip("make chart runs this")
	}
	server := kubetest.Own(t)
	folder, err := filepath.Abs(filepath.Join(config, "default"))
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := server.KubeconfigOf(t, server.Config())
	apply := func() string {
		t.Helper()
		out, err := server.Kubectl(t, kubeconfig, "apply", "--server-side", "--force-conflicts", "--validate=strict", "-k", folder)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return out
	}
	versions := func() string {
		t.Helper()
		out, err := server.Kubectl(t, kubeconfig, "get", "-k", folder, "-o", `jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return out
	}
	if out := apply(); strings.Contains(strings.ToLower(out), "warning") || strings.Count(out, "serverside-applied") < 30 {
		t.Errorf("%s", out)
	}
	before := versions()
	apply()
	// The API server itself goes on writing the status of CRDs for a moment.
	if after := versions(); withoutCRDs(after) != withoutCRDs(before) {
		t.Errorf("the second time changed something:\n%s\nwas\n%s", after, before)
	}
}

func withoutCRDs(lines string) string {
	var kept []string
	for line := range strings.Lines(lines) {
		if !strings.HasPrefix(line, "CustomResourceDefinition/") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
