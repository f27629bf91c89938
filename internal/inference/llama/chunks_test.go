package llama

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func numbers(from, n int) []token {
	tokens := make([]token, n)
	for i := range tokens {
		tokens[i] = token(from + i)
	}
	return tokens
}

func firm(ends ...int) []seam {
	var seams []seam
	for _, at := range ends {
		seams = append(seams, seam{at: at})
	}
	return seams
}

func TestPiecesAreAFunctionOfThePrompt(t *testing.T) {
	tests := map[string]struct {
		shared, own int
		seams       []seam
		want        []int
	}{
		"a state without a seam":                         {300, 45, nil, []int{128, 256, 300, 345}},
		"a state that ends with a piece":                 {256, 10, nil, []int{128, 256, 266}},
		"a head and two seams":                           {300, 45, firm(49, 190, 210), []int{49, 177, 190, 210, 300, 345}},
		"a head of more than a piece":                    {300, 45, firm(130), []int{128, 130, 258, 300, 345}},
		"seams that are none: twice, before, at the end": {300, 45, firm(60, 60, 50, 300), []int{60, 188, 300, 345}},
		"a seam behind the end":                          {100, 45, firm(60, 150), []int{60, 100, 145}},
		"a short state and a question of two pieces":     {5, 160, firm(2), []int{2, 5, 85, 165}},
		"nothing that is shared":                         {0, 129, nil, []int{64, 129}},
		"a loose seam after less than a tile":            {300, 45, []seam{{49, false}, {120, false}, {183, true}}, []int{49, 120, 248, 300, 345}},
		"a loose seam after a tile":                      {300, 45, []seam{{49, false}, {120, false}, {184, true}}, []int{49, 120, 184, 300, 345}},
		"a loose seam after one that was passed over":    {300, 45, []seam{{49, false}, {90, true}, {113, true}}, []int{49, 113, 241, 300, 345}},
		"a loose seam of more than a piece":              {300, 45, []seam{{10, false}, {150, true}}, []int{10, 138, 150, 278, 300, 345}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPrompt(numbers(0, tc.shared), numbers(1000, tc.own), tc.seams...)
			if diff := cmp.Diff(tc.want, p.ends); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyEqualPiecesAreUsedAgain(t *testing.T) {
	state := func(same, n int) []token { return slices.Concat(numbers(0, same), numbers(500, n-same)) }
	before := newPrompt(numbers(0, 300), numbers(1000, 45), firm(49, 190)...)
	tests := map[string]struct {
		next prompt
		want int
	}{
		"the same prompt but for the piece that is read": {before, 300},
		"another question about the same state":          {newPrompt(numbers(0, 300), numbers(2000, 45), firm(49, 190)...), 300},
		"another state behind the same head":             {newPrompt(state(60, 310), numbers(1000, 45), firm(49, 195)...), 49},
		"a state that parts at the seam":                 {newPrompt(state(190, 280), numbers(1000, 45), firm(49, 190)...), 190},
		"a state that parts before the seam":             {newPrompt(state(185, 300), numbers(1000, 45), firm(49, 190)...), 177},
		"a state whose seam lies elsewhere":              {newPrompt(numbers(0, 300), numbers(1000, 45), firm(49, 200)...), 177},
		"a state that goes on":                           {newPrompt(numbers(0, 310), numbers(1000, 45), firm(49, 190)...), 190},
		"nothing in common":                              {newPrompt(numbers(1, 300), numbers(1000, 45), firm(49, 190)...), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := sequence{tokens: slices.Clone(before.tokens), ends: slices.Clone(before.ends)}
			if got := s.keep(s.common(tc.next)); got != tc.want || len(s.tokens) != got {
				t.Errorf("kept %d tokens, want %d", got, tc.want)
			}
		})
	}
}

// TestHistoryIsInvisible follows what would be computed for random prompts and checks that each piece goes in whole, after
// exactly the tokens that stand before it in its prompt.
func TestHistoryIsInvisible(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	var s sequence
	for range 2000 {
		shared := numbers(0, rng.IntN(400))
		for i := rng.IntN(len(shared) + 1); i < len(shared); i++ {
			shared[i] += token(rng.IntN(2) * 1000)
		}
		seams := []seam{{at: 49}, {at: 60 + rng.IntN(2)}, {at: 120 + rng.IntN(40), loose: true}, {at: 190 + rng.IntN(3), loose: true}}
		p := newPrompt(shared, numbers(5000+rng.IntN(2)*100, 1+rng.IntN(200)), seams...)
		n := s.common(p)
		at := s.keep(n)
		for ; n < len(p.ends); n++ {
			if len(s.tokens) != at || p.ends[n]-at > chunk || p.ends[n] <= at {
				t.Fatalf("piece %d of %v begins at %d", n, p.ends, at)
			}
			s.add(p.tokens[at:p.ends[n]])
			at = p.ends[n]
			if rng.IntN(20) == 0 {
				break // the caller went away
			}
		}
		if !slices.Equal(s.tokens, p.tokens[:at]) || !slices.Equal(s.ends, p.ends[:len(s.ends)]) {
			t.Fatal("the cache holds another prompt than the one that was computed")
		}
	}
}
