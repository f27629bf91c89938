package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/policy"
)

// benchPolicy has the five rules of a plain gate: unknown tool, forbidden class, scope, path, host.
const benchPolicy = `
metadata: {name: p, namespace: shop}
spec:
  classes:
  - {name: Destructive, approval: Forbidden}
  - {name: Write, otherwise: {outcome: Allow}}
  grants:
  - {serviceAccount: agent, scopes: ["fs:write"]}
  tools:
  - {name: db.drop, class: Destructive}
  - name: file.publish
    class: Write
    requiredScopes: ["fs:write"]
    paths: [{argument: /path, roots: [/srv/data]}]
    hosts: [{argument: /url, allowed: [api.example.com]}]
`

func compileBench(tb testing.TB, namespace string) *policy.Compiled {
	tb.Helper()
	var p v1alpha1.ToolPolicy
	if err := yaml.UnmarshalStrict([]byte(benchPolicy), &p); err != nil {
		tb.Fatal(err)
	}
	p.Namespace = namespace
	c, errs := policy.Compile(&p)
	if len(errs) > 0 {
		tb.Fatal(errs.ToAggregate())
	}
	return c
}

func benchGate(tb testing.TB, r Recorder, policies int) *Gate {
	tb.Helper()
	approvals := approval.NewMemory(clock.RealClock{})
	g, err := New(Options{
		Identify: Anyone{policy.Caller{Namespace: "shop", ServiceAccount: "agent"}}, Recorder: r, Approvals: approvals, Seals: approvals,
	})
	if err != nil {
		tb.Fatal(err)
	}
	compiled := []*policy.Compiled{compileBench(tb, "shop")}
	for i := range policies - 1 {
		compiled = append(compiled, compileBench(tb, fmt.Sprint("ns-", i)))
	}
	g.SetSnapshot(&Snapshot{Policies: policy.NewSet(compiled)})
	return g
}

func benchCall() *review.Request {
	return &review.Request{
		UID: uuid.Must(uuid.NewV7()).String(), Tool: review.Tool{Name: "file.publish"},
		Arguments: map[string]any{"path": "/srv/data/reports/2026/q3.pdf", "url": "https://api.example.com/v1/upload", "title": "Quarterly report"},
		Context:   review.Context{UserRequest: "Please publish the quarterly report.", Session: "s-1"},
	}
}

// silent takes records and keeps nothing.
type silent struct{}

func (silent) Append(context.Context, *audit.Record) error { return nil }
func (silent) Enqueue(*audit.Record) error                 { return nil }
func (silent) Available() bool                             { return true }

func BenchmarkHandler(b *testing.B) {
	for _, policies := range []int{10, 1000} {
		b.Run(fmt.Sprintf("rules only, %d policies, audit off", policies), func(b *testing.B) {
			benchmarkHandler(b, benchGate(b, silent{}, policies))
		})
	}
	b.Run("rules only, 10 policies, audit durable", func(b *testing.B) {
		f, err := audit.Open(filepath.Join(b.TempDir(), "audit.jsonl"), audit.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		benchmarkHandler(b, benchGate(b, f, 10))
	})
}

func benchmarkHandler(b *testing.B, g *Gate) {
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			r := benchCall()
			data, err := json.Marshal(review.ToolCallReview{APIVersion: review.APIVersion, Kind: review.Kind, Request: r})
			if err != nil {
				b.Error(err)
				return
			}
			if w := post(g, review.Path, data); w.Code != http.StatusOK || !bytes.Contains(w.Body.Bytes(), []byte(`"outcome":"Allow"`)) {
				b.Errorf("HTTP %d %s", w.Code, w.Body)
				return
			}
		}
	})
}

// BenchmarkSteps shows what each step of one call costs.
func BenchmarkSteps(b *testing.B) {
	g := benchGate(b, silent{}, 10)
	data, err := json.Marshal(review.ToolCallReview{APIVersion: review.APIVersion, Kind: review.Kind, Request: benchCall()})
	if err != nil {
		b.Fatal(err)
	}
	caller, now := policy.Caller{Namespace: "shop", ServiceAccount: "agent"}, time.Now()
	in, bad := g.decode(data, caller, now)
	if bad != nil {
		b.Fatal(bad)
	}
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, bad := g.decode(data, caller, now); bad != nil {
				b.Fatal(bad)
			}
		}
	})
	b.Run("decide", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g.decide(b.Context(), in, "id")
		}
	})
	d := g.decide(b.Context(), in, "id")
	b.Run("answer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := encode(d); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// maxAllocations of a call that rules alone decide, without net/http and without decoding it. Growth fails here.
const maxAllocations = 40

func TestAllocationsOfARulesOnlyCall(t *testing.T) {
	g := benchGate(t, silent{}, 10)
	data, err := json.Marshal(review.ToolCallReview{APIVersion: review.APIVersion, Kind: review.Kind, Request: benchCall()})
	if err != nil {
		t.Fatal(err)
	}
	in, bad := g.decode(data, policy.Caller{Namespace: "shop", ServiceAccount: "agent"}, time.Now())
	if bad != nil {
		t.Fatal(bad)
	}
	if raceEnabled {
		t.Log("allocations are not counted under the race detector")
		return
	}
	got := testing.AllocsPerRun(200, func() {
		d := g.judge(t.Context(), in, "id")
		g.metrics.decided(d)
		if _, err := encode(d); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%.0f allocations", got)
	if got > maxAllocations {
		t.Errorf("%.0f allocations, want at most %d", got, maxAllocations)
	}
}
