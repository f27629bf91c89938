package judge

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/models"
)

// The search agrees with the plain one, on texts of few different words, where beginnings repeat.
func TestContainsAgreesWithThePlainSearch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	list := func(n int) []int16 {
		out := make([]int16, n)
		for i := range out {
			out[i] = int16(random.IntN(4)) - 1
		}
		return out
	}
	plain := func(text, words []int16) bool {
		if len(words) == 0 || slices.Min(words) < 0 {
			return false
		}
		for i := 0; i+len(words) <= len(text); i++ {
			if slices.Equal(text[i:i+len(words)], words) {
				return true
			}
		}
		return false
	}
	found := 0
	for i := range 50_000 {
		text, words := list(random.IntN(30)), list(random.IntN(6))
		if i%2 == 0 { // long ones: most of a text of one word, which is the hard case
			text, words = make([]int16, 60+random.IntN(60)), make([]int16, fewWords+random.IntN(30))
			text[random.IntN(len(text))], words[len(words)-1-random.IntN(2)] = 1, int16(random.IntN(2))
		}
		want := plain(text, words)
		if got := contains(text, words); got != want {
			t.Fatalf("contains(%v, %v) is %v", text, words, got)
		}
		if want {
			found++
		}
	}
	if found < 1000 {
		t.Errorf("only %d texts contained the words", found)
	}
}

// Words that nearly match everywhere cost no more than others: 110,000 equal words and another one, in 280,000 equal ones.
func BenchmarkContainsNearlyEverywhere(b *testing.B) {
	text, words := make([]int16, 280_000), make([]int16, 110_001)
	words[len(words)-1] = 1
	for b.Loop() {
		if contains(text, words) {
			b.Fatal("found")
		}
	}
}

// Many values that nearly stand in a long text are too long a call, and not a minute of work.
func TestManyNearMatchesAreTooLong(t *testing.T) {
	arguments := map[string]any{}
	for i := range 1500 {
		arguments[fmt.Sprint("value-", i)] = strings.Repeat("word ", 12) + "end"
	}
	s := &questions.State{
		Tool: questions.Tool{Name: "note.write"}, Arguments: arguments, UserTurns: []string{"write it"},
		Messages: []questions.Message{{Role: questions.RoleAssistant, Text: questions.CallPrefix + "read " + strings.Repeat("word ", 60_000)}},
	}
	q, _ := questions.Builtin("args_grounded")
	m, err := Load(models.Judge)
	if err != nil {
		t.Fatal(err)
	}
	for _, refused := range []bool{false, true} { // that the gate refused the call makes no answer out of none
		s.Messages[0].Refused = refused
		if _, err := New(m).Answer(s, []questions.Question{q}); !errors.Is(err, ErrTooLong) {
			t.Errorf("refused %v: got %v, want %v", refused, err, ErrTooLong)
		}
	}
}
