package natssink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gatewright.dev/gatewright/internal/audit"
)

// natsServer is a real server with JetStream on disk, in this process.
type natsServer struct {
	options server.Options
	server  *server.Server
}

func startNATS(t *testing.T) *natsServer {
	t.Helper()
	n := &natsServer{options: server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true}}
	n.start(t)
	t.Cleanup(n.stop)
	return n
}

func (n *natsServer) start(t *testing.T) {
	t.Helper()
	o := n.options
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server is not ready")
	}
	n.server = s
	n.options.Port = s.Addr().(*net.TCPAddr).Port // the same after a restart
}

func (n *natsServer) stop() {
	n.server.Shutdown()
	n.server.WaitForShutdown()
}

func (n *natsServer) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", n.options.Port) }

func (n *natsServer) sink(t *testing.T, change func(o *Options)) (*Sink, audit.Head) {
	t.Helper()
	o := Options{URL: n.url(), Stream: "AUDIT", Timeout: time.Second}
	if change != nil {
		change(&o)
	}
	s, head, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s, head
}

func (n *natsServer) log(t *testing.T) *audit.File {
	t.Helper()
	s, head := n.sink(t, nil)
	return audit.New(s, head, audit.Options{MaxBatch: s.MaxBatch(), RetryAfter: 50 * time.Millisecond})
}

// ids reads the log back and checks its chain.
func (n *natsServer) ids(t *testing.T) []string {
	t.Helper()
	return n.idsOn(t, "")
}

func (n *natsServer) idsOn(t *testing.T, subject string) []string {
	t.Helper()
	var all bytes.Buffer
	if err := Read(t.Context(), Options{URL: n.url(), Stream: "AUDIT", Subject: subject}, func(lines []byte) error { all.Write(lines); return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Verify(bytes.NewReader(all.Bytes())); err != nil {
		t.Fatalf("%v in:\n%s", err, &all)
	}
	var out []string
	if err := audit.Query(t.Context(), &all, audit.Filter{Kind: audit.KindDecision}, func(e audit.Entry) error { out = append(out, e.ID); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func appendTo(ctx context.Context, f *audit.File, id string) error {
	return f.Append(ctx, &audit.Record{Time: time.Now(), ID: id})
}

func mustAppend(t *testing.T, f *audit.File, id string) {
	t.Helper()
	if err := appendTo(t.Context(), f, id); err != nil {
		t.Fatalf("Append %s: %v", id, err)
	}
}

func TestTheChainGoesOnInTheStream(t *testing.T) {
	n := startNATS(t)
	var want []string
	for i := range 3 {
		f := n.log(t)
		for j := range 4 {
			id := fmt.Sprintf("%d/%d", i, j)
			mustAppend(t, f, id)
			want = append(want, id)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, n.ids(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestManyWritersShareMessages(t *testing.T) {
	n := startNATS(t)
	f := n.log(t)
	var all sync.WaitGroup
	for w := range 16 {
		all.Go(func() {
			for i := range 20 {
				if err := appendTo(t.Context(), f, fmt.Sprintf("%d/%d", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := len(n.ids(t)); got != 320 {
		t.Errorf("%d records, want 320", got)
	}
}

func TestAServerThatIsAwayMakesTheLogUnavailable(t *testing.T) {
	n := startNATS(t)
	f := n.log(t)
	mustAppend(t, f, "before")
	n.stop()
	if err := appendTo(t.Context(), f, "away"); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("Append while the server is away: %v", err)
	}
	if err := f.Enqueue(&audit.Record{Time: time.Now(), ID: "kept"}); err != nil {
		t.Fatal(err)
	}
	if f.Available() {
		t.Error("the log says that it is available")
	}
	n.start(t)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if err := appendTo(t.Context(), f, "after"); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the log does not come back")
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got := n.ids(t)
	if got[0] != "before" || got[len(got)-1] != "after" || strings.Count(strings.Join(got, " "), "kept") != 1 {
		t.Errorf("the log holds %v", got)
	}
}

func TestAFullStreamMakesTheLogUnavailable(t *testing.T) {
	n := startNATS(t)
	s, head := n.sink(t, func(o *Options) { o.MaxBytes = 20_000 })
	f := audit.New(s, head, audit.Options{MaxBatch: s.MaxBatch()})
	var acknowledged []string
	var err error
	for i := 0; i < 1000 && err == nil; i++ {
		id := fmt.Sprint(i)
		if err = appendTo(t.Context(), f, id); err == nil {
			acknowledged = append(acknowledged, id)
		}
	}
	if !errors.Is(err, audit.ErrUnavailable) {
		t.Fatalf("after %d records: %v, want ErrUnavailable", len(acknowledged), err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(acknowledged, n.ids(t)); diff != "" {
		t.Errorf("a full stream dropped what was acknowledged (-want +got):\n%s", diff)
	}
}

// A batch whose acknowledgement got lost is there, and nobody knows. What the sink finds out must not stand twice.
func TestABatchInDoubtIsNotWrittenTwice(t *testing.T) {
	n := startNATS(t)
	s, head := n.sink(t, nil)
	d := &deaf{Sink: s}
	f := audit.New(d, head, audit.Options{MaxBatch: s.MaxBatch(), RetryAfter: 10 * time.Millisecond})
	mustAppend(t, f, "1")
	d.deaf.Store(true)
	if err := f.Enqueue(&audit.Record{Time: time.Now(), ID: "2"}); err != nil {
		t.Fatal(err)
	}
	for f.Stats().Failures == 0 {
		time.Sleep(time.Millisecond)
	}
	d.deaf.Store(false)
	mustAppend(t, f, "3")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1", "2", "3"}, n.ids(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// deaf publishes, and does not hear the acknowledgement.
type deaf struct {
	*Sink
	deaf atomic.Bool
}

func (d *deaf) Append(lines []byte) error {
	if !d.deaf.Load() {
		return d.Sink.Append(lines)
	}
	if err := d.Sink.Append(lines); err != nil {
		return err
	}
	return context.DeadlineExceeded
}

func TestTwoWritersCannotMix(t *testing.T) {
	n := startNATS(t)
	first, second := n.log(t), n.log(t)
	mustAppend(t, first, "1")
	if err := appendTo(t.Context(), second, "other"); !errors.Is(err, audit.ErrUnavailable) {
		t.Fatalf("the second writer: %v, want ErrUnavailable", err)
	}
	if err := appendTo(t.Context(), second, "other"); err == nil || !strings.Contains(err.Error(), "another writer") {
		t.Errorf("the second writer, again: %v", err)
	}
	mustAppend(t, first, "2")
	for _, f := range []*audit.File{first, second} {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"1", "2"}, n.ids(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLogsOfOneStreamAreListedAndReadApart(t *testing.T) {
	n := startNATS(t)
	want := map[string][]string{"AUDIT.gate-b": {"b1", "b2"}, "AUDIT.gate-a": {"a1"}}
	for subject, ids := range want {
		s, head := n.sink(t, func(o *Options) { o.Subject = subject })
		f := audit.New(s, head, audit.Options{MaxBatch: s.MaxBatch()})
		for _, id := range ids {
			mustAppend(t, f, id)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	logs, err := Logs(t.Context(), Options{URL: n.url(), Stream: "AUDIT"})
	if diff := cmp.Diff([]string{"AUDIT.gate-a", "AUDIT.gate-b"}, logs); err != nil || diff != "" {
		t.Fatalf("%v %s", err, diff)
	}
	for _, subject := range logs {
		if diff := cmp.Diff(want[subject], n.idsOn(t, subject)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", subject, diff)
		}
	}
	if _, err := Logs(t.Context(), Options{URL: n.url(), Stream: "NONE"}); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("a stream that is not there: %v", err)
	}
}

func TestOpenRefusesAStreamThatLosesRecords(t *testing.T) {
	n := startNATS(t)
	c, err := nats.Connect(n.url())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	js, err := jetstream.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(c *jetstream.StreamConfig)
		want   string
	}{
		"old messages make room":             {func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = 10, jetstream.DiscardOld }, "drops old messages"},
		"messages grow old":                  {func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, "drops messages after 1h"},
		"it is in memory":                    {func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, "kept in memory"},
		"what was read goes":                 {func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }, "drops what was read"},
		"nothing is acknowledged":            {func(c *jetstream.StreamConfig) { c.NoAck = true }, "acknowledges nothing"},
		"only the last of a subject is kept": {func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }, "drops old messages"},
	} {
		t.Run(name, func(t *testing.T) {
			stream := strings.ReplaceAll(name, " ", "_")
			config := jetstream.StreamConfig{Name: stream, Subjects: []string{stream + ".>"}, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew}
			test.change(&config)
			if _, err := js.CreateStream(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			s, _, err := Open(t.Context(), Options{URL: n.url(), Stream: stream})
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open: %v, want %q", err, test.want)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	n := startNATS(t)
	foreign, _ := n.sink(t, func(o *Options) { o.Stream = "OTHER" })
	if _, err := foreign.js.Publish(t.Context(), "OTHER.log", []byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	foreign.Close()
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"a server that is not there":  {Options{URL: "nats://127.0.0.1:1", Stream: "AUDIT", Timeout: 100 * time.Millisecond}, "connecting to NATS"},
		"a subject of something else": {Options{URL: n.url(), Stream: "OTHER"}, "no part of an audit log"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := Open(t.Context(), test.options); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open: %v, want %q", err, test.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for in, test := range map[string]struct {
		want  Options
		fails string
	}{
		"nats://h:4222/GW": {Options{URL: "nats://h:4222", Stream: "GW"}, ""},
		"tls://h:4222/GW?subject=GW.a&replicas=3&maxBytes=1000&credentials=f": {Options{URL: "tls://h:4222", Stream: "GW", Subject: "GW.a", Replicas: 3, MaxBytes: 1000, Credentials: "f"}, ""},
		"nats://h:4222":              {Options{}, "no name of a stream"},
		"nats://h:4222/a.b":          {Options{}, "no name of a stream"},
		"http://h/GW":                {Options{}, "want nats://"},
		"nats://h/GW?replicas=9":     {Options{}, "want 1 to 5"},
		"nats://h/GW?maxBytes=-1":    {Options{}, "a number from 1"},
		"nats://h/GW?storage=memory": {Options{}, "storage is not known"},
	} {
		t.Run(url.PathEscape(in), func(t *testing.T) {
			got, err := Parse(in)
			if test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)) || test.fails == "" && err != nil {
				t.Fatalf("error %v, want %q", err, test.fails)
			}
			if diff := cmp.Diff(test.want, got); diff != "" && test.fails == "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
