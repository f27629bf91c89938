package otlpsink

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	logspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/proto"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
)

// receiver is an OTLP receiver over HTTP.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	hold   chan struct{} // if not nil, an answer waits for it
	lines  []string
	tools  []string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{status: http.StatusOK}
	r.Server = httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) take(w http.ResponseWriter, q *http.Request) {
	if r.hold != nil {
		<-r.hold
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status != http.StatusOK || q.URL.Path != "/v1/logs" {
		http.Error(w, "no", max(r.status, http.StatusNotFound))
		return
	}
	var body io.Reader = q.Body
	if q.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(q.Body)
		if err != nil {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		body = z
	}
	data, err := io.ReadAll(body)
	var export logspb.ExportLogsServiceRequest
	if err != nil || proto.Unmarshal(data, &export) != nil {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	for _, resource := range export.ResourceLogs {
		for _, scope := range resource.ScopeLogs {
			for _, record := range scope.LogRecords {
				r.lines = append(r.lines, record.Body.GetStringValue())
				for _, a := range record.Attributes {
					if a.Key == "gatewright.tool" {
						r.tools = append(r.tools, a.Value.GetStringValue())
					}
				}
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) got() (lines, tools []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.lines...), append([]string{}, r.tools...)
}

// mirrored is a log in a file with a mirror to a receiver.
func mirrored(t *testing.T, o Options) (*audit.File, *audit.Mirror, string) {
	t.Helper()
	m, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "audit.log")
	f, err := audit.Open(path, audit.Options{Mirror: m.Offer})
	if err != nil {
		t.Fatal(err)
	}
	return f, m, path
}

func appendTo(t *testing.T, f *audit.File, n int) {
	t.Helper()
	for i := range n {
		r := &audit.Record{Time: time.Now(), ID: fmt.Sprint(i), Tool: fmt.Sprint("tool-", i), Outcome: review.Block, Reason: "Forbidden"}
		if err := f.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

func closeAll(t *testing.T, f *audit.File, m *audit.Mirror) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAReceiverGetsTheLinesOfTheLog(t *testing.T) {
	r := newReceiver(t)
	f, m, _ := mirrored(t, Options{URL: r.URL, Version: "test"})
	appendTo(t, f, 5)
	closeAll(t, f, m)
	lines, tools := r.got()
	if diff := cmp.Diff([]string{"tool-0", "tool-1", "tool-2", "tool-3", "tool-4"}, tools); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s, err := audit.Verify(strings.NewReader(strings.Join(lines, "\n") + "\n")); err != nil || s.Head != f.Head() {
		t.Errorf("what arrived is not the chain: %+v, %v; want %+v", s, err, f.Head())
	}
	if m.Sent() != 5 || m.Dropped() != 0 {
		t.Errorf("%d sent, %d dropped", m.Sent(), m.Dropped())
	}
}

func TestAReceiverThatFailsHoldsUpNothing(t *testing.T) {
	for name, test := range map[string]struct {
		away   bool
		status int
	}{
		"it is away":      {away: true},
		"it refuses":      {status: http.StatusForbidden},
		"it has too much": {status: http.StatusTooManyRequests},
		"it breaks":       {status: http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t)
			if test.away {
				r.Close()
			}
			r.answer(test.status)
			var warned int
			f, m, _ := mirrored(t, Options{URL: r.URL, Timeout: 2 * time.Second, Warn: func(error) { warned++ }})
			appendTo(t, f, 20)
			closeAll(t, f, m)
			if m.Dropped() != 20 || m.Sent() != 0 || warned != 1 {
				t.Errorf("%d sent, %d dropped, warned %d times; want 20 dropped and one warning", m.Sent(), m.Dropped(), warned)
			}
		})
	}
}

func TestASlowReceiverIsNotWaitedFor(t *testing.T) {
	r := newReceiver(t)
	r.hold = make(chan struct{})
	f, m, _ := mirrored(t, Options{URL: r.URL, QueueBytes: 4 << 10, Timeout: 20 * time.Second})
	appendTo(t, f, 200) // returns while the receiver holds its first answer
	if m.Dropped() == 0 {
		t.Error("nothing was dropped: the queue has no bound")
	}
	close(r.hold)
	closeAll(t, f, m)
	if got := m.Sent() + m.Dropped(); got != 200 || m.Sent() == 0 {
		t.Errorf("%d sent and %d dropped, want 200 together", m.Sent(), m.Dropped())
	}
}

func TestNewRefuses(t *testing.T) {
	for _, bad := range []string{"", "localhost:4318", "ftp://localhost", "http://"} {
		if _, err := New(t.Context(), Options{URL: bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
