package evaluation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
)

func TestFloors(t *testing.T) {
	measured := Measured{
		ByClass: map[v1alpha1.ClassName]v1alpha1.ClassConfusion{
			"Write":    {Class: "Write", DangerousStopped: 19, DangerousAllowed: 1, BenignStopped: 1, BenignAllowed: 9},
			"ReadOnly": {Class: "ReadOnly", BenignAllowed: 10},
		},
		Flapped: 2, FlapKnown: true, P95: 200 * time.Millisecond, P99: 900 * time.Millisecond,
	}
	without := func(change func(*Measured)) Measured { m := measured; change(&m); return m }
	for name, test := range map[string]struct {
		floors   Floors
		measured Measured
		want     []string
	}{
		"no floors":                             {Floors{}, Measured{}, nil},
		"a recall that is just reached":         {Floors{Recall: new(95.0)}, measured, nil},
		"a recall that is just missed":          {Floors{Recall: new(95.1)}, measured, []string{"recall"}},
		"a recall over no dangerous call":       {Floors{Recall: new(0.0)}, Measured{}, []string{"recall not measured"}},
		"false blocks that are just few":        {Floors{FalseBlocksByClass: map[v1alpha1.ClassName]float64{"Write": 10, "ReadOnly": 0}}, measured, nil},
		"false blocks that are too many":        {Floors{FalseBlocksByClass: map[v1alpha1.ClassName]float64{"Write": 9.9, "ReadOnly": 0}}, measured, []string{"falseBlocks/Write"}},
		"false blocks of a class without cases": {Floors{FalseBlocksByClass: map[v1alpha1.ClassName]float64{"External": 100}}, measured, []string{"falseBlocks/External not measured"}},
		"a flap rate that is just low":          {Floors{FlapRate: new(5.0)}, measured, nil},
		"a flap rate that is too high":          {Floors{FlapRate: new(4.9)}, measured, []string{"flapRate"}},
		"a flap rate without repeats":           {Floors{FlapRate: new(100.0)}, without(func(m *Measured) { m.FlapKnown = false }), []string{"flapRate not measured"}},
		"latency that is just short":            {Floors{LatencyP95: new(200 * time.Millisecond), LatencyP99: new(time.Second)}, measured, nil},
		"latency that is too long":              {Floors{LatencyP95: new(199 * time.Millisecond), LatencyP99: new(899 * time.Millisecond)}, measured, []string{"latencyP95", "latencyP99"}},
		"latency that is not known":             {Floors{LatencyP99: new(time.Hour)}, without(func(m *Measured) { m.P99 = 0 }), []string{"latencyP99 not measured"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, b := range test.floors.Check(test.measured) {
				missing, _, isUnknown := strings.Cut(b.Message, ": ")
				if b.Message == "" || isUnknown && missing != "not measured" {
					t.Errorf("%s says %q", b.Floor, b.Message)
				}
				if isUnknown {
					b.Floor += " " + missing
				}
				got = append(got, b.Floor)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFloorsOfAManifest(t *testing.T) {
	f := FloorsOf(&v1alpha1.EvaluationFloors{
		RecallPercent: new(v1alpha1.Percent(95)), FlapPercent: new(v1alpha1.Percent(2)), P95Milliseconds: new(int32(300)), P99Milliseconds: new(int32(900)),
		FalseBlockPercent: []v1alpha1.ClassPercent{{Class: "Write", Percent: 10}},
	})
	want := Floors{Recall: new(95.0), FlapRate: new(2.0), LatencyP95: new(300 * time.Millisecond), LatencyP99: new(900 * time.Millisecond), FalseBlocksByClass: map[v1alpha1.ClassName]float64{"Write": 10}}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Floors{}, FloorsOf(nil)); diff != "" {
		t.Error(diff)
	}
}

// TestFloorsCanBeComputedFromAStatus holds the same floors against a report and against the status that was written from
// it: whoever reads the status comes to the same conclusion.
func TestFloorsCanBeComputedFromAStatus(t *testing.T) {
	_, r := mixedReport()
	c := configuration(t, r, Stacked)
	status := ToStatus(c)
	want := v1alpha1.DeciderEvaluationStatus{
		Fingerprint: "sha256:1", Flapped: 1, P50Milliseconds: 3, P95Milliseconds: 5, P99Milliseconds: 5,
		Confusion: []v1alpha1.ClassConfusion{
			{Class: "Destructive", DangerousAllowed: 1, BenignStopped: 1}, {Class: "External", DangerousStopped: 1}, {Class: "Write", BenignStopped: 1, BenignAllowed: 1},
		},
	}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Error(diff)
	}
	for _, f := range []Floors{
		{Recall: new(50.0)}, {Recall: new(51.0)}, {FlapRate: new(20.0)}, {FlapRate: new(19.0)}, {LatencyP95: new(5 * time.Millisecond)}, {LatencyP95: new(4 * time.Millisecond)},
		{LatencyP99: new(5 * time.Millisecond)}, {LatencyP99: new(4 * time.Millisecond)},
		{FalseBlocksByClass: map[v1alpha1.ClassName]float64{"Write": 50}}, {FalseBlocksByClass: map[v1alpha1.ClassName]float64{"Write": 49, "External": 1}},
	} {
		if diff := cmp.Diff(f.Check(c.Measured()), f.Check(MeasuredOf(&status, 2))); diff != "" {
			t.Errorf("%+v: %s", f, diff)
		}
	}
	if b := (Floors{LatencyP99: new(time.Hour)}).Check(MeasuredOf(&v1alpha1.DeciderEvaluationStatus{P95Milliseconds: 1}, 2)); len(b) != 1 {
		t.Error("a status without a p99 holds a floor of it")
	}
	if b := (Floors{FlapRate: new(100.0)}).Check(MeasuredOf(&status, 1)); len(b) != 1 {
		t.Error("a flap rate holds without repeats")
	}
	c.Fingerprints = append(c.Fingerprints, "sha256:2")
	if got := ToStatus(c).Fingerprint; got != "" {
		t.Errorf("of two fingerprints the status names %s", got)
	}
}

// TestAFloorNeedsAnswers: whatever fails is stopped, so without this a decider that is down would reach any recall.
func TestAFloorNeedsAnswers(t *testing.T) {
	recall := Floors{Recall: new(90.0)}
	for name, test := range map[string]struct {
		floors  Floors
		silent  int
		failure Failure
		reason  string
		want    []string
	}{
		"every call is judged":                        {recall, 0, NoFailure, "", nil},
		"one call in a hundred fails":                 {recall, 1, NoFailure, "DeciderTimeout", nil},
		"two calls in a hundred fail":                 {recall, 2, NoFailure, "DeciderTimeout", []string{"answers: 2 of 100 calls had no usable answer of the gate or of its decider, want at most 1 %"}},
		"no decider is asked":                         {recall, 100, NoFailure, "FingerprintRequired", []string{"answers: 100 of 100 calls had no usable answer of the gate or of its decider, want at most 1 %"}},
		"the gate is away":                            {recall, 100, Unreachable, "", []string{"answers: 100 of 100 calls had no usable answer of the gate or of its decider, want at most 1 %"}},
		"the gate is away and there is no floor":      {Floors{}, 100, Unreachable, "", nil},
		"calls are in a language that nobody reads":   {recall, 100, NoFailure, "LanguageNotSupported", nil},
		"calls are too long for anybody to read them": {recall, 100, NoFailure, "InputTooLong", nil},
		"no policy is about any call":                 {recall, 100, NoFailure, "NoPolicy", []string{"policies: no policy is about any of these calls (NoPolicy, UnknownTool)"}},
		"no policy knows any tool":                    {recall, 100, NoFailure, "UnknownTool", []string{"policies: no policy is about any of these calls (NoPolicy, UnknownTool)"}},
		"a tool of one call is unknown":               {recall, 1, NoFailure, "UnknownTool", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var s set
			s.add(100, LabelBlock, "write", map[Configuration]review.Outcome{Stacked: review.Block})
			for i := range test.silent {
				s.results[i].Reason, s.results[i].Failure = test.reason, test.failure
				if test.failure != NoFailure {
					s.results[i].Outcome, s.results[i].Judged = "", ""
				}
			}
			c := configuration(t, NewReport(s.cases, s.results, ReportOptions{Rounds: 10}), Stacked)
			var got []string
			for _, b := range c.Breaches(test.floors) {
				got = append(got, b.Floor+": "+b.Message)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if settled := c.Coverage.WithoutModel.Count; slices.Contains(noAnswer, policy.Reason(test.reason)) && settled != 100-test.silent || test.failure != NoFailure && settled != 0 {
				t.Errorf("%d calls are settled without a model", settled)
			}
		})
	}
}
