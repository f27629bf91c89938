package permit

import (
	"crypto/sha256"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/permit"
)

func TestSignRefuses(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		change   func(*Claims)
		lifetime time.Duration
		want     string
	}{
		"no lifetime":              {func(*Claims) {}, 0, "lifetime"},
		"a negative lifetime":      {func(*Claims) {}, -time.Second, "lifetime"},
		"more than a minute":       {func(*Claims) {}, 61 * time.Second, "lifetime"},
		"a part of a second":       {func(*Claims) {}, 1500 * time.Millisecond, "lifetime"},
		"no audience":              {func(c *Claims) { c.Audience = "" }, time.Second, "aud"},
		"a caller of another form": {func(c *Claims) { c.Subject = "shop/agent" }, time.Second, "sub"},
		"no tool":                  {func(c *Claims) { c.Tool = "" }, time.Second, "tool"},
		"a tool that is not UTF-8": {func(c *Claims) { c.Tool = "\xff" }, time.Second, "UTF-8"},
		"a long server":            {func(c *Claims) { c.Server = strings.Repeat("s", 257) }, time.Second, "server"},
		"a short id":               {func(c *Claims) { c.ID = "1" }, time.Second, "jti"},
		"no digest of arguments":   {func(c *Claims) { c.ArgumentsDigest = "" }, time.Second, "argumentsDigest"},
		"no digest of policies":    {func(c *Claims) { c.PolicyDigest = "" }, time.Second, "policyDigest"},
		"no decision":              {func(c *Claims) { c.Decision = "" }, time.Second, "decision"},
		"a session in plain":       {func(c *Claims) { c.Session = "s-1" }, time.Second, "session"},
	} {
		t.Run(name, func(t *testing.T) {
			c := claims(t)
			tc.change(&c)
			token, err := w.signer.Sign(c, tc.lifetime)
			if token != "" || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Sign = %q, %v; want an error about %s", token, err, tc.want)
			}
		})
	}
}

func TestTheLongestPermitFits(t *testing.T) {
	w := newWorld(t)
	c := claims(t)
	long := strings.Repeat("\x01", permit.MaxText)
	c.Audience, c.Tool, c.Server, c.OnBehalfOf, c.Decision = strings.Repeat("a", permit.MaxText), long, long, long, strings.Repeat("d", permit.MaxText)
	here := call()
	here.Audience, here.Tool, here.Server = c.Audience, c.Tool, c.Server
	if _, err := w.verify(t, w.keys, w.sign(t, c), here); err != nil {
		t.Error(err)
	}
}

func TestSignWithoutAKeyInForce(t *testing.T) {
	w := newWorld(t)
	retired := fixedKeys[:strings.LastIndex(fixedKeys, ",\n {")] + "]}"
	if err := errors.Join(os.WriteFile(w.keys.ring.Path(), []byte(retired), 0o600), w.keys.Reload()); err != nil {
		t.Fatal(err)
	}
	w.clock.SetTime(time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC))
	if token, err := w.signer.Sign(claims(t), time.Second); !errors.Is(err, ErrNoSigningKey) || token != "" {
		t.Errorf("Sign = %q, %v; want ErrNoSigningKey", token, err)
	}
}

func TestNewSignerRefuses(t *testing.T) {
	w := newWorld(t)
	for name, try := range map[string]func() (*Signer, error){
		"no keys":   func() (*Signer, error) { return NewSigner(nil, "gate", w.clock) },
		"no clock":  func() (*Signer, error) { return NewSigner(w.keys, "gate", nil) },
		"no name":   func() (*Signer, error) { return NewSigner(w.keys, "", w.clock) },
		"long name": func() (*Signer, error) { return NewSigner(w.keys, strings.Repeat("g", 257), w.clock) },
	} {
		if _, err := try(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func BenchmarkSign(b *testing.B) {
	w := newWorld(b)
	c := claims(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.signer.Sign(c, 30*time.Second); err != nil {
			b.Fatal(err)
		}
	}
}

func TestSignGivesWhatAVerifierTakes(t *testing.T) {
	w := newWorld(t)
	want := claims(t)
	token := w.sign(t, want)
	if diff := cmp.Diff(`{"alg":"EdDSA","kid":"`+w.kid()+`","typ":"`+permit.Type+`"}`, header(t, token)); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	got, err := w.verify(t, w.keys, token, call())
	if err != nil {
		t.Fatal(err)
	}
	want.Issuer, want.IssuedAt, want.NotBefore, want.ExpiresAt = "gate-1", noon, noon, noon.Add(30*time.Second)
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

func TestJTI(t *testing.T) {
	body := sha256.Sum256([]byte("body"))
	first := JTI("c", "shop/agent", "u", body)
	if again := JTI("c", "shop/agent", "u", body); again != first || len(first) != 64 {
		t.Errorf("JTI = %q and %q, want one id of 64 characters", first, again)
	}
	for name, other := range map[string]string{
		"another cluster":                JTI("d", "shop/agent", "u", body),
		"another caller":                 JTI("c", "shop/other", "u", body),
		"another uid":                    JTI("c", "shop/agent", "v", body),
		"another body":                   JTI("c", "shop/agent", "u", sha256.Sum256(nil)),
		"the same letters cut elsewhere": JTI("cs", "hop/agent", "u", body),
	} {
		if other == first {
			t.Errorf("%s has the same id", name)
		}
	}
	// Replicas of two releases have to agree on it.
	if want := "23a686598592fe94eeae224cec8864212c78db01c6e9b42a251b2214c3f857ea"; first != want {
		t.Errorf("JTI = %s, want %s", first, want)
	}
}
