package judge

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"gatewright.dev/gatewright/models"
)

func loaded(tb testing.TB) *Model {
	tb.Helper()
	m, err := Load(models.Judge)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// What Python predicts is what Go reads out of the file.
func TestPredictionsAreThoseOfTraining(t *testing.T) {
	data, err := os.ReadFile("testdata/predictions.json")
	if err != nil {
		t.Fatal(err)
	}
	var fixture struct {
		Facts []Vector
		Want  map[string][]float64
	}
	if err := json.Unmarshal(data, &fixture); err != nil {
		t.Fatal(err)
	}
	m := loaded(t)
	if len(fixture.Facts) < 32 || len(fixture.Want) != len(headNames()) {
		t.Fatalf("fixture has %d calls and %d heads", len(fixture.Facts), len(fixture.Want))
	}
	for name, want := range fixture.Want {
		for i, x := range fixture.Facts {
			if got := m.heads[name].probability(x); math.Abs(got-want[i]) > 1e-9 {
				t.Errorf("%s of call %d = %v, want %v", name, i, got, want[i])
			}
		}
	}
}

// Every head lets a fact move the risk only the way that its direction says.
func TestHeadsKeepToDirections(t *testing.T) {
	m, random := loaded(t), rand.New(rand.NewPCG(1, 2))
	levels := thresholds(m)
	for range 400 {
		x := make(Vector, len(catalog))
		for i := range x {
			x[i] = levels[i][random.IntN(len(levels[i]))]
		}
		for i, fact := range catalog {
			if fact.Direction == Free {
				continue
			}
			lower, higher := append(Vector{}, x...), append(Vector{}, x...)
			a, b := levels[i][random.IntN(len(levels[i]))], levels[i][random.IntN(len(levels[i]))]
			lower[i], higher[i] = min(a, b), max(a, b)
			for name, h := range m.heads {
				if rise := h.sum(higher) - h.sum(lower); rise*float64(fact.Direction) < -1e-9 {
					t.Fatalf("%s: %s from %v to %v moves the risk by %v", name, fact.Name, lower[i], higher[i], rise)
				}
			}
		}
	}
}

// thresholds lists, for each fact, a value on either side of every bar that any tree has for it.
func thresholds(m *Model) [][]float64 {
	levels := make([][]float64, len(catalog))
	for i := range levels {
		levels[i] = []float64{-1, 0, 1}
	}
	for _, h := range m.heads {
		for i := range h.trees {
			for _, n := range h.trees[i].nodes {
				levels[n.feature] = append(levels[n.feature], n.threshold, math.Nextafter(n.threshold, math.Inf(1)))
			}
		}
	}
	return levels
}

func TestLoadRefusesWhatItCannotTrust(t *testing.T) {
	change := func(from, to string) []byte {
		if !bytes.Contains(models.Judge, []byte(from)) {
			t.Fatalf("the model file does not hold %s", from)
		}
		return bytes.Replace(models.Judge, []byte(from), []byte(to), 1)
	}
	changeHead := func(name string, with func(head map[string]any, weights []any)) []byte {
		var file map[string]any
		if err := json.Unmarshal(models.Judge, &file); err != nil {
			t.Fatal(err)
		}
		head := file["heads"].(map[string]any)[name].(map[string]any)
		weights, _ := head["weights"].([]any)
		with(head, weights)
		data, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	risk := func(with func(head map[string]any, weights []any)) []byte { return changeHead(headRisk, with) }
	tests := map[string]struct {
		data []byte
		want string
	}{
		"nothing":                             {nil, "reading model file"},
		"a file that is cut":                  {models.Judge[:len(models.Judge)/2], "reading model file"},
		"a file with something behind it":     {append(bytes.Clone(models.Judge), '{'), "after top-level value"},
		"another format":                      {change(Format, "other/1"), "want"},
		"other facts":                         {change(`"facts":"`+FactsVersion, `"facts":"f0`), "want"},
		"a fact of another name":              {change(`"nowhere_count"`, `"elsewhere_count"`), "other facts"},
		"a member that nobody knows":          {change(`"format"`, `"extra":1,"format"`), `unknown object member name "extra"`},
		"a head that is missing":              {change(`"risk":{`, `"rest":{`), "lacks head risk"},
		"a head too many":                     {change(`"risk":{`, `"more":{"scale":1,"shift":0,"trees":[{"feature":[],"threshold":[],"left":[],"right":[],"leaf":[0]}]},"risk":{`), "nothing asks for"},
		"a head that saw the other facts":     {change(`"strict":false`, `"strict":true`), "of the other kind"},
		"a tree whose node leads to no other": {change(`"left":[`, `"left":[1000,`), "do not fit"},
		"a weight against its direction":      {risk(func(_ map[string]any, w []any) { w[0] = -1 }), "nowhere_count is against its direction"},
		"a weight that overflows":             {risk(func(_ map[string]any, w []any) { w[0] = 1e308 }), "not bounded"},
		"a weight that is null":               {risk(func(_ map[string]any, w []any) { w[0] = nil }), "holds a null"},
		"a weight too few":                    {risk(func(h map[string]any, w []any) { h["weights"] = w[1:] }), "weights, 0 trees"},
		"a sum without weights":               {risk(func(h map[string]any, _ []any) { delete(h, "weights") }), "has 0 weights"},
		"a sum without a base":                {risk(func(h map[string]any, _ []any) { delete(h, "base") }), "a base: false"},
		"a head without a doubt":              {risk(func(h map[string]any, _ []any) { delete(h, "doubt") }), "doubt has to be"},
		"a head that does not say its facts":  {risk(func(h map[string]any, _ []any) { delete(h, "strict") }), "of the other kind"},
		"a member that is there twice":        {change(`"base":`, `"base":0,"base":`), "duplicate"},
		"a leaf that is null":                 {change(`"leaf":[`, `"leaf":[null,`), "holds a null"},
		"a head of nothing":                   {changeHead(headClarify, func(h map[string]any, _ []any) { delete(h, "trees") }), "has no weights, and 0 trees"},
		"a base that overflows":               {change(`"base":`, `"base":9999999`), "a base that is bounded"},
		"a sum with trees beside it":          {change(`"weights":[`, `"trees":[{"feature":[],"threshold":[],"left":[],"right":[],"leaf":[0]}],"weights":[`), "1 trees"},
		"trees with a base":                   {change(`"trees":[`, `"base":1,"trees":[`), "trees, and a base: true"},
		"a curve that falls":                  {change(`"scale":`, `"scale":-`), "positive"},
		"more bytes than are read":            {make([]byte, maxModelBytes+1), "at most"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := Load(tt.data); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Load() = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestTreesRefuseLoopsAndHoles(t *testing.T) {
	tests := map[string]treeFile{
		"a node that leads to itself":    {Feature: []int32{0}, Threshold: []float64{0}, Left: []int32{0}, Right: []int32{-1}, Leaf: []float64{0, 1}},
		"a leaf that is not there":       {Feature: []int32{0}, Threshold: []float64{0}, Left: []int32{-1}, Right: []int32{-3}, Leaf: []float64{0, 1}},
		"a fact that is not there":       {Feature: []int32{9999}, Threshold: []float64{0}, Left: []int32{-1}, Right: []int32{-2}, Leaf: []float64{0, 1}},
		"a leaf that is not finite":      {Leaf: []float64{math.Inf(1)}},
		"a leaf that overflows":          {Leaf: []float64{1e308}},
		"a bar that is not a number":     {Feature: []int32{0}, Threshold: []float64{math.NaN()}, Left: []int32{-1}, Right: []int32{-2}, Leaf: []float64{0, 1}},
		"no leaf":                        {},
		"fewer leaves than nodes have":   {Feature: []int32{0}, Threshold: []float64{0}, Left: []int32{-1}, Right: []int32{-2}, Leaf: []float64{0}},
		"a node that leads further back": {Feature: []int32{0, 0}, Threshold: []float64{0, 0}, Left: []int32{1, 0}, Right: []int32{-1, -2}, Leaf: []float64{0, 1, 2}},
	}
	for name, file := range tests {
		var built tree
		if err := file.build(&built); err == nil {
			t.Errorf("%s was loaded", name)
		}
	}
}
