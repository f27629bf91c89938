package approval_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approval/conformance"
)

func seals(t *testing.T, c *clocktesting.FakePassiveClock) *approval.Seals {
	t.Helper()
	s, err := approval.OpenSeals("", c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMemoryConforms(t *testing.T) {
	conformance.Run(t, func(_ *testing.T, c *clocktesting.FakePassiveClock) conformance.Subject {
		m := approval.NewMemory(c)
		return conformance.Subject{Store: m, Verify: m.Verify}
	})
}

func TestFileConforms(t *testing.T) {
	conformance.Run(t, func(t *testing.T, c *clocktesting.FakePassiveClock) conformance.Subject {
		f, err := approval.OpenFile(filepath.Join(t.TempDir(), "approvals"), c, seals(t, c))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
		return conformance.Subject{Store: f, Verify: f.Verify}
	})
}

// A restart between any two calls changes nothing.
func TestAFileOpenedAnewForEveryCallConforms(t *testing.T) {
	conformance.Run(t, func(t *testing.T, c *clocktesting.FakePassiveClock) conformance.Subject {
		s := seals(t, c)
		return conformance.Subject{Store: approval.Reopening(t, filepath.Join(t.TempDir(), "approvals"), c, s), Verify: s.Verify}
	})
}

func TestANamespaceHasAtMost1000Pending(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	c := clocktesting.NewFakePassiveClock(noon)
	store := approval.NewMemory(c)
	raise := func(caller, tool string) error {
		_, err := store.Raise(t.Context(), approval.Call{
			Binding: approval.Binding{Caller: caller, Tool: tool}, RaisedAt: c.Now(), ExpiresAt: c.Now().Add(time.Minute),
		})
		return err
	}
	of := func(i int) string { return fmt.Sprintf("shop/agent%d", i/approval.MaxPendingPerCaller) }
	for i := range approval.MaxPendingPerNamespace {
		if err := raise(of(i), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := raise("shop/another", "t"); err == nil {
		t.Error("one more was raised")
	}
	if err := raise("bank/agent", "t"); err != nil {
		t.Errorf("another namespace cannot raise: %v", err)
	}
	c.SetTime(noon.Add(time.Minute))
	if err := raise(of(0), "t"); err != nil {
		t.Errorf("after the others have expired: %v", err)
	}
}
