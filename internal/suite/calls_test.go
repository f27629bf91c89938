package suite

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	reviewv1alpha1 "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/manifest"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/strictjson"
)

const calls = "../../testdata/calls"

// callIndex is index.yaml of the sample calls.
type callIndex struct {
	Calls []struct {
		File   string `json:"file"`
		Caller struct {
			Namespace      string `json:"namespace"`
			ServiceAccount string `json:"serviceAccount"`
		} `json:"caller"`
		Want struct {
			Outcome string `json:"outcome"`
			Reason  string `json:"reason"`
			By      string `json:"by"`
		} `json:"want"`
	} `json:"calls"`
}

func readCallIndex(t *testing.T) callIndex {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(calls, "index.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var index callIndex
	if err := yaml.UnmarshalStrict(data, &index); err != nil {
		t.Fatal(err)
	}
	return index
}

// sampleSet compiles all samples together, as a gate serves them.
func sampleSet(t *testing.T) *policy.Set {
	t.Helper()
	set, err := manifest.LoadDir(samples)
	if err != nil {
		t.Fatal(err)
	}
	// Suites stand in the same folder and are of another group, so they are left alone.
	if err := set.Err(); err != nil {
		t.Fatal(err)
	}
	var all []*policy.Compiled
	for _, p := range set.ToolPolicies() {
		compiled, errs := policy.Compile(p)
		if errs != nil {
			t.Fatal(p.Name, errs)
		}
		all = append(all, compiled)
	}
	for _, p := range set.ClusterToolPolicies() {
		compiled, errs := policy.CompileCluster(p)
		if errs != nil {
			t.Fatal(p.Name, errs)
		}
		all = append(all, compiled)
	}
	return policy.NewSet(all)
}

// judgeEmbedded judges a call with the decider of a fresh install.
func judgeEmbedded(t *testing.T, set *policy.Set, r *policy.Request) (policy.Verdict, *policy.Judgement) {
	t.Helper()
	decider, err := inference.LoadEmbedded()
	if err != nil {
		t.Fatal(err)
	}
	j := set.Judge(t.Context(), r)
	var answered []policy.Answered
	for _, ask := range j.Asks() {
		result, err := decider.Decide(t.Context(), inference.Request{State: ask.State, Questions: ask.Questions})
		one := policy.Answered{Answers: result.Answers, Fingerprint: result.Fingerprint}
		if err != nil {
			reason, _, _ := strings.Cut(err.Error(), ":")
			one = policy.Answered{Unavailable: policy.Reason(reason)}
		}
		answered = append(answered, one)
	}
	return j.Settle(answered, nil), j
}

func TestSampleCalls(t *testing.T) {
	set, index := sampleSet(t), readCallIndex(t)
	outcomes, bases, rules, asked := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range index.Calls {
		t.Run(c.File, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(calls, c.File))
			if err != nil {
				t.Fatal(err)
			}
			var review reviewv1alpha1.ToolCallReview
			if err := strictjson.Decode(data, strictjson.Limits{}, &review); err != nil {
				t.Fatal(err)
			}
			if review.APIVersion != reviewv1alpha1.APIVersion || review.Kind != reviewv1alpha1.Kind || review.Request == nil || review.Request.UID != "" {
				t.Fatalf("%s is no ToolCallReview without a uid", c.File)
			}
			r := callOf(review.Request)
			r.Caller = policy.Caller{Namespace: c.Caller.Namespace, ServiceAccount: c.Caller.ServiceAccount}
			got, j := judgeEmbedded(t, set, r)
			if got.Outcome.String() != c.Want.Outcome || string(got.Reason) != c.Want.Reason || c.Want.By != "" && got.By != c.Want.By {
				t.Errorf("got %s %s by %s, want %+v", got.Outcome, got.Reason, got.By, c.Want)
			}
			_, base := j.Class()
			outcomes[c.Want.Outcome], bases[base], rules[got.By], asked[c.Caller.Namespace] = true, true, true, true
		})
	}
	for name, missing := range map[string][]string{
		"outcome":   lacking(outcomes, "Allow", "Confirm", "Clarify", "Block"),
		"base":      lacking(bases, "ReadOnly", "Write", "External", "Destructive"),
		"namespace": lacking(asked, "agents", "shop", "support", "crm", "cloudops", "browser", "bank"),
		"rule": lacking(rules, "rule:unknown-tool", "rule:class-forbidden", "rule:not-attested", "rule:fact-missing", "rule:missing-scope",
			"rule:arguments-schema", "rule:path-escape", "rule:host-not-allowed", "rule:argument-source", "rule:self-protection",
			"policy:irreversible", "policy:none", "decider", "rules"),
	} {
		if missing != nil {
			t.Errorf("no sample call shows %s %v", name, missing)
		}
	}
}

func lacking(have map[string]bool, want ...string) []string {
	var out []string
	for _, s := range want {
		if !have[s] {
			out = append(out, s)
		}
	}
	return out
}

func callOf(r *reviewv1alpha1.Request) *policy.Request {
	var messages []Message
	for _, m := range r.Context.Messages {
		messages = append(messages, Message{Role: string(m.Role), Content: m.Content})
	}
	run := &runner{file: &File{}}
	return run.request(&Call{
		Caller: &Caller{}, Tool: r.Tool.Name, Server: r.Tool.Server, Arguments: Tree{set: true, value: r.Arguments}, Facts: Tree{set: true, value: r.Context.Facts},
		UserRequest: r.Context.UserRequest, Messages: messages, Session: r.Context.Session, OnBehalfOf: r.Context.OnBehalfOf,
		Language: r.Context.Language, Attestation: r.Context.Attestation, Now: time.Now().UTC().Format(time.RFC3339),
	})
}

func TestEverySampleCallIsInTheIndex(t *testing.T) {
	files, err := filepath.Glob(calls + "/*.json")
	if err != nil {
		t.Fatal(err)
	}
	index := readCallIndex(t)
	if len(files) != len(index.Calls) {
		t.Errorf("%d files and %d entries", len(files), len(index.Calls))
	}
	for _, c := range index.Calls {
		data, err := os.ReadFile(filepath.Join(calls, c.File))
		if err != nil || !json.Valid(data) {
			t.Errorf("%s: %v", c.File, err)
		}
	}
}

// The thresholds of the samples belong to the decider that deciders.yaml pins.
func TestSamplesPinTheEmbeddedDecider(t *testing.T) {
	set, err := manifest.LoadDir(samples)
	if err != nil || set.Err() != nil {
		t.Fatal(err, set.Err())
	}
	embedded, err := inference.LoadEmbedded()
	if err != nil {
		t.Fatal(err)
	}
	want := embedded.Fingerprint()
	for _, p := range set.ToolPolicies() {
		if ref := p.Spec.DeciderRef; ref != nil && (ref.Name != "embedded" || string(ref.Fingerprint) != want) {
			t.Errorf("%s refers to %+v, want embedded %s", p.Name, ref, want)
		}
	}
	models := set.DeciderModels()
	if len(models) != 1 || models[0].Spec.Artifact == nil || string(models[0].Spec.Artifact.SHA256) != embedded.ModelHash() ||
		models[0].Spec.Artifact.Bundled.Name != inference.EmbeddedName {
		t.Errorf("deciders.yaml does not pin %s %s", inference.EmbeddedName, embedded.ModelHash())
	}
}
