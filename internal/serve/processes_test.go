package serve

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/capture"
	"gatewright.dev/gatewright/internal/manifest"
	"gatewright.dev/gatewright/internal/testkit"
)

// llamaFolder is a model whose every answer is .95, and a policy that allows by it.
func llamaFolder(t *testing.T) (models string, set *manifest.Set, folder string) {
	t.Helper()
	models, folder = t.TempDir(), t.TempDir()
	write(t, models, "m.gguf", "0.95")
	write(t, folder, "a.yaml", fmt.Sprintf(llamaManifests, "m.gguf", sum("0.95"), "good", "sha256:"+sum("0.95")))
	set, err := manifest.LoadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	return models, set, folder
}

// ownProgram is this test's binary, which is a decider server when it is started like one.
func ownProgram(models string) LlamaConfig {
	return LlamaConfig{Models: models, Decider: os.Args[0], Library: "lib"}
}

func itemGet() []byte {
	return fmt.Appendf(nil, `{"apiVersion":"review.gatewright.dev/v1alpha1","kind":"ToolCallReview","request":{"uid":%q,"tool":{"name":"item.get"},"arguments":{"n":1},"context":{"userRequest":"Get item 1."}}}`,
		uuid.Must(uuid.NewV7()))
}

func TestExplainRunsTheDeciderOfAManifest(t *testing.T) {
	models, _, folder := llamaFolder(t)
	for name, tc := range map[string]struct {
		llama      LlamaConfig
		wantReason string // of the decision
		wantLog    string
	}{
		"with its model":                   {ownProgram(models), "Matches", "decider process is ready"},
		"without what it needs, as it was": {LlamaConfig{}, "DeciderNotFound", "spec.runtime LlamaCpp: needs --models, the folder with its file, and --llama-library"},
	} {
		t.Run(name, func(t *testing.T) {
			log := &testkit.Log{}
			got, err := Explain(t.Context(), ExplainOptions{Manifests: folder, Caller: "good/agent", Llama: tc.llama, Log: slog.New(slog.NewTextHandler(log, nil))}, itemGet())
			if err != nil {
				t.Fatal(err)
			}
			if got.Response.Reason != tc.wantReason || !strings.Contains(log.String(), tc.wantLog) {
				t.Errorf("%s %s, want %s and %q in\n%s", got.Response.Outcome, got.Response.Reason, tc.wantReason, tc.wantLog, log)
			}
		})
	}
}

func TestProcessesThatDoNotStart(t *testing.T) {
	models, set, _ := llamaFolder(t)
	for name, tc := range map[string]struct {
		change func(c *LlamaConfig, m *v1alpha1.DeciderModel)
		want   string
	}{
		"no library":       {func(c *LlamaConfig, _ *v1alpha1.DeciderModel) { c.Library = "" }, "DeciderModel local: spec.runtime LlamaCpp: needs --models"},
		"no folder":        {func(c *LlamaConfig, _ *v1alpha1.DeciderModel) { c.Models = "" }, "DeciderModel local: spec.runtime LlamaCpp: needs --models"},
		"no program":       {func(c *LlamaConfig, _ *v1alpha1.DeciderModel) { c.Decider = filepath.Join(models, "none") }, "the decider program cannot be run"},
		"no such file":     {func(_ *LlamaConfig, m *v1alpha1.DeciderModel) { m.Spec.Artifact.Bundled.Name = "none.gguf" }, "DeciderModel local: its process does not start"},
		"another hash":     {func(_ *LlamaConfig, m *v1alpha1.DeciderModel) { m.Spec.Artifact.SHA256 = v1alpha1.SHA256(sum("other")) }, "DeciderModel local: its process does not start"},
		"something to run": {func(_ *LlamaConfig, m *v1alpha1.DeciderModel) { m.Spec.Pod = &v1alpha1.DeciderPod{} }, "DeciderModel local: spec.pod: this binary runs no pods"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, m := ownProgram(models), set.DeciderModels()[0].DeepCopy()
			tc.change(&config, m)
			log := &testkit.Log{}
			p, err := StartProcesses(t.Context(), []*v1alpha1.DeciderModel{m}, config, slog.New(slog.NewTextHandler(log, nil)))
			if p != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q\n%s", err, tc.want, log)
			}
		})
	}
	if p, err := StartProcesses(t.Context(), set.DeciderModels(), LlamaConfig{}, nil); p != nil || err != nil || p.Close() != nil {
		t.Errorf("without anything to run: %v, %v", p, err)
	}
}

// Gates that share a process ask the one that there is, and leave it as it is when they end.
func TestGatesShareAProcess(t *testing.T) {
	models, set, folder := llamaFolder(t)
	log := &testkit.Log{}
	p, err := StartProcesses(t.Context(), set.DeciderModels(), ownProgram(models), slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			gateLog := &testkit.Log{}
			s := startWith(t, folder, gateLog, func(c *Config) { c.Processes = p })
			if got := s.askAnew(t); got.Reason != "Matches" {
				t.Errorf("%s %s\n%s", got.Outcome, got.Reason, gateLog)
			}
		})
	}
	if n := strings.Count(log.String(), "decider process is ready"); n != 1 {
		t.Errorf("%d processes were started, want 1\n%s", n, log)
	}
	other := set.DeciderModels()[0].DeepCopy()
	other.Spec.ContextTokens++
	if p.find(other) != nil {
		t.Error("a model that is read otherwise is asked of the same process")
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if ready, _ := p.byName["local"].child.Ready(); ready {
		t.Error("the process goes on after the end")
	}
}

func TestReplayRunsTheDeciderOfAManifest(t *testing.T) {
	models, _, _ := llamaFolder(t)
	policy := strings.NewReplacer("namespace: good", "namespace: default", "  deciderRef:", "  captureState: Plain\n  deciderRef:").Replace(
		fmt.Sprintf(llamaManifests, "m.gguf", sum("0.95"), "default", "sha256:"+sum("0.95")))
	g := startAudited(t, t.TempDir(), policy, func(c *Config) { c.Llama = ownProgram(models) })
	g.ask(t, "item.get")
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	entry := lastRecord(t, g)
	folder := t.TempDir()
	write(t, folder, "a.yaml", policy)
	kept, err := capture.Open(filepath.Join(g.work, "calls"), capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReplayer(t.Context(), ReplayOptions{Manifests: folder, Kept: kept, Llama: ownProgram(models)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	if got, err := r.Judge(t.Context(), &entry); err != nil || got.Response.Reason != "Matches" {
		t.Errorf("%+v, %v", got, err)
	}
}
