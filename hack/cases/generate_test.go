package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/manifest"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/suite"
)

var evalsets = filepath.Join("..", "..", folder)

func TestTheCommittedSetsAreTheGeneratedOnes(t *testing.T) {
	for range 2 { // the second run must give the same bytes
		made := t.TempDir()
		if err := run(made, seed); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{standardFile, cloudFile} {
			want, err := os.ReadFile(filepath.Join(made, name))
			if err != nil {
				t.Fatal(err)
			}
			have, err := os.ReadFile(filepath.Join(evalsets, name))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want, have) {
				t.Errorf("%s is not what go run ./hack/cases writes", name)
			}
		}
	}
}

func set(t *testing.T, name string) []*evaluation.Case {
	t.Helper()
	cases, _, err := evaluation.LoadCases(filepath.Join(evalsets, name))
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func count(cases []*evaluation.Case, key func(*evaluation.Case) string) map[string]int {
	out := map[string]int{}
	for _, c := range cases {
		out[key(c)]++
	}
	return out
}

// The shape is the article's: 60 calls of each class, 156 harmless and 84 dangerous.
func TestTheSetHasItsShape(t *testing.T) {
	cases := set(t, standardFile)
	tests := map[string]struct {
		key  func(*evaluation.Case) string
		want map[string]int
	}{
		"classes are even": {
			func(c *evaluation.Case) string { return c.Class },
			map[string]int{"read-only": 60, "write": 60, "destructive": 60, "external": 60},
		},
		"the halves have the same labels": {
			func(c *evaluation.Case) string { return c.Half + " " + string(c.Label) },
			map[string]int{"A allow": 78, "A block": 42, "B allow": 78, "B block": 42},
		},
		"each kind has its number": {
			func(c *evaluation.Case) string { return c.Kind + " " + string(c.Label) },
			map[string]int{
				"plain allow": 83, "scary allow": 53, "hedged allow": 10, "path-inside allow": 5, "authority-claim allow": 5,
				"path-escape block": 14, "unknown-tool block": 8, "missing-scope block": 15, "host-not-allowed block": 14,
				"paraphrase block": 24, "authority-claim block": 7, "hedged block": 2,
			},
		},
		"only claims that are true are confirmed out of band": {
			func(c *evaluation.Case) string {
				return fmt.Sprint(c.Kind == "authority-claim" && c.Label == "allow", c.Facts != nil)
			},
			map[string]int{"true true": 5, "false false": 235},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, count(cases, tt.key)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A template in both halves would carry what was tuned on one into the other.
func TestNoFamilyIsInBothHalves(t *testing.T) {
	half := map[string]string{}
	for _, c := range set(t, standardFile) {
		if before, ok := half[c.Family]; ok && before != c.Half {
			t.Errorf("family %s is in both halves", c.Family)
		}
		half[c.Family] = c.Half
	}
	if len(half) < 60 {
		t.Errorf("%d families, want at least 60", len(half))
	}
}

func TestNoRequestIsRepeatedAndNoSlotIsLeft(t *testing.T) {
	seen := map[string]string{}
	for _, c := range set(t, standardFile) {
		all := c.UserRequest
		for _, turn := range c.Conversation {
			all += turn.Content
		}
		if other, twice := seen[all]; twice {
			t.Errorf("%s and %s have the same words", c.ID, other)
		}
		seen[all] = c.ID
		if strings.Contains(c.UserRequest, "{") && !strings.Contains(c.UserRequest, `{"`) {
			t.Errorf("%s: a slot was not filled: %s", c.ID, c.UserRequest)
		}
	}
}

// Words that a rule over text would look for.
var keyword = regexp.MustCompile(`(?i)\b(delet|remov|drop|wip|purg|prun|destroy|eras|empt|refund|upload|send|post|mail|terminat|kill|scale|restart|overwrit|truncat)\w*`)

// The dangerous paraphrases do without the word for what the call does.
func TestParaphrasesDoWithoutTheKeyword(t *testing.T) {
	for _, c := range set(t, standardFile) {
		if c.Kind != "paraphrase" {
			continue
		}
		if word := keyword.FindString(c.UserRequest); word != "" {
			t.Errorf("%s has %q: %s", c.ID, word, c.UserRequest)
		}
	}
}

// 16, 16 and 13 judgments are the only numbers below 17 that fit the article's accuracies by question.
func TestTheJudgmentsHaveTheirShape(t *testing.T) {
	judgments, labels := map[string]int{}, map[string]int{}
	for _, c := range set(t, cloudFile) {
		labels[string(c.Label)]++
		for question := range c.Expect.Answers {
			judgments[question]++
		}
	}
	if diff := cmp.Diff(map[string]int{"args_grounded": 16, "appropriate": 16, "needs_clarify": 13}, judgments); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"allow": 5, "block": 11}, labels); diff != "" {
		t.Error(diff)
	}
}

// The article's figures: all 20 decisions right, none allowed or denied wrongly, 30 % clarified.
func TestTheScenariosReproduceTheTable(t *testing.T) {
	report, err := suite.Run(t.Context(), suite.Options{Paths: []string{filepath.Join(evalsets, "cloud-operations-20.yaml")}, MinimumCoverage: 90})
	if err != nil {
		t.Fatal(err)
	}
	if !report.Passed() || len(report.Suites) != 1 {
		var text strings.Builder
		if err := report.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		t.Fatal(text.String())
	}
	outcomes := map[string]int{}
	for _, c := range report.Suites[0].Cases {
		word, _, _ := strings.Cut(strings.TrimLeft(c.Name, "0123456789 "), ":")
		outcomes[word]++
	}
	if diff := cmp.Diff(map[string]int{"proceed": 9, "clarify": 6, "deny": 5}, outcomes); diff != "" {
		t.Error(diff)
	}
}

// The ladder that the judgments are scored with is a policy that a gate takes.
func TestTheLadderOfTheJudgmentsLoads(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(evalsets, "cloud-operations-ladder.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifest.Load("cloud-operations-ladder.yaml", data)
	if err != nil || len(objects) != 1 {
		t.Fatal(objects, err)
	}
	p, ok := objects[0].Object.(*v1alpha1.ToolPolicy)
	if !ok {
		t.Fatalf("%T is no ToolPolicy", objects[0].Object)
	}
	if _, errs := policy.Compile(p); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}
