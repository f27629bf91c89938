package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/policy"
)

const address = "10.0.0.7:4711"

func TestWhatTheAPIServerSaysOfAToken(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(map[string]any)
		status  authenticationv1.TokenReviewStatus
		err     error
		want    error
		reviews int
	}{
		"a token that is known":                  {status: agentIsKnown, reviews: 1},
		"a token that is not known":              {want: gate.ErrUnknownCaller, reviews: 1},
		"an answer with an error beside it":      {status: with(func(s *authenticationv1.TokenReviewStatus) { s.Error = "x" }), want: gate.ErrUnknownCaller, reviews: 1},
		"an answer that names no audience":       {status: with(func(s *authenticationv1.TokenReviewStatus) { s.Audiences = nil }), want: gate.ErrUnknownCaller, reviews: 1},
		"an answer for another audience":         {status: with(func(s *authenticationv1.TokenReviewStatus) { s.Audiences = []string{"vault"} }), want: gate.ErrUnknownCaller, reviews: 1},
		"a person":                               {status: with(func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "carol" }), want: gate.ErrUnknownCaller, reviews: 1},
		"a name that could be read as another":   {status: with(func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "system:serviceaccount:a/b:c" }), want: gate.ErrUnknownCaller, reviews: 1},
		"the gate may not ask":                   {err: apierrors.NewForbidden(schema.GroupResource{Resource: "tokenreviews"}, "", nil), want: gate.ErrIdentityUnavailable, reviews: 1},
		"an API server that is away":             {err: errors.New("connection refused"), reviews: 1},
		"an API server that is overrun":          {err: apierrors.NewTooManyRequestsError("later"), reviews: 1},
		"an API server that takes too long":      {err: context.DeadlineExceeded, reviews: 1},
		"a token for another audience":           {change: func(c map[string]any) { c["aud"] = []string{"vault"} }, want: gate.ErrUnknownCaller},
		"a token without an audience":            {change: func(c map[string]any) { delete(c, "aud") }, want: gate.ErrUnknownCaller},
		"a token that has ended":                 {change: func(c map[string]any) { c["exp"] = noon.Unix() }, want: gate.ErrUnknownCaller},
		"a token without an end":                 {change: func(c map[string]any) { delete(c, "exp") }, want: gate.ErrUnknownCaller},
		"a token of somebody else than it says":  {change: func(c map[string]any) { c["sub"] = "system:serviceaccount:shop:admin" }, want: gate.ErrUnknownCaller},
		"a token of a person":                    {change: func(c map[string]any) { c["sub"] = "carol" }, want: gate.ErrUnknownCaller},
		"away, and the token is not in force":    {change: func(c map[string]any) { c["nbf"] = noon.Add(time.Minute).Unix() }, err: errors.New("away"), want: gate.ErrUnknownCaller, reviews: 1},
		"away, and the token is of another one":  {change: func(c map[string]any) { c["iss"] = "https://other" }, err: errors.New("away"), want: gate.ErrUnknownCaller, reviews: 1},
		"away, and the clock there is a bit off": {change: func(c map[string]any) { c["nbf"] = noon.Add(5 * time.Second).Unix() }, err: errors.New("away"), reviews: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newIdentityWorld(t)
			w.server.says(test.status, test.err)
			caller, err := w.who(t, w.issuer.sign(content(test.change)), address)
			want := agent
			if test.want != nil {
				want = policy.Caller{}
			}
			if caller != want || !errors.Is(err, test.want) || (err == nil) != (test.want == nil) || w.server.asked() != test.reviews {
				t.Errorf("%v, %v after %d reviews", caller, err, w.server.asked())
			}
		})
	}
}

func with(change func(*authenticationv1.TokenReviewStatus)) authenticationv1.TokenReviewStatus {
	s := *agentIsKnown.DeepCopy()
	change(&s)
	return s
}

// What is remembered, for how long, and what becomes of it while the API server is away.
func TestATokenOverTime(t *testing.T) {
	type step struct {
		after  time.Duration
		status authenticationv1.TokenReviewStatus
		err    error
		isAway bool
		want   error
		asks   int // reviews of this step
	}
	gone := errors.New("connection refused")
	for name, steps := range map[string][]step{
		"a known token is asked about every 50 seconds": {
			{status: agentIsKnown, asks: 1}, {after: 49 * time.Second, status: agentIsKnown}, {after: time.Second, status: agentIsKnown, asks: 1},
		},
		"a service account that was deleted counts for 50 seconds here": {
			{status: agentIsKnown, asks: 1}, {after: 49 * time.Second}, {after: time.Second, want: gate.ErrUnknownCaller, asks: 1},
		},
		"a token ends when it says, known or not": {
			{status: agentIsKnown, asks: 1}, {after: 570 * time.Second, status: agentIsKnown, asks: 1}, {after: 29 * time.Second, status: agentIsKnown},
			{after: time.Second, status: agentIsKnown, want: gate.ErrUnknownCaller},
		},
		"a token that is not known is asked about every ten seconds": {
			{want: gate.ErrUnknownCaller, asks: 1}, {after: 9 * time.Second, status: agentIsKnown, want: gate.ErrUnknownCaller}, {after: time.Second, status: agentIsKnown, asks: 1},
		},
		"a token that was refused does not come to life while the API server is away": {
			{want: gate.ErrUnknownCaller, asks: 1}, {after: time.Minute, err: gone, want: gate.ErrUnknownCaller, asks: 1},
			{after: 5 * time.Minute, isAway: true, want: gate.ErrUnknownCaller},
			{after: 10 * time.Second, status: agentIsKnown, asks: 1}, {after: time.Minute, isAway: true},
		},
		"an API server that is known to be away is not waited for": {
			{isAway: true}, {after: 9 * time.Second, status: agentIsKnown}, {after: time.Second, status: agentIsKnown, asks: 1},
		},
		"what was proven by its signature alone is asked about soon": {
			{err: gone, asks: 1}, {after: 10 * time.Second, want: gate.ErrUnknownCaller, asks: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newIdentityWorld(t)
			token := w.issuer.sign(content(nil))
			for i, s := range steps {
				w.clock.Step(s.after)
				w.server.says(s.status, s.err)
				w.isAway = s.isAway
				before := w.server.asked()
				_, err := w.who(t, token, address)
				if (err == nil) != (s.want == nil) || !errors.Is(err, s.want) || w.server.asked()-before != s.asks {
					t.Fatalf("step %d: %v after %d reviews, want %v after %d", i, err, w.server.asked()-before, s.want, s.asks)
				}
			}
		})
	}
}

// Signatures alone count for five minutes of questions without an answer, and longer only while nothing but reads is judged.
func TestHowLongASignatureCounts(t *testing.T) {
	type step struct {
		after           time.Duration
		err             error
		isAway, isStale bool
		want            error
	}
	overrun, forbidden := apierrors.NewTooManyRequestsError("later"), apierrors.NewForbidden(schema.GroupResource{Resource: "tokenreviews"}, "", nil)
	const almost = 5*time.Minute - time.Second
	unavailable := gate.ErrIdentityUnavailable
	for name, steps := range map[string][]step{
		"questions fail, and the rest of the API server answers": {
			{err: overrun}, {after: almost, err: overrun}, {after: 10 * time.Second, err: overrun, want: unavailable},
			{after: time.Hour, err: overrun, want: unavailable},
		},
		"an answer begins it anew": {
			{err: overrun}, {after: almost, err: overrun}, {after: time.Minute}, {after: time.Minute, err: overrun}, {after: almost, err: overrun},
			{after: time.Minute, err: overrun, want: unavailable}, {after: time.Minute},
		},
		"an answer long ago does not count": {{}, {after: time.Hour, err: overrun}, {after: almost, err: overrun}, {after: time.Minute, err: overrun, want: unavailable}},
		"a question that may not be put is no answer": {
			{err: overrun}, {after: almost, err: forbidden, want: unavailable}, {after: time.Minute, err: overrun, want: unavailable},
		},
		"an API server that is away and was heard a moment ago": {
			{isAway: true}, {after: almost, isAway: true}, {after: time.Minute, isAway: true, want: unavailable},
		},
		"an API server that was not heard for so long that only reads are judged": {
			{isAway: true}, {after: almost, isAway: true}, {after: time.Minute, isAway: true, isStale: true}, {after: time.Hour, isAway: true, isStale: true},
		},
		"an API server that is back but for its answers about tokens": {
			{isAway: true}, {after: time.Hour, isAway: true, isStale: true}, {after: time.Minute, err: overrun, want: unavailable}, {after: time.Minute},
		},
		"an API server that comes and goes, but for its answers about tokens": {
			{err: overrun}, {after: almost, isAway: true}, {after: time.Minute, err: overrun, want: unavailable}, {after: time.Minute, isAway: true, want: unavailable},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newIdentityWorld(t)
			token := w.issuer.sign(content(func(c map[string]any) { c["exp"] = noon.Add(24 * time.Hour).Unix() }))
			for i, s := range steps {
				w.clock.Step(s.after)
				w.server.says(agentIsKnown, s.err)
				w.isAway, w.isStale = s.isAway, s.isStale
				if _, err := w.who(t, token, address); (err == nil) != (s.want == nil) || !errors.Is(err, s.want) {
					t.Fatalf("step %d: %v, want %v", i, err, s.want)
				}
			}
		})
	}
}

// What is refused is an answer too.
func TestARefusalIsAnAnswer(t *testing.T) {
	w := newIdentityWorld(t)
	w.server.says(agentIsKnown, errors.New("away"))
	if _, err := w.who(t, w.issuer.sign(content(nil)), address); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(4 * time.Minute)
	w.server.says(authenticationv1.TokenReviewStatus{}, nil)
	if _, err := w.who(t, w.issuer.sign(content(func(c map[string]any) { c["jti"] = "another" })), address); !errors.Is(err, refusedByServer) {
		t.Fatal(err)
	}
	w.clock.Step(4 * time.Minute)
	w.server.says(agentIsKnown, errors.New("away"))
	if _, err := w.who(t, w.issuer.sign(content(nil)), address); err != nil {
		t.Errorf("four minutes after a refusal: %v", err)
	}
}

func TestWithoutALimitNobodyIsKnownBySignatureAlone(t *testing.T) {
	w := newIdentityWorld(t)
	w.options.Limit = 0
	w.isAway = true
	if _, err := w.who(t, w.issuer.sign(content(nil)), address); !errors.Is(err, gate.ErrIdentityUnavailable) {
		t.Error(err)
	}
}

func TestUnknownTokensAreLimitedByAddress(t *testing.T) {
	w := newIdentityWorld(t)
	other := newIssuer(t, "k2") // signs with a key that nobody has published
	w.server.says(authenticationv1.TokenReviewStatus{}, nil)
	forged := func(n int) string { return other.sign(content(func(c map[string]any) { c["jti"] = fmt.Sprint(n) })) }
	for n := range 100 {
		_, err := w.who(t, forged(n), address)
		want := gate.ErrUnknownCaller
		if n >= unknownBurst {
			want = gate.ErrTooManyUnknown
		}
		if !errors.Is(err, want) {
			t.Fatalf("token %d: %v, want %v", n, err, want)
		}
	}
	if w.server.asked() != unknownBurst {
		t.Errorf("%d of 100 forged tokens were asked about, want %d", w.server.asked(), unknownBurst)
	}
	select {
	case <-w.keys.want:
	default:
		t.Error("the keys are not fetched again although one is missing")
	}
	for n := range 5 { // another address has limits of its own
		if _, err := w.who(t, forged(1000+n), "10.0.0.8:1"); !errors.Is(err, gate.ErrUnknownCaller) {
			t.Errorf("another address: %v", err)
		}
	}
	w.server.says(agentIsKnown, nil)
	if _, err := w.who(t, w.issuer.sign(content(nil)), address); err != nil {
		t.Errorf("a genuine token from the same address: %v", err)
	}
	w.clock.Step(time.Second)
	w.server.says(authenticationv1.TokenReviewStatus{}, nil)
	allowed := 0
	for n := range 100 {
		if _, err := w.who(t, forged(2000+n), address); errors.Is(err, gate.ErrUnknownCaller) {
			allowed++
		}
	}
	if allowed != unknownPerSecond {
		t.Errorf("%d look-ups in the next second, want %d", allowed, unknownPerSecond)
	}
}

func TestABadSignatureIsKnownWithoutAsking(t *testing.T) {
	w := newIdentityWorld(t)
	token := newIssuer(t, "k1").sign(content(nil)) // the name of a known key, and another key
	for range 100 {
		if _, err := w.who(t, token, address); !errors.Is(err, refusedSignature) {
			t.Fatal(err)
		}
	}
	if w.server.asked() != 0 {
		t.Errorf("%d reviews", w.server.asked())
	}
	if got := testutil.ToFloat64(w.metrics.refused.WithLabelValues(string(refusedSignature))); got != 100 {
		t.Errorf("counted %v", got)
	}
}

func TestTokensThatAreNone(t *testing.T) {
	w := newIdentityWorld(t)
	good := w.issuer.sign(content(nil))
	for name, headers := range map[string][]string{
		"none":             nil,
		"two":              {"Bearer " + good, "Bearer " + good},
		"another scheme":   {"Basic " + good},
		"nothing behind":   {"Bearer "},
		"no JWT":           {"Bearer abc"},
		"no algorithm":     {"Bearer eyJhbGciOiJub25lIn0." + strings.Split(good, ".")[1] + "."},
		"longer than any":  {"Bearer " + good + strings.Repeat("A", maxToken)},
		"with a white end": {"Bearer " + good + " x"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
			r.Header["Authorization"] = headers
			if _, err := w.Identify(t.Context(), r); !errors.Is(err, gate.ErrUnknownCaller) || w.server.asked() != 0 {
				t.Errorf("%v after %d reviews", err, w.server.asked())
			}
		})
	}
}

func TestWithoutKeysNobodyIsProvenOffline(t *testing.T) {
	w := newIdentityWorld(t)
	w.keys.held.Store(nil)
	w.isAway = true
	if _, err := w.who(t, w.issuer.sign(content(nil)), address); !errors.Is(err, gate.ErrIdentityUnavailable) {
		t.Error(err)
	}
}

// All who wait for the same token share one question, and who goes away ends only the own waiting.
func TestOneQuestionForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newIdentityWorld(t)
		w.server.hold = make(chan struct{})
		token := w.issuer.sign(content(nil))
		var wait sync.WaitGroup
		for range 50 {
			wait.Go(func() {
				if caller, err := w.who(t, token, address); err != nil || caller != agent {
					t.Errorf("%v, %v", caller, err)
				}
			})
		}
		gone, cancel := context.WithCancel(t.Context())
		wait.Go(func() {
			r := httptest.NewRequestWithContext(gone, http.MethodPost, "/", http.NoBody)
			r.RemoteAddr = address
			r.Header.Set("Authorization", "Bearer "+token)
			if _, err := w.Identify(gone, r); !errors.Is(err, gate.ErrIdentityUnavailable) {
				t.Errorf("who went away: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(w.server.hold)
		wait.Wait()
		if w.server.asked() != 1 {
			t.Errorf("%d reviews", w.server.asked())
		}
	})
}

// One address gets at most half of the look-ups that go on at once.
func TestOneAddressKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newIdentityWorld(t)
		w.server.hold = make(chan struct{})
		results := make(chan error, reviewsAtOnce)
		for n := range reviewsAtOnce {
			token := w.issuer.sign(content(func(c map[string]any) { c["jti"] = fmt.Sprint(n) }))
			go func() {
				_, err := w.who(t, token, address)
				results <- err
			}()
		}
		synctest.Wait()
		if len(results) != reviewsAtOnce/2 {
			t.Errorf("%d were refused, want %d", len(results), reviewsAtOnce/2)
		}
		other := make(chan error, 1)
		go func() {
			_, err := w.who(t, w.issuer.sign(content(nil)), "10.0.0.8:1")
			other <- err
		}()
		synctest.Wait()
		close(w.server.hold)
		if err := <-other; err != nil {
			t.Errorf("another address: %v", err)
		}
		synctest.Wait()
	})
}

func TestWhereARequestComesFrom(t *testing.T) {
	got := map[string]string{}
	for _, a := range []string{"10.1.2.3:4", "[2001:db8:1:2:3:4:5:6]:7", "[2001:db8:1:2:ffff::1]:7", "[::ffff:10.1.2.3]:4", "@", ""} {
		got[a] = sourceOf(&http.Request{RemoteAddr: a})
	}
	want := map[string]string{
		"10.1.2.3:4": "10.1.2.3", "[2001:db8:1:2:3:4:5:6]:7": "2001:db8:1:2::", "[2001:db8:1:2:ffff::1]:7": "2001:db8:1:2::",
		"[::ffff:10.1.2.3]:4": "10.1.2.3", "@": "", "": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
