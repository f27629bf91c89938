package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference"
)

// entry is one sample call with what is expected of it.
type entry struct {
	File   string `json:"file"`
	Caller caller `json:"caller"`
	Want   struct {
		Outcome string `json:"outcome"`
		Reason  string `json:"reason"`
	} `json:"want"`
}

type caller struct {
	Namespace      string `json:"namespace"`
	ServiceAccount string `json:"serviceAccount"`
}

func (c caller) String() string { return c.Namespace + "/" + c.ServiceAccount }

// publicCaller sends the public cases.
var publicCaller = caller{Namespace: "public", ServiceAccount: "agent"}

func readIndex(path string) ([]entry, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Calls []entry `json:"calls"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(file.Calls) == 0 {
		return nil, fmt.Errorf("%s holds no calls", path)
	}
	return file.Calls, nil
}

func readCall(path string) (*review.ToolCallReview, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var call review.ToolCallReview
	if err := json.Unmarshal(data, &call); err != nil || call.Request == nil {
		return nil, fmt.Errorf("%s is no ToolCallReview: %w", path, err)
	}
	return &call, nil
}

// publicCase is a labelled call; testdata/evalsets/README.md describes its fields.
type publicCase struct {
	ID           string `json:"id"`
	Source       string `json:"source"`
	UserRequest  string `json:"userRequest"`
	Conversation []struct {
		Role    review.Role `json:"role"`
		Content string      `json:"content"`
	} `json:"conversation"`
	Tool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
	} `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Class     string          `json:"class"`
	Label     string          `json:"label"`
}

func readPublic(path string, n int) ([]publicCase, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	var cases []publicCase
	for lines.Scan() && len(cases) < n {
		var c publicCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		cases = append(cases, c)
	}
	return cases, lines.Err()
}

// review is the call as its agent would send it. The label stays behind.
func (c *publicCase) review() *review.ToolCallReview {
	r := &review.Request{Tool: review.Tool{Name: c.Tool.Name, Server: c.Source}, Context: review.Context{UserRequest: c.UserRequest}}
	if err := json.Unmarshal(c.Arguments, &r.Arguments); err != nil || r.Arguments == nil {
		r.Arguments = map[string]any{}
	}
	for _, m := range c.Conversation {
		r.Context.Messages = append(r.Context.Messages, review.Message{Role: m.Role, Content: m.Content})
	}
	return &review.ToolCallReview{APIVersion: review.APIVersion, Kind: review.Kind, Request: r}
}

// prepare writes the manifests and tokens of the demo and returns the token of each caller.
func prepare(work string, index []entry, cases []publicCase) (map[string]string, error) {
	manifests := filepath.Join(work, "manifests")
	if err := os.RemoveAll(manifests); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(manifests, 0o750); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(samples, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(manifests, filepath.Base(file)), data, 0o600); err != nil {
			return nil, err
		}
	}
	public, err := publicPolicy(cases)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(manifests, "public-cases.yaml"), public, 0o600); err != nil {
		return nil, err
	}
	return writeTokens(filepath.Join(work, "tokens.csv"), index)
}

func writeTokens(path string, index []entry) (map[string]string, error) {
	tokens := map[string]string{publicCaller.String(): ""}
	for _, e := range index {
		tokens[e.Caller.String()] = ""
	}
	var file bytes.Buffer
	for who := range tokens {
		var random [16]byte
		if _, err := rand.Read(random[:]); err != nil {
			return nil, err
		}
		tokens[who] = hex.EncodeToString(random[:])
		fmt.Fprintf(&file, "%s,system:serviceaccount:%s,%s\n", tokens[who], strings.ReplaceAll(who, "/", ":"), who)
	}
	return tokens, os.WriteFile(path, file.Bytes(), 0o600)
}

// classOf are the classes that the public cases come with.
var classOf = map[string]v1alpha1.ClassName{
	"read-only": "ReadOnly", "write": "Write", "destructive": "Destructive", "external": "External",
}

// publicPolicy lists the tools of the cases. Its ladder lets args_grounded alone decide, for the irreversible classes
// too, so that the table shows what that one question is worth; a policy for real use keeps approval: Always there.
func publicPolicy(cases []publicCase) ([]byte, error) {
	ladder := func(name v1alpha1.ClassName) v1alpha1.ClassPolicy {
		grounded, invented := int32(80), int32(30)
		return v1alpha1.ClassPolicy{
			Name: name, Decider: v1alpha1.DeciderAsk, Questions: []v1alpha1.QuestionName{"args_grounded"}, Approval: v1alpha1.ApprovalWhenUnsure,
			Thresholds: []v1alpha1.Threshold{
				{When: []v1alpha1.Condition{{Question: "args_grounded", AtLeast: &grounded}}, Outcome: v1alpha1.OutcomeAllow, Reason: "Grounded"},
				{When: []v1alpha1.Condition{{Question: "args_grounded", AtMost: &invented}}, Outcome: v1alpha1.OutcomeClarify, Reason: "Invented"},
			},
			Otherwise: &v1alpha1.Fallback{Outcome: v1alpha1.OutcomeConfirm, Reason: "FromToolResult"},
		}
	}
	p := v1alpha1.ToolPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindToolPolicy},
		ObjectMeta: metav1.ObjectMeta{Name: "public-cases", Namespace: publicCaller.Namespace},
		Spec: v1alpha1.ToolPolicySpec{PolicyRules: v1alpha1.PolicyRules{
			DeciderRef: &v1alpha1.DeciderReference{Name: "embedded", Fingerprint: v1alpha1.Fingerprint(inference.NewEmbeddedV0().Fingerprint())},
			Classes:    []v1alpha1.ClassPolicy{ladder("ReadOnly"), ladder("Write"), ladder("External"), ladder("Destructive")},
		}},
	}
	seen := map[string]bool{}
	for _, c := range cases {
		if key := c.Source + " " + c.Tool.Name; !seen[key] {
			seen[key] = true
			p.Spec.Tools = append(p.Spec.Tools, v1alpha1.ToolRule{
				Name: c.Tool.Name, Server: c.Source, Class: classOf[c.Class], Description: clip(c.Tool.Description, 2000),
				ArgumentsSchema: &apiextensionsv1.JSON{Raw: c.Tool.InputSchema},
			})
		}
	}
	return yaml.Marshal(map[string]any{"apiVersion": p.APIVersion, "kind": p.Kind, "metadata": p.ObjectMeta, "spec": p.Spec})
}

// clip shortens a description for a person and a decider; nothing is judged by it.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
