package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference"
)

// late is a decider that is reached from its nth request on, and then refuses.
type late struct{ reached, asked int }

func (l *late) Decide(context.Context, inference.Request) (inference.Result, error) {
	l.asked++
	if l.reached == 0 || l.asked < l.reached {
		return inference.Result{}, &inference.Error{Reason: inference.Unreachable}
	}
	return inference.Result{}, &inference.Error{Reason: inference.Refused}
}

func TestIdentifyWaitsForTheNetwork(t *testing.T) {
	tests := map[string]struct {
		reached    int
		wantReason inference.Reason
		within     time.Duration
	}{
		"a decider that is reached is asked once":              {1, inference.Refused, 0},
		"one that is reached after some seconds is waited for": {5, inference.Refused, 10 * time.Second},
		"one that is never reached is given up after a minute": {0, inference.Unreachable, time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, err := identify(t.Context(), &v1alpha1.DeciderModelSpec{}, &late{reached: test.reached}, clock.RealClock{})
				if got := inference.ReasonOf(err); got != test.wantReason {
					t.Errorf("reason %s, want %s", got, test.wantReason)
				}
				if took := time.Since(start); took > test.within {
					t.Errorf("took %v, want at most %v", took, test.within)
				}
			})
		})
	}
}
