package permit

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"go.uber.org/goleak"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/strictjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world is a gate that signs and a tool server that verifies, with one clock.
type world struct {
	clock    *clocktesting.FakePassiveClock
	keys     *ring
	store    Store
	verifier *Verifier
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{clock: clocktesting.NewFakePassiveClock(noon)}
	w.keys = &ring{}
	w.keys.rotate(t, time.Time{})
	w.store = NewMemory(w.clock)
	w.verifier = w.verify(t, w.keys, w.store)
	return w
}

// ring are the keys of a gate, newest first. All of them verify until they end, and the newest signs.
type ring struct {
	public  []PublicKey
	private []ed25519.PrivateKey
}

// rotate makes a new key, and retires the others.
func (r *ring) rotate(t testing.TB, ends time.Time) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.public {
		r.public[i].NotAfter = ends
	}
	r.public = append([]PublicKey{{ID: Thumbprint(public), Key: public}}, r.public...)
	r.private = append([]ed25519.PrivateKey{private}, r.private...)
}

func (r *ring) set() []byte {
	data, err := EncodeKeySet(r.public)
	if err != nil {
		panic(err) // texts and numbers have a JSON form
	}
	return data
}

// ServeHTTP publishes the keys as a gate does.
func (r *ring) ServeHTTP(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(r.set()) }

// Key implements KeySource.
func (r *ring) Key(_ context.Context, kid string) (PublicKey, error) {
	for _, k := range r.public {
		if k.ID == kid {
			return k, nil
		}
	}
	return PublicKey{}, ErrUnknownKey
}

func (w *world) verify(t testing.TB, keys KeySource, s Store) *Verifier {
	t.Helper()
	return must(NewVerifier(VerifierOptions{Keys: keys, Store: s, Clock: w.clock}))(t)
}

func (w *world) pass(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

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
		ID:              strings.TrimPrefix(digest(t, "request"), digestPrefix),
		ArgumentsDigest: digest(t, transferArguments), PolicyDigest: digest(t, "policy"),
		Decision: "d-1", OnBehalfOf: "ann", Session: SessionDigest("s-1"),
	}
}

func call() Call {
	return Call{Audience: "payments", Tool: "transfer", Server: "bank", Arguments: transferArguments}
}

// sign makes a permit that is good for 30 seconds from now, with the newest key.
func (w *world) sign(t testing.TB, c Claims) string {
	t.Helper()
	return w.signWith(t, c, 0)
}

func (w *world) signWith(t testing.TB, c Claims, key int) string {
	t.Helper()
	c.Issuer, c.IssuedAt = "gate-1", w.clock.Now().Truncate(time.Second)
	c.NotBefore, c.ExpiresAt = c.IssuedAt, c.IssuedAt.Add(30*time.Second)
	payload := must(c.Payload())(t)
	input := encodeJSON(t, `{"alg":"EdDSA","kid":"`+w.keys.public[key].ID+`","typ":"`+Type+`"}`) + "." + b64(payload)
	return input + "." + b64(ed25519.Sign(w.keys.private[key], []byte(input)))
}

// forge signs any payload with the gate's own key: what a gate with a fault could sign.
func (w *world) forge(t testing.TB, header map[string]any, payload any) string {
	t.Helper()
	h := map[string]any{"alg": "EdDSA", "kid": w.kid(), "typ": Type}
	for k, v := range header {
		if h[k] = v; v == nil {
			delete(h, k)
		}
	}
	input := encodeJSON(t, h) + "." + encodeJSON(t, payload)
	return input + "." + b64(ed25519.Sign(w.private(), []byte(input)))
}

func (w *world) kid() string                 { return w.keys.public[0].ID }
func (w *world) private() ed25519.PrivateKey { return w.keys.private[0] }

func b64(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

func encodeJSON(t testing.TB, v any) string {
	t.Helper()
	if raw, ok := v.(string); ok {
		return b64([]byte(raw))
	}
	return b64(must(json.Marshal(v))(t))
}

// claimSet is the payload of a good permit, changed.
func (w *world) claimSet(t testing.TB, change map[string]any) map[string]any {
	t.Helper()
	_, rest, _ := strings.Cut(w.sign(t, claims(t)), ".")
	body, _, _ := strings.Cut(rest, ".")
	set := map[string]any{}
	if err := json.Unmarshal(must(base64.RawURLEncoding.DecodeString(body))(t), &set); err != nil {
		t.Fatal(err)
	}
	for k, v := range change {
		if set[k] = v; v == nil {
			delete(set, k)
		}
	}
	return set
}

func wantReason(t *testing.T, err error, want Reason) {
	t.Helper()
	if got := ReasonOf(err); got != want {
		t.Errorf("refused for %q (%v), want %q", got, err, want)
	}
}

// scripted is a Store and a KeySource that fail as told.
type scripted struct{ err error }

func (s scripted) Use(context.Context, string, time.Time) error { return s.err }

func (s scripted) Key(context.Context, string) (PublicKey, error) { return PublicKey{}, s.err }

// joseSign signs with go-jose under another algorithm or in another serialization.
func joseSign(t testing.TB, payload string, keys ...jose.SigningKey) *jose.JSONWebSignature {
	t.Helper()
	signer := must(jose.NewMultiSigner(keys, (&jose.SignerOptions{}).WithType(Type)))(t)
	return must(signer.Sign([]byte(payload)))(t)
}
