package structural

import (
	"strings"
	"sync"
	"testing"
)

// Whatever stands where an object or a list belongs is an error and no panic, at every level.
func TestValuesOfTheWrongTypeAreRefused(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	wrong := []any{nil, true, int64(1), 1.5, "text", []any{}, []any{nil}, []any{"text"}, []any{[]any{}}, []any{map[string]any{"name": map[string]any{}}}}
	for kind, s := range all {
		for _, v := range wrong {
			obj := map[string]any{"apiVersion": s.Version, "kind": kind, "metadata": map[string]any{"name": "x"}, "spec": v}
			if errs := s.Admit(obj); len(errs) == 0 {
				t.Errorf("%s: spec %v was accepted", kind, v)
			}
		}
	}
	for _, field := range []string{"tools", "classes", "questions", "grants", "approvals", "deciderRef"} {
		for _, v := range wrong[1:] {
			if list, isList := v.([]any); isList && len(list) == 0 && field != "approvals" && field != "deciderRef" {
				continue // an empty list is a list
			}
			obj := map[string]any{"apiVersion": all["ToolPolicy"].Version, "kind": "ToolPolicy", "metadata": map[string]any{"name": "x"}, "spec": map[string]any{field: v}}
			if errs := all["ToolPolicy"].Admit(obj); len(errs) == 0 {
				t.Errorf("spec.%s %v was accepted", field, v)
			}
		}
	}
}

func TestSchemasAreSharedSafely(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			obj := map[string]any{
				"apiVersion": all["ToolPolicy"].Version, "kind": "ToolPolicy", "metadata": map[string]any{"name": "x"},
				"spec": map[string]any{"clarifyLimits": int64(1), "classes": []any{map[string]any{"name": "Own"}}},
			}
			errs := all["ToolPolicy"].Admit(obj)
			if len(errs) != 2 || !strings.Contains(errs[0].Detail, "did you mean clarifyLimit?") || !strings.Contains(errs[1].Detail, "base is required") {
				t.Errorf("errors = %v", errs)
			}
		})
	}
	wait.Wait()
}

func BenchmarkAdmit(b *testing.B) {
	all, err := All()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		obj := map[string]any{
			"apiVersion": all["ToolPolicy"].Version, "kind": "ToolPolicy", "metadata": map[string]any{"name": "x"},
			"spec": map[string]any{"tools": []any{map[string]any{"name": "t", "class": "Write"}}},
		}
		if errs := all["ToolPolicy"].Admit(obj); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}
