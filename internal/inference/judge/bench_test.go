package judge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/questions"
)

// conversation is a call after that much was said, three quarters of it by tools.
func conversation(size int) questions.State {
	text := func(size int) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, "On May %d user%d@example.com wrote that order-%d over $%d is late. Please look into it and send a note.\n", i%28+1, i%97, i, i%50)
		}
		return b.String()[:size]
	}
	return questions.State{
		Tool: questions.Tool{Name: "send_email", Description: "Sends an e-mail to a recipient.", Class: "External"},
		Arguments: map[string]any{
			"recipient": "user4@example.com", "subject": "Order order-17 is late", "body": "We look into the order. It will be there soon.", "urgent": true,
		},
		UserTurns: []string{text(size / 8), text(size / 8)},
		Messages: []questions.Message{
			{Role: questions.RoleAssistant, Text: `[tool call] read_inbox {"folder": "orders"}`},
			{Role: questions.RoleTool, Text: text(size * 3 / 8)},
			{Role: questions.RoleTool, Text: text(size * 3 / 8)},
		},
		Facts: questions.Facts{ArgumentSources: []questions.ArgumentSource{
			{Pointer: "/body", Source: questions.SourcePartly, PartOf: questions.SourceUser}, {Pointer: "/recipient", Source: questions.SourceTool},
			{Pointer: "/subject", Source: questions.SourceTool}, {Pointer: "/urgent", Source: questions.SourceSchema},
		}},
	}
}

// sizes: some 200 tokens, and 64 KiB.
var sizes = map[string]int{"200 tokens": 800, "64 KiB": 64 << 10}

func BenchmarkJudge(b *testing.B) {
	j, asked := bundled(b), supported(b)
	for name, size := range sizes {
		b.Run(name, func(b *testing.B) {
			s := conversation(size)
			var watch clock.RealClock
			var took []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				start := watch.Now()
				if _, err := j.Answer(&s, asked); err != nil {
					b.Fatal(err)
				}
				took = append(took, watch.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// Allocations do not grow with the conversation but by what a text with capitals and its words need once.
func TestAllocations(t *testing.T) {
	j, asked := bundled(t), supported(t)[:1]
	for name, tt := range map[string]struct {
		size int
		most float64
	}{
		"200 tokens": {800, 140},
		"64 KiB":     {64 << 10, 400},
	} {
		s := conversation(tt.size)
		got := testing.AllocsPerRun(20, func() {
			if _, err := j.Answer(&s, asked); err != nil {
				t.Fatal(err)
			}
		})
		if got > tt.most {
			t.Errorf("%s: %v allocations, at most %v wanted", name, got, tt.most)
		}
	}
}
