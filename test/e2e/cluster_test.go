//go:build e2e

// Package e2e installs the chart on a real node and uses it as people and agents do. hack/e2e.sh starts the node, brings
// the images in and runs this.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatewright.dev/gatewright/api/review/v1alpha1"
)

const (
	system = "gatewright-system"
	shop   = "shop"
	agent  = "assistant" // the pod and its service account
)

// cluster is the node, and what works on it.
type cluster struct {
	root, bin, state string
	report           *strings.Builder
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{root: root, bin: os.Getenv("NODE_BIN"), state: os.Getenv("NODE_DIR"), report: &strings.Builder{}}
	if c.bin == "" {
		c.bin = filepath.Join(root, ".cache/node/bin")
	}
	if c.state == "" {
		c.state = filepath.Join(root, ".cache/node/state")
	}
	if _, err := os.Stat(filepath.Join(c.state, "started")); err != nil {
		t.Fatal("the node is not up: run hack/e2e.sh")
	}
	return c
}

// note says what was seen, in the log of the test and in its report.
func (c *cluster) note(t *testing.T, format string, args ...any) {
	t.Helper()
	line := fmt.Sprintf(format, args...)
	t.Log(line)
	fmt.Fprintf(c.report, "- %s\n", line)
}

func (c *cluster) run(ctx context.Context, stdin, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = c.root
	cmd.Stdin = strings.NewReader(stdin)
	// kubectl finds its plugin kubectl-gatewright on the path.
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(c.root, ".cache/e2e")+":"+os.Getenv("PATH"), "KUBECONFIG="+filepath.Join(c.state, "pki/admin.kubeconfig"), "NODE_BIN="+c.bin, "NODE_DIR="+c.state)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// try runs kubectl.
func (c *cluster) try(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return c.run(t.Context(), "", filepath.Join(c.bin, "kubectl"), args...)
}

// kubectl runs kubectl, which must not fail.
func (c *cluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.try(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// apply applies a manifest.
func (c *cluster) apply(t *testing.T, manifest string) {
	t.Helper()
	if out, err := c.run(t.Context(), manifest, filepath.Join(c.bin, "kubectl"), "apply", "-f", "-"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// file reads a manifest of this folder, with words replaced.
func file(t *testing.T, name string, replacements ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("manifests", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(replacements...).Replace(string(data))
}

func (c *cluster) helm(t *testing.T, args ...string) string {
	t.Helper()
	home := filepath.Join(c.root, ".cache/helm")
	out, err := c.run(t.Context(), "", "/usr/bin/env", append([]string{
		"HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home, filepath.Join(c.root, ".cache/bin/helm"),
	}, args...)...)
	if err != nil {
		c.dump(t)
		t.Fatal(err)
	}
	return out
}

// counted says how often each was seen.
func counted(counts map[string]int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d x %s", counts[what], what))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// eventually tries until it works or the time is over, and says how long that took.
func eventually(t *testing.T, within time.Duration, try func() error) time.Duration {
	t.Helper()
	start := time.Now()
	for {
		err := try()
		took := time.Since(start)
		if err == nil {
			return took
		}
		if took > within {
			t.Fatalf("not within %v: %v", within, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// review asks the gate from within the agent's pod, which has nothing but what was injected.
func (c *cluster) review(t *testing.T, r v1alpha1.Request) (v1alpha1.Response, error) {
	t.Helper()
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.run(t.Context(), string(body), filepath.Join(c.bin, "kubectl"), "-n", shop, "exec", "-i", agent, "--", "/agent", "review")
	if err != nil {
		return v1alpha1.Response{}, err
	}
	var response v1alpha1.Response
	if err := json.Unmarshal([]byte(out), &response); err != nil {
		return v1alpha1.Response{}, fmt.Errorf("%w in %q", err, out)
	}
	return response, nil
}

// must asks the gate until the outcome and reason are there, since policies and rules of the network take a moment.
func (c *cluster) must(t *testing.T, within time.Duration, r v1alpha1.Request, outcome v1alpha1.Outcome, reason string) v1alpha1.Response {
	t.Helper()
	var got v1alpha1.Response
	eventually(t, within, func() error {
		var err error
		if got, err = c.review(t, r); err != nil {
			return err
		}
		if got.Outcome != outcome || reason != "" && got.Reason != reason {
			return fmt.Errorf("want %s %s, got %s %s by %s: %s", outcome, reason, got.Outcome, got.Reason, got.By, got.Message)
		}
		return nil
	})
	return got
}

// call is a request in the words of a user.
func call(tool string, arguments map[string]any, words string) v1alpha1.Request {
	return v1alpha1.Request{
		Tool: v1alpha1.Tool{Name: tool}, Arguments: arguments, Context: v1alpha1.Context{UserRequest: words, Session: "e2e"},
	}
}

// dump logs what helps to see why something is not as it should be.
func (c *cluster) dump(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{
		{"-n", system, "get", "pods,sts,deploy,jobs,pvc,secrets", "-o", "wide"},
		{"get", "events", "-A", "--sort-by=.lastTimestamp"},
		{"get", "decidermodels,toolpolicies,toolapprovals,deciderevaluations", "-A", "-o", "wide"},
		{"-n", system, "logs", "-l", "app.kubernetes.io/component=manager", "--tail=40"},
		{"-n", system, "logs", "-l", "app.kubernetes.io/component=gate", "--tail=40"},
		{"-n", system, "logs", "-l", "app.kubernetes.io/component=decider", "--tail=20", "--all-containers"},
	} {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		out, err := c.run(ctx, "", filepath.Join(c.bin, "kubectl"), args...)
		cancel()
		t.Logf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
