// Package deciders_test checks the manifests of named systems: each loads as an API server would take it, and the guide
// names it.
package deciders_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/manifest"
)

// pinned is what a slip in a manifest would change without a word.
type pinned struct {
	Protocol v1alpha1.ExternalProtocol
	Model    string
	InFlight int32
	HasToken bool
}

func TestManifestsOfNamedSystemsLoad(t *testing.T) {
	set, err := manifest.LoadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range set.Problems {
		t.Errorf("%s: %v", p.File, p.Err)
	}
	got := map[string]pinned{}
	for _, o := range set.Objects {
		m, ok := o.Object.(*v1alpha1.DeciderModel)
		if !ok || m.Spec.External == nil {
			t.Fatalf("%s holds something else than an external decider", o.File)
		}
		if m.Spec.AllowedNamespaces == nil || m.Spec.AllowedNamespaces.From != v1alpha1.NamespacesListed {
			t.Errorf("%s sends the words of every namespace away", o.File)
		}
		x := m.Spec.External
		got[m.Name] = pinned{x.Protocol, x.Model, x.MaxInFlight, x.TokenSecretRef != nil}
	}
	want := map[string]pinned{
		"strands-2b":         {v1alpha1.ProtocolSystemOne, "strands-decider-2B-hobson-v19", 1, false},
		"jev":                {v1alpha1.ProtocolSystemOne, "jev-1.13.0", 8, true},
		"jevos":              {v1alpha1.ProtocolSystemOne, "jevos-v2", 2, false},
		"clef":               {v1alpha1.ProtocolSystemOne, "@cf/cloudflare/clef", 4, true},
		"clef-flash":         {v1alpha1.ProtocolSystemOne, "@cf/cloudflare/clef-flash", 4, true},
		"nemotron-decision":  {v1alpha1.ProtocolSystemOne, "nemotron-3.5-decision", 1, false},
		"ollama-typed":       {v1alpha1.ProtocolSystemOne, "strands-decider:2b", 1, false},
		"ollama-labels":      {v1alpha1.ProtocolOllama, "qwen3:1.7b", 1, false},
		"ollama-verdict":     {v1alpha1.ProtocolOllamaVerdict, "qwen3:1.7b", 1, false},
		"llama-server":       {v1alpha1.ProtocolLlamaServer, "judge", 2, false},
		"llama-server-typed": {v1alpha1.ProtocolSystemOne, "laya", 2, false},
		"chat-verdict":       {v1alpha1.ProtocolOpenAIVerdict, "gpt-oss-20b", 4, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheGuideNamesEachManifestAndTheManifestExplainsItself(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/deciders.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(data), "# ") {
			t.Errorf("%s begins without a word on the system", file)
		}
		if !strings.Contains(string(guide), "(../../config/deciders/"+file+")") {
			t.Errorf("the guide does not name %s", file)
		}
	}
}
