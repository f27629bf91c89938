package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	engine "gatewright.dev/gatewright/internal/policy"
)

const invalidDir = "../../test/testdata/invalid"

func TestManifestsThatMustBeRefused(t *testing.T) {
	for _, path := range manifests(t, invalidDir, 25) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, want := readInvalid(t, path)
			set := Read(filepath.Base(path), data)
			if len(set.Objects) > 0 {
				t.Errorf("loaded %s, want nothing", set.Objects[0].Kind)
			}
			if len(set.Problems) == 0 {
				t.Fatal("no problem was found")
			}
			message := set.Err().Error()
			if !strings.Contains(message, want) {
				t.Errorf("message = %s\nwant it to hold: %s", message, want)
			}
			if !strings.Contains(message, filepath.Base(path)) {
				t.Errorf("message = %s\nwant it to name the file", message)
			}
		})
	}
}

// Those that only compilation refuses are good manifests as far as an API server can tell.
func TestManifestsThatOnlyCompilationRefuses(t *testing.T) {
	for _, path := range manifests(t, filepath.Join(invalidDir, "compile"), 15) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, want := readInvalid(t, path)
			set := Read(path, data)
			if err := set.Err(); err != nil {
				t.Fatal(err)
			}
			policies := set.ToolPolicies()
			if len(policies) != 1 {
				t.Fatalf("%d policies, want 1", len(policies))
			}
			compiled, errs := engine.Compile(policies[0])
			if !compiled.Invalid {
				t.Error("the policy is not marked invalid, so it would not block its callers")
			}
			if message := errs.ToAggregate(); message == nil || !strings.Contains(message.Error(), want) {
				t.Errorf("errors = %v\nwant them to hold: %s", message, want)
			}
		})
	}
}

func manifests(t *testing.T, dir string, atLeast int) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < atLeast {
		t.Fatalf("%s holds %d manifests, want at least %d", dir, len(paths), atLeast)
	}
	return paths
}

func readInvalid(t *testing.T, path string) (data []byte, want string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(data), "\n")
	want, found := strings.CutPrefix(first, "# want: ")
	if !found || want == "" {
		t.Fatalf("the first line is %q, want # want: and a part of the message", first)
	}
	return data, want
}
