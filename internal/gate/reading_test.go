package gate

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/shares"
)

// A body that never ends must not keep other namespaces from the gate, nor more of its own than were let in.
func TestBodiesThatAreReadAreBounded(t *testing.T) {
	f := newFixture(t)
	f.gate.reading = shares.New(2)
	body, end := io.Pipe()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, review.Path, body)
		r.Header.Set("Content-Type", "application/json")
		f.gate.ServeHTTP(httptest.NewRecorder(), r)
	}()
	for f.gate.reading.InUse() == 0 {
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
	if n := f.gate.reading.InUse(); n != 0 {
		t.Errorf("%d bodies are still being read", n)
	}
}
