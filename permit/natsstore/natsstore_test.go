package natsstore

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/permit"
	"gatewright.dev/gatewright/permit/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a NATS server with JetStream in a folder, at a port of its own or again at the same one.
func serve(t *testing.T, dir string, port int) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server did not start")
	}
	t.Cleanup(func() { stop(s) })
	return s
}

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore(t *testing.T) {
	s := serve(t, t.TempDir(), server.RANDOM_PORT)
	bucket := 0
	storetest.Run(t, func(t *testing.T, c clock.PassiveClock) func() permit.Store {
		bucket++
		o := Options{URL: s.ClientURL(), Clock: c, Bucket: "permits-" + strings.Repeat("x", bucket)}
		return func() permit.Store { return open(t, o) }
	}, false)
}

const id = "0123456789abcdef-id"

func TestTheServerIsStartedAgain(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir, server.RANDOM_PORT)
	c := clocktesting.NewFakePassiveClock(storetest.Noon)
	store := open(t, Options{URL: s.ClientURL(), Clock: c, Timeout: 500 * time.Millisecond})
	until := storetest.Noon.Add(5 * time.Minute)
	if err := store.Use(t.Context(), id, until); err != nil {
		t.Fatal(err)
	}
	port := s.Addr().(*net.TCPAddr).Port
	stop(s)
	if err := store.Use(t.Context(), id+"-2", until); err == nil || errors.Is(err, permit.ErrUsed) {
		t.Errorf("a use while the server is away: %v, want an error that is not ErrUsed", err)
	}
	if err := store.Ready(t.Context()); err == nil {
		t.Error("Ready while the server is away: no error")
	}
	serve(t, dir, port)
	again := open(t, Options{URL: s.ClientURL(), Clock: c})
	if err := again.Use(t.Context(), id, until); !errors.Is(err, permit.ErrUsed) {
		t.Errorf("a use after the server came back: %v, want ErrUsed", err)
	}
	if err := again.Ready(t.Context()); err != nil {
		t.Errorf("Ready: %v", err)
	}
}

func TestWhatWasDeletedStaysUsed(t *testing.T) {
	s := serve(t, t.TempDir(), server.RANDOM_PORT)
	c := clocktesting.NewFakePassiveClock(storetest.Noon)
	store := open(t, Options{URL: s.ClientURL(), Clock: c})
	until := storetest.Noon.Add(5 * time.Minute)
	for name, remove := range map[string]func(key string) error{
		"deleted": func(key string) error { return store.bucket.Delete(t.Context(), key) },
		"purged":  func(key string) error { return store.bucket.Purge(t.Context(), key) },
	} {
		key := id + "-" + name
		if err := errors.Join(store.Use(t.Context(), key, until), remove(key)); err != nil {
			t.Fatal(err)
		}
		if err := store.Use(t.Context(), key, until); !errors.Is(err, permit.ErrUsed) {
			t.Errorf("a use after the key was %s: %v, want ErrUsed", name, err)
		}
	}
}

func TestLongerThanABucketRemembersIsRefused(t *testing.T) {
	s := serve(t, t.TempDir(), server.RANDOM_PORT)
	c := clocktesting.NewFakePassiveClock(storetest.Noon)
	store := open(t, Options{URL: s.ClientURL(), Clock: c})
	if err := store.Use(t.Context(), id, storetest.Noon.Add(Kept+1)); err == nil {
		t.Error("a nanosecond longer: no error")
	}
	if err := store.Use(t.Context(), id, storetest.Noon.Add(Kept)); err != nil {
		t.Errorf("as long as it remembers: %v", err)
	}
	if permit.Remembered+permit.Leeway > Kept {
		t.Errorf("a permit has to be remembered for %s, and a bucket forgets after %s", permit.Remembered+permit.Leeway, Kept)
	}
}

func TestOpenRefuses(t *testing.T) {
	s := serve(t, t.TempDir(), server.RANDOM_PORT)
	for name, tc := range map[string]struct {
		config  jetstream.KeyValueConfig
		wantErr error
	}{
		"a bucket like our own":             {jetstream.KeyValueConfig{TTL: Kept}, nil},
		"a bucket that never forgets":       {jetstream.KeyValueConfig{}, nil},
		"a bucket that forgets too early":   {jetstream.KeyValueConfig{TTL: Kept - time.Second}, ErrBadBucket},
		"a bucket that is kept in memory":   {jetstream.KeyValueConfig{TTL: Kept, Storage: jetstream.MemoryStorage}, ErrBadBucket},
		"a bucket that copies another one":  {jetstream.KeyValueConfig{TTL: Kept, Sources: []*jetstream.StreamSource{{Name: "other"}}}, ErrBadBucket},
		"a bucket that mirrors another one": {jetstream.KeyValueConfig{Mirror: &jetstream.StreamSource{Name: "other"}}, ErrBadBucket},
	} {
		t.Run(name, func(t *testing.T) {
			tc.config.Bucket = strings.ReplaceAll(name, " ", "-")
			makeBucket(t, s.ClientURL(), tc.config)
			got, err := Open(t.Context(), Options{URL: s.ClientURL(), Bucket: tc.config.Bucket})
			if !errors.Is(err, tc.wantErr) || (err == nil) != (tc.wantErr == nil) {
				t.Errorf("Open: %v, want %v", err, tc.wantErr)
			}
			if got != nil {
				_ = got.Close()
			}
		})
	}
	if _, err := Open(t.Context(), Options{URL: "nats://127.0.0.1:1", Timeout: 100 * time.Millisecond}); err == nil {
		t.Error("no server there: no error")
	}
}

func makeBucket(t *testing.T, url string, c jetstream.KeyValueConfig) {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := js.CreateKeyValue(ctx, c); err != nil {
		t.Fatal(err)
	}
}
