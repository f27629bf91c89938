package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/testkit"
)

// The test binary is the decider server too, when it is started like one.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "-listen" {
		fakeDecider(os.Args)
	}
	os.Exit(m.Run())
}

// fakeDecider checks its model file as the real one does. The file's text is the number that it answers with; it is ready
// once a file of the model's name with .ready behind it is there, if the text ends in "wait".
func fakeDecider(args []string) {
	value := func(flag string) string { return args[slices.Index(args, flag)+1] }
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	text, err := os.ReadFile(value("-model"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "ModelUnreadable:", err)
		os.Exit(11)
	}
	if got := sum(string(text)); got != value("-sha256") {
		fmt.Fprintf(os.Stderr, "ModelHashMismatch: want SHA-256 %s, got %s\n", value("-sha256"), got)
		os.Exit(10)
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", strings.TrimPrefix(value("-listen"), "unix:"))
	if err != nil {
		os.Exit(23)
	}
	number, waits := strings.CutSuffix(string(text), "wait")
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(value("-model") + ".ready"); waits && err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/v1/systemone", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"model":%q,"fingerprint":"sha256:%s","answers":{"matches_request":{"type":"noul","noul":%s}},"usage":{"input_tokens":1,"output_tokens":1}}`,
			value("-name"), sum(string(text)), number)
	})
	_ = (&http.Server{Handler: mux, ReadHeaderTimeout: time.Second}).Serve(l)
	os.Exit(1)
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

const llamaManifests = `
apiVersion: gatewright.dev/v1alpha1
kind: DeciderModel
metadata: {name: local}
spec:
  runtime: LlamaCpp
  artifact: {type: Bundled, bundled: {name: %s}, sha256: %s}
  allowedNamespaces: {from: Listed, namespaces: [%s]}
---
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: good, namespace: good}
spec:
  deciderRef: {name: local, fingerprint: %q}
  classes:
  - name: Write
    decider: Ask
    questions: [matches_request]
    thresholds: [{when: [{question: matches_request, above: 80}], outcome: Allow, reason: Matches}]
    otherwise: {outcome: Confirm, reason: Unsure}
  tools: [{name: item.get, class: Write}]
`

// startLlama serves one policy with the model of that text, pinned as given.
func startLlama(t *testing.T, models, manifests string) *served {
	t.Helper()
	folder := t.TempDir()
	write(t, folder, "a.yaml", manifests)
	return startWith(t, folder, &testkit.Log{}, func(c *Config) {
		c.Llama = LlamaConfig{Models: models, Decider: os.Args[0], Library: "lib"}
	})
}

// askAnew sends a call that was not sent before, so that no approval waits for it.
func (s *served) askAnew(t *testing.T) *review.Response {
	t.Helper()
	return s.askWith(t, "good", map[string]any{"nonce": uuid.NewString()})
}

func TestALlamaCppDeciderAnswersOncePinnedAndReady(t *testing.T) {
	models := t.TempDir()
	write(t, models, "m.gguf", "0.95")
	s := startLlama(t, models, fmt.Sprintf(llamaManifests, "m.gguf", sum("0.95"), "good", "sha256:"+sum("0.95")))
	s.eventually(t, "an answer", func() bool { return s.askAnew(t).Reason == "Matches" })
	d := s.askAnew(t).Decision
	if d.Fingerprint != "sha256:"+sum("0.95") {
		t.Errorf("fingerprint %s is not what the process stated", d.Fingerprint)
	}
	if last := s.records(t)[len(s.records(t))-1]; !strings.Contains(last, `"`+sum("0.95")+`"`) {
		t.Errorf("the record does not name the file's hash: %s", last)
	}
}

func TestAModelFileOfAnotherHashAnswersNothing(t *testing.T) {
	models := t.TempDir()
	write(t, models, "m.gguf", "0.95")
	s := startLlama(t, models, fmt.Sprintf(llamaManifests, "m.gguf", sum("0.5"), "good", "sha256:"+sum("0.95")))
	s.eventually(t, "the log", func() bool { return strings.Contains(s.log.String(), "ModelHashMismatch") })
	for range 5 {
		if got := s.askAnew(t); got.Outcome != "Confirm" || got.Reason != "DeciderUnreachable" && got.Reason != "DeciderBreakerOpen" {
			t.Errorf("got %s %s", got.Outcome, got.Reason)
		}
	}
	for _, hash := range []string{sum("0.5"), sum("0.95")} {
		if !strings.Contains(s.log.String(), hash) {
			t.Errorf("the log does not name %s:\n%s", hash, s.log)
		}
	}
}

func TestANewPinTakesOverWhenItsProcessIsReadyAndNotBefore(t *testing.T) {
	models := t.TempDir()
	write(t, models, "old.gguf", "0.95")
	write(t, models, "new.gguf", "0.9wait")
	s := startLlama(t, models, fmt.Sprintf(llamaManifests, "old.gguf", sum("0.95"), "good", "sha256:"+sum("0.95")))
	s.eventually(t, "the old model", func() bool { return s.askAnew(t).Reason == "Matches" })

	write(t, s.folder, "a.yaml", fmt.Sprintf(llamaManifests, "new.gguf", sum("wrong"), "good", "sha256:"+sum("0.95")))
	s.eventually(t, "the wrong file", func() bool { return strings.Contains(s.log.String(), "ModelHashMismatch") })
	if got := s.askAnew(t); got.Outcome != "Allow" || got.Reason != "Matches" {
		t.Errorf("after a wrong file: %s %s", got.Outcome, got.Reason)
	}

	write(t, s.folder, "a.yaml", fmt.Sprintf(llamaManifests, "new.gguf", sum("0.9wait"), "good", "sha256:"+sum("0.9wait")))
	s.eventually(t, "the policy's new pin", func() bool { return s.askAnew(t).Reason == "DeciderMismatch" })
	write(t, s.folder, "a.yaml", fmt.Sprintf(llamaManifests, "new.gguf", sum("0.9wait"), "bad", "sha256:"+sum("0.9wait")))
	s.eventually(t, "the tightened list", func() bool { return s.askAnew(t).Reason == "DeciderNotAllowed" })
	write(t, s.folder, "a.yaml", fmt.Sprintf(llamaManifests, "new.gguf", sum("0.9wait"), "good", "sha256:"+sum("0.9wait")))
	s.eventually(t, "the list as it was", func() bool { return s.askAnew(t).Reason == "DeciderMismatch" })

	write(t, models, "new.gguf.ready", "")
	s.eventually(t, "the new model", func() bool { return s.askAnew(t).Reason == "Matches" })
	if got := s.askAnew(t).Decision.Fingerprint; got != "sha256:"+sum("0.9wait") {
		t.Errorf("fingerprint %s", got)
	}
}

func llamaModel(change func(*v1alpha1.DeciderModelSpec)) *v1alpha1.DeciderModel {
	m := &v1alpha1.DeciderModel{Spec: v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeLlamaCpp, ContextTokens: 2048, Artifact: &v1alpha1.Artifact{
		Type: v1alpha1.ArtifactBundled, SHA256: "ab", Bundled: &v1alpha1.BundledArtifact{Name: "m.gguf"},
	}}}
	m.Name = "local"
	change(&m.Spec)
	return m
}

func TestWhatOfLlamaCppIsRefused(t *testing.T) {
	whole := LlamaConfig{Models: "models", Library: "lib"}
	for name, c := range map[string]struct {
		config LlamaConfig
		change func(*v1alpha1.DeciderModelSpec)
		want   string
	}{
		"a file from a URL":        {whole, func(s *v1alpha1.DeciderModelSpec) { s.Artifact.Type = v1alpha1.ArtifactURL }, "spec.artifact.type URL"},
		"a file in an image":       {whole, func(s *v1alpha1.DeciderModelSpec) { s.Artifact.Type = v1alpha1.ArtifactOCI }, "spec.artifact.type OCI"},
		"a file on a volume":       {whole, func(s *v1alpha1.DeciderModelSpec) { s.Artifact.Type = v1alpha1.ArtifactPVC }, "spec.artifact.type PersistentVolumeClaim"},
		"a verdict":                {whole, func(s *v1alpha1.DeciderModelSpec) { s.Readout = v1alpha1.ReadoutVerdict }, "spec.readout Verdict"},
		"a pod":                    {whole, func(s *v1alpha1.DeciderModelSpec) { s.Pod = &v1alpha1.DeciderPod{} }, "spec.pod"},
		"a rollout":                {whole, func(s *v1alpha1.DeciderModelSpec) { s.Rollout = &v1alpha1.Rollout{} }, "spec.rollout"},
		"no folder with models":    {LlamaConfig{Library: "lib"}, func(*v1alpha1.DeciderModelSpec) {}, "--models"},
		"no folder with a library": {LlamaConfig{Models: "models"}, func(*v1alpha1.DeciderModelSpec) {}, "--llama-library"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSource(t.TempDir(), nil, slog.New(slog.DiscardHandler))
			defer s.close()
			s.llama = c.config
			if _, err := s.serveOne(llamaModel(c.change)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestAllThatMovesNumbersReachesTheProcess(t *testing.T) {
	threads, milli := int32(3), int32(1300)
	base := []string{
		"-model", "models/m.gguf", "-sha256", "ab", "-name", "local", "-library", "lib", "-context-tokens", "2048", "-parent-stdin",
		"-request-timeout", "10s", "-drain-delay", "0s", "-drain-timeout", "4s",
	}
	for processors, want := range map[int]string{1: "1", 2: "1", 8: "7"} {
		was := runtime.GOMAXPROCS(processors)
		got := llamaArguments(llamaModel(func(*v1alpha1.DeciderModelSpec) {}), &LlamaConfig{})
		runtime.GOMAXPROCS(was)
		if at := slices.Index(got, "-threads"); at < 0 || got[at+1] != want {
			t.Errorf("with %d processors: %v, want %s threads", processors, got, want)
		}
	}
	byDefault := []string{"-threads", strconv.Itoa(max(1, runtime.GOMAXPROCS(0)-1))}
	for name, c := range map[string]struct {
		change func(*v1alpha1.DeciderModelSpec)
		want   []string
	}{
		"what is there by default": {func(*v1alpha1.DeciderModelSpec) {}, byDefault},
		"threads":                  {func(s *v1alpha1.DeciderModelSpec) { s.Threads = &threads }, []string{"-threads", "3"}},
		"a way of reading":         {func(s *v1alpha1.DeciderModelSpec) { s.Readout = v1alpha1.ReadoutClassHead }, append(slices.Clone(byDefault), "-readout", "ClassHead")},
		"any way of reading":       {func(s *v1alpha1.DeciderModelSpec) { s.Readout = v1alpha1.ReadoutAuto }, byDefault},
		"temperatures": {func(s *v1alpha1.DeciderModelSpec) {
			s.Calibration = &v1alpha1.Calibration{Fingerprint: "sha256:f", YesNoMilli: &milli, ChoiceMilli: &milli, ScoreMilli: &milli}
		}, append(slices.Clone(byDefault), "-calibrated-for", "sha256:f", "-temperature", "noul=1300", "-temperature", "choice=1300", "-temperature", "score=1300")},
	} {
		t.Run(name, func(t *testing.T) {
			got := llamaArguments(llamaModel(c.change), &LlamaConfig{Models: "models", Library: "lib"})
			if diff := cmp.Diff(append(slices.Clone(base), c.want...), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheDeciderProgramLiesBesideThisOne(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{"": filepath.Join(filepath.Dir(self), "decider"), "/opt/decider": "/opt/decider"} {
		c := LlamaConfig{Decider: given}
		if got, err := c.program(); err != nil || got != want {
			t.Errorf("%q: got %s, %v, want %s", given, got, err, want)
		}
	}
}
