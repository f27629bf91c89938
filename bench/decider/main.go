// Command decider measures the decider server beside llama-server: the same model file, the same prompts token for token, as
// many threads, both over HTTP on loopback, request by request in turns. It writes a table and exits with 1 if a bar is
// missed. make bench-decider prepares what it needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	decider, library, peer   string
	model, sha256, peerModel string
	threads, rounds, starts  int
	out                      string
}

func main() {
	var o options
	flag.StringVar(&o.decider, "decider", "bin/decider", "decider server")
	flag.StringVar(&o.library, "library", ".cache/llama", "folder with its library")
	flag.StringVar(&o.peer, "peer", ".cache/llama-server/llama-server", "llama-server")
	flag.StringVar(&o.model, "model", ".cache/models/gemma-3-270m-q4_k_m.gguf", "model file")
	flag.StringVar(&o.sha256, "sha256", "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818", "its SHA-256")
	flag.StringVar(&o.peerModel, "peer-model", ".cache/models/gemma-3-270m-decision.gguf", "the same weights with a decision interface, by hack/peers/decision.py")
	flag.IntVar(&o.threads, "threads", 1, "threads of each server")
	flag.IntVar(&o.rounds, "rounds", 15, "requests of each kind to each server")
	flag.IntVar(&o.starts, "starts", 3, "starts of the decider server whose first call is measured")
	flag.StringVar(&o.out, "out", "bench/decider/last.md", "table to write")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) (err error) {
	ours, err := startOurs(ctx, o)
	if err != nil {
		return err
	}
	defer func() { ours.stop() }()
	peer, err := startPeer(ctx, o)
	if err != nil {
		return err
	}
	defer peer.stop()
	t, err := inTurns(ctx, o, ours, peer)
	if err != nil {
		return err
	}
	for range o.starts {
		ours.stop()
		if ours, err = startOurs(ctx, o); err != nil {
			return err
		}
		s, err := ours.ask(ctx, body(newState, shortQuestions[:1], serial()))
		if err != nil {
			return err
		}
		t.first = append(t.first, s)
	}
	text, missed := t.write(o)
	if err := os.WriteFile(o.out, []byte(text), 0o600); err != nil {
		return err
	}
	fmt.Print(text)
	if len(missed) > 0 {
		return errors.New("missed: " + strings.Join(missed, "; "))
	}
	return nil
}

// inTurns asks both servers the same things, one kind after another, now one server first and now the other. The machine is
// not equally fast all the time, and so the kinds take turns too. The first round is not counted.
func inTurns(ctx context.Context, o *options, ours, peer *server) (t table, err error) {
	t.rows = make([]row, len(kinds))
	for round := range o.rounds + 1 {
		for i, k := range kinds {
			if k.again {
				if _, _, err := both(ctx, ours, peer, k, round); err != nil {
					return t, err
				}
			}
			a, b, err := both(ctx, ours, peer, k, round)
			if err != nil {
				return t, err
			}
			t.rows[i].kind = k
			if round > 0 {
				t.rows[i].ours, t.rows[i].peer = append(t.rows[i].ours, a), append(t.rows[i].peer, b)
			}
		}
	}
	return t, nil
}

// both asks the same of both servers.
func both(ctx context.Context, ours, peer *server, k kind, round int) (a, b sample, err error) {
	request := body(k.state, k.questions, serial())
	order := []*server{ours, peer}
	if round%2 == 1 {
		slices.Reverse(order)
	}
	for _, s := range order {
		got, err := s.ask(ctx, request)
		if err != nil {
			return a, b, fmt.Errorf("%s: %w", s.name, err)
		}
		if s == ours {
			a = got
		} else {
			b = got
		}
	}
	if a.tokens != b.tokens {
		return a, b, fmt.Errorf("%s: the servers do not read the same prompt: %d and %d tokens", k.name, a.tokens, b.tokens)
	}
	return a, b, nil
}

// machine says where it was measured.
func machine() string {
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.SplitSeq(string(text), "\n") {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				model = strings.Trim(name, " \t:")
				break
			}
		}
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("? ")
	}
	average, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("%s, %d processors, load average %s at the end, %s", model, runtime.NumCPU(), average, time.Now().UTC().Format(time.DateOnly))
}
