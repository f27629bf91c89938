package gate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/policy"
)

// What the metrics say of a few calls, in full: a series too many is a name that a caller made up.
func TestMetricsByClassAndTool(t *testing.T) {
	f := newFixture(t)
	f.ask(t, f.call("item.get"))
	f.ask(t, f.call("item.made-up-1"))
	f.ask(t, f.call("item.made-up-2"))
	f.ask(t, f.call("item.update"))
	f.ask(t, f.call("item.delete"))
	f.ask(t, f.call("item.delete")) // waits already
	f.decider.err = &inference.Error{Reason: inference.Timeout}
	f.ask(t, f.call("item.update", func(r *review.Request) { r.Context.UserRequest = "another request" }))

	for name, want := range map[string][]string{
		"gatewright_tool_decisions_total": {
			`{by="approval",class="Destructive",outcome="Confirm",tool="item.delete"} 1`,
			`{by="decider",class="Write",outcome="Allow",tool="item.update"} 1`,
			`{by="decider",class="Write",outcome="Confirm",tool="item.update"} 1`,
			`{by="policy",class="Destructive",outcome="Confirm",tool="item.delete"} 1`,
			`{by="rule",class="",outcome="Block",tool=""} 2`,
			`{by="rules",class="ReadOnly",outcome="Allow",tool="item.get"} 1`,
		},
		"gatewright_decider_fallbacks_total": {`{class="Write",outcome="Confirm",reason="Timeout"} 1`},
		"gatewright_confirmations_total":     {`{namespace="shop",service_account="agent"} 2`},
	} {
		if diff := cmp.Diff(want, series(t, f, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestADeciderThatChangesItsMindIsCounted(t *testing.T) {
	f := newFixture(t)
	for _, probability := range []float64{0.9, 0.9, 0.5} {
		f.decider.answers["matches_request"] = yes(probability)
		f.ask(t, f.call("item.update"))
	}
	if diff := cmp.Diff([]string{`{class="Write"} 2`}, series(t, f, "gatewright_decider_repeats_total")); diff != "" {
		t.Errorf("repeats (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`{class="Write"} 1`}, series(t, f, "gatewright_decider_flaps_total")); diff != "" {
		t.Errorf("flaps (-want +got):\n%s", diff)
	}
}

// Callers have series of their own only up to a bound.
func TestCallersInMetricsAreBounded(t *testing.T) {
	names := callerNames{seen: map[policy.Caller]bool{}}
	for i := range maxCallerNames {
		want := fmt.Sprintf("agent-%d", i)
		if _, got := names.of(policy.Caller{Namespace: "a", ServiceAccount: want}); got != want {
			t.Fatalf("caller %d is called %s", i, got)
		}
	}
	if namespace, got := names.of(policy.Caller{Namespace: "a", ServiceAccount: "one-more"}); namespace != "" || got != "others" {
		t.Errorf("one more is called %s/%s", namespace, got)
	}
	if _, got := names.of(policy.Caller{Namespace: "a", ServiceAccount: "agent-0"}); got != "agent-0" {
		t.Errorf("the first has become %s", got)
	}
}

// series gives the samples of a metric as text, sorted, without its name.
func series(t *testing.T, f *fixture, name string) []string {
	t.Helper()
	text, err := testutil.GatherAndFormat(f.registry, expfmt.TypeTextPlain, name)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), name); ok {
			out = append(out, rest)
		}
	}
	return out
}
