package keyring

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const overlap = time.Hour

func open(t *testing.T, path string, c *clocktesting.FakePassiveClock) *Ring {
	t.Helper()
	r, err := Open(Options{Path: path, Clock: c, MinOverlap: overlap})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestASignatureVerifiesUntilItsKeyEnds(t *testing.T) {
	for name, path := range map[string]string{"in a file": filepath.Join(t.TempDir(), "keys"), "in memory": ""} {
		t.Run(name, func(t *testing.T) {
			c := clocktesting.NewFakePassiveClock(noon)
			r := open(t, path, c)
			message := []byte("m")
			kid, signature, err := r.Sign(message)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Rotate(time.Minute, overlap); err != nil {
				t.Fatal(err)
			}
			if again, _, err := r.Sign(message); err != nil || again != kid {
				t.Errorf("before the lead is over %s signs and not %s: %v", again, kid, err)
			}
			c.SetTime(noon.Add(time.Minute))
			next, _, err := r.Sign(message)
			if err != nil || next == kid {
				t.Errorf("after the lead the old key signs: %v", err)
			}
			c.SetTime(noon.Add(time.Minute + overlap - 1))
			if err := r.Verify(kid, message, signature); err != nil {
				t.Errorf("a retired key does not verify: %v", err)
			}
			c.SetTime(noon.Add(time.Minute + overlap))
			if err := r.Verify(kid, message, signature); !errors.Is(err, ErrUnknownKey) {
				t.Errorf("a key that has ended verifies: %v", err)
			}
			if diff := cmp.Diff([]string{next}, r.KeyIDs()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestVerifyRefuses(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	r, other := open(t, "", c), open(t, "", c)
	kid, signature, err := r.Sign([]byte("m"))
	if err != nil {
		t.Fatal(err)
	}
	_, foreign, err := other.Sign([]byte("m"))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		kid, message string
		signature    []byte
		want         error
	}{
		"another message":             {kid, "n", signature, ErrBadSignature},
		"a signature that is cut":     {kid, "m", signature[:63], ErrBadSignature},
		"no signature":                {kid, "m", nil, ErrBadSignature},
		"another ring's signature":    {kid, "m", foreign, ErrBadSignature},
		"a key that is not there":     {"k", "m", signature, ErrUnknownKey},
		"a key without a name":        {"", "m", signature, ErrUnknownKey},
		"another ring's key and sign": {other.KeyIDs()[0], "m", foreign, ErrUnknownKey},
	} {
		t.Run(name, func(t *testing.T) {
			if err := r.Verify(test.kid, []byte(test.message), test.signature); !errors.Is(err, test.want) {
				t.Errorf("Verify: %v, want %v", err, test.want)
			}
		})
	}
	if err := r.Verify(kid, []byte("m"), signature); err != nil {
		t.Errorf("what fits is refused: %v", err)
	}
}

func TestAFileIsMadeOnceAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	c := clocktesting.NewFakePassiveClock(noon)
	ids := make([]string, 8)
	var wait sync.WaitGroup
	for i := range ids {
		wait.Go(func() { ids[i] = open(t, path, c).KeyIDs()[0] })
	}
	wait.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("two processes have made two keys: %v", ids)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".keys-*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	one, two := open(t, path, c), open(t, path, c)
	if err := one.Rotate(0, overlap); err != nil {
		t.Fatal(err)
	}
	if err := two.Reload(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one.KeyIDs(), two.KeyIDs()); diff != "" {
		t.Errorf("(-one +two):\n%s", diff)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	good := filepath.Join(t.TempDir(), "keys")
	open(t, good, c)
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, test := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"others can read it":        {text, 0o640, "can be read by others"},
		"all can read a mount":      {text, 0o444, "can be read by others"},
		"no keys":                   {`{"keys":[]}`, 0o600, "1 to 16"},
		"no JSON":                   {"x", 0o600, ""},
		"a field that is unknown":   {strings.Replace(text, `"kty"`, `"use": "sig", "kty"`, 1), 0o600, ""},
		"another curve":             {strings.Replace(text, "Ed25519", "Ed448", 1), 0o600, "crv Ed25519"},
		"another name":              {strings.Replace(text, `"kid": "`, `"kid": "x`, 1), 0o600, "kid"},
		"no private part":           {strings.Replace(text, `"d": "`, `"d": "!`, 1), 0o600, "private part"},
		"no time from which it may": {strings.Replace(text, "2026-01-02T12:00:00Z", "0001-01-01T00:00:00Z", 1), 0o600, "signsFrom"},
		"the same key twice":        {strings.TrimSuffix(strings.TrimSpace(text), "]\n}") + "," + text[strings.Index(text, "[")+1:], 0o600, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys")
			if err := os.WriteFile(path, []byte(test.text), test.mode); err != nil {
				t.Fatal(err)
			}
			if r, err := Open(Options{Path: path, Clock: c}); err == nil || r != nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open: %v, want %q", err, test.want)
			}
		})
	}
}

func TestRotateRefuses(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	r := open(t, "", c)
	if r.Rotate(-1, overlap) == nil || r.Rotate(0, overlap-1) == nil {
		t.Error("a rotation that would end keys too early is made")
	}
	for range maxKeys - 1 {
		if err := r.Rotate(0, overlap); err != nil {
			t.Fatal(err)
		}
	}
	if r.Rotate(0, overlap) == nil || len(r.KeyIDs()) != maxKeys {
		t.Errorf("a ring grows beyond %d keys: %d", maxKeys, len(r.KeyIDs()))
	}
	c.SetTime(noon.Add(2 * overlap))
	if err := r.Rotate(0, overlap); err != nil {
		t.Errorf("keys that have ended still count: %v", err)
	}
}

func TestAClockThatIsSetBackLeavesAKeyInForce(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	r := open(t, "", c)
	first := r.KeyIDs()[0]
	if err := r.Rotate(0, overlap); err != nil {
		t.Fatal(err)
	}
	c.SetTime(noon.Add(-time.Hour))
	if kid, _, err := r.Sign([]byte("m")); err != nil || kid != first {
		t.Errorf("%s signs and not %s: %v", kid, first, err)
	}
}

func TestLoadMakesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	c := clocktesting.NewFakePassiveClock(noon)
	for name, p := range map[string]string{"a file that is not there": path, "no file": ""} {
		if r, err := Load(Options{Path: p, Clock: c}); err == nil || r != nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
	made := open(t, path, c)
	r, err := Load(Options{Path: path, Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(made.KeyIDs(), r.KeyIDs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASigningKeySignsUnderItsName(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	r := open(t, "", c)
	if err := r.Rotate(time.Minute, overlap); err != nil {
		t.Fatal(err)
	}
	public := r.Public()
	for at, want := range map[time.Duration]PublicKey{0: public[1], time.Minute: public[0]} {
		c.SetTime(noon.Add(at))
		k, err := r.Signing()
		if err != nil || k.ID != want.ID {
			t.Fatalf("after %s %s signs, want %s: %v", at, k.ID, want.ID, err)
		}
		if err := r.Verify(k.ID, []byte("m"), k.Sign([]byte("m"))); err != nil {
			t.Errorf("after %s: %v", at, err)
		}
	}
	if !public[0].NotAfter.IsZero() || !public[1].NotAfter.Equal(noon.Add(time.Minute+overlap)) || !public[0].SignsFrom.Equal(noon.Add(time.Minute)) {
		t.Errorf("%+v", public)
	}
}
