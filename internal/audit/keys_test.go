package audit

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestARotatedAuditKeySignsOnceItIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	c := clocktesting.NewFakePassiveClock(now)
	keys, err := LoadOrCreateKeys(path, c)
	if err != nil {
		t.Fatal(err)
	}
	head := Head{Seq: 1, Digest: noDigest}
	before := keys.Checkpoint(head, now)
	next, err := RotateKeys(path, c)
	if err != nil {
		t.Fatal(err)
	}
	if k := keys.Checkpoint(head, now); k.KID != before.KID {
		t.Errorf("%s signs before the file was read again", k.KID)
	}
	if err := keys.Reload(); err != nil {
		t.Fatal(err)
	}
	after := keys.Checkpoint(head, now)
	if after.KID != next || next == before.KID {
		t.Errorf("%s signs, want %s", after.KID, next)
	}
	for _, k := range []Checkpoint{before, after} {
		if known, good := k.check(keys.Public()); !known || !good {
			t.Errorf("a checkpoint of %s: known %t, good %t", k.KID, known, good)
		}
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := keys.Reload(); err == nil || keys.KID() != next {
		t.Errorf("Reload: %v; %s signs, want %s", err, keys.KID(), next)
	}
}
