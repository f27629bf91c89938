package manifest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gatewright.dev/gatewright/internal/policy"
)

func TestZZ(t *testing.T) {
	for _, path := range manifests(t, filepath.Join(invalidDir, "compile"), 15) {
		data, want := readInvalid(t, path)
		for _, p := range Read(path, data).ToolPolicies() {
			_, errs := policy.Compile(p)
			m := fmt.Sprint(errs.ToAggregate())
			s := "ok  "
			if !strings.Contains(m, want) { s = "MISS" }
			fmt.Printf("%s %s\n     want %s\n     %s\n", s, filepath.Base(path), want, m)
		}
	}
}
