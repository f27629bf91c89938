package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/testkit"
)

// The test binary is the program too: what it does stands in its arguments.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "program" {
		program(os.Args[2], os.Args[3])
	}
	goleak.VerifyTestMain(m)
}

// program is a decider that answers args_grounded, or does not, as the mode says.
func program(mode, socket string) {
	switch mode {
	case "wrong-hash":
		fmt.Fprintln(os.Stderr, "HashMismatch: want sha256:aa, found sha256:bb")
		os.Exit(20)
	case "mismatch":
		fmt.Fprintln(os.Stderr, "CalibrationMismatch: temperatures were fitted for another file")
		os.Exit(ExitMismatch)
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
	default:
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", socket)
	if err != nil {
		os.Exit(21)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if mode == "never-ready" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/v1/systemone", func(w http.ResponseWriter, _ *http.Request) {
		if mode == "dies-when-asked" {
			os.Exit(139)
		}
		_, _ = io.WriteString(w, `{"model":"m","answers":{"args_grounded":{"type":"noul","noul":0.75}},"usage":{"input_tokens":1,"output_tokens":0}}`)
	})
	_ = (&http.Server{Handler: mux, ReadHeaderTimeout: time.Second}).Serve(l)
	os.Exit(22)
}

func run(t *testing.T, mode string, change func(*Options)) (*Child, *testkit.Log) {
	t.Helper()
	log := &testkit.Log{}
	o := Options{
		Command: func(socket string) []string { return []string{os.Args[0], "program", mode, socket} },
		Client: func(transport http.RoundTripper) (inference.Decider, error) {
			return inference.NewSystemOne(inference.SystemOneOptions{ServerOptions: inference.ServerOptions{BaseURL: "http://localhost", Model: "m", Transport: transport}})
		},
		MinBackoff: 10 * time.Millisecond, MaxBackoff: 50 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	}
	if change != nil {
		change(&o)
	}
	c, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, log
}

func request(t *testing.T) inference.Request {
	t.Helper()
	q, ok := questions.Builtin("args_grounded")
	if !ok {
		t.Fatal("there is no question args_grounded")
	}
	return inference.Request{Tenant: "a", State: questions.State{Tool: questions.Tool{Name: "x"}, Arguments: map[string]any{}}, Questions: []questions.Question{q}}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in time", what)
		}
	}
}

func ready(t *testing.T, c *Child) {
	t.Helper()
	eventually(t, "ready", func() bool { ok, _ := c.Ready(); return ok })
}

func TestAChildIsAsked(t *testing.T) {
	c, _ := run(t, "good", nil)
	ready(t, c)
	result, err := c.Decide(t.Context(), request(t))
	if err != nil || result.Answers["args_grounded"].Probability != 0.75 {
		t.Errorf("got %+v, %v", result, err)
	}
}

// On this clock a start takes no time, and so a program has always served for as long: it is started again at once. A wait
// of an hour would be seen.
func TestAChildThatIsKilledIsAwayUntilItServesAgain(t *testing.T) {
	const kills = 3
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	c, log := run(t, "good", func(o *Options) { o.MinBackoff, o.Clock = time.Hour, clock })
	for range kills {
		ready(t, c)
		clock.Step(hurry) // since the last was killed
		pid := c.PID()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "another process", func() bool { now := c.PID(); return now != 0 && now != pid })
		if result, err := c.Decide(t.Context(), request(t)); err != nil {
			t.Errorf("after a restart: %+v, %v", result, err)
		}
	}
	if got := c.Lives(); got != kills+1 {
		t.Errorf("%d lives after %d kills", got, kills)
	}
	if got := c.Starts(); got != kills+1 {
		t.Errorf("started %d times, want one start and one for each of %d kills", got, kills)
	}
	if got := strings.Count(log.String(), "signal: killed"); got != kills {
		t.Errorf("the log says %d times how the process ended:\n%s", got, log)
	}
}

// A program that dies sooner than it was ready is not started again in a hurry.
func TestAProgramThatServesForLessThanItsStartTookIsWaitedFor(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	c, log := run(t, "good", func(o *Options) {
		o.MinBackoff, o.MaxBackoff, o.Clock = time.Minute, time.Hour, clock
		command := o.Command
		o.Command = func(socket string) []string {
			clock.Step(time.Second) // of the start
			return command(socket)
		}
	})
	for starts := int64(1); starts <= 3; starts++ {
		ready(t, c)
		if got := c.Starts(); got != starts {
			t.Fatalf("started %d times, want %d", got, starts)
		}
		clock.Step(time.Second - 1) // of serving
		if err := syscall.Kill(c.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the wait", clock.HasWaiters)
		clock.Step(time.Minute) // each time the shortest wait, since it was ready
	}
	if strings.Contains(log.String(), "at once") {
		t.Errorf("it was started again at once:\n%s", log)
	}
}

// A program that dies of each call, with a file that loads in no time, is not started as often as a processor allows.
func TestTheSecondEndWithinAMinuteIsWaitedAfter(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	c, _ := run(t, "good", func(o *Options) { o.MinBackoff, o.MaxBackoff, o.Clock = time.Second, time.Hour, clock })
	kill := func() {
		t.Helper()
		ready(t, c)
		if err := syscall.Kill(c.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	kill()
	eventually(t, "the start at once", func() bool { return c.Starts() == 2 })
	for starts := int64(2); starts < 4; starts++ {
		clock.Step(hurry - 1)
		kill()
		eventually(t, "the wait", clock.HasWaiters)
		if got := c.Starts(); got != starts {
			t.Errorf("started %d times without a wait, want %d", got, starts)
		}
		clock.Step(time.Second)
		eventually(t, "the start after it", func() bool { return c.Starts() == starts+1 })
	}
}

func TestWhatAChildIsUnableToDo(t *testing.T) {
	for name, c := range map[string]struct {
		mode   string
		change func(*Options)
		why    string
		reason inference.Reason // Unreachable by default
	}{
		"temperatures that were fitted for another file": {mode: "mismatch", why: "CalibrationMismatch", reason: inference.ModelMismatch},
		"a program that is not there":                    {change: func(o *Options) { o.Command = func(string) []string { return []string{"/no/such/program"} } }, why: "no such file"},
		"a model file of another hash":                   {mode: "wrong-hash", why: "HashMismatch: want sha256:aa, found sha256:bb"},
		"a program that is never ready":                  {mode: "never-ready", change: func(o *Options) { o.ReadyWithin = 100 * time.Millisecond }, why: "did not become ready in time"},
		"a client that cannot be made": {mode: "good", change: func(o *Options) {
			o.Client = func(http.RoundTripper) (inference.Decider, error) { return nil, errors.New("model is required") }
		}, why: "model is required"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child, _ := run(t, c.mode, c.change)
			eventually(t, "the reason", func() bool { _, why := child.Ready(); return strings.Contains(why, c.why) })
			_, err := child.Decide(t.Context(), request(t))
			if want := cmp.Or(c.reason, inference.Unreachable); inference.ReasonOf(err) != want || !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %v, want %s with %q", err, want, c.why)
			}
		})
	}
}

func TestAChildThatDiesOfACallAnswersNothing(t *testing.T) {
	c, _ := run(t, "dies-when-asked", nil)
	ready(t, c)
	result, err := c.Decide(t.Context(), request(t))
	if inference.ReasonOf(err) != inference.Unreachable || result.Answers != nil {
		t.Errorf("got %+v, %v, want Unreachable", result, err)
	}
}

func TestCloseEndsEvenAProgramThatDoesNotListenToIt(t *testing.T) {
	c, _ := run(t, "deaf", func(o *Options) { o.Grace = 50 * time.Millisecond })
	ready(t, c)
	pid := c.PID()
	c.Close()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
	if _, err := c.Decide(t.Context(), request(t)); inference.ReasonOf(err) != inference.Unreachable {
		t.Errorf("after Close: %v", err)
	}
}

func TestOptionsOfAChild(t *testing.T) {
	if _, err := Start(Options{}); err == nil {
		t.Error("a child without a command was started")
	}
}
