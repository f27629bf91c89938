package serve

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
)

// smallDisk mounts a file system of 64 KiB in memory, where that is allowed.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skip("mounting takes root: the same fault is made by a limit of the process in internal/audit")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmounting: %v", err)
		}
	})
	return dir
}

// A gate whose disk is full blocks what may change anything, with its reason, and goes on when there is room again. What it
// allowed before is in the log, and so are the refusals, once there is room.
func TestAFullDiskBlocksAndComesBack(t *testing.T) {
	disk := smallDisk(t)
	log := filepath.Join(disk, "audit.jsonl")
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, []byte(strings.Repeat("x", 40<<10)), 0o600); err != nil {
		t.Fatal(err)
	}
	g := startAudited(t, t.TempDir(), writing, func(c *Config) { c.AuditLog, c.Audit.Key, c.Audit.Capture = log, "", "" })
	answered := map[string]review.Outcome{}
	blocked := 0
	for i := 0; i < 400 && blocked < 5; i++ {
		r := g.ask(t, "item.set")
		answered[r.Decision.ID] = r.Outcome
		switch {
		case r.Outcome == review.Block && r.Reason == "AuditUnavailable" && r.Retryable:
			blocked++
		case r.Outcome != review.Allow:
			t.Fatalf("%+v", r)
		}
	}
	if blocked == 0 {
		t.Fatal("the disk was never full")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(20 * time.Millisecond) {
		r := g.ask(t, "item.set")
		answered[r.Decision.ID] = r.Outcome
		if r.Outcome == review.Allow {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the gate does not come back: %+v", r)
		}
	}
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := audit.Verify(in); err != nil {
		t.Error(err)
	}
	got := map[string]review.Outcome{}
	if err := audit.QueryParts(t.Context(), []string{log}, audit.Filter{Kind: audit.KindDecision}, func(e audit.Entry) error { got[e.ID] = e.Outcome; return nil }); err != nil {
		t.Fatal(err)
	}
	for id, outcome := range answered {
		if got[id] != outcome {
			t.Errorf("answered %s, and the log says %q", outcome, got[id])
		}
	}
}
