package policy

import (
	"context"
	"testing"

	"gatewright.dev/gatewright/internal/testkit"
)

func TestAllocationsOfRules(t *testing.T) {
	s := NewSet([]*Compiled{typical(t, "p", testkit.Namespace)})
	r := typicalCall()
	var v Verdict
	got := testing.AllocsPerRun(200, func() { v = s.Judge(context.Background(), r).Settle(nil, nil) })
	if v.Outcome != Allow {
		t.Fatalf("got %+v", show(v))
	}
	t.Logf("%v allocations", got)
}
