package policy

import (
	"testing"

	"gatewright.dev/gatewright/internal/testkit"
)

// What rules allocate is pinned, so that growth is a decision. The call passes the checks for unknown tools, class,
// scopes, paths and hosts.
func TestAllocationsOfRules(t *testing.T) {
	celRule := compiled(t, "p", testkit.WithTool("files.read", read, testkit.Rule("large", "args.limit > 100", orBlock)))
	for name, c := range map[string]struct {
		set  *Set
		most float64
	}{
		// The judgement, its evaluations and the scopes held.
		"one policy":         {NewSet([]*Compiled{typical(t, "p", testkit.Namespace)}), 3},
		"one policy of 1000": {crowd(t, 1000), 3},
		// Another list of scopes.
		"two policies": {NewSet([]*Compiled{typical(t, "p", testkit.Namespace), typical(t, "q", testkit.Namespace)}), 4},
		"a CEL rule":   {NewSet([]*Compiled{celRule}), 10},
	} {
		t.Run(name, func(t *testing.T) {
			r := typicalCall()
			var v Verdict
			got := testing.AllocsPerRun(200, func() { v = c.set.Judge(t.Context(), r).Settle(nil, nil) })
			if v.Outcome != Allow {
				t.Fatalf("got %+v", show(v))
			}
			if got > c.most {
				t.Errorf("%v allocations, at most %v", got, c.most)
			}
		})
	}
}
