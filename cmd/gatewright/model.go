package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/deciders"
	"gatewright.dev/gatewright/internal/inference"
)

func newModel() *cobra.Command {
	c := &cobra.Command{Use: "model", Short: "Work with decider models"}
	c.AddCommand(newModelPin(), newModelFetch(), newModelRollback())
	return c
}

func newModelPin() *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "pin FILE|URL|embedded",
		Short: "Print the SHA-256 of a model and a DeciderModel manifest that pins it",
		Long: "Reads a model file, or downloads one over https without keeping it, and prints a DeciderModel manifest with its SHA-256.\n" +
			"The hash goes to standard error too, so that the manifest can be piped to kubectl apply -f -.",
		Example: "  gatewright model pin decider.gguf\n  gatewright model pin embedded",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			model, err := pin(c.Context(), args[0], c.ErrOrStderr())
			if err != nil {
				return err
			}
			if name != "" {
				model.Name = name
			}
			_, _ = fmt.Fprintf(c.ErrOrStderr(), "sha256 %s\n", model.Spec.Artifact.SHA256)
			return printModel(c.OutOrStdout(), model)
		},
	}
	c.Flags().StringVar(&name, "name", "", "name of the DeciderModel; from the file's by default")
	return c
}

func pin(ctx context.Context, from string, progress io.Writer) (*v1alpha1.DeciderModel, error) {
	m := &v1alpha1.DeciderModel{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindDeciderModel},
		Spec:     v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeLlamaCpp, Artifact: &v1alpha1.Artifact{}},
	}
	if from == "embedded" {
		m.Name = "embedded"
		m.Spec.Runtime = v1alpha1.RuntimeEmbedded
		m.Spec.Artifact = &v1alpha1.Artifact{
			Type: v1alpha1.ArtifactBundled, SHA256: v1alpha1.SHA256(deciders.EmbeddedHash()), Bundled: &v1alpha1.BundledArtifact{Name: inference.EmbeddedName},
		}
		return m, nil
	}
	base, open := filepath.Base(from), openFile
	if u, err := url.Parse(from); err == nil && u.Scheme != "" && u.Host != "" {
		if u.Scheme != "https" {
			return nil, fmt.Errorf("%s is not https: what is pinned should come the way it will be loaded", u.Redacted())
		}
		base, open = filepath.Base(u.Path), download
		m.Spec.Artifact.Type, m.Spec.Artifact.URL = v1alpha1.ArtifactURL, from
	} else {
		m.Spec.Artifact.Type = v1alpha1.ArtifactPVC
		m.Spec.Artifact.PersistentVolumeClaim = &v1alpha1.PVCArtifact{ClaimName: "models", Path: base}
	}
	m.Name = objectName(base)
	sum, err := hash(ctx, from, open, progress)
	if err != nil {
		return nil, err
	}
	m.Spec.Artifact.SHA256 = v1alpha1.SHA256(sum)
	return m, nil
}

func openFile(_ context.Context, path string) (io.ReadCloser, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return nil, 0, fmt.Errorf("%s is no file with content", path)
	}
	return f, info.Size(), nil
}

func download(ctx context.Context, from string) (io.ReadCloser, int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, 0, err
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		return nil, 0, fmt.Errorf("downloading: HTTP %d", answer.StatusCode)
	}
	return answer.Body, answer.ContentLength, nil
}

func hash(ctx context.Context, from string, open func(context.Context, string) (io.ReadCloser, int64, error), progress io.Writer) (string, error) {
	r, size, err := open(ctx, from)
	if err != nil {
		return "", err
	}
	defer r.Close()
	h := sha256.New()
	if _, err := io.Copy(h, &meter{r: r, size: size, out: progress, began: time.Now()}); err != nil {
		return "", fmt.Errorf("reading: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// meter says every other second how far a read has come.
type meter struct {
	r           io.Reader
	out         io.Writer
	size, read  int64
	began, last time.Time
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.read += int64(n)
	if now := time.Now(); now.Sub(m.last) > 2*time.Second && now.Sub(m.began) > 2*time.Second {
		m.last = now
		_, _ = fmt.Fprintf(m.out, "read %d MiB of %d MiB\n", m.read>>20, m.size>>20)
	}
	return n, err
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

func objectName(file string) string {
	name := strings.TrimSuffix(strings.ToLower(file), filepath.Ext(file))
	name = strings.Trim(notInNames.ReplaceAllString(name, "-"), "-")
	if name == "" {
		return "decider"
	}
	return name[:min(len(name), 63)]
}

// printModel leaves out what is empty, so that the manifest reads like one that a person wrote.
func printModel(w io.Writer, m *v1alpha1.DeciderModel) error {
	out, err := yaml.Marshal(map[string]any{
		"apiVersion": m.APIVersion, "kind": m.Kind, "metadata": map[string]any{"name": m.Name},
		"spec": map[string]any{"runtime": m.Spec.Runtime, "artifact": m.Spec.Artifact},
	})
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}
