package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/hack/samples"
	"gatewright.dev/gatewright/internal/evaluation"
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

// readPublic reads the first n cases of a file.
func readPublic(path string, n int) ([]*evaluation.Case, error) {
	cases, _, err := evaluation.LoadCases(path)
	if err != nil {
		return nil, err
	}
	return cases[:min(n, len(cases))], nil
}

// prepare writes the manifests and tokens of the demo and returns the token of each caller.
func prepare(work string, index []entry, cases []*evaluation.Case) (map[string]string, error) {
	manifests := filepath.Join(work, "manifests")
	if err := os.RemoveAll(manifests); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(manifests, 0o750); err != nil {
		return nil, err
	}
	if err := samples.Copy(manifests, publicCaller.Namespace, cases); err != nil {
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
