package gate

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

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

// A body that never ends must not keep other namespaces from the gate, nor more of its own than were let in.
func TestBodiesThatAreReadAreBounded(t *testing.T) {
	f := newFixture(t)
	f.gate.reading = newSlots(2)
	body, end := io.Pipe()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, review.Path, body)
		r.Header.Set("Content-Type", "application/json")
		f.gate.ServeHTTP(httptest.NewRecorder(), r)
	}()
	for f.gate.reading.inUse() == 0 {
		runtime.Gosched()
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, review.Path, strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	f.gate.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), string(CodeTooManyRequests)) {
		t.Errorf("while another body of the namespace is read: %d %s", w.Code, w.Body)
	}
	_ = end.Close()
	<-answered
	if n := f.gate.reading.inUse(); n != 0 {
		t.Errorf("%d bodies are still being read", n)
	}
}
