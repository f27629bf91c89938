package labeling

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/capture"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const (
	plainID   = "01a22c40-742e-78c3-acf5-000000000000"
	digestID  = "01a22c40-742e-78c3-acf5-000000000001"
	unknownID = "01a22c40-742e-78c3-acf5-00000000000f"
)

// kit is a labeler over a real log with two decisions, of one of which the call is kept.
type kit struct {
	*Labeler
	path     string
	store    *capture.Store
	registry *prometheus.Registry
	broken   error // what becomes of appending
	log      *audit.File
}

func (k *kit) Append(ctx context.Context, r *audit.Record) error {
	if k.broken != nil {
		return k.broken
	}
	return k.log.Append(ctx, r)
}

func newKit(t *testing.T, change func(*Options)) *kit {
	t.Helper()
	k := &kit{path: filepath.Join(t.TempDir(), "audit.jsonl"), registry: prometheus.NewRegistry()}
	var err error
	if k.log, err = audit.Open(k.path, audit.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.log.Close() })
	if k.store, err = capture.Open(t.TempDir(), capture.Options{Write: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.store.Close() })
	for id, captured := range map[string]string{plainID: "Plain", digestID: ""} {
		r := audit.Record{Kind: audit.KindDecision, ID: id, Time: noon, Outcome: review.Allow, Class: "Write", Captured: captured}
		if err := k.log.Append(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Log: k, Path: k.path, Store: k.store, Clock: clocktesting.NewFakePassiveClock(noon), Logger: slog.New(slog.DiscardHandler), Registry: k.registry}
	if change != nil {
		change(&o)
	}
	if k.Labeler, err = New(o); err != nil {
		t.Fatal(err)
	}
	return k
}

// written are the labels in the log.
func (k *kit) written(t *testing.T) (out []audit.Entry) {
	t.Helper()
	err := audit.QueryParts(t.Context(), []string{k.path}, audit.Filter{Kind: audit.KindLabel}, func(e audit.Entry) error {
		out = append(out, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestALabelIsARecordOfItsOwn(t *testing.T) {
	for name, test := range map[string]struct {
		label        Label
		change       func(*Options)
		wantCaptured string
		wantSeries   string
	}{
		"without a word":                         {Label{Decision: plainID, Outcome: review.Block, By: "LocalSecret:kim"}, nil, "", `class="Write",label="block",outcome="Allow"`},
		"with one, where the call is kept":       {Label{Decision: plainID, Outcome: review.Allow, By: "LocalSecret:kim", Message: "<b>\u202Efine"}, nil, "Plain", `class="Write",label="allow",outcome="Allow"`},
		"with one, where the call is not":        {Label{Decision: digestID, Outcome: review.Block, By: "KubernetesUser:kim", Message: "no"}, nil, "", `class="Write",label="block",outcome="Allow"`},
		"with one, where nothing is kept":        {Label{Decision: plainID, Outcome: review.Block, By: "LocalSecret:kim", Message: "no"}, func(o *Options) { o.Store = nil }, "", `class="Write",label="block",outcome="Allow"`},
		"of any id where there is no file of it": {Label{Decision: unknownID, Outcome: review.Block, By: "LocalSecret:kim", Message: "no"}, func(o *Options) { o.Path = "" }, "", `class="",label="block",outcome=""`},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, test.change)
			if err := k.Give(t.Context(), test.label); err != nil {
				t.Fatal(err)
			}
			got := k.written(t)
			if len(got) != 1 || !got[0].Time.Equal(noon) || got[0].Captured != test.wantCaptured || (got[0].Label.MessageDigest != "") != (test.label.Message != "") {
				t.Fatalf("got %+v", got)
			}
			want := audit.Label{Decision: test.label.Decision, Outcome: test.label.Outcome, By: test.label.By, MessageDigest: got[0].Label.MessageDigest}
			if diff := cmp.Diff(&want, got[0].Label); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			k.isKept(t, got[0].Label.MessageDigest, test.wantCaptured != "")
			series := "# HELP gatewright_labels_total Labels given to decisions, each once, by the class and outcome of the decision and what would have been right.\n" +
				"# TYPE gatewright_labels_total counter\ngatewright_labels_total{" + test.wantSeries + "} 1\n"
			if err := testutil.GatherAndCompare(k.registry, strings.NewReader(series)); err != nil {
				t.Error(err)
			}
		})
	}
}

// isKept says whether a message is in the store, which writes a moment later.
func (k *kit) isKept(t *testing.T, digest string, want bool) {
	t.Helper()
	if err := k.store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := k.store.Get(digest); (err == nil) != want {
		t.Errorf("the message is kept: %v, %v", err == nil, err)
	}
}

func TestTheSameLabelIsCountedOnce(t *testing.T) {
	k := newKit(t, nil)
	for _, outcome := range []review.Outcome{review.Block, review.Block, review.Allow, review.Block} {
		if err := k.Give(t.Context(), Label{Decision: plainID, Outcome: outcome, By: "LocalSecret:kim"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(k.written(t)); got != 4 {
		t.Errorf("%d labels in the log", got)
	}
	for label, want := range map[string]float64{"block": 1, "allow": 1} {
		if got := testutil.ToFloat64(k.given.WithLabelValues("Write", "Allow", label)); got != want {
			t.Errorf("%s: counted %v times", label, got)
		}
	}
}

func TestTheSameLabelIsCountedOnceWhenGivenAtOnce(t *testing.T) {
	k := newKit(t, func(*Options) {})
	label, decision := Label{Decision: plainID, Outcome: review.Block}, audit.Entry{}
	for range 200 {
		k.counted.Clear()
		k.given.Reset()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { k.count(&label, &decision) })
		}
		all.Wait()
		if got := testutil.ToFloat64(k.given.WithLabelValues("", "", "block")); got != 1 {
			t.Fatalf("counted %v times", got)
		}
	}
}

func TestWhatIsNoLabelIsNotWritten(t *testing.T) {
	errDisk := errors.New("no space left on device")
	for name, test := range map[string]struct {
		label  Label
		change func(*Options)
		broken error
		want   error  // one of the sentinels
		text   string // or what Validate says
	}{
		"of a decision that is not there": {Label{Decision: unknownID, Outcome: review.Block}, nil, nil, ErrNotFound, ""},
		"of an id with a quote":           {Label{Decision: `","` + plainID[3:], Outcome: review.Block}, nil, nil, nil, "decision is the id"},
		"of no id":                        {Label{Outcome: review.Block}, nil, nil, nil, "decision is the id"},
		"of an id written otherwise":      {Label{Decision: "urn:uuid:" + plainID, Outcome: review.Block}, nil, nil, nil, "decision is the id"},
		"with an outcome that is none":    {Label{Decision: plainID, Outcome: review.Confirm}, nil, nil, nil, "outcome is Allow or Block"},
		"with a message that is too long": {Label{Decision: plainID, Outcome: review.Block, Message: strings.Repeat("x", MaxMessage+1)}, nil, nil, nil, "longer than 16 KiB"},
		"when the log cannot be read":     {Label{Decision: plainID, Outcome: review.Block}, func(o *Options) { o.Path += ".gone" }, nil, ErrUnsearched, ""},
		"when the disk is full":           {Label{Decision: plainID, Outcome: review.Block}, nil, errDisk, ErrNotDurable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, test.change)
			k.broken = test.broken
			err := k.Give(t.Context(), test.label)
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v, want %v %s", err, test.want, test.text)
			}
			if got := k.written(t); len(got) != 0 {
				t.Errorf("written %+v", got)
			}
			if n, err := testutil.GatherAndCount(k.registry); err != nil || n != 0 {
				t.Errorf("%d series, %v", n, err)
			}
		})
	}
}

func TestWhoWaitsForASearchDoesNotWaitForEver(t *testing.T) {
	k := newKit(t, nil)
	k.looking <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.Give(ctx, Label{Decision: plainID, Outcome: review.Block}); !errors.Is(err, ErrUnsearched) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-k.looking
	if err := k.Give(t.Context(), Label{Decision: plainID, Outcome: review.Block}); err != nil {
		t.Errorf("after it: %v", err)
	}
}
