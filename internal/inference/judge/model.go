package judge

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Format names the layout of a model file: JSON with the members of Model's reader below. A head is a sum, base plus a weight
// for each fact, or trees, whose outputs add up; a sigmoid of scale*sum+shift makes a probability of it. A tree is arrays over
// its nodes: node i asks whether facts[feature[i]] <= threshold[i] and goes to left[i] if so, else to right[i]; a negative
// number -1-k is leaf k.
const Format = "gatewright-judge/2"

// Limits of a model file: far beyond what training makes, and small enough that a file cannot exhaust a gate.
const (
	maxModelBytes = 8 << 20
	maxTrees      = 2048
	maxNodes      = 1024
	// maxNumber bounds weights, leaves, bases and curves. Facts are shares, and counts of what fits into a request, so that no
	// sum of them overflows, and no answer is what is left of two infinite numbers.
	maxNumber = 1e6
)

// Model holds the heads.
type Model struct {
	hash, name string
	heads      map[string]*head
}

// head is what a model knows about one kind of fault of a call.
type head struct {
	scale, shift float64
	// doubt is the least probability of a fault where the agent's instructions hold conditions for what the tool does. The
	// judge cannot read whether they are met, so it must not be sure.
	doubt float64
	// base and weights are of a head that is a sum, trees of one that is not.
	base    float64
	weights Vector
	trees   []tree
}

// tree is a list of nodes whose first is the root. One without nodes has a single leaf.
type tree struct {
	nodes  []node
	leaves []float64
}

type node struct {
	threshold   float64
	feature     int32
	left, right int32
}

// modelFile is a model as it is written.
type modelFile struct {
	Format   string              `json:"format"`
	Name     string              `json:"name"`
	Facts    string              `json:"facts"`
	Names    []string            `json:"names"`
	Training jsontext.Value      `json:"training"`
	Heads    map[string]headFile `json:"heads"`
}

type headFile struct {
	Scale   *float64   `json:"scale"`
	Shift   *float64   `json:"shift"`
	Doubt   *float64   `json:"doubt"`
	Strict  *bool      `json:"strict"`
	Base    *float64   `json:"base"`
	Weights Vector     `json:"weights"`
	Trees   []treeFile `json:"trees"`
}

type treeFile struct {
	Feature   []int32   `json:"feature"`
	Threshold []float64 `json:"threshold"`
	Left      []int32   `json:"left"`
	Right     []int32   `json:"right"`
	Leaf      []float64 `json:"leaf"`
}

// The heads that a model must have. Each gives the probability of a fault, so that no fact that raises suspicion can
// ever lower one.
const (
	headRisk       = "risk"       // the call must not run on its own
	headUnasked    = "unasked"    // nobody asked for such a call
	headExceeds    = "exceeds"    // it reaches further than the task
	headUngrounded = "ungrounded" // a value was made up
	headClarify    = "clarify"    // something has to be asked first
	headInject     = "inject"     // it follows orders in a tool result
	headDiffers    = "differs"    // it acts on another thing than the one meant
)

func headNames() []string {
	return []string{headRisk, headUnasked, headExceeds, headUngrounded, headClarify, headInject, headDiffers}
}

// isStrict names the heads that go by the strict facts: those behind questions about where values come from, and about
// whose orders a call follows.
func isStrict(head string) bool {
	switch head {
	case headUngrounded, headClarify, headInject, headDiffers:
		return true
	}
	return false
}

// Load reads a model file and checks it whole: a file that is cut, made for other facts or not bounded is refused.
func Load(data []byte) (*Model, error) {
	if len(data) > maxModelBytes {
		return nil, fmt.Errorf("model file has %d bytes, at most %d are read", len(data), maxModelBytes)
	}
	var f modelFile
	// Members that are listed twice are an error too.
	if err := json.Unmarshal(data, &f, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("reading model file: %w", err)
	}
	if bytes.Contains(data, []byte("null")) {
		return nil, errors.New("model file holds a null, which would be read as 0")
	}
	if f.Format != Format || f.Facts != FactsVersion {
		return nil, fmt.Errorf("model file is %q for facts %q, want %q for %q", f.Format, f.Facts, Format, FactsVersion)
	}
	if !slices.EqualFunc(f.Names, catalog, func(name string, fact Fact) bool { return name == fact.Name }) {
		return nil, errors.New("model file was trained on other facts")
	}
	sum := sha256.Sum256(data)
	m := &Model{hash: hex.EncodeToString(sum[:]), name: f.Name, heads: make(map[string]*head, len(f.Heads))}
	for _, name := range headNames() {
		written, ok := f.Heads[name]
		if !ok {
			return nil, fmt.Errorf("model file lacks head %s", name)
		}
		if written.Strict == nil || *written.Strict != isStrict(name) {
			return nil, fmt.Errorf("head %s was trained on facts of the other kind", name)
		}
		h, err := written.build()
		if err != nil {
			return nil, fmt.Errorf("head %s: %w", name, err)
		}
		m.heads[name] = h
	}
	if len(m.heads) != len(f.Heads) {
		return nil, errors.New("model file has a head that nothing asks for")
	}
	return m, nil
}

func (f *headFile) build() (*head, error) {
	if f.Scale == nil || f.Shift == nil || !isBounded(*f.Scale) || !isBounded(*f.Shift) || *f.Scale <= 0 {
		return nil, errors.New("scale and shift have to be bounded, and scale positive")
	}
	if f.Doubt == nil || !isFinite(*f.Doubt) || *f.Doubt < 0 || *f.Doubt >= 1 {
		return nil, errors.New("doubt has to be a probability below 1")
	}
	h := &head{scale: *f.Scale, shift: *f.Shift, doubt: *f.Doubt, trees: make([]tree, len(f.Trees))}
	if f.Base != nil || len(f.Weights) > 0 {
		return h, f.sum(h)
	}
	if len(f.Trees) == 0 || len(f.Trees) > maxTrees {
		return nil, fmt.Errorf("has no weights, and %d trees: want 1 to %d trees", len(f.Trees), maxTrees)
	}
	for i := range f.Trees {
		if err := f.Trees[i].build(&h.trees[i]); err != nil {
			return nil, fmt.Errorf("tree %d: %w", i, err)
		}
	}
	return h, nil
}

// sum fills and checks a head that is a sum: a base and one weight for each fact, none against the direction of its fact.
func (f *headFile) sum(h *head) error {
	if len(f.Trees) > 0 || len(f.Weights) != len(catalog) || f.Base == nil || !isBounded(*f.Base) {
		return fmt.Errorf("has %d weights, %d trees, and a base: %t; want %d weights, no tree, and a base that is bounded",
			len(f.Weights), len(f.Trees), f.Base != nil, len(catalog))
	}
	for i, w := range f.Weights {
		if !isBounded(w) || w*float64(catalog[i].Direction) < 0 {
			return fmt.Errorf("weight %v of fact %s is against its direction, or not bounded", w, catalog[i].Name)
		}
	}
	h.base, h.weights = *f.Base, f.Weights
	return nil
}

// build checks a tree: children come after their parent, so that every way through it ends.
func (f *treeFile) build(t *tree) error {
	n := len(f.Feature)
	if n > maxNodes || len(f.Threshold) != n || len(f.Left) != n || len(f.Right) != n || len(f.Leaf) != n+1 {
		return errors.New("has lists of lengths that do not fit")
	}
	t.nodes, t.leaves = make([]node, n), f.Leaf
	for i := range n {
		if f.Feature[i] < 0 || int(f.Feature[i]) >= len(catalog) || !isFinite(f.Threshold[i]) {
			return fmt.Errorf("node %d asks for no fact that there is", i)
		}
		for _, child := range [...]int32{f.Left[i], f.Right[i]} {
			isNode := int(child) > i && int(child) < n
			isLeaf := child < 0 && int(-1-child) < len(f.Leaf)
			if !isNode && !isLeaf {
				return fmt.Errorf("node %d leads nowhere", i)
			}
		}
		t.nodes[i] = node{threshold: f.Threshold[i], feature: f.Feature[i], left: f.Left[i], right: f.Right[i]}
	}
	for _, x := range f.Leaf {
		if !isBounded(x) {
			return errors.New("has a leaf that is not bounded")
		}
	}
	return nil
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func isBounded(x float64) bool { return math.Abs(x) <= maxNumber }

// leaf walks one tree and returns what it adds.
func (t *tree) leaf(x Vector) float64 {
	if len(t.nodes) == 0 {
		return t.leaves[0]
	}
	at := int32(0)
	for at >= 0 {
		n := &t.nodes[at]
		if x[n.feature] <= n.threshold {
			at = n.left
		} else {
			at = n.right
		}
	}
	return t.leaves[-1-at]
}

// sum is the raw output of a head.
func (h *head) sum(x Vector) float64 {
	total := h.base
	for i, w := range h.weights {
		total += w * x[i]
	}
	for i := range h.trees {
		total += h.trees[i].leaf(x)
	}
	return total
}

func (h *head) probability(x Vector) float64 {
	p := h.learnt(x)
	if x[conditionsAt] >= 1 {
		p = max(p, h.doubt)
	}
	return p
}

// learnt is what the sum or the trees alone say.
func (h *head) learnt(x Vector) float64 {
	return 1 / (1 + math.Exp(-(h.scale*h.sum(x) + h.shift)))
}

// conditionsAt is the place of conditionsFact in a Vector.
var conditionsAt = slices.IndexFunc(catalog, func(f Fact) bool { return f.Name == conditionsFact })
