package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/questions"
)

const learnedPrint = "sha256:0000000000000000000000000000000000000000000000000000000000000002"

// askingPolicy allows what is asked for by more than a bar.
func askingPolicy(url, fingerprint string, bar int, calibration string) string {
	return fmt.Sprintf(`
apiVersion: gatewright.dev/v1alpha1
kind: DeciderModel
metadata: {name: outside}
spec:
  runtime: External
  external: {url: %q, model: m, maxInFlight: 4}
  allowedNamespaces: {from: All}
  requireVerified: Optional
%s---
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: p, namespace: agents}
spec:
  deciderRef: {name: outside, fingerprint: %q}
  classes:
  - name: Write
    decider: Ask
    questions: [asked]
    thresholds: [{when: [{question: asked, above: %d}], outcome: Allow}]
    otherwise: {outcome: Confirm}
  tools: [{name: note.write, class: Write}]
`, url, calibration, fingerprint, bar)
}

func folderWith(t *testing.T, content string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// learnedLog has calls of harmless and of dangerous kinds on both sides of 60 percent, with labels, and approvals that
// nobody ever refused.
func learnedLog(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	f, err := audit.Open(path, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 5))
	add := func(r audit.Record) {
		r.Time, r.Caller = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), audit.Caller{Namespace: "agents", ServiceAccount: "agent"}
		if err := f.Enqueue(&r); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		p, outcome := 0.6+0.4*random.Float64(), review.Allow
		if i%2 == 1 {
			p, outcome = 0.6*random.Float64(), review.Block
		}
		id := fmt.Sprintf("019b0000-0000-7000-8000-%012d", i)
		add(audit.Record{
			Kind: audit.KindDecision, ID: id, Tool: "note.write", Class: "Write", Base: "Write", Outcome: review.Confirm, By: "decider",
			UserTurnsDigest: fmt.Sprintf("sha256:%064x", i), Obligations: []review.Obligation{{Outcome: review.Confirm, By: "decider", Policy: "ToolPolicy/agents/p"}},
			Deciders: []audit.Asked{{Policy: "ToolPolicy/agents/p", Decider: "outside", Fingerprint: learnedPrint, Answers: map[string]review.Answer{"asked": {Probability: &p}}}},
		})
		add(audit.Record{Kind: audit.KindLabel, Label: &audit.Label{Decision: id, Outcome: outcome, By: "OIDC/somebody"}})
	}
	for i := range 100 {
		add(audit.Record{
			Kind: audit.KindDecision, ID: fmt.Sprintf("019b0000-0000-7000-9000-%012d", i), Tool: "note.move", Class: "Write", Outcome: review.Allow, By: "approval:ta-x",
			Approval: &audit.Approval{Name: fmt.Sprintf("ta-%d", i), Outcome: "Approved"},
		})
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSuggest(t *testing.T) {
	high, low := folderWith(t, askingPolicy("http://127.0.0.1:9", learnedPrint, 95, "")), folderWith(t, askingPolicy("http://127.0.0.1:9", learnedPrint, 20, ""))
	log, short := learnedLog(t, 500), learnedLog(t, 60)
	approvals, digests := filepath.Join(t.TempDir(), "a.jsonl"), `{"id":"1","source":"approvals","tool":{"name":"note.write"},"class":"write","label":"allow","argumentsDigest":"sha256:1","userTurnsDigest":"","policyDigest":"","decidedBy":"x"}`+"\n"
	if err := os.WriteFile(approvals, []byte(strings.Repeat(digests, 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"a bar that asks too often":  {[]string{"--manifests", high, "--audit", log}, exitOK, []string{"looser", "asked above 6", "was 95", "false allow: 0 of", `class "Write": approved 100 of 100`, `tool "note.move"`, "does anybody look?"}},
		"a bar that lets danger run": {[]string{"--manifests", low, "--audit", short}, exitOK, []string{"tighter", "was 20", "not loosened: it is to be tightened"}},
		"too little to loosen":       {[]string{"--manifests", high, "--audit", short}, exitOK, []string{"No change is suggested", "calls labelled block that climb this ladder are enough"}},
		"a floor that needs more":    {[]string{"--manifests", high, "--audit", log, "--maximum-false-allow", "1"}, exitOK, []string{"No change is suggested", "are enough"}},
		"as JSON":                    {[]string{"--manifests", high, "--audit", log, "--format", "json"}, exitOK, []string{`"direction": "loosen"`, `"confirmationsSaved"`}},
		"approvals without texts":    {[]string{"--manifests", high, "--approvals", approvals}, exitOK, []string{`tool "note.write": approved 100 of 100`}},
		"cases without texts":        {[]string{"--manifests", high, "--labels", approvals}, exitUsage, []string{"100 labels hold digests only"}},
		"cases in the place of them": {[]string{"--manifests", high, "--approvals", writeCases(t)}, exitError, []string{"line 1 is no decided approval"}},
		"cases that are judged":      {[]string{"--manifests", writePolicy(t), "--labels", writeCases(t), "--caller", "agents/agent"}, exitOK, []string{"No change is suggested", "no decider was asked"}},
		"nothing to learn from":      {[]string{"--manifests", high}, exitUsage, []string{"name what to learn from"}},
		"nothing to learn for":       {[]string{"--audit", log}, exitUsage, []string{"--manifests is required"}},
		"a floor of nothing":         {[]string{"--manifests", high, "--audit", log, "--maximum-false-allow", "0"}, exitUsage, []string{"no number of labels shows"}},
		"a log that is not there":    {[]string{"--manifests", high, "--audit", "none.jsonl"}, exitError, []string{"none.jsonl"}},
		"another format":             {[]string{"--manifests", high, "--audit", log, "--format", "xml"}, exitUsage, []string{"want yaml or json"}},
		"a harm that is none":        {[]string{"--manifests", high, "--audit", log, "--harm", "0"}, exitUsage, []string{"--harm"}},
		"a share that is none":       {[]string{"--manifests", high, "--audit", log, "--near", "100"}, exitUsage, []string{"--near"}},
		"a time that is none":        {[]string{"--manifests", high, "--audit", log, "--since", "long ago"}, exitUsage, []string{"since"}},
		"a caller that is none":      {[]string{"--manifests", high, "--labels", writeCases(t), "--caller", "x"}, exitUsage, []string{"--caller"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := command(t, "", append([]string{"suggest"}, test.args...)...)
			if code != test.code {
				t.Errorf("exit %d, want %d: %s", code, test.code, errs)
			}
			for _, want := range test.want {
				if !strings.Contains(out+errs, want) {
					t.Errorf("no %q in\n%.1500s%s", want, out, errs)
				}
			}
		})
	}
}

var stated = regexp.MustCompile(`surely ([0-9.]+)`)

// sureDecider answers asked with the number that the user's request holds.
func sureDecider(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p := 0.5
		if found := stated.FindSubmatch(body); found != nil {
			p, _ = strconv.ParseFloat(string(found[1]), 64)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"model": "m", "answers": map[string]any{"asked": map[string]any{"type": "noul", "noul": p}}})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// sureCases are calls of which the decider is as many times too sure as it says.
func sureCases(t *testing.T, n int, times float64) string {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 3))
	var b strings.Builder
	for i := range n {
		logit := 1.5 * random.NormFloat64()
		label := "block"
		if random.Float64() < 1/(1+math.Exp(-logit)) {
			label = "allow"
		}
		fmt.Fprintf(&b, caseLine, fmt.Sprint("c", i), fmt.Sprintf("case %d surely %.4f", i, 1/(1+math.Exp(-logit*times))), "x", "write", label, "A")
	}
	path := filepath.Join(t.TempDir(), "cases.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// printOf asks once and takes the fingerprint of who answered.
func printOf(t *testing.T, url string) string {
	t.Helper()
	d, err := inference.NewSystemOne(inference.SystemOneOptions{ServerOptions: inference.ServerOptions{BaseURL: url, Model: "m", Transport: inference.NewTransport()}})
	if err != nil {
		t.Fatal(err)
	}
	asked, _ := questions.Builtin("asked")
	r, err := d.Decide(t.Context(), inference.Request{State: questions.State{Tool: questions.Tool{Name: "note.write"}}, Questions: []questions.Question{asked}})
	if err != nil {
		t.Fatal(err)
	}
	return r.Fingerprint
}

func TestCalibrate(t *testing.T) {
	url := sureDecider(t)
	printed := printOf(t, url)
	sure, honest, few := sureCases(t, 300, 3), sureCases(t, 300, 1), sureCases(t, 30, 3)
	plain := folderWith(t, askingPolicy(url, printed, 50, ""))
	for name, test := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"a decider that is too sure":           {[]string{sure, "--manifests", plain}, exitOK, []string{"kept: it improves", `name: "outside"`, "fingerprint: " + printed, "yesNoMilli: "}},
		"a decider that means what it says":    {[]string{honest, "--manifests", plain}, exitOK, []string{"not kept"}},
		"too few cases":                        {[]string{few, "--manifests", plain}, exitError, []string{"too few labelled answers", "about 125 in all are enough"}},
		"a check that what is in use fits":     {[]string{honest, "--manifests", plain, "--check"}, exitOK, []string{"not kept"}},
		"a check that what is in use is worse": {[]string{sure, "--manifests", plain, "--check"}, exitFailed, []string{"what is in use is worse by", "no longer fit"}},
		"a decider before there is a policy":   {[]string{filepath.Join("..", "..", "testdata", "evalsets", "public.jsonl"), "--policy-for-cases"}, exitOK, []string{"# YesNo: 454 labelled answers"}},
		"a ladder without its flag":            {[]string{few, "--manifests", plain, "--ladder", "x"}, exitUsage, []string{"are for --policy-for-cases"}},
		"as JSON":                              {[]string{sure, "--manifests", plain, "--format", "json"}, exitOK, []string{`"calibratedFingerprint"`, `"kept: `}},
		"a decider of another fingerprint":     {[]string{few, "--manifests", folderWith(t, askingPolicy(url, learnedPrint, 50, ""))}, exitError, []string{"no decider answered", "DeciderMismatch"}},
		"nothing to calibrate":                 {[]string{few}, exitUsage, []string{"name what to calibrate"}},
		"a gate that is not there":             {[]string{few, "--url", "http://127.0.0.1:1"}, exitError, []string{"no decider answered"}},
		"a minimum that fits any temperature":  {[]string{few, "--manifests", plain, "--minimum", "3"}, exitUsage, []string{"--minimum"}},
		"a margin that is none":                {[]string{few, "--manifests", plain, "--margin", "1"}, exitUsage, []string{"--margin"}},
		"a yes that means nothing":             {[]string{few, "--manifests", plain, "--yes-means", "x=maybe"}, exitUsage, []string{"allow or block"}},
		"a token without a gate":               {[]string{few, "--manifests", plain, "--token-file", "x"}, exitUsage, []string{"--token-file is for --url"}},
		"another format":                       {[]string{few, "--manifests", plain, "--format", "xml"}, exitUsage, []string{"want yaml or json"}},
		"cases that are not there":             {[]string{"none.jsonl", "--manifests", plain}, exitError, []string{"none.jsonl"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := command(t, "", append([]string{"calibrate", "--caller", "agents/agent", "--concurrency", "4"}, test.args...)...)
			if code != test.code {
				t.Errorf("exit %d, want %d: %s%s", code, test.code, out, errs)
			}
			for _, want := range test.want {
				if !strings.Contains(out+errs, want) {
					t.Errorf("no %q in\n%.1500s%s", want, out, errs)
				}
			}
		})
	}
}

var (
	fittedMilli = regexp.MustCompile(`yesNoMilli: ([0-9]+)`)
	namedPrint  = regexp.MustCompile(`deciderRef.fingerprint (sha256:[0-9a-f]{64})`)
)

// TestACalibrationThatIsAppliedFits goes the whole way: what calibrate writes is put into the manifests, the policy is pinned
// to the fingerprint that it names, and then the probabilities fit.
func TestACalibrationThatIsAppliedFits(t *testing.T) {
	url := sureDecider(t)
	printed := printOf(t, url)
	sure := sureCases(t, 300, 3)
	args := []string{"calibrate", sure, "--caller", "agents/agent", "--concurrency", "4", "--manifests"}
	out, errs, code := command(t, "", append(args, folderWith(t, askingPolicy(url, printed, 50, "")))...)
	milli, named := fittedMilli.FindStringSubmatch(out), namedPrint.FindStringSubmatch(out)
	if code != exitOK || milli == nil || named == nil {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	if fitted, _ := strconv.Atoi(milli[1]); fitted < 2000 || fitted > 4500 {
		t.Errorf("fitted %s, the decider is 3 times too sure", milli[1])
	}
	calibration := fmt.Sprintf("  calibration: {fingerprint: %q, yesNoMilli: %s}\n", printed, milli[1])
	applied := folderWith(t, askingPolicy(url, named[1], 50, calibration))
	out, errs, code = command(t, "", append(args, applied, "--check")...)
	if code != exitOK || strings.Contains(out, "is worse by") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	out, errs, code = command(t, "", append(args, folderWith(t, askingPolicy(url, named[1], 50, strings.Replace(calibration, printed, learnedPrint, 1))))...)
	if code != exitError || !strings.Contains(errs, "no decider answered") {
		t.Errorf("temperatures of another fingerprint are applied: exit %d, %s%s", code, out, errs)
	}
}

// TestSuggestFromCasesThatAreJudged goes the whole way: cases are judged by a gate of the manifests, and what is suggested
// tells the dangerous ones that ran.
func TestSuggestFromCasesThatAreJudged(t *testing.T) {
	url := sureDecider(t)
	low := folderWith(t, askingPolicy(url, printOf(t, url), 2, ""))
	out, errs, code := command(t, "", "suggest", "--manifests", low, "--labels", sureCases(t, 200, 1), "--caller", "agents/agent", "--concurrency", "4")
	for _, want := range []string{"# 200 calls climbed ladders of these policies, 200 of them labelled", "class Write in ToolPolicy/agents/p: tighter", "was 2\n"} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("exit %d, no %q in\n%s%s", code, want, out, errs)
		}
	}
}
