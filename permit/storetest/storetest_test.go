package storetest_test

import (
	"path/filepath"
	"testing"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/permit"
	"gatewright.dev/gatewright/permit/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, c clock.PassiveClock) func() permit.Store {
		return func() permit.Store { return permit.NewMemory(c) }
	}, true)
}

func TestFile(t *testing.T) {
	storetest.Run(t, func(t *testing.T, c clock.PassiveClock) func() permit.Store {
		path := filepath.Join(t.TempDir(), "used")
		var last *permit.File
		end := func() {
			if last == nil {
				return
			}
			if err := last.Close(); err != nil {
				t.Error(err)
			}
		}
		t.Cleanup(end)
		return func() permit.Store {
			end()
			f, err := permit.OpenFile(path, c)
			if err != nil {
				t.Fatal(err)
			}
			last = f
			return f
		}
	}, false)
}
