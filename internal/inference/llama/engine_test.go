package llama

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/questions"
)

const (
	smollm2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
	gemma   = "gemma-3-270m-q4_k_m.gguf"
	minilm  = "minilm-classhead-fixture.f16.gguf"
	nohead  = "minilm-no-head.f16.gguf"
)

const smollm2Hash = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

// cache is where hack/llama/fetch.sh puts libraries and models, or the directory that GATEWRIGHT_LLAMA_CACHE names.
func cache(parts ...string) string {
	base := os.Getenv("GATEWRIGHT_LLAMA_CACHE")
	if base == "" {
		base = "../../../.cache"
	}
	return filepath.Join(append([]string{base}, parts...)...)
}

func model(name string) string { return cache("models", name) }

// need skips a test that needs files which were not fetched, and says how to get them; with GATEWRIGHT_REQUIRE_MODELS=1 it
// fails.
func need(t testing.TB, files ...string) {
	t.Helper()
	for _, f := range append(files, cache("llama", "libllama.so")) {
		if _, err := os.Stat(f); err != nil {
			if os.Getenv("GATEWRIGHT_REQUIRE_MODELS") == "1" {
				t.Fatalf("%s is required and not there: run hack/llama/fetch.sh", filepath.Base(f))
			}
			t.Skipf("%s is not there: run hack/llama/fetch.sh", filepath.Base(f))
		}
	}
}

var loaded struct {
	sync.Mutex
	engines map[string]*Engine
}

// options compute with one thread: tests share their CPUs, and threads that wait for each other spin.
func options(name string) Options {
	return Options{ModelPath: model(name), LibraryDir: cache("llama"), ContextTokens: 512, Threads: 1, MinCoverage: 1e-6}
}

// use returns an engine that the tests of this package share, since loading takes longer than asking.
func use(t testing.TB, name string) *Engine {
	t.Helper()
	need(t, model(name))
	loaded.Lock()
	defer loaded.Unlock()
	if e := loaded.engines[name]; e != nil {
		return e
	}
	e, err := Open(t.Context(), options(name))
	if err != nil {
		t.Fatal(err)
	}
	if loaded.engines == nil {
		loaded.engines = map[string]*Engine{}
	}
	loaded.engines[name] = e
	return e
}

// forget makes an engine compute its next prompt from the first token.
func forget(e *Engine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.computed.keep(0)
}

func short(name string) questions.Question {
	return questions.Question{Name: name, Type: questions.YesNo, Instructions: "Is this about " + name + "?"}
}

func TestTheSameRequestGivesTheSameBitsWhateverWasAskedBefore(t *testing.T) {
	for _, name := range []string{smollm2, gemma} {
		t.Run(name, func(t *testing.T) {
			e := use(t, name)
			type request struct {
				state string
				asked []questions.Question
			}
			var requests []request
			for i := range 4 {
				state := fmt.Sprintf(`{"tool":"mail","user_request":"Send the report of week %d to Ann","proposed_call":{"to":"ann","week":%d}}`, i/2, i)
				requests = append(requests, request{state, []questions.Question{short("mail"), short("money")}[:1+i%2]})
			}
			want := make([]engine.Reply, len(requests))
			for i, r := range requests {
				forget(e)
				var err error
				if want[i], err = e.Ask(t.Context(), []byte(r.state), r.asked); err != nil {
					t.Fatal(err)
				}
			}
			order := append(rand.New(rand.NewPCG(1, 2)).Perm(len(requests)), 1, 3, 0)
			reused := 0
			var group sync.WaitGroup
			var mu sync.Mutex
			for _, i := range order {
				group.Go(func() {
					got, err := e.Ask(t.Context(), []byte(requests[i].state), requests[i].asked)
					if err != nil {
						t.Error(err)
						return
					}
					if diff := cmp.Diff(bits(want[i]), bits(got)); diff != "" {
						t.Errorf("request %d has other bits than alone:\n%s", i, diff)
					}
					mu.Lock()
					reused += got.ReusedTokens
					mu.Unlock()
				})
			}
			group.Wait()
			if reused == 0 {
				t.Error("nothing was computed once for two requests, so this test shows nothing")
			}
		})
	}
}

func bits(r engine.Reply) []uint64 {
	var all []uint64
	for _, d := range r.Distributions {
		for _, p := range append(d.Probabilities, d.Coverage) {
			all = append(all, math.Float64bits(p))
		}
	}
	return all
}

func TestAnswersAreWholeDistributions(t *testing.T) {
	e := use(t, smollm2)
	var teams []questions.Option
	for letter := 'a'; letter <= 'z'; letter++ {
		teams = append(teams, questions.Option{Name: string(letter)})
	}
	asked := []questions.Question{
		short("mail"),
		{Name: "team", Type: questions.Choice, Instructions: "Which team?", Options: teams},
		{Name: "anger", Type: questions.Score, Instructions: "How angry?", Levels: strings.Split("0 1 2 3 4 5 6 7 8 9", " ")},
	}
	reply, err := e.Ask(t.Context(), []byte(goldenState), asked)
	if err != nil {
		t.Fatal(err)
	}
	answers := questions.Answers{}
	for i, q := range asked {
		d := reply.Distributions[i]
		if len(d.Probabilities) != len(q.PromptLabels()) {
			t.Errorf("%s has %d probabilities", q.Name, len(d.Probabilities))
		}
		answers[q.Name] = q.FromDistribution(d.Probabilities, d.Coverage)
	}
	if err := questions.CheckAll(asked, answers); err != nil {
		t.Error(err)
	}
	if reply.ReusedTokens == 0 || reply.ReusedTokens >= reply.PromptTokens {
		t.Errorf("reused %d of %d tokens", reply.ReusedTokens, reply.PromptTokens)
	}
}

func TestGoldenQuestion(t *testing.T) {
	for name, want := range map[string]struct{ yes, coverage float64 }{
		smollm2: {0.7872, 0.7230},
		gemma:   {0.7498, 0.6118},
	} {
		t.Run(name, func(t *testing.T) {
			e := use(t, name)
			state, q := e.Golden()
			reply, err := e.Ask(t.Context(), state, []questions.Question{q})
			if err != nil {
				t.Fatal(err)
			}
			got := reply.Distributions[0]
			// Variants of the CPU differ in the second decimal at most.
			if math.Abs(got.Probabilities[0]-want.yes) > 0.05 || math.Abs(got.Coverage-want.coverage) > 0.1 {
				t.Errorf("P(yes) %.4f with coverage %.4f on %s, want %.4f and %.4f", got.Probabilities[0], got.Coverage, e.Info().CPUVariant, want.yes, want.coverage)
			}
		})
	}
}

func TestAComputationStopsWithItsCaller(t *testing.T) {
	e := use(t, smollm2)
	state := []byte(goldenState + " twice")
	want, err := e.Ask(t.Context(), state, []questions.Question{short("mail")})
	if err != nil {
		t.Fatal(err)
	}
	forget(e)
	if err := e.network.cut(0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	// The caller is gone when the second piece is computed: the engine notices inside of it.
	done := e.network.stop.watch(ctx)
	if err := e.network.extend(e.layout.head[:8], 0, false); err != nil {
		t.Errorf("the engine did not compute for a caller who waits: %v", err)
	}
	cancel()
	for e.network.stop.up.Load() == 0 {
		runtime.Gosched()
	}
	const aborted = 2 // what the engine returns then, and not for a piece that it cannot compute
	if err := e.network.extend(e.layout.head[8:16], 8, false); err == nil || !strings.HasSuffix(err.Error(), fmt.Sprintf("code %d", aborted)) {
		t.Errorf("the engine computed for a caller who has gone away, or failed: %v", err)
	}
	done()
	if e.network.stop.up.Load() != 0 {
		t.Error("the next caller would be told that he has gone away")
	}
	if _, err := e.Ask(ctx, state, []questions.Question{short("mail")}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	got, err := e.Ask(t.Context(), state, []questions.Question{short("mail")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bits(want), bits(got)); diff != "" {
		t.Errorf("a computation that was stopped left something behind:\n%s", diff)
	}
}

func TestAskRefuses(t *testing.T) {
	e := use(t, smollm2)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		ctx        context.Context
		state      string
		asked      []questions.Question
		wantReason engine.Reason
		wantErr    error
	}{
		"a state that is longer than the window": {
			state: strings.Repeat("delete the order of week 17 ", 100), asked: []questions.Question{short("mail")}, wantReason: engine.TooLong,
		},
		"a state that is too long by its bytes alone": {
			state: strings.Repeat("x", 1<<20), asked: []questions.Question{short("mail")}, wantReason: engine.TooLong,
		},
		"a state that holds a NUL":           {state: "a\x00b", asked: []questions.Question{short("mail")}, wantReason: engine.Unreadable},
		"a state that is not UTF-8":          {state: "a\xffb", asked: []questions.Question{short("mail")}, wantReason: engine.Unreadable},
		"a question that is no question":     {state: "{}", asked: []questions.Question{{Name: "x", Type: "Essay"}}, wantReason: engine.NotSupported},
		"a caller who has already gone away": {ctx: canceled, state: "{}", asked: []questions.Question{short("mail")}, wantErr: context.Canceled},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := tc.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			reply, err := e.Ask(ctx, []byte(tc.state), tc.asked)
			if len(reply.Distributions) != 0 {
				t.Error("an error came with answers")
			}
			var ee *engine.Error
			switch {
			case tc.wantErr != nil:
				if !errors.Is(err, tc.wantErr) {
					t.Errorf("got %v, want %v", err, tc.wantErr)
				}
			case !errors.As(err, &ee) || ee.Reason != tc.wantReason:
				t.Errorf("got %v, want %s", err, tc.wantReason)
			case tc.wantReason == engine.TooLong && (ee.Tokens <= ee.Limit || ee.Limit != 512):
				t.Errorf("counts %d and %d", ee.Tokens, ee.Limit)
			case strings.Contains(err.Error(), tc.state):
				t.Error("the error repeats the state")
			}
		})
	}
}
