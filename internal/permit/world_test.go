package permit

import (
	"crypto/sha256"
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/strictjson"
	"gatewright.dev/gatewright/permit"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world is a gate that signs and a tool server that verifies, with one clock.
type world struct {
	clock  *clocktesting.FakePassiveClock
	keys   *Keys
	signer *Signer
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{clock: clocktesting.NewFakePassiveClock(noon)}
	w.keys = must(LoadOrCreateKeys(filepath.Join(t.TempDir(), "permit.jwk"), w.clock))(t)
	w.signer = must(NewSigner(w.keys, "gate-1", w.clock))(t)
	return w
}

// verify checks a permit for the call with keys, at a tool server that has not seen any before.
func (w *world) verify(t testing.TB, keys permit.KeySource, token string, call permit.Call) (*permit.Claims, error) {
	t.Helper()
	v := must(permit.NewVerifier(permit.VerifierOptions{Keys: keys, Store: permit.NewMemory(w.clock), Clock: w.clock, Issuer: "gate-1"}))(t)
	return v.Verify(t.Context(), token, call)
}

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

var transferArguments = map[string]any{"to": "ACME", "amount": int64(1)}

func digest(t testing.TB, v any) string {
	t.Helper()
	return must(strictjson.Digest(v))(t)
}

// claims are those for the call, with nothing of the times.
func claims(t testing.TB) Claims {
	t.Helper()
	return Claims{
		Audience: "payments", Subject: Subject("shop", "agent"), Tool: "transfer", Server: "bank",
		ID:              JTI("cluster", "shop/agent", "uid-1", sha256.Sum256([]byte("body"))),
		ArgumentsDigest: digest(t, transferArguments), PolicyDigest: digest(t, "policy"),
		Decision: "d-1", OnBehalfOf: "ann", Session: SessionDigest("s-1"),
	}
}

func call() permit.Call {
	return permit.Call{Audience: "payments", Tool: "transfer", Server: "bank", Arguments: transferArguments}
}

func (w *world) sign(t testing.TB, c Claims) string {
	t.Helper()
	return must(w.signer.Sign(c, 30*time.Second))(t)
}

func (w *world) kid() string { return w.keys.ring.Public()[0].ID }

// header is the first part of a permit, decoded.
func header(t testing.TB, token string) string {
	t.Helper()
	first, _, _ := strings.Cut(token, ".")
	return string(must(base64.RawURLEncoding.DecodeString(first))(t))
}
