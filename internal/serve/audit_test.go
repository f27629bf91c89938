package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/capture"
	"gatewright.dev/gatewright/internal/records"
	"gatewright.dev/gatewright/internal/testkit"
)

const writing = `
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: good, namespace: default}
spec:
  captureState: Plain
  tools:
  - {name: item.get, class: ReadOnly}
  - {name: item.set, class: Write, decider: Skip, otherwise: {outcome: Allow}}
`

// auditedGate is a gate for one caller, with a folder for what it writes.
type auditedGate struct {
	url, work string
	log       *testkit.Log
	stop      func() error
}

// startAudited starts a gate with a configuration that was changed. It ends with the test.
func startAudited(t *testing.T, work, policy string, change func(c *Config)) *auditedGate {
	t.Helper()
	g := &auditedGate{work: work, log: &testkit.Log{}}
	manifests := t.TempDir()
	write(t, manifests, "policy.yaml", policy)
	address, done := make(chan net.Addr, 1), make(chan error, 1)
	in := func(name string) string { return filepath.Join(work, name) }
	c := Config{
		Manifests: manifests, Listen: "127.0.0.1:0", Caller: "default/default", AuditLog: in("audit.jsonl"), ApprovalLog: in("approvals.jsonl"),
		ApproverSecret: in("secret"), PermitKey: in("permit-key.json"), Log: slog.New(slog.NewJSONHandler(g.log, nil)),
		Listening: func(a net.Addr) { address <- a },
	}
	c.Audit.Key, c.Audit.Capture = in("audit-key.json"), in("calls")
	if change != nil {
		change(&c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- Run(ctx, c) }()
	ended := false
	g.stop = func() error {
		if ended {
			return nil
		}
		ended = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if err := g.stop(); err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	select {
	case a := <-address:
		g.url = "http://" + a.String()
	case err := <-done:
		ended = true
		t.Fatalf("serving: %v", err)
	}
	return g
}

// send posts JSON and returns status and body.
func send(t *testing.T, url, secret string, v any) (int, []byte) {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, data
}

func (g *auditedGate) ask(t *testing.T, tool string) *review.Response {
	t.Helper()
	call := review.ToolCallReview{APIVersion: review.APIVersion, Kind: review.Kind, Request: &review.Request{
		UID: newUID(t), Tool: review.Tool{Name: tool}, Arguments: map[string]any{"id": "7", "to": "shop"}, Context: review.Context{UserRequest: "set item 7", OnBehalfOf: "jo"},
	}}
	status, data := send(t, g.url+review.Path, "", call)
	var out review.ToolCallReview
	if err := json.Unmarshal(data, &out); err != nil || status != http.StatusOK {
		t.Fatalf("HTTP %d: %s", status, data)
	}
	return out.Response
}

func (g *auditedGate) secret(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(g.work, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// records reads the log, newest last.
func (g *auditedGate) records(t *testing.T, f audit.Filter) []audit.Entry {
	t.Helper()
	parts, err := audit.Parts(filepath.Join(g.work, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out []audit.Entry
	if err := audit.QueryParts(t.Context(), parts, f, func(e audit.Entry) error { out = append(out, e); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAGateSignsItsLogAndKnowsItAgain(t *testing.T) {
	work := t.TempDir()
	g := startAudited(t, work, writing, func(c *Config) { c.Audit.LogCheckpoints = true })
	if r := g.ask(t, "item.set"); r.Outcome != review.Allow {
		t.Fatalf("%+v", r)
	}
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(work, "audit.jsonl")
	outside, err := audit.ReadCheckpoints(log + audit.CheckpointSuffix)
	if err != nil || len(outside) == 0 || !strings.Contains(g.log.String(), `"msg":"audit checkpoint","checkpoint":{"seq":`) {
		t.Fatalf("checkpoints %v, %v; log:\n%s", outside, err, g.log)
	}
	keys, err := audit.ReadPublicKeys(filepath.Join(work, "audit-key.json"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := audit.NewVerifier(audit.Evidence{Keys: keys, Checkpoints: outside})
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := v.Part(in); err != nil {
		t.Fatal(err)
	}
	if s, err := v.End(); err != nil || s.Signed != s.Head.Seq {
		t.Errorf("%+v, %v", s, err)
	}
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := Config{Manifests: t.TempDir(), Listen: "127.0.0.1:0", Caller: "a/b", AuditLog: log, ApprovalLog: filepath.Join(work, "approvals.jsonl"), Audit: records.Config{Key: filepath.Join(work, "audit-key.json")}}
	if err := Run(t.Context(), c); !errors.Is(err, audit.ErrBehind) {
		t.Errorf("with its log emptied: %v, want ErrBehind", err)
	}
}

func TestRecordsAreNotWrittenIntoTheManifests(t *testing.T) {
	folder := t.TempDir()
	elsewhere := t.TempDir()
	link := filepath.Join(elsewhere, "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(c *Config){
		"--audit-log":                 func(c *Config) { c.AuditLog = filepath.Join(folder, "audit.jsonl") },
		"--audit-log, below a folder": func(c *Config) { c.AuditLog = filepath.Join(folder, "sub", "..", "audit.jsonl") },
		"--audit-log, by a link":      func(c *Config) { c.AuditLog = filepath.Join(link, "audit.jsonl") },
		"--audit-key":                 func(c *Config) { c.Audit.Key = filepath.Join(folder, "key.json") },
		"--audit-checkpoints":         func(c *Config) { c.Audit.Checkpoints = filepath.Join(link, "checkpoints") },
		"--capture-dir":               func(c *Config) { c.Audit.Capture = filepath.Join(folder, "calls") },
	} {
		t.Run(name, func(t *testing.T) {
			c := Config{Manifests: folder, Listen: "127.0.0.1:0", Caller: "a/b", AuditLog: filepath.Join(elsewhere, "audit.jsonl")}
			change(&c)
			flag, _, _ := strings.Cut(name, ",")
			if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), flag) || !strings.Contains(err.Error(), "inside of --manifests") {
				t.Errorf("Run: %v", err)
			}
			if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
				t.Errorf("the folder holds %v, %v", left, err)
			}
		})
	}
}

func TestSinksAreChecked(t *testing.T) {
	for name, test := range map[string]struct {
		change func(c *Config)
		want   string
	}{
		"a sink that is none":     {func(c *Config) { c.Audit.Sinks = []string{"kafka://h"} }, "want stdout"},
		"a stream without a name": {func(c *Config) { c.Audit.Sinks = []string{"nats://h:4222"} }, "no name of a stream"},
		"two streams":             {func(c *Config) { c.Audit.Sinks = []string{"nats://h/A", "nats://h/B"} }, "two are given"},
		"no place at all":         {func(c *Config) { c.AuditLog = records.NoFile }, "have to go somewhere"},
		"copies and no place":     {func(c *Config) { c.AuditLog = records.NoFile; c.Audit.Sinks = []string{"otlp+http://h:1"} }, "have to go somewhere"},
		"a key without a folder":  {func(c *Config) { c.Audit.CaptureKey = "key.pub" }, "--capture-dir"},
		"less than nothing":       {func(c *Config) { c.Audit.KeepFiles = -1 }, "from 0"},
		"a password is not shown": {func(c *Config) { c.Audit.Sinks = []string{"redis://u:hunter2@h"} }, "redis://u:xxxxx@h"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Config{Manifests: "m", Listen: "127.0.0.1:0", Caller: "a/b", AuditLog: "audit.jsonl"}
			test.change(&c)
			if err := c.Validate(); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("Validate: %v, want %q", err, test.want)
			}
		})
	}
}

// Standard output is only as durable as whoever reads it, so nothing that may change anything is allowed by it alone.
func TestStandardOutputAloneAllowsReadsOnly(t *testing.T) {
	var out testkit.Log
	g := startAudited(t, t.TempDir(), writing, func(c *Config) {
		c.AuditLog, c.Audit.Sinks, c.Audit.Stdout = records.NoFile, []string{"stdout"}, &out
	})
	if r := g.ask(t, "item.get"); r.Outcome != review.Allow {
		t.Errorf("a read: %+v", r)
	}
	if r := g.ask(t, "item.set"); r.Outcome != review.Block || r.Reason != "AuditUnavailable" {
		t.Errorf("a write: %+v", r)
	}
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := audit.Query(t.Context(), strings.NewReader(out.String()), audit.Filter{Kind: audit.KindDecision}, func(e audit.Entry) error {
		got = append(got, e.Tool+" "+string(e.Outcome))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"item.get Allow", "item.set Block"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStandardOutputBesideTheFileIsACopy(t *testing.T) {
	var out testkit.Log
	g := startAudited(t, t.TempDir(), writing, func(c *Config) { c.Audit.Sinks, c.Audit.Stdout = []string{"stdout"}, &out })
	if r := g.ask(t, "item.set"); r.Outcome != review.Allow {
		t.Errorf("a write: %+v", r)
	}
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(g.work, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(file), out.String()); diff != "" {
		t.Errorf("(-file +standard output):\n%s", diff)
	}
}

func TestLabels(t *testing.T) {
	g := startAudited(t, t.TempDir(), writing, nil)
	decision := g.ask(t, "item.set").Decision.ID
	for name, test := range map[string]struct {
		secret string
		label  any
		status int
	}{
		"without the secret":         {"", Label{Decision: decision, Outcome: review.Block}, http.StatusUnauthorized},
		"with another secret":        {"x" + g.secret(t), Label{Decision: decision, Outcome: review.Block}, http.StatusUnauthorized},
		"of no decision of this log": {g.secret(t), Label{Decision: newUID(t), Outcome: review.Block}, http.StatusNotFound},
		"of something that is no id": {g.secret(t), Label{Decision: `x","`, Outcome: review.Block}, http.StatusBadRequest},
		"that says something else":   {g.secret(t), Label{Decision: decision, Outcome: review.Confirm}, http.StatusBadRequest},
		"with a member that is none": {g.secret(t), map[string]string{"decision": decision, "outcome": "Block", "by": "me"}, http.StatusBadRequest},
		"with a message without end": {g.secret(t), Label{Decision: decision, Outcome: review.Block, Message: strings.Repeat("x", maxLabel)}, http.StatusRequestEntityTooLarge},
		"by who may":                 {g.secret(t), Label{Decision: decision, Outcome: review.Block, Message: "the user only asked"}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			if status, data := send(t, g.url+LabelsPath, test.secret, test.label); status != test.status {
				t.Errorf("HTTP %d: %s, want %d", status, data, test.status)
			}
		})
	}
	got := g.records(t, audit.Filter{Kind: audit.KindLabel})
	if len(got) != 1 || got[0].Label.Decision != decision || got[0].Label.Outcome != review.Block || !strings.Contains(got[0].Label.By, soleApprover) || got[0].Captured != "Plain" {
		t.Fatalf("labels %+v", got)
	}
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	store, err := capture.Open(filepath.Join(g.work, "calls"), capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := store.Get(got[0].Label.MessageDigest); err != nil || string(text) != `{"message":"the user only asked"}` {
		t.Errorf("the message is kept as %s, %v", text, err)
	}
	if data, err := os.ReadFile(filepath.Join(g.work, "audit.jsonl")); err != nil || strings.Contains(string(data), "only asked") {
		t.Errorf("the log holds what a person wrote, %v", err)
	}
}

const stricter = `
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: good, namespace: default}
spec:
  classes: [{name: Forbidden, base: Write, approval: Forbidden, decider: Skip, otherwise: {outcome: Allow}}]
  tools:
  - {name: item.get, class: ReadOnly}
  - {name: item.set, class: Write, decider: Skip, otherwise: {outcome: Allow}, rules: [{name: no-shop, when: "args.to == 'shop'", outcome: Block, message: not to the shop}]}
`

func replayer(t *testing.T, work, policy string) *Replayer {
	t.Helper()
	folder := t.TempDir()
	write(t, folder, "policy.yaml", policy)
	store, err := capture.Open(filepath.Join(work, "calls"), capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReplayer(t.Context(), ReplayOptions{Manifests: folder, Kept: store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func TestReplay(t *testing.T) {
	g := startAudited(t, t.TempDir(), writing, nil)
	g.ask(t, "item.set")
	g.ask(t, "item.get")
	g.ask(t, "item.none")
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	all := g.records(t, audit.Filter{Kind: audit.KindDecision})
	for name, test := range map[string]struct {
		policy string
		want   []string
	}{
		"by the same policy":     {writing, []string{"Allow RulesPassed", "Allow RulesPassed", "Block UnknownTool"}},
		"by a stricter policy":   {stricter, []string{"Block Rule", "Allow RulesPassed", "Block UnknownTool"}},
		"by another namespace's": {strings.Replace(writing, "namespace: default", "namespace: other", 1), []string{"Block NoPolicy", "Block NoPolicy", "Block NoPolicy"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := replayer(t, g.work, test.policy)
			var got []string
			for i := range all {
				x, err := r.Judge(t.Context(), &all[i])
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(x.Response.Outcome)+" "+x.Response.Reason)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	r := replayer(t, g.work, writing)
	for name, test := range map[string]struct {
		change func(e *audit.Entry)
		want   error
	}{
		"digests only":            {func(e *audit.Entry) { e.Captured = "" }, ErrDigestOnly},
		"a decision of the gate":  {func(e *audit.Entry) { e.By = "gate" }, ErrNotJudged},
		"a call that is not kept": {func(e *audit.Entry) { e.StateDigest = "sha256:" + strings.Repeat("0", 64) }, capture.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			e := all[0]
			test.change(&e)
			if _, err := r.Judge(t.Context(), &e); !errors.Is(err, test.want) {
				t.Errorf("Judge: %v, want %v", err, test.want)
			}
		})
	}
}

func TestWhatWouldHaveStoppedACall(t *testing.T) {
	g := startAudited(t, t.TempDir(), writing, nil)
	g.ask(t, "item.set")
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	e := g.records(t, audit.Filter{Kind: audit.KindDecision})[0]
	for name, test := range map[string]struct {
		policy string
		want   []string // some of the changes
	}{
		"the policy as it is":          {stricter, []string{"the policies given, as they are: Block"}},
		"a class, or a value's source": {writing, []string{"default/good: class Destructive for item.set: Confirm", "default/good: class External for item.set: Confirm", "default/good: /to of item.set has to come from the user: Confirm"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := replayer(t, g.work, test.policy)
			stops, err := r.WhatWouldStop(t.Context(), &e)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, s := range stops {
				got[s.Change+": "+string(s.Outcome)] = true
			}
			for _, want := range test.want {
				if !got[want] {
					t.Errorf("%q is not among %v", want, got)
				}
			}
			if got["default/good: /id of item.set has to come from the user: Confirm"] {
				t.Error("a value that is the user's own is said to stop the call")
			}
			if again, err := r.Judge(t.Context(), &e); err != nil || (again.Response.Outcome == review.Allow) != (test.policy == writing) {
				t.Errorf("the policies given are no longer in force: %+v, %v", again, err)
			}
		})
	}
}

func newUID(t *testing.T) string {
	t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	return id.String()
}

// Every metric that serve adds stands in the reference.
func TestMetricsOfTheLogAreDocumented(t *testing.T) {
	g := startAudited(t, t.TempDir(), writing, func(c *Config) {
		c.Audit.Sinks, c.Audit.Stdout = []string{"stdout"}, io.Discard
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(data)) {
		name, ok := strings.CutPrefix(line, "# TYPE gatewright_audit_")
		if !ok {
			continue
		}
		found++
		name, _, _ = strings.Cut(name, " ")
		if !strings.Contains(string(page), "| `gatewright_audit_"+name+"` |") {
			t.Errorf("gatewright_audit_%s is not in docs/reference/metrics.md", name)
		}
	}
	if found < 9 {
		t.Errorf("%d metrics of the log", found)
	}
}
