package gate

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/questions"
)

// slowDisk takes its time for each batch.
type slowDisk struct {
	mu   sync.Mutex
	took time.Duration
	log  bytes.Buffer
}

func (d *slowDisk) Append(lines []byte) error {
	<-time.After(d.took)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log.Write(lines)
	return nil
}

func (d *slowDisk) Close() error { return nil }

// With a disk that is slower than the calls come, there are as many records as answers, counted ones included; no Allow of
// what may change anything is without one, and who is refused is told why.
func TestASlowDiskLosesNothing(t *testing.T) {
	disk := &slowDisk{took: 20 * time.Millisecond}
	log := audit.New(disk, audit.Head{}, audit.Options{Queue: 12})
	f := newFixture(t, func(o *Options) { o.Recorder = log })
	f.decider.answers = questions.Answers{"matches_request": yes(0.9)}
	const callers, each = 24, 20
	var mu sync.Mutex
	answered := map[string]*review.Response{}
	var all sync.WaitGroup
	for w := range callers {
		all.Go(func() {
			for i := range each {
				tool := []string{"item.update", "item.get", "item.none"}[(w+i)%3]
				call := f.call(tool, func(r *review.Request) { r.Context.Session = string(rune('a' + w)) })
				recorded := post(f.gate, review.Path, body(t, call))
				var out review.ToolCallReview
				if err := json.Unmarshal(recorded.Body.Bytes(), &out); err != nil || recorded.Code != http.StatusOK {
					t.Errorf("HTTP %d: %s", recorded.Code, recorded.Body)
					return
				}
				mu.Lock()
				answered[out.Response.Decision.ID] = out.Response
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	checkAnswers(t, disk.log.Bytes(), answered, callers*each)
}

func checkAnswers(t *testing.T, log []byte, answered map[string]*review.Response, want int) {
	t.Helper()
	summary, err := audit.Verify(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]audit.Entry{} // what the log says last of a decision
	unrecorded := uint64(0)
	if err := audit.Query(t.Context(), bytes.NewReader(log), audit.Filter{}, func(e audit.Entry) error {
		if e.Kind == audit.KindDecision {
			last[e.ID] = e
		}
		unrecorded += e.Unrecorded
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	missing, refused, allowed := uint64(0), 0, 0
	for id, r := range answered {
		e, ok := last[id]
		switch {
		case !ok && r.Outcome == review.Block:
			missing++
		case !ok:
			t.Errorf("%s of %s has no record", r.Outcome, id)
		case e.Outcome != r.Outcome || e.Reason != r.Reason:
			t.Errorf("answered %s %s, recorded %s %s", r.Outcome, r.Reason, e.Outcome, e.Reason)
		}
		if r.Outcome == review.Allow {
			allowed++
		}
		if r.Reason == string(ReasonAuditUnavailable) {
			refused++
			if r.Outcome != review.Block || !r.Retryable || r.Remedy != review.RemedyRetry {
				t.Errorf("a refusal %+v does not say that a retry may help", r)
			}
		} else if r.Outcome == review.Block && r.Reason != string(policy.ReasonUnknownTool) {
			t.Errorf("refused for %s", r.Reason)
		}
	}
	if len(answered) != want || missing != unrecorded || summary.Records == 0 {
		t.Errorf("%d answers, %d of them without a record, of which the log knows %d", len(answered), missing, unrecorded)
	}
	if refused == 0 || allowed == 0 {
		t.Errorf("%d refused and %d allowed: the disk was not slow enough, or too slow, to show anything", refused, allowed)
	}
}
