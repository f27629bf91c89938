package serve

import (
	"log/slog"
	"strings"
	"testing"

	"gatewright.dev/gatewright/api/v1alpha1"
)

func TestADeciderStaysWhileItsSpecDoes(t *testing.T) {
	s := newSource(t.TempDir(), nil, slog.New(slog.DiscardHandler))
	defer s.close()
	model := func(url string) []*v1alpha1.DeciderModel {
		m := &v1alpha1.DeciderModel{Spec: v1alpha1.DeciderModelSpec{
			Runtime: v1alpha1.RuntimeExternal, External: &v1alpha1.ExternalRuntime{URL: url, Model: "m", MaxInFlight: 1},
		}}
		m.Name = "d"
		return []*v1alpha1.DeciderModel{m}
	}
	s.replace(s.serveDeciders(model("http://127.0.0.1:9")))
	first := s.deciders["d"].guard
	s.replace(s.serveDeciders(model("http://127.0.0.1:9")))
	if s.deciders["d"].guard != first {
		t.Error("the same spec made another decider, which does not know what is in flight")
	}
	s.replace(s.serveDeciders(model("http://127.0.0.1:10")))
	if s.deciders["d"].guard == first {
		t.Error("another spec kept the old decider")
	}
}

func TestSettingsWithoutEffectAreRefused(t *testing.T) {
	threads := int32(2)
	for field, spec := range map[string]v1alpha1.DeciderModelSpec{
		"spec.rollout": {Rollout: &v1alpha1.Rollout{}}, "spec.readout": {Readout: v1alpha1.ReadoutVerdict},
		"spec.threads": {Threads: &threads}, "spec.pod": {Pod: &v1alpha1.DeciderPod{}},
	} {
		if err := checkServed(&spec); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
