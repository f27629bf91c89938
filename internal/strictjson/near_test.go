package strictjson

import (
	"slices"
	"strings"
	"testing"
)

func TestNear(t *testing.T) {
	known := []string{"requiredScopes", "rules", "class", "confirmMessage", "paths"}
	tests := map[string]struct {
		name string
		want []string
	}{
		"one letter is missing":           {"requiredScope", []string{"requiredScopes"}},
		"case and separators are no slip": {"Confirm_Message", []string{"confirmMessage"}},
		"two letters changed places":      {"clsas", nil},
		"one letter is missing at an end": {"clas", []string{"class"}},
		"nothing is near":                 {"permissions", nil},
		"a name too long to be looked at": {strings.Repeat("requiredScopes", 8), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Near(tt.name, known); !slices.Equal(got, tt.want) {
				t.Errorf("Near(%q) = %q, want %q", tt.name, got, tt.want)
			}
		})
	}
}
