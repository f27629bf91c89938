package gate

import "testing"

func TestOneNamespaceCannotTakeEverySlot(t *testing.T) {
	s := newSlots(4)
	steps := []struct {
		namespace string
		want      bool
	}{{"loud", true}, {"loud", true}, {"loud", false}, {"quiet", true}, {"other", true}, {"quiet", false}}
	for i, step := range steps {
		if got := s.take(step.namespace); got != step.want {
			t.Errorf("step %d: %s got a slot: %v", i, step.namespace, got)
		}
	}
	s.give("loud")
	if !s.take("quiet") || s.inUse() != 4 {
		t.Errorf("a slot that was given back is not free; %d in use", s.inUse())
	}
	for _, n := range []string{"loud", "quiet", "quiet", "other"} {
		s.give(n)
	}
	if s.inUse() != 0 || len(s.share) != 0 {
		t.Errorf("%d in use, %v left", s.inUse(), s.share)
	}
	if !newSlots(1).take("only") {
		t.Error("a gate with one slot judges nothing")
	}
}
