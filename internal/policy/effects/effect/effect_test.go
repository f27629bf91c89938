package effect_test

import (
	"testing"

	"gatewright.dev/gatewright/internal/policy/effects/effect"
)

func TestSet(t *testing.T) {
	tests := map[string]struct {
		set                                       effect.Set
		wantRead, wantWrite, wantDelete, wantSend bool
	}{
		"nothing known is the worst":        {0, false, true, true, true},
		"an undefined bit is the worst":     {1 << 7, false, true, true, true},
		"a read is only a read":             {effect.Reads, true, false, false, false},
		"a write neither deletes nor sends": {effect.Reads | effect.Writes, false, true, false, false},
		"whoever deletes also writes":       {effect.Deletes, false, true, true, false},
		"whoever sends also writes":         {effect.Sends, false, true, false, true},
		"the worst is everything":           {effect.Worst, false, true, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := [4]bool{test.set.IsRead(), test.set.Writes(), test.set.Deletes(), test.set.Sends()}
			if want := [4]bool{test.wantRead, test.wantWrite, test.wantDelete, test.wantSend}; got != want {
				t.Errorf("read, writes, deletes, sends = %v, want %v", got, want)
			}
		})
	}
}
