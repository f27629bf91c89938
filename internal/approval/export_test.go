package approval

import (
	"testing"

	"k8s.io/utils/clock"
)

// Reopening is a journal that is opened anew for every call.
func Reopening(t *testing.T, path string, c clock.PassiveClock, seals *Seals) Store {
	t.Helper()
	return &restarting{t: t, path: path, clock: c, seals: seals}
}
