package console

import (
	"log/slog"
	"testing"

	"k8s.io/utils/clock"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
)

// What one look at the panel costs by the thousand records.
func BenchmarkLookThroughAThousandRecords(b *testing.B) {
	all := make([]audit.Record, 1000)
	for i := range all {
		all[i] = decisionOf("search", review.Allow, func(r *audit.Record) {
			r.Policies = []string{"ToolPolicy/agents/p@1"}
			r.Answers = map[string]review.Answer{"args_grounded": {Probability: half()}}
		})
	}
	h, err := New(Options{Records: testLog(b, audit.Options{}, all...), Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		p := decisionsPage{}
		if err := h.look(b.Context(), &p); err != nil || p.Looked < len(all) {
			b.Fatal(p.Looked, err)
		}
	}
}
