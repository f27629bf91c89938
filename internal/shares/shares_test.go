package shares

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOneNamespaceCannotTakeEverySlot(t *testing.T) {
	s := New(4)
	steps := []struct {
		namespace string
		want      bool
	}{{"loud", true}, {"loud", true}, {"loud", false}, {"quiet", true}, {"other", true}, {"quiet", false}}
	for i, step := range steps {
		if got := s.Take(step.namespace); got != step.want {
			t.Errorf("step %d: %s got a slot: %v", i, step.namespace, got)
		}
	}
	s.Give("loud")
	if !s.Take("quiet") || s.InUse() != 4 {
		t.Errorf("a slot that was given back is not free; %d in use", s.InUse())
	}
	for _, n := range []string{"loud", "quiet", "quiet", "other"} {
		s.Give(n)
	}
	if s.InUse() != 0 || len(s.share) != 0 {
		t.Errorf("%d in use, %v left", s.InUse(), s.share)
	}
	if !New(1).Take("only") {
		t.Error("a gate with one slot judges nothing")
	}
}

func TestPlacesByHolder(t *testing.T) {
	for name, test := range map[string]struct {
		max   int
		takes string // a letter for each caller
		want  []bool
	}{
		"half of them for one caller":           {4, "aaa", []bool{true, true, false}},
		"the other half for another":            {4, "aaabbb", []bool{true, true, false, true, true, false}},
		"no more than there are, for whoever":   {2, "abc", []bool{true, true, false}},
		"the only one for whoever comes first":  {1, "ab", []bool{true, false}},
		"the odd one counts for either of them": {3, "aaabb", []bool{true, true, false, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(test.max)
			var got []bool
			for _, caller := range test.takes {
				got = append(got, p.Take(string(caller)))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for i, caller := range test.takes {
				if got[i] {
					p.Give(string(caller))
				}
			}
			if p.InUse() != 0 || len(p.share) != 0 {
				t.Errorf("%d in use, shares %v", p.InUse(), p.share)
			}
		})
	}
}
