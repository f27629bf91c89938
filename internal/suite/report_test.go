package suite

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/policy"
)

func TestReports(t *testing.T) {
	report := &Report{Suites: []SuiteReport{
		{
			Name: "s", File: "s.yaml", Warnings: []string{"p.yaml: question q compares dates"}, MinimumCoverage: 90,
			Cases: []CaseReport{
				{Name: "a good one", Line: 3},
				{Name: "a <bad> one", Line: 4, Differences: []Difference{{"outcome", "Allow", "Block"}, {"reason", "A", "B"}}},
				{Name: "a broken one", Line: 5, Error: "no answer"},
			},
			Coverage: &Coverage{Reached: 2, Total: 3, NotReached: []policy.Point{{Policy: "ToolPolicy/ns/p", Kind: policy.PointRule, Place: "unknownTools"}}},
		},
		{Name: "t.yaml", File: "t.yaml", Error: "t.yaml:1: first\nt.yaml:2: second"},
		{Name: "u", File: "u.yaml", Cases: []CaseReport{{Name: "fine", Line: 1}}},
	}}
	const wantText = `FAIL s: 1 of 3 cases passed, 2 of 3 rules, thresholds and fallbacks reached (66 %)
  warning: p.yaml: question q compares dates
  s.yaml:4: a <bad> one
    outcome: want Allow, got Block
    reason: want A, got B
  s.yaml:5: a broken one
    no answer
  coverage is 66 %, wanted are 90 %
  not reached: ToolPolicy/ns/p unknownTools
FAIL t.yaml: 0 of 0 cases passed
  t.yaml:1: first
  t.yaml:2: second
ok   u: 1 of 1 cases passed
`
	if diff := cmp.Diff(wantText, text(t, report)); diff != "" {
		t.Error(diff)
	}
	const wantJUnit = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="6" failures="2" errors="2">
  <testsuite name="s" file="s.yaml" tests="4" failures="2" errors="1">
    <testcase name="a good one" classname="s" file="s.yaml" line="3"></testcase>
    <testcase name="a &lt;bad&gt; one" classname="s" file="s.yaml" line="4">
      <failure message="outcome: want Allow, got Block">outcome: want Allow, got Block&#xA;reason: want A, got B</failure>
    </testcase>
    <testcase name="a broken one" classname="s" file="s.yaml" line="5">
      <error message="no verdict">no answer</error>
    </testcase>
    <testcase name="the suite reaches enough of its policies" classname="s" file="s.yaml">
      <failure message="coverage is 66 %, wanted are 90 %">coverage is 66 %, wanted are 90 %</failure>
    </testcase>
  </testsuite>
  <testsuite name="t.yaml" file="t.yaml" tests="1" failures="0" errors="1">
    <testcase name="the suite can be run" classname="t.yaml" file="t.yaml">
      <error message="the suite cannot be run">t.yaml:1: first&#xA;t.yaml:2: second</error>
    </testcase>
  </testsuite>
  <testsuite name="u" file="u.yaml" tests="1" failures="0" errors="0">
    <testcase name="fine" classname="u" file="u.yaml" line="1"></testcase>
  </testsuite>
</testsuites>
`
	var junit, encoded strings.Builder
	if err := report.WriteJUnit(&junit); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantJUnit, junit.String()); diff != "" {
		t.Error(diff)
	}
	if err := report.WriteJSON(&encoded); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Passed *bool `json:"passed"`
		Report
	}
	if err := json.Unmarshal([]byte(encoded.String()), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(report, &back.Report); diff != "" || back.Passed == nil || *back.Passed {
		t.Errorf("passed %v (-want +got):\n%s", back.Passed, diff)
	}
}

type fullDisk struct{}

var errFull = errors.New("disk is full")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestWritersReportErrors(t *testing.T) {
	r := &Report{Suites: []SuiteReport{{Name: "s"}}}
	for name, err := range map[string]error{
		"text": r.WriteText(fullDisk{}), "json": r.WriteJSON(fullDisk{}), "junit": r.WriteJUnit(fullDisk{}),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
