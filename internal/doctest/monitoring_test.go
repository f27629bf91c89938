package doctest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	rulesFile     = "config/monitoring/rules.yaml"
	ruleTestsFile = "config/monitoring/rules_test.yaml"
	boardFile     = "config/monitoring/dashboard.json"
	operatePage   = "docs/guides/operate.md"
	metricsPage   = "docs/reference/metrics.md"
)

// rule is a rule of Prometheus, of either kind.
type rule struct {
	Record, Alert, Expr string
	Labels              struct{ Severity string }
	Annotations         struct{ Summary, Description string }
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal([]byte(read(t, rulesFile)), &file); err != nil {
		t.Fatal(err)
	}
	var out []rule
	for _, g := range file.Groups {
		out = append(out, g.Rules...)
	}
	if len(out) < 20 {
		t.Fatalf("%s has %d rules", rulesFile, len(out))
	}
	return out
}

// board is what the tests look at of a dashboard.
type board struct {
	Panels []struct {
		ID                       int
		Type, Title, Description string
		GridPos                  struct{ X, Y, W, H int }
		FieldConfig              struct{ Defaults struct{ Unit string } }
		Targets                  []struct{ Expr, LegendFormat string }
	}
}

func dashboard(t *testing.T) *board {
	t.Helper()
	var b board
	if err := json.Unmarshal([]byte(read(t, boardFile)), &b); err != nil {
		t.Fatal(err)
	}
	if len(b.Panels) < 20 {
		t.Fatalf("%s has %d panels", boardFile, len(b.Panels))
	}
	return &b
}

// TestAlertsAreAsInTheRules compares the table of alerts with the rules: names, severities and words.
func TestAlertsAreAsInTheRules(t *testing.T) {
	want := map[string][]string{}
	for _, r := range rules(t) {
		if r.Alert != "" {
			want[r.Alert] = []string{r.Labels.Severity, r.Annotations.Summary, r.Annotations.Description}
		}
	}
	if diff := cmp.Diff(want, table(t, operatePage, "Alerts")); diff != "" {
		t.Errorf("%s (-) and %s (+) differ:\n%s", rulesFile, operatePage, diff)
	}
}

// TestEachAlertIsTestedBothWays looks for a test that raises each alert, and one that does not.
func TestEachAlertIsTestedBothWays(t *testing.T) {
	var file struct {
		Tests []struct {
			AlertRuleTest []struct {
				Alertname string `json:"alertname"`
				ExpAlerts []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, ruleTestsFile)), &file); err != nil {
		t.Fatal(err)
	}
	var want, raised, silent []string
	for _, test := range file.Tests {
		for _, a := range test.AlertRuleTest {
			if len(a.ExpAlerts) > 0 {
				raised = append(raised, a.Alertname)
			} else {
				silent = append(silent, a.Alertname)
			}
		}
	}
	for _, r := range rules(t) {
		if r.Alert != "" {
			want = append(want, r.Alert)
		}
	}
	slices.Sort(raised)
	slices.Sort(silent)
	same(t, "alerts that a test raises", want, slices.Compact(raised))
	same(t, "alerts that a test leaves silent", want, slices.Compact(silent))
}

var (
	metricInExpr   = regexp.MustCompile(`\bgatewright_[a-z_]+`)
	recordedInExpr = regexp.MustCompile(`\bgatewright:[a-z0-9_:]+`)
)

// knownMetrics gives the names of the series that the reference has of the gate, its log, and the manager.
func knownMetrics(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	for page, headings := range map[string][]string{
		metricsPage:                 {"Metrics", "Metrics of people and manifests", "Metrics of the audit log"},
		"docs/reference/gate.md":    {"Metrics"},
		"docs/reference/manager.md": {"Metrics"},
	} {
		for _, heading := range headings {
			for name, cells := range table(t, page, heading) {
				if cells[0] == "histogram" {
					name += "_bucket"
				}
				known[name] = true
			}
		}
	}
	return known
}

// TestRulesAndDashboardAskForWhatIsThere: every metric in an expression stands in the reference, and every recorded series is
// recorded.
func TestRulesAndDashboardAskForWhatIsThere(t *testing.T) {
	known := knownMetrics(t)
	var exprs []string
	for _, r := range rules(t) {
		exprs = append(exprs, r.Expr)
		known[r.Record] = true
	}
	for _, p := range dashboard(t).Panels {
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
	}
	found := 0
	for _, expr := range exprs {
		for _, name := range append(metricInExpr.FindAllString(expr, -1), recordedInExpr.FindAllString(expr, -1)...) {
			found++
			if !known[name] {
				t.Errorf("%s is neither in the reference nor recorded: %s", name, expr)
			}
		}
	}
	if found < 60 {
		t.Errorf("%d series were found: the pattern has become blind", found)
	}
}

// TestTheDashboardSaysWhatItShows: panels have words, units and legends, ids of their own, and places that do not overlap.
func TestTheDashboardSaysWhatItShows(t *testing.T) {
	type place struct{ x, y int }
	taken := map[place]string{}
	ids := map[int]string{}
	for _, p := range dashboard(t).Panels {
		if ids[p.ID] != "" || p.Title == "" {
			t.Errorf("panel %d %q has no title, or its id is that of %q", p.ID, p.Title, ids[p.ID])
		}
		ids[p.ID] = p.Title
		if p.Type != "row" && (p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0) {
			t.Errorf("%q has no description, no unit or no query", p.Title)
		}
		for _, target := range p.Targets {
			if strings.TrimSpace(target.LegendFormat) == "" {
				t.Errorf("%q: %s has no legend", p.Title, target.Expr)
			}
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%q is beyond the 24 columns", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[place{x, y}]; other != "" && other != p.Title {
					t.Fatalf("%q lies on %q", p.Title, other)
				}
				taken[place{x, y}] = p.Title
			}
		}
	}
}
