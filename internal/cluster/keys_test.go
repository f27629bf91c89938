package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
)

func TestKeySetsThatAreRead(t *testing.T) {
	public := newIssuer(t, "k1")
	private := jose.JSONWebKey{Key: public.key, KeyID: "p"}
	unnamed := jose.JSONWebKey{Key: public.key.Public()}
	encode := func(keys ...jose.JSONWebKey) string {
		data, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	good := public.set().keys.Keys[0]
	const discovery = `{"issuer":"https://kubernetes.default.svc","jwks_uri":"https://x"}`
	for name, test := range map[string]struct {
		discovery, keys string
		want            string
		held            int
	}{
		"one key":                        {discovery, encode(good), "", 1},
		"only public keys with a name":   {discovery, encode(good, private, unnamed), "", 1},
		"no key of use":                  {discovery, encode(private), "no key", 0},
		"no keys":                        {discovery, `{"keys":[]}`, "no key", 0},
		"no key set":                     {discovery, `x`, "cannot be read", 0},
		"a document without an issuer":   {`{}`, encode(good), "no issuer", 0},
		"a document that is no document": {`<html>`, encode(good), "no issuer", 0},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := parseKeySet([]byte(test.discovery), []byte(test.keys), noon)
			if test.want != "" {
				if set != nil || err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, %v", set, err)
				}
				return
			}
			if err != nil || len(set.keys.Keys) != test.held || set.issuer != testIssuer || !set.at.Equal(noon) {
				t.Errorf("%+v, %v", set, err)
			}
		})
	}
}

// Keys are fetched at the start, every five minutes, soon after a failure and when one is missed; never more often than
// every ten seconds.
func TestWhenKeysAreFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fetched []time.Duration
		start := time.Now()
		issuer := newIssuer(t, "k1")
		var isAway atomic.Bool
		k := &Keys{clock: clock.RealClock{}, log: slog.New(slog.DiscardHandler), want: make(chan struct{}, 1)}
		k.fetch = func(context.Context) (*keySet, error) {
			fetched = append(fetched, time.Since(start))
			if isAway.Load() {
				return nil, errors.New("away")
			}
			return issuer.set(), nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { k.Run(ctx); close(done) }()
		synctest.Wait()
		if k.current() == nil {
			t.Error("no keys after the first fetch")
		}
		for range 50 { // misses in the first seconds are one fetch after ten
			k.miss()
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(95 * time.Second)
		isAway.Store(true)
		time.Sleep(225 * time.Second)
		if k.current() == nil {
			t.Error("a failure loses the keys that are known")
		}
		cancel()
		<-done
		// 0 s: start; 10 s: missed; 310 s: five minutes later, which fails; 320 s: tried again.
		want := []time.Duration{0, 10 * time.Second, 310 * time.Second, 320 * time.Second}
		if diff := cmp.Diff(want, fetched); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
