package serve

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
)

// series returns metrics of a registry as the lines of its text, without those of buckets.
func series(t *testing.T, r prometheus.Gatherer, names ...string) []string {
	t.Helper()
	text, err := testutil.GatherAndFormat(r, expfmt.TypeTextPlain, names...)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, "_bucket{") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

func TestWhatPeopleDecideIsCounted(t *testing.T) {
	d := newDesked(t)
	registry := prometheus.NewRegistry()
	if err := d.desk.metrics.register(registry); err != nil {
		t.Fatal(err)
	}
	of := func(class string) func(*approval.Call) { return func(c *approval.Call) { c.Class = class } }
	for i, call := range []struct {
		class, body string
		code        int
	}{
		{"Write", `{"outcome":"Approve"}`, http.StatusOK},
		{"Write", `{"outcome":"Approve"}`, http.StatusOK},
		{"Write", `{"outcome":"Reject"}`, http.StatusOK},
		{"External", `{"outcome":"Reject"}`, http.StatusOK},
		{"External", `{"outcome":"Perhaps"}`, http.StatusBadRequest},
	} {
		a := d.raise(strings.Repeat("t", i+1), of(call.class))
		d.clock.SetTime(deskNoon.Add(10 * time.Second))
		for _, code := range []int{call.code, max(call.code, http.StatusBadRequest)} { // the second time it is decided
			if got := d.do(http.MethodPost, ApprovalsPath+"/"+a.Name, kimsSecret, call.body, nil); got < code {
				t.Fatalf("HTTP %d, want %d", got, code)
			}
		}
		d.clock.SetTime(deskNoon)
	}
	want := []string{
		`gatewright_approval_wait_seconds_sum{class="External"} 10`,
		`gatewright_approval_wait_seconds_count{class="External"} 1`,
		`gatewright_approval_wait_seconds_sum{class="Write"} 30`,
		`gatewright_approval_wait_seconds_count{class="Write"} 3`,
		`gatewright_approvals_decided_total{class="External",outcome="Approved"} 0`,
		`gatewright_approvals_decided_total{class="External",outcome="Rejected"} 1`,
		`gatewright_approvals_decided_total{class="Write",outcome="Approved"} 2`,
		`gatewright_approvals_decided_total{class="Write",outcome="Rejected"} 1`,
	}
	if diff := cmp.Diff(want, series(t, registry, "gatewright_approval_wait_seconds", "gatewright_approvals_decided_total")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// metricLines returns the lines of /metrics that begin with a prefix.
func metricLines(t *testing.T, url, prefix string) []string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, prefix) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

func TestLabelsAreCountedOnce(t *testing.T) {
	g := startAudited(t, t.TempDir(), writing, nil)
	allowed, blocked := g.ask(t, "item.set").Decision, g.ask(t, "nobody.lists.it").Decision
	for _, l := range []struct {
		label Label
		code  int
	}{
		{Label{Decision: allowed.ID, Outcome: review.Block}, http.StatusOK},
		{Label{Decision: allowed.ID, Outcome: review.Block}, http.StatusOK}, // the same again is one
		{Label{Decision: allowed.ID, Outcome: review.Allow}, http.StatusOK},
		{Label{Decision: blocked.ID, Outcome: review.Block}, http.StatusOK},
		{Label{Decision: newUID(t), Outcome: review.Block}, http.StatusNotFound},
	} {
		if code, data := send(t, g.url+LabelsPath, g.secret(t), l.label); code != l.code {
			t.Fatalf("HTTP %d: %s, want %d", code, data, l.code)
		}
	}
	want := []string{
		`gatewright_labels_total{class="` + blocked.Class + `",label="block",outcome="Block"} 1`,
		`gatewright_labels_total{class="` + allowed.Class + `",label="allow",outcome="Allow"} 1`,
		`gatewright_labels_total{class="` + allowed.Class + `",label="block",outcome="Allow"} 1`,
	}
	if diff := cmp.Diff(want, metricLines(t, g.url, "gatewright_labels_total")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFailedReloadIsCountedAndShowsUntilItIsMended(t *testing.T) {
	const prefix = "gatewright_manifest_"
	s := start(t, map[string]string{"good.yaml": allowing})
	fine := []string{"gatewright_manifest_last_reload_successful 1", "gatewright_manifest_reload_failures_total 0"}
	if diff := cmp.Diff(fine, metricLines(t, s.url, prefix)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	away := s.folder + "-away"
	if err := os.Rename(s.folder, away); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "the failure", func() bool {
		got := metricLines(t, s.url, prefix)
		return got[0] == "gatewright_manifest_last_reload_successful 0" && got[1] != fine[1]
	})
	if err := os.Rename(away, s.folder); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "the way back", func() bool {
		got := metricLines(t, s.url, prefix)
		return got[0] == fine[0] && got[1] != fine[1]
	})
}

// Every metric of the desk and of manifests stands in the reference.
func TestMetricsOfTheDeskAreDocumented(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, reloads := newDeskMetrics(), newReloadMetrics()
	if err := m.register(registry); err != nil {
		t.Fatal(err)
	}
	if err := reloads.register(registry); err != nil {
		t.Fatal(err)
	}
	m.decision(&approval.Approval{Call: approval.Call{Class: "c"}, Decision: &approval.Decision{Outcome: approval.Approved}})
	page, err := os.ReadFile(filepath.FromSlash("../../docs/reference/metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 4 {
		t.Fatalf("%d metrics, %v", len(families), err)
	}
	for _, f := range families {
		if !strings.Contains(string(page), "| `"+f.GetName()+"` |") {
			t.Errorf("%s is not in docs/reference/metrics.md", f.GetName())
		}
	}
}
