package suite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const samples = "../../config/samples"

func TestSampleSuites(t *testing.T) {
	for _, path := range sampleSuites(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			report, err := Run(t.Context(), Options{Paths: []string{path}, MinimumCoverage: 90})
			if err != nil {
				t.Fatal(err)
			}
			if !report.Passed() || len(report.Suites[0].Warnings) > 0 {
				t.Error(text(t, report))
			}
		})
	}
}

func TestEverySamplePolicyHasASuite(t *testing.T) {
	files, err := filepath.Glob(samples + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), "ToolPolicy\n") {
			continue
		}
		if _, err := os.Stat(filepath.Join(samples, "suites", filepath.Base(file))); err != nil {
			t.Errorf("%s has no suite of its name: %v", file, err)
		}
	}
}

// The samples are served together, so the floor must leave the tables of the others as they are.
func TestSampleSuitesHoldAboveTheClusterFloor(t *testing.T) {
	for _, path := range sampleSuites(t) {
		name := filepath.Base(path)
		if name == "cluster-floor.yaml" || name == "starter.yaml" {
			continue // the floor is meant to tighten the starter: cluster-floor.yaml says where
		}
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{name, "cluster-floor.yaml"} {
				policy, err := os.ReadFile(filepath.Join(samples, file))
				if err != nil {
					t.Fatal(err)
				}
				put(t, filepath.Join(folder, file), string(policy))
			}
			put(t, filepath.Join(folder, "suites", name), string(data)+"\nalongside: [../cluster-floor.yaml]\n")
			report, err := Run(t.Context(), Options{Paths: []string{folder}, MinimumCoverage: 90})
			if err != nil || !report.Passed() {
				t.Error(err, text(t, report))
			}
		})
	}
}

func sampleSuites(t *testing.T) []string {
	t.Helper()
	files, err := find([]string{samples})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 8 {
		t.Fatalf("found %d suites, want those of all samples: %v", len(files), files)
	}
	return files
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, report *Report) string {
	t.Helper()
	if report == nil {
		return "no report"
	}
	var b strings.Builder
	if err := report.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
