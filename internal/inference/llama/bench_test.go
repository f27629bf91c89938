package llama

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"gatewright.dev/gatewright/internal/questions"
)

// cpu is what this process has computed so far, in milliseconds: on a busy machine it says more than the time on a clock.
func cpu(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec)*1e3 + float64(u.Utime.Usec+u.Stime.Usec)/1e3
}

// rss is the resident memory of this process in MiB, the sealed copy of the model included.
func rss(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	kib, _ := field(string(status), "VmRSS:")
	return float64(kib) / 1024
}

// benchState is a call of about 200 tokens, of which six in ten come first and stay the same: the policy's line, the tool and
// what the agent was told. fresh also changes those.
func benchState(b *testing.B, n int, fresh bool) []byte {
	b.Helper()
	note := "Refunds above 100 need a manager."
	if fresh {
		note = fmt.Sprintf("Rule %d. ", n) + note
	}
	state, err := questions.RenderState(questions.State{
		Tool: questions.Tool{
			Name: "refund_order", Server: "shop", Class: "money", Note: note,
			Description: "Refunds an order to the card that paid for it. The amount must not exceed what was paid. A refund cannot be taken back, " +
				"so look the order up first and tell the customer how many days it takes until the money arrives.",
		},
		System:    []string{"You help customers of a small shop with their orders. Be brief and friendly, and do not promise what you cannot do."},
		UserTurns: []string{fmt.Sprintf("The lamp of order %d arrived broken, please give me my money back.", 1000+n)},
		Arguments: map[string]any{"order": 1000 + n, "amount": 40},
		Facts:     questions.Facts{ScopesHeld: []string{"refunds"}, ScopesRequired: []string{"refunds"}, SchemaValid: questions.True},
	})
	if err != nil {
		b.Fatal(err)
	}
	return state
}

// BenchmarkAsk measures with one thread, so that cpu-ms is what the work takes wherever it runs.
func BenchmarkAsk(b *testing.B) {
	long := []questions.Question{builtin(b, "asked"), builtin(b, "declined"), builtin(b, "matches_request")}
	var brief []questions.Question
	for _, text := range []string{"Did the user ask for this call?", "Would money move?", "Is it the order that the user means?"} {
		brief = append(brief, questions.Question{Name: strings.Fields(text)[1], Type: questions.YesNo, Instructions: text})
	}
	for _, name := range []string{smollm2, gemma} {
		for _, bc := range []struct {
			what  string
			asked []questions.Question
			fresh bool
			same  bool
		}{
			{what: "new state/1 short question", asked: brief[:1], fresh: true},
			{what: "new state/3 short questions", asked: brief, fresh: true},
			{what: "new state/1 built-in question", asked: long[:1], fresh: true},
			{what: "new state/3 built-in questions", asked: long, fresh: true},
			{what: "state begins alike/1 short question", asked: brief[:1]},
			{what: "state begins alike/3 short questions", asked: brief},
			{what: "same state/1 short question", asked: brief[:1], same: true},
		} {
			b.Run(strings.SplitN(name, "-", 2)[0]+"/"+bc.what, func(b *testing.B) {
				e := use(b, name)
				ask := func(n int) (prompt, reused int) {
					reply, err := e.Ask(b.Context(), benchState(b, n, bc.fresh), bc.asked)
					if err != nil {
						b.Fatal(err)
					}
					return reply.PromptTokens, reply.ReusedTokens
				}
				ask(0)
				n, tokens, kept, start := 0, 0, 0, cpu(b)
				for b.Loop() {
					if !bc.same {
						n++
					}
					p, r := ask(n)
					tokens, kept = tokens+p, kept+r
				}
				b.ReportMetric((cpu(b)-start)/float64(b.N), "cpu-ms/op")
				b.ReportMetric(float64(tokens)/float64(b.N), "tokens/op")
				b.ReportMetric(float64(kept)/float64(b.N), "reused/op")
				b.ReportMetric(rss(b), "MiB-rss")
			})
		}
	}
}
