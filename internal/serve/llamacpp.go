package serve

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/inference/child"
	"gatewright.dev/gatewright/internal/inference/workload"
)

// LlamaConfig says with what deciders of runtime LlamaCpp are run: each is a process of its own, a child of the gate.
type LlamaConfig struct {
	// Models is the folder in which artifacts of type Bundled are looked up by name.
	Models string
	// Decider is the program; the file decider beside this program by default.
	Decider string
	// Library is the folder with the shared libraries of llama.cpp.
	Library string
}

func (c *LlamaConfig) bindFlags(f *flag.FlagSet) {
	f.StringVar(&c.Models, "models", "", "folder with model files: where a DeciderModel of runtime LlamaCpp finds its artifact of type Bundled by name")
	f.StringVar(&c.Decider, "decider", "", "program that serves such a model in a process of its own (default: decider beside this program)")
	f.StringVar(&c.Library, "llama-library", "", "folder with the shared libraries of llama.cpp for that program")
}

// program is the decider server to run.
func (c *LlamaConfig) program() (string, error) {
	if c.Decider != "" {
		return c.Decider, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("looking for decider beside this program: %w; name it with --decider", err)
	}
	return filepath.Join(filepath.Dir(self), "decider"), nil
}

// How a process of our own is asked. It works on one request after another, and ends when it is stuck: a time-out shows that
// it was busy and not that it is broken, unless a call had it to itself for the longest time that a policy can give. Asking it
// while it starts costs nothing, so that the breaker need not keep calls away for long.
const (
	ownMaxBody    = 256 << 10 // what cmd/decider takes
	ownMinTimeout = longestTimeout
	ownOpenFor    = 250 * time.Millisecond
)

// process is a decider server that runs as a child. It is kept as long as what it was started with stays.
type process struct {
	start [sha256.Size]byte
	hash  string
	child *child.Child
	// isShared says that whoever started it ends it.
	isShared bool
}

// checkLlama refuses what this binary cannot run. Everything else of the specification is checked by the process.
func checkLlama(spec *v1alpha1.DeciderModelSpec, c *LlamaConfig) error {
	switch a := spec.Artifact; {
	case a.Type != v1alpha1.ArtifactBundled || a.Bundled == nil:
		return fmt.Errorf("spec.artifact.type %s: this binary fetches nothing and mounts nothing: use Bundled, with the name of a file in --models", a.Type)
	case spec.Readout == v1alpha1.ReadoutVerdict:
		return errors.New("spec.readout Verdict: runtime LlamaCpp reads probabilities: use Auto, LabelLogits or ClassHead")
	case c.Models == "" || c.Library == "":
		return errors.New("spec.runtime LlamaCpp: needs --models, the folder with its file, and --llama-library, the folder with the library of llama.cpp")
	}
	return nil
}

// llamaArguments is the command line of the decider server, but for the socket: all that moves its numbers, and nothing else.
// By default one processor is left for the gate and its callers. Threads of one computation spin while they wait for each
// other: where one of two has to share its processor, both together take several times as long as one alone.
func llamaArguments(m *v1alpha1.DeciderModel, c *LlamaConfig) []string {
	spec := &m.Spec
	args := []string{
		"-model", filepath.Join(c.Models, spec.Artifact.Bundled.Name), "-sha256", string(spec.Artifact.SHA256), "-name", m.Name,
		"-library", c.Library, "-context-tokens", strconv.Itoa(int(spec.ContextTokens)), "-parent-stdin",
		"-request-timeout", longestTimeout.String(), "-drain-delay", "0s", "-drain-timeout", "4s",
	}
	threads := max(1, runtime.GOMAXPROCS(0)-1)
	if spec.Threads != nil {
		threads = int(*spec.Threads)
	}
	return append(append(args, "-threads", strconv.Itoa(threads)), workload.ReadoutFlags(spec)...)
}

// startProcess starts a process that lives until it is closed, whatever becomes of the context in which manifests were read.
//
//nolint:contextcheck,nolintlint // contextcheck looks for this here, although it reports at callers
func startProcess(m *v1alpha1.DeciderModel, c *LlamaConfig, log *slog.Logger) (*process, error) {
	program, err := c.program()
	if err != nil {
		return nil, err
	}
	args := llamaArguments(m, c)
	start, err := startOf(m, c)
	if err != nil {
		return nil, err
	}
	name := m.Name
	run, err := child.Start(child.Options{
		Command: func(socket string) []string {
			return append([]string{program, "-listen", "unix:" + socket}, args...)
		},
		Client: func(transport http.RoundTripper) (inference.Decider, error) {
			return inference.NewSystemOne(inference.SystemOneOptions{Own: true, ServerOptions: inference.ServerOptions{
				BaseURL: "http://localhost", Model: name, Transport: transport, MaxBody: ownMaxBody,
			}})
		},
		Log: log.With("decider", name),
	})
	if err != nil {
		return nil, fmt.Errorf("starting the decider process: %w", err)
	}
	return &process{start: start, hash: string(m.Spec.Artifact.SHA256), child: run}, nil
}

// startOf identifies what a process is started with.
func startOf(m *v1alpha1.DeciderModel, c *LlamaConfig) ([sha256.Size]byte, error) {
	text, err := json.Marshal(llamaArguments(m, c))
	return sha256.Sum256(text), err
}

// process returns the process that answers for a DeciderModel from now on. One that is to take another's place is started
// beside it and takes over once it is ready: until then, and for ever if its file is not the pinned one, the one before
// answers, with its own hash and fingerprint.
func (s *source) process(m *v1alpha1.DeciderModel) (*process, error) {
	if shared := s.shared.find(m); shared != nil {
		return shared, nil
	}
	if err := checkLlama(&m.Spec, &s.llama); err != nil {
		return nil, err
	}
	start, err := startOf(m, &s.llama)
	if err != nil {
		return nil, err
	}
	current, next := s.deciders[m.Name].process, s.candidates[m.Name]
	if current != nil && current.start == start {
		s.dropCandidate(m.Name)
		return current, nil
	}
	if next == nil || next.start != start {
		s.dropCandidate(m.Name)
		if next, err = startProcess(m, &s.llama, s.log); err != nil {
			return nil, err
		}
		s.candidates[m.Name] = next
	}
	if ready, _ := next.child.Ready(); !ready && current != nil {
		return current, nil
	}
	return next, nil
}

// candidateReady says whether a process waits to take over.
func (s *source) candidateReady() bool {
	for _, next := range s.candidates {
		if ready, _ := next.child.Ready(); ready {
			return true
		}
	}
	return false
}

func (s *source) dropCandidate(name string) {
	if next := s.candidates[name]; next != nil {
		delete(s.candidates, name)
		s.ending.Go(next.child.Close)
	}
}

// retire ends a process after the last call that may have begun with it, off the path of everything else.
func (s *source) retire(p *process) {
	if p.isShared {
		return
	}
	s.ending.Go(func() {
		last := time.NewTimer(longestTimeout)
		defer last.Stop()
		select {
		case <-last.C:
		case <-s.closing:
		}
		p.child.Close()
	})
}
