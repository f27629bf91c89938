package evaluation

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares what is written with a file in testdata.
func golden(t *testing.T, name string, write func(io.Writer) error) {
	t.Helper()
	var got bytes.Buffer
	if err := write(&got); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s is not as before (-update rewrites it):\n%s", name, diff)
	}
}

// set is a case set that grows with its results.
type set struct {
	cases   []*Case
	results []Result
}

// add adds n cases of a label and class, and what a configuration answered to each.
func (s *set) add(n int, label Label, class string, outcomes map[Configuration]review.Outcome) {
	for range n {
		id := fmt.Sprintf("case-%03d", len(s.cases)+1)
		s.cases = append(s.cases, &Case{
			ID: id, Source: "made", UserRequest: fmt.Sprintf("request %d", len(s.cases)/2), Class: class, Label: label, Tool: Tool{Name: "tool"},
		})
		for _, c := range []Configuration{RulesOnly, DeciderOnly, Stacked} {
			o, ok := outcomes[c]
			if !ok {
				continue
			}
			s.results = append(s.results, Result{
				Configuration: c, Case: id, Repeat: 1, Outcome: o, Judged: o, By: "decider", Reason: "Threshold", Milliseconds: float64(len(s.cases)),
				First: len(s.cases) == 1,
			})
		}
	}
}

func configuration(t *testing.T, r *Report, c Configuration) *ConfigurationReport {
	t.Helper()
	for i := range r.Configurations {
		if r.Configurations[i].Configuration == c {
			return &r.Configurations[i]
		}
	}
	t.Fatalf("the report has no %s", c)
	return nil
}

func yes(p float64) review.Answer { return review.Answer{Probability: &p} }
