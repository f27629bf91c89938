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

func TestPiecesAreAFunctionOfThePrompt(t *testing.T) {
	tests := map[string]struct {
		shared, own int
		want        []int
	}{
		"a state that ends between two pieces":       {137, 45, []int{32, 64, 96, 128, 137, 159, 182}},
		"a state that ends with a piece":             {64, 10, []int{32, 64, 74}},
		"a short state and a question of two pieces": {5, 64, []int{5, 37, 69}},
		"nothing that is shared":                     {0, 33, []int{16, 33}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPrompt(numbers(0, tc.shared), numbers(1000, tc.own))
			if diff := cmp.Diff(tc.want, p.ends); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyEqualPiecesAreUsedAgain(t *testing.T) {
	before := newPrompt(numbers(0, 137), numbers(1000, 45))
	other := slices.Concat(numbers(0, 100), numbers(500, 37))
	tests := map[string]struct {
		next prompt
		want int
	}{
		"the same prompt but for the piece that is read": {before, 159},
		"another question about the same state":          {newPrompt(numbers(0, 137), numbers(2000, 45)), 137},
		"a state that parts in its fourth piece":         {newPrompt(other, numbers(1000, 45)), 96},
		"a state that goes on":                           {newPrompt(numbers(0, 150), numbers(1000, 45)), 128},
		"a state that stops before":                      {newPrompt(numbers(0, 70), numbers(1000, 45)), 64},
		"nothing in common":                              {newPrompt(numbers(1, 137), numbers(1000, 45)), 0},
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
		shared := numbers(0, rng.IntN(200))
		for i := rng.IntN(len(shared) + 1); i < len(shared); i++ {
			shared[i] += token(rng.IntN(2) * 1000)
		}
		p := newPrompt(shared, numbers(5000+rng.IntN(2)*100, 1+rng.IntN(80)))
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
