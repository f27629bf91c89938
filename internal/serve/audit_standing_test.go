package serve

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/records"
)

// rewrite does what somebody without the key can: leave the checkpoints out, turn what was blocked into what was allowed,
// and chain the rest anew.
func rewrite(t *testing.T, log []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	prev, seq := "sha256:"+strings.Repeat("0", 64), 0
	for line := range strings.Lines(string(log)) {
		_, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), `"kind":`)
		if !ok {
			t.Fatalf("no kind in %s", line)
		}
		if strings.HasPrefix(rest, `"checkpoint"`) {
			continue
		}
		seq++
		forged := fmt.Sprintf(`{"v":1,"seq":%d,"prev":%q,"kind":`, seq, prev) + strings.ReplaceAll(rest, `"outcome":"Block"`, `"outcome":"Allow"`)
		prev = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(forged)))
		out.WriteString(forged + "\n")
	}
	if _, err := audit.Verify(bytes.NewReader(out.Bytes())); err != nil || !strings.Contains(out.String(), `"outcome":"Allow"`) {
		t.Fatalf("the forgery is none: %v", err)
	}
	return out.Bytes()
}

// used is the folder of a gate that has blocked a call, signed its log and stopped.
func used(t *testing.T) (work string) {
	t.Helper()
	work = t.TempDir()
	g := startAudited(t, work, writing, nil)
	if r := g.ask(t, "item.drop"); r.Outcome != review.Block {
		t.Fatalf("%+v", r)
	}
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	return work
}

// standing is what is changed of the folder of a gate before it starts again.
type standing struct {
	work string
	log  []byte
}

func (s *standing) path(name string) string { return filepath.Join(s.work, name) }

func (s *standing) put(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(s.path(name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *standing) remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(s.path(name)); err != nil {
		t.Fatal(err)
	}
}

func (s *standing) head(t *testing.T) audit.Head {
	t.Helper()
	head, err := audit.EndOf(t.Context(), s.path("audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return head
}

const outsideName = "audit.jsonl" + audit.CheckpointSuffix

// forge puts a rewritten log in place, with no checkpoint anywhere.
func (s *standing) forge(t *testing.T) {
	t.Helper()
	s.put(t, "audit.jsonl", rewrite(t, s.log))
	s.remove(t, outsideName)
}

func TestAGateSignsNoLogThatNothingVouchesFor(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, s *standing, c *Config)
		want   error
		adopts bool
	}{
		"a log that is its own":                        {func(*testing.T, *standing, *Config) {}, nil, false},
		"its own log, with nothing kept outside":       {func(t *testing.T, s *standing, _ *Config) { s.remove(t, outsideName) }, nil, false},
		"a log written anew, and no checkpoints":       {func(t *testing.T, s *standing, _ *Config) { s.forge(t) }, audit.ErrUnsigned, false},
		"a log written anew, and its real checkpoints": {func(t *testing.T, s *standing, _ *Config) { s.put(t, "audit.jsonl", rewrite(t, s.log)) }, audit.ErrBehind, false},
		"a log written anew, and a checkpoint that was made up": {func(t *testing.T, s *standing, _ *Config) {
			kept, err := audit.ReadCheckpoints(s.path(outsideName))
			if err != nil {
				t.Fatal(err)
			}
			s.forge(t)
			made := kept[0]
			made.Head = s.head(t)
			line, err := json.Marshal(made)
			if err != nil {
				t.Fatal(err)
			}
			s.put(t, outsideName, append(line, '\n'))
		}, audit.ErrUnsigned, false},
		"a log to take over that is another one": {func(t *testing.T, s *standing, c *Config) {
			c.Audit.Adopt = s.head(t).String()
			s.forge(t)
		}, audit.ErrUnsigned, false},
		"a log to take over as it is": {func(t *testing.T, s *standing, c *Config) {
			s.forge(t)
			c.Audit.Adopt = s.head(t).String()
		}, nil, true},
		"a log from before there was a key": {func(t *testing.T, s *standing, _ *Config) {
			s.forge(t)
			s.remove(t, "audit-key.json")
		}, nil, true},
		"a key without a log, as after a first start that saw no call": {func(t *testing.T, s *standing, _ *Config) {
			s.remove(t, "audit.jsonl")
			s.remove(t, outsideName)
		}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &standing{work: used(t)}
			var err error
			if s.log, err = os.ReadFile(s.path("audit.jsonl")); err != nil {
				t.Fatal(err)
			}
			var c Config
			test.change(t, s, &c)
			before := s.head(t)
			if test.want != nil {
				s.refused(t, c, test.want)
				return
			}
			g := startAudited(t, s.work, writing, func(into *Config) { into.Audit.Adopt = c.Audit.Adopt })
			g.ask(t, "item.get")
			if err := g.stop(); err != nil {
				t.Fatal(err)
			}
			s.signed(t, g, before, test.adopts)
		})
	}
}

// refused starts a gate that must not start, and must leave the log as it was.
func (s *standing) refused(t *testing.T, c Config, want error) {
	t.Helper()
	before := s.head(t)
	c.Manifests, c.Listen, c.Caller = t.TempDir(), "127.0.0.1:0", "a/b"
	c.AuditLog, c.ApprovalLog, c.Audit.Key = s.path("audit.jsonl"), s.path("approvals.jsonl"), s.path("audit-key.json")
	err := Run(t.Context(), c)
	if !errors.Is(err, want) || errors.Is(want, audit.ErrUnsigned) && !strings.Contains(err.Error(), "--audit-adopt "+before.String()) {
		t.Errorf("Run: %v, want %v", err, want)
	}
	if after := s.head(t); after != before {
		t.Errorf("the log goes to %v, and went to %v", after, before)
	}
}

// signed wants the log to be signed to its end, with what was there before taken over or not, and to start as it is again.
func (s *standing) signed(t *testing.T, g *auditedGate, before audit.Head, adopts bool) {
	t.Helper()
	keys, err := audit.ReadPublicKeys(s.path("audit-key.json"))
	if err != nil {
		t.Fatal(err)
	}
	outside, err := audit.ReadCheckpoints(s.path(outsideName))
	if err != nil {
		t.Fatal(err)
	}
	v, err := audit.NewVerifier(audit.Evidence{Keys: keys, Checkpoints: outside})
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(s.path("audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Part(bytes.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	wantAdopted := uint64(0)
	if adopts {
		wantAdopted = before.Seq
	}
	if got, err := v.End(); err != nil || got.Signed != got.Head.Seq || got.Adopted != wantAdopted {
		t.Errorf("%+v, %v: want lines up to %d taken over", got, err, wantAdopted)
	}
	if got := strings.Contains(g.log.String(), "taken over as it is"); got != adopts {
		t.Errorf("the gate's log says so: %t, want %t", got, adopts)
	}
	again := startAudited(t, s.work, writing, nil)
	if err := again.stop(); err != nil {
		t.Error(err)
	}
	if n := len(again.records(t, audit.Filter{Kind: audit.KindAdopted})); n > 1 || (n == 1) != adopts {
		t.Errorf("%d records of kind adopted", n)
	}
}

func TestTheHeadOfALogToTakeOverIsChecked(t *testing.T) {
	c := Config{Manifests: "m", Listen: "127.0.0.1:0", Caller: "a/b", AuditLog: "audit.jsonl", Audit: records.Config{Adopt: "all of it"}}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--audit-adopt") {
		t.Errorf("Validate: %v", err)
	}
}
