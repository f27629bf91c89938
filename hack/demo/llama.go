package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/hack/samples"
)

const (
	// overlay holds the decider and what is laid over each sample policy that asks one.
	overlay       = "config/samples-llama"
	deciderBinary = "bin/decider"
	// readyWithin is for a busy machine: the model is hashed, loaded and asked twice.
	readyWithin = 2 * time.Minute
)

// runLlama shows the sample policies with a generative model as their decider.
func runLlama(ctx context.Context) (err error) {
	work := filepath.Join(".cache", "demo-llama")
	if err := os.MkdirAll(work, 0o750); err != nil {
		return err
	}
	index, err := readIndex(filepath.Join(calls, "index.yaml"))
	if err != nil {
		return err
	}
	if err := writeOverlaid(filepath.Join(work, "manifests")); err != nil {
		return err
	}
	tokens, err := writeTokens(filepath.Join(work, "tokens.csv"), index)
	if err != nil {
		return err
	}
	g, err := start(ctx, work, "--models", ".cache/models", "--decider", deciderBinary, "--llama-library", ".cache/llama")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	if err := g.waitDecider(ctx); err != nil {
		return err
	}
	other, err := showSamples(ctx, g.url, index, tokens, false)
	if err != nil {
		return err
	}
	fmt.Printf(`
%d of %d decisions are other than with the embedded judge. That says little about either of them: this model has 135 million
parameters, was made to chat, and is no judge. It prefers the first option whatever is asked. What the table shows is the
way of a real model: a process of its own, a file that it hashed itself, a pinned fingerprint, and probabilities that were
read and not written. Thresholds that were set for the embedded judge mean nothing to it.

Every decision is in %s. The model's answers to a call of your own:
  %s -model .cache/models/SmolLM2-135M-Instruct.Q4_1.gguf -sha256 HASH -library .cache/llama      (see docs/guides/decider-server.md)
`, other, len(index), g.audit, deciderBinary)
	return nil
}

// waitDecider waits until the gate says that its decider may be asked.
func (g *gateProcess) waitDecider(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	turn := time.NewTicker(100 * time.Millisecond)
	defer turn.Stop()
	for {
		log, err := os.ReadFile(g.log.Name())
		switch {
		case err != nil:
			return err
		case bytes.Contains(log, []byte("decider process is ready")):
			return nil
		case bytes.Contains(log, []byte("decider cannot be used")), bytes.Contains(log, []byte("decider process ended")):
			return fmt.Errorf("the decider is not served, %s says why", g.log.Name())
		}
		select {
		case <-turn.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the decider, see %s: %w", g.log.Name(), ctx.Err())
		}
	}
}

// writeOverlaid writes the sample manifests, with the overlay's patch in every policy that asks a decider and the overlay's
// decider in the place of theirs.
func writeOverlaid(folder string) error {
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o750)); err != nil {
		return err
	}
	patch := map[string]any{}
	data, err := os.ReadFile(filepath.Join(overlay, "patch.yaml"))
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(data, &patch); err != nil {
		return fmt.Errorf("patch.yaml: %w", err)
	}
	files, err := samples.Files()
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		out, err := laidOver(data, patch)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(file)), out, 0o600); err != nil {
			return err
		}
	}
	if data, err = os.ReadFile(filepath.Join(overlay, "decidermodel.yaml")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "decidermodel.yaml"), data, 0o600)
}

// laidOver puts each member of the patch into the spec of the policies that have a deciderRef, and leaves out deciders.
func laidOver(documents []byte, patch map[string]any) ([]byte, error) {
	var out bytes.Buffer
	for document := range bytes.SplitSeq(documents, []byte("\n---\n")) {
		var object map[string]any
		if err := yaml.Unmarshal(document, &object); err != nil {
			return nil, err
		}
		if len(object) == 0 || object["kind"] == "DeciderModel" {
			continue
		}
		if spec, ok := object["spec"].(map[string]any); ok && spec["deciderRef"] != nil {
			maps.Copy(spec, patch)
		}
		text, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(append(text, '\n'))
	}
	return out.Bytes(), nil
}
