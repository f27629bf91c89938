package controllers

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference/workload"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/pki"
)

// realDecider builds the decider server. It skips the test where models are not required: to build and load takes a while.
func realDecider(t *testing.T) (program, library, model string) {
	t.Helper()
	if os.Getenv("GATEWRIGHT_REQUIRE_MODELS") != "1" {
		t.Skip("GATEWRIGHT_REQUIRE_MODELS=1 runs a real model")
	}
	root, err := kubetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(t.TempDir(), "decider")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/decider")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cache := cmp.Or(os.Getenv("GATEWRIGHT_LLAMA_CACHE"), filepath.Join(root, ".cache"))
	return program, filepath.Join(cache, "llama"), filepath.Join(cache, "models", "SmolLM2-135M-Instruct.Q4_1.gguf")
}

// podArgs is the command line that a pod of the DeciderModel would have, with the paths of this machine.
func podArgs(t *testing.T, m *v1alpha1.DeciderModel, k *deciderKit, paths map[string]string) (args []string, r workload.Revision) {
	t.Helper()
	c, err := workload.NewRevision(k.models.install(), m)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = workload.ReadRevision(m, c); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(workload.Deployment(k.models.install(), r))
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for _, a := range d.Spec.Template.Spec.Containers[0].Args {
		if here, ok := paths[a]; ok {
			a = here
		}
		args = append(args, a)
	}
	return args, r
}

// What the builders write on the command line starts the real decider server, and what that says of itself is understood.
func TestTheRealDeciderRunsAsItsPodWould(t *testing.T) {
	program, library, model := realDecider(t)
	bytes, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(bytes)
	hash := v1alpha1.SHA256(hex.EncodeToString(sum[:]))
	k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
	folder := t.TempDir()
	data, err := k.authority.Issue(time.Now(), pki.Request{Name: "decider", DNSNames: []string{names.DeciderServerName}, Usage: x509.ExtKeyUsageServerAuth})
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{
		"/artifact/judge.gguf": model, names.DeciderLibraryPath: library, ":8443": "127.0.0.1:0",
	}
	for _, key := range []string{pki.KeyCA, pki.KeyCertificate, pki.KeyPrivate} {
		paths["/etc/gatewright/tls/"+key] = filepath.Join(folder, key)
		if err := os.WriteFile(filepath.Join(folder, key), data[key], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := judge(func(s *v1alpha1.DeciderModelSpec) { s.Artifact.SHA256, s.ContextTokens = hash, 512 })

	t.Run("the pinned file", func(t *testing.T) {
		args, r := podArgs(t, m, k, paths)
		address := startDecider(t, program, args)
		k.models.prober.url = func(string, string) string { return "https://" + address }
		s := askUntilReady(t, k, r)
		if s.sha256 != hash || s.mismatch != "" || !strings.HasPrefix(string(s.fingerprint), "sha256:") {
			t.Errorf("%+v", s)
		}
	})
	t.Run("another file than the pinned one", func(t *testing.T) {
		other := m.DeepCopy()
		other.Spec.Artifact.SHA256 = pinnedHash
		args, _ := podArgs(t, other, k, paths)
		var stderr strings.Builder
		run := exec.CommandContext(t.Context(), program, args...)
		run.Stderr = &stderr
		var ended *exec.ExitError
		if err := run.Run(); !errors.As(err, &ended) {
			t.Fatal(err)
		}
		text, differs := podTrouble([]corev1.Pod{{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: workload.DeciderContainer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(ended.ExitCode()), Message: stderr.String()}},
		}}}}})
		if !differs || !strings.Contains(text, string(hash)) || !strings.Contains(text, string(pinnedHash)) {
			t.Errorf("%v: %s", differs, text)
		}
	})
}

// startDecider starts the program and returns its address. It is stopped with the test.
func startDecider(t *testing.T, program string, args []string) string {
	t.Helper()
	run := exec.CommandContext(t.Context(), program, args...)
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	run.Stderr = &stderr
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Kill()
		_ = run.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = run.Wait()
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
}

func askUntilReady(t *testing.T, k *deciderKit, r workload.Revision) *seen {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for {
		k.clock.Step(rememberOwn + time.Second)
		s, err := k.models.prober.ask(t.Context(), r)
		if err == nil {
			return s
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(err)
		}
	}
}
