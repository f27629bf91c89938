package sources_test

import (
	"fmt"
	"strings"
	"testing"

	"gatewright.dev/gatewright/internal/policy/sources"
)

// conversation64KiB is prose, records and addresses, three quarters of it in tool results.
func conversation64KiB() sources.Conversation {
	text := func(size int) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, "On May %d, 2024 at %d:30 pm user%d@example.com wrote that order-%d over $%d,%03d is late; see https://shop.example.com/orders/%d. Please look into it soon.\n",
				i%28+1, i%12+1, i%97, i, i%50, i%1000, i)
		}
		return b.String()[:size]
	}
	return sources.Conversation{UserTurns: []string{text(8 << 10)}, System: []string{text(8 << 10)}, ToolResults: []string{text(24 << 10), text(24 << 10)}}
}

func twentyArguments() map[string]any {
	out := map[string]any{"body": strings.Repeat("The order is late, please look into it. ", 50) + "order-17 user4@example.com"}
	for i := range 19 {
		out[fmt.Sprintf("k%d", i)] = []any{
			fmt.Sprintf("order-%d", i*9), fmt.Sprintf("user%d@example.com", i*8), "2024-05-" + fmt.Sprintf("%02d", i+1), float64(1000 * i),
			"absent value of some words", fmt.Sprintf("https://shop.example.com/orders/%d/", i), "look_into_it",
		}[i%7]
	}
	return out
}

func BenchmarkNewIndex(b *testing.B) {
	c := conversation64KiB()
	b.ReportAllocs()
	b.SetBytes(64 << 10)
	for b.Loop() {
		sources.NewIndex(c)
	}
}

func BenchmarkTrace(b *testing.B) {
	index, arguments := sources.NewIndex(conversation64KiB()), twentyArguments()
	b.ReportAllocs()
	for b.Loop() {
		index.Trace(arguments, nil)
	}
}

func BenchmarkTrace64KiB(b *testing.B) {
	c, arguments := conversation64KiB(), twentyArguments()
	b.ReportAllocs()
	for b.Loop() {
		sources.NewIndex(c).Trace(arguments, nil)
	}
}

// A tool result made to be slow to search, and a thousand arguments that differ, which all stand inside it.
func BenchmarkTraceHostile(b *testing.B) {
	c := sources.Conversation{ToolResults: []string{strings.Repeat("a-1.b/", 64<<10/6)}}
	arguments := map[string]any{}
	for i := range 1000 {
		arguments[fmt.Sprint(i)] = strings.Repeat("a-1.b/", i+1) + "a-1"
	}
	index := sources.NewIndex(c)
	b.ReportAllocs()
	for b.Loop() {
		index.Trace(arguments, nil)
	}
}
