package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/questions"
)

// moved is an engine whose every answer is off by so much from the honest one.
func moved(by float64) func(context.Context, []byte, []questions.Question) (engine.Reply, error) {
	return func(_ context.Context, state []byte, asked []questions.Question) (engine.Reply, error) {
		reply := honest(state, asked)
		for _, d := range reply.Distributions {
			low, high := 0, 0
			for i, p := range d.Probabilities {
				if p < d.Probabilities[low] {
					low = i
				}
				if p > d.Probabilities[high] {
					high = i
				}
			}
			d.Probabilities[low] += by
			d.Probabilities[high] -= by
		}
		return reply, nil
	}
}

// recorded writes a golden file as a first run of an honest engine does, and returns its path.
func recorded(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "golden.json")
	r := start(t, newScripted(), func(o *Options) { o.Golden = Golden{File: path, Record: true} })
	r.stop(ErrLeaveNow)
	if err := r.ended(t); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestGoldenAnswers(t *testing.T) {
	path := recorded(t)
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte(`{"answers":{},"answers":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	absent := filepath.Join(t.TempDir(), "absent.json")
	times := 0
	tests := map[string]struct {
		golden Golden
		ask    func(context.Context, []byte, []questions.Question) (engine.Reply, error)
		change func(*scripted)
		want   string // a part of the error, empty if the server becomes ready
		absent bool   // GoldenError.Missing
		file   bool   // GoldenError.File
	}{
		"the same answer":                          {golden: Golden{File: path}},
		"an answer within the tolerance":           {golden: Golden{File: path}, ask: moved(0.019)},
		"an answer beyond it":                      {golden: Golden{File: path}, ask: moved(0.021), want: "the answer on record has"},
		"an answer within a wider one":             {golden: Golden{File: path, Tolerance: 0.05}, ask: moved(0.04)},
		"an answer beyond a narrower one":          {golden: Golden{File: path, Tolerance: 1e-6}, ask: moved(1e-5), want: "the answer on record has"},
		"recording does not replace what is there": {golden: Golden{File: path, Record: true}, ask: moved(0.1), want: "the answer on record has"},
		"another fingerprint":                      {golden: Golden{File: path}, change: func(e *scripted) { e.info.Fingerprint = "sha256:other" }, want: "no answer for fingerprint sha256:other", absent: true},
		"another golden question":                  {golden: Golden{File: path}, change: func(e *scripted) { e.golden = "Was it?" }, want: "no answer for fingerprint", absent: true},
		"no file":                                  {golden: Golden{File: absent}, want: "no such file", absent: true},
		"a file that cannot be read":               {golden: Golden{File: broken}, want: "reading " + broken, file: true},
		"a file that cannot be read nor recorded":  {golden: Golden{File: broken, Record: true}, want: "reading " + broken, file: true},
		"no folder for the record":                 {golden: Golden{File: filepath.Join(absent, "x.json"), Record: true}, want: "recording the answer", file: true},
		"no file asked for":                        {},
		"no answer":                                {ask: fails(engine.LowCoverage), want: "no answer: LowCoverage"},
		"two answers that differ": {ask: func(ctx context.Context, s []byte, q []questions.Question) (engine.Reply, error) {
			times++
			return moved(0.03*float64(times%2))(ctx, s, q)
		}, want: "the first answer has"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := newScripted()
			e.ask = tt.ask
			if tt.change != nil {
				tt.change(e)
			}
			r := launch(t, e, func(o *Options) { o.Golden = tt.golden })
			if tt.want == "" {
				eventually(t, "the server is ready", r.Ready)
				return
			}
			err := r.ended(t)
			golden, ok := errors.AsType[*GoldenError](err)
			if !ok || golden.Missing != tt.absent || golden.File != tt.file || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q", err, tt.want)
			}
			if r.Ready() {
				t.Error("ready all the same")
			}
		})
	}
	if again, err := os.ReadFile(path); err != nil || string(again) != string(first) {
		t.Errorf("the record changed (%v)", err)
	}
}

func TestGoldenFileKeepsOtherFingerprints(t *testing.T) {
	path := recorded(t)
	e := newScripted()
	e.info.Fingerprint = "sha256:other"
	start(t, e, func(o *Options) { o.Golden = Golden{File: path, Record: true} })
	file, err := readGolden(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Answers) != 2 || len(file.Answers["sha256:other"].Probabilities) != 2 {
		t.Errorf("file = %+v", file)
	}
}

// TestNothingIsAnsweredBeforeTheGoldenQuestion holds the golden question back.
func TestNothingIsAnsweredBeforeTheGoldenQuestion(t *testing.T) {
	e := newScripted()
	proceed := make(chan struct{})
	e.ask = func(_ context.Context, state []byte, asked []questions.Question) (engine.Reply, error) {
		<-proceed
		return honest(state, asked), nil
	}
	r := launch(t, e)
	got := r.post(t, asks(`"s"`))
	if got.status != 503 || codeIn(t, got) != CodeNotReady || got.header.Get("Retry-After") != "2" {
		t.Errorf("got %+v", got)
	}
	if got := r.get(t, "/readyz"); got.status != 503 {
		t.Errorf("ready: %+v", got)
	}
	if got := r.get(t, "/healthz"); got.status != 200 {
		t.Errorf("healthy: %+v", got)
	}
	if got := r.get(t, PathModels); got.status != 200 || !strings.Contains(got.body, `"ready":false`) {
		t.Errorf("models: %+v", got)
	}
	close(proceed)
	eventually(t, "the server is ready", r.Ready)
	if got := r.get(t, "/readyz"); got.status != 200 {
		t.Errorf("ready: %+v", got)
	}
	if got := r.post(t, asks(`"s"`)); got.status != 200 {
		t.Errorf("got %+v", got)
	}
}

// TestDrain ends a server with one request at work and two waiting: all three are answered, the next is not taken.
func TestDrain(t *testing.T) {
	e := newScripted()
	entered, proceed := gated(e)
	clock := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	r := start(t, e, func(o *Options) { o.DrainDelay, o.Clock = time.Minute, clock })
	answers := make(chan response, 4)
	ask := func(state string) { answers <- r.post(t, asks(state)) }
	go ask(`"first"`)
	<-entered
	go ask(`"second"`)
	eventually(t, "one waits", func() bool { return r.queue.length() == 1 })
	r.stop(nil)
	eventually(t, "readiness fails", func() bool { return r.is() == leaving })
	if got := r.get(t, "/readyz"); got.status != 503 || !strings.Contains(got.body, "going away") {
		t.Errorf("ready: %+v", got)
	}
	go ask(`"third"`) // readiness has only just failed
	eventually(t, "two wait", func() bool { return r.queue.length() == 2 && clock.HasWaiters() })
	clock.Step(time.Minute)
	eventually(t, "no more are taken", func() bool { return r.is() == draining })
	if got, err := r.send(t.Context(), "POST", PathSystemOne, asks(`"fourth"`)); err == nil && (got.status != 503 || codeIn(t, got) != CodeDraining) {
		t.Errorf("fourth: %+v", got)
	}
	close(proceed)
	for range 3 {
		if got := <-answers; got.status != 200 {
			t.Errorf("got %+v", got)
		}
	}
	if err := r.ended(t); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// TestDrainHasAnEnd ends a server whose engine takes longer than there is time.
func TestDrainHasAnEnd(t *testing.T) {
	e := newScripted()
	entered, _ := gated(e)
	r := start(t, e, func(o *Options) { o.DrainTimeout = 50 * time.Millisecond })
	answers := make(chan response, 2)
	go func() { answers <- r.post(t, asks(`"first"`)) }()
	<-entered
	go func() { answers <- r.post(t, asks(`"second"`)) }()
	eventually(t, "one waits", func() bool { return r.queue.length() == 1 })
	r.stop(nil)
	for range 2 {
		if got := <-answers; got.status != 503 || codeIn(t, got) != CodeDraining || got.header.Get("Retry-After") != "1" {
			t.Errorf("got %+v", got)
		}
	}
	if err := r.ended(t); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// TestIntegrityLost changes the loaded bytes under a server that is at work.
func TestIntegrityLost(t *testing.T) {
	e := newScripted()
	entered, proceed := gated(e)
	defer close(proceed)
	r := start(t, e, func(o *Options) { o.VerifyInterval = 10 * time.Millisecond })
	answers := make(chan response, 2)
	go func() { answers <- r.post(t, asks(`"first"`)) }()
	<-entered
	go func() { answers <- r.post(t, asks(`"second"`)) }()
	eventually(t, "one waits", func() bool { return r.queue.length() == 1 })
	e.verifies(func() error {
		return fmt.Errorf("want SHA-256 %s, got %s", strings.Repeat("a", 64), strings.Repeat("b", 64))
	})
	for range 2 {
		if got := <-answers; got.status != 503 || codeIn(t, got) != CodeIntegrityLost {
			t.Errorf("got %+v", got)
		}
	}
	err := r.ended(t)
	if _, ok := errors.AsType[*IntegrityError](err); !ok || !strings.Contains(err.Error(), strings.Repeat("a", 64)) || !strings.Contains(err.Error(), strings.Repeat("b", 64)) {
		t.Errorf("the server ended with %v", err)
	}
	if r.Ready() || r.healthy() {
		t.Error("ready or healthy all the same")
	}
	if diff := cmp.Diff([]string{"first"}, e.asked()); diff != "" {
		t.Errorf("what the engine was asked (-want +got):\n%s", diff)
	}
}

// TestAnAnswerWorkedOutWhileIntegrityWasLostIsWithheld uses an engine that does not look at its context.
func TestAnAnswerWorkedOutWhileIntegrityWasLostIsWithheld(t *testing.T) {
	e := newScripted()
	r := start(t, e)
	e.does(func(_ context.Context, state []byte, asked []questions.Question) (engine.Reply, error) {
		r.lose(&IntegrityError{errors.New("changed")})
		return honest(state, asked), nil
	})
	if got := r.post(t, asks(`"s"`)); got.status != 503 || codeIn(t, got) != CodeIntegrityLost {
		t.Errorf("got %+v", got)
	}
}

func TestVerificationIsCountedAndDated(t *testing.T) {
	e := newScripted()
	r := start(t, e, func(o *Options) { o.VerifyInterval = 5 * time.Millisecond })
	before := r.verified.Load()
	eventually(t, "the bytes were looked at", func() bool {
		return r.verified.Load() > before && strings.Contains(r.get(t, "/metrics").body, `verifications_total{result="ok"}`)
	})
}

// TestAFailedEngineEndsTheServer goes through the ways in which an engine breaks its promise.
func TestAFailedEngineEndsTheServer(t *testing.T) {
	answer := func(change func(*engine.Reply)) func(context.Context, []byte, []questions.Question) (engine.Reply, error) {
		return func(_ context.Context, state []byte, asked []questions.Question) (engine.Reply, error) {
			reply := honest(state, asked)
			change(&reply)
			return reply, nil
		}
	}
	probabilities := func(p ...float64) func(*engine.Reply) {
		return func(r *engine.Reply) { r.Distributions[0].Probabilities = p }
	}
	tests := map[string]func(context.Context, []byte, []questions.Question) (engine.Reply, error){
		"it says so": fails(engine.Failed),
		"it panics":  func(context.Context, []byte, []questions.Question) (engine.Reply, error) { panic("do-not-leak") },
		"it returns another error": func(context.Context, []byte, []questions.Question) (engine.Reply, error) {
			return engine.Reply{}, errors.New("do-not-leak")
		},
		"an answer too few":      answer(func(r *engine.Reply) { r.Distributions = nil }),
		"an answer too many":     answer(func(r *engine.Reply) { r.Distributions = append(r.Distributions, r.Distributions[0]) }),
		"a label too few":        answer(probabilities(1)),
		"a label too many":       answer(probabilities(0.5, 0.5, 0)),
		"a sum below 1":          answer(probabilities(0.5, 0.49)),
		"a probability below 0":  answer(probabilities(1.1, -0.1)),
		"NaN":                    answer(probabilities(math.NaN(), 1)),
		"infinity":               answer(probabilities(math.Inf(1), 0)),
		"a coverage above 1":     answer(func(r *engine.Reply) { r.Distributions[0].Coverage = 1.5 }),
		"a coverage that is NaN": answer(func(r *engine.Reply) { r.Distributions[0].Coverage = math.NaN() }),
		"tokens below 0":         answer(func(r *engine.Reply) { r.PromptTokens = -1 }),
		"more reused than there": answer(func(r *engine.Reply) { r.ReusedTokens = r.PromptTokens + 1 }),
	}
	for name, ask := range tests {
		t.Run(name, func(t *testing.T) {
			e := newScripted()
			e.does(ask)
			r := start(t, e)
			got := r.post(t, asks(`"s"`))
			if got.status != 500 || codeIn(t, got) != CodeEngineFailed || strings.Contains(got.body, "do-not-leak") {
				t.Errorf("got %+v", got)
			}
			if _, ok := errors.AsType[*EngineError](r.ended(t)); !ok {
				t.Errorf("the server ended with %v", r.ended(t))
			}
			if r.healthy() || r.Ready() {
				t.Error("healthy or ready all the same")
			}
		})
	}
}

func TestAnEngineThatFailsAtTheGoldenQuestion(t *testing.T) {
	e := newScripted()
	e.ask = fails(engine.Failed)
	if _, ok := errors.AsType[*EngineError](launch(t, e).ended(t)); !ok {
		t.Error("no EngineError")
	}
}

// TestAStuckEngineEndsTheServer uses an engine that neither answers nor looks at its context.
func TestAStuckEngineEndsTheServer(t *testing.T) {
	e := newScripted()
	free := make(chan struct{})
	e.does(func(_ context.Context, state []byte, asked []questions.Question) (engine.Reply, error) {
		<-free
		return honest(state, asked), nil
	})
	r := start(t, e, func(o *Options) { o.RequestTimeout, o.StuckAfter = 20*time.Millisecond, 80*time.Millisecond })
	if got := r.post(t, asks(`"s"`)); got.status != 504 {
		t.Errorf("got %+v", got)
	}
	err := r.ended(t)
	close(free)
	if _, ok := errors.AsType[*EngineError](err); !ok || !errors.Is(err, ErrStuck) {
		t.Errorf("the server ended with %v", err)
	}
}

// TestTheServerEndsWithItsListener closes the listener under a server.
func TestTheServerEndsWithItsListener(t *testing.T) {
	r := start(t, newScripted())
	if err := r.listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.ended(t); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the server ended with %v", err)
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	tests := map[string]func(*Options){
		"no engine":               func(o *Options) { o.Engine = nil },
		"no registry":             func(o *Options) { o.Registry = nil },
		"no log":                  func(o *Options) { o.Logger = nil },
		"a queue below 0":         func(o *Options) { o.Queue = -1 },
		"a body below 0":          func(o *Options) { o.MaxBody = -1 },
		"a time below 0":          func(o *Options) { o.DrainDelay = -1 },
		"a tolerance below 0":     func(o *Options) { o.Golden.Tolerance = -0.1 },
		"a tolerance too wide":    func(o *Options) { o.Golden.Tolerance = 0.21 },
		"a tolerance of NaN":      func(o *Options) { o.Golden.Tolerance = math.NaN() },
		"a record without a file": func(o *Options) { o.Golden.Record = true },
		"an engine without name":  func(o *Options) { o.Engine.(*scripted).info.Model = "" },
		"one without fingerprint": func(o *Options) { o.Engine.(*scripted).info.Fingerprint = "" },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			r := start(t, newScripted()) // a server with the same options but for one
			o := r.options
			o.Engine, o.Registry = newScripted(), prometheus.NewRegistry()
			change(&o)
			if _, err := New(o); err == nil {
				t.Error("no error")
			}
		})
	}
}
