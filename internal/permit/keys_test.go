package permit

import (
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/permit"
)

var update = flag.Bool("update", false, "rewrite golden files")

// fixedKeys are a key file with a retired key and a new one. The keys are the published examples of RFC 8032, secret to nobody.
const fixedKeys = `{"keys": [
 {"kty":"OKP","crv":"Ed25519","use":"sig","alg":"EdDSA","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
  "kid":"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k","signsFrom":"2026-01-01T00:00:00Z","notAfter":"2026-01-03T00:00:00Z"},
 {"kty":"OKP","crv":"Ed25519","use":"sig","alg":"EdDSA","x":"PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw","d":"TM0Imyj_ltqdtsNG7BFOD1uKMZ81q6Yk2oz27U-4pvs",
  "kid":"FtIu-VbGrfe_KB6CH7GNwODB72MNxj_ml11dEvO-7kk","signsFrom":"2026-01-02T00:00:00Z"}]}`

func TestJWKSGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(fixedKeys), 0o600); err != nil {
		t.Fatal(err)
	}
	c := clocktesting.NewFakePassiveClock(noon)
	got := must(LoadKeys(path, c))(t).JWKS()
	const golden = "testdata/jwks.json"
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(must(os.ReadFile(golden))(t)), string(got)); diff != "" {
		t.Errorf("JWKS (-want +got):\n%s", diff)
	}
	if strings.Contains(string(got), `"d"`) {
		t.Error("JWKS holds a private key")
	}
	keys := must(permit.ParseKeySet(got))(t)
	if ends := keys["kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"].NotAfter; !ends.Equal(time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the retired key ends %s", ends)
	}
}

func TestLoadOrCreateKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	c := clocktesting.NewFakePassiveClock(noon)
	if _, err := LoadKeys(path, c); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("LoadKeys: %v, want a file that does not exist", err)
	}
	var made [8]*Keys
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() {
			var err error
			if made[i], err = LoadOrCreateKeys(path, c); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, k := range made[1:] {
		if diff := cmp.Diff(string(made[0].JWKS()), string(k.JWKS())); diff != "" {
			t.Errorf("two processes have two keys:\n%s", diff)
		}
	}
	if mode := must(os.Stat(path))(t).Mode(); mode != 0o600 {
		t.Errorf("mode = %o, want 600", mode)
	}
	if files := must(os.ReadDir(filepath.Dir(path)))(t); len(files) != 1 {
		t.Errorf("%d files are left, want 1", len(files))
	}
}

func TestLoadKeysRefuses(t *testing.T) {
	swap := func(old, with string) string { return strings.Replace(fixedKeys, old, with, 1) }
	for name, tc := range map[string]struct {
		content string
		mode    os.FileMode
		want    string // in the error; empty is good
	}{
		"two keys":                     {fixedKeys, 0o600, ""},
		"two keys that only we read":   {fixedKeys, 0o400, ""},
		"a file that its group reads":  {fixedKeys, 0o640, "chmod 600"},
		"a file that all can write":    {fixedKeys, 0o602, "chmod 600"},
		"nothing":                      {"", 0o600, "reading key file"},
		"no keys":                      {`{"keys":[]}`, 0o600, "want 1 to"},
		"a field that is not known":    {swap(`"use"`, `"Use"`), 0o600, "reading key file"},
		"a key for something else":     {swap(`"sig"`, `"enc"`), 0o600, "key 0 is not of"},
		"a key without private part":   {swap(`"d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",`, ""), 0o600, "private part"},
		"a public part of another key": {swap("11qY", "21qY"), 0o600, "not of its private part"},
		"a kid of another key":         {swap("kPrK", "kPrk"), 0o600, "not of its private part"},
		"a key without a beginning":    {swap(`"signsFrom":"2026-01-01T00:00:00Z",`, ""), 0o600, "signsFrom"},
		"one key twice":                {fixedKeys[:strings.LastIndex(fixedKeys, "]")] + "," + fixedKeys[strings.Index(fixedKeys, "[")+1:], 0o600, "twice"},
		"a file that is too large":     {fixedKeys + strings.Repeat(" ", permit.MaxKeySet), 0o600, "reading key file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys")
			if err := errors.Join(os.WriteFile(path, []byte(tc.content), 0o600), os.Chmod(path, tc.mode)); err != nil {
				t.Fatal(err)
			}
			k, err := LoadOrCreateKeys(path, clocktesting.NewFakePassiveClock(noon))
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if k != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("LoadOrCreateKeys: %v, want an error with %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "nWGx") {
				t.Errorf("the error shows the key: %v", err)
			}
			if got := must(os.ReadFile(path))(t); string(got) != tc.content {
				t.Error("the file was changed")
			}
		})
	}
}

func TestRotation(t *testing.T) {
	w := newWorld(t)
	verify := func(token string) error {
		t.Helper()
		_, err := w.verify(t, must(permit.ParseKeySet(w.keys.JWKS()))(t), token, call())
		return err
	}
	kid := func(token string) string {
		t.Helper()
		var h struct {
			ID string `json:"kid"`
		}
		if err := json.Unmarshal([]byte(header(t, token)), &h); err != nil {
			t.Fatal(err)
		}
		return h.ID
	}
	old := kid(w.sign(t, claims(t)))
	if err := w.keys.Rotate(time.Minute, 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	next := w.kid()
	for _, step := range []struct {
		at         time.Duration
		wantKid    string
		wantOldOut bool // a permit of the old key is refused
	}{
		{0, old, false},
		{time.Minute - time.Nanosecond, old, false},
		{time.Minute, next, false},
		{3*time.Minute - time.Nanosecond, next, false},
		{3 * time.Minute, next, true},
	} {
		w.clock.SetTime(noon.Add(step.at))
		token := w.sign(t, claims(t))
		if got := kid(token); got != step.wantKid {
			t.Errorf("after %s %s signs, want %s", step.at, got, step.wantKid)
		}
		if err := verify(token); err != nil {
			t.Errorf("after %s: %v", step.at, err)
		}
		fromOld := w.signWith(t, old)
		err := verify(fromOld)
		if (permit.ReasonOf(err) == permit.ReasonUnknownKey) != step.wantOldOut || (err != nil) != step.wantOldOut {
			t.Errorf("after %s a permit of the old key: %v, want it refused: %t", step.at, err, step.wantOldOut)
		}
		_, direct := w.verify(t, w.keys, fromOld, call())
		if (direct != nil) != step.wantOldOut {
			t.Errorf("after %s at the gate itself: %v", step.at, direct)
		}
	}
	if err := w.keys.Rotate(0, minOverlap); err != nil {
		t.Fatal(err)
	}
	if n := len(w.keys.ring.Public()); n != 2 {
		t.Errorf("%d keys after the first has ended, want 2", n)
	}
	reread := must(LoadKeys(w.keys.ring.Path(), w.clock))(t)
	if diff := cmp.Diff(string(w.keys.JWKS()), string(reread.JWKS())); diff != "" {
		t.Errorf("the file holds other keys (-memory +file):\n%s", diff)
	}
}

// signWith signs with a key of the ring, whether its time is over or not.
func (w *world) signWith(t *testing.T, kid string) string {
	t.Helper()
	var file struct {
		Keys []map[string]any `json:"keys"`
	}
	if err := json.Unmarshal(must(os.ReadFile(w.keys.ring.Path()))(t), &file); err != nil {
		t.Fatal(err)
	}
	for _, k := range file.Keys {
		if k["kid"] != kid {
			continue
		}
		k["signsFrom"] = noon
		delete(k, "notAfter")
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, must(json.Marshal(map[string]any{"keys": []any{k}}))(t), 0o600); err != nil {
			t.Fatal(err)
		}
		return must(must(NewSigner(must(LoadKeys(path, w.clock))(t), "gate-1", w.clock))(t).Sign(claims(t), 30*time.Second))(t)
	}
	t.Fatalf("no key %s", kid)
	return ""
}

func TestRotateRefuses(t *testing.T) {
	w := newWorld(t)
	before := string(w.keys.JWKS())
	if err := w.keys.Rotate(-time.Second, time.Hour); err == nil {
		t.Error("a lead in the past: no error")
	}
	if err := w.keys.Rotate(0, minOverlap-1); err == nil {
		t.Error("an overlap shorter than a permit: no error")
	}
	if diff := cmp.Diff(before, string(w.keys.JWKS())); diff != "" {
		t.Errorf("keys were changed (-want +got):\n%s", diff)
	}
	for len(w.keys.ring.Public()) < 16 {
		if err := w.keys.Rotate(0, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.keys.Rotate(0, time.Hour); err == nil {
		t.Error("more keys than a verifier reads: no error")
	}
}

func TestReloadKeepsTheKeysAfterAnError(t *testing.T) {
	w := newWorld(t)
	before := string(w.keys.JWKS())
	if err := os.WriteFile(w.keys.ring.Path(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.keys.Reload(); err == nil {
		t.Error("Reload: no error")
	}
	if diff := cmp.Diff(before, string(w.keys.JWKS())); diff != "" {
		t.Errorf("keys were changed (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(w.keys.ring.Path(), []byte(fixedKeys), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.keys.Reload(); err != nil || string(w.keys.JWKS()) == before {
		t.Errorf("Reload: %v, keys changed: %t", err, string(w.keys.JWKS()) != before)
	}
}

func TestKeysAreServed(t *testing.T) {
	w := newWorld(t)
	for method, want := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405, "DELETE": 405} {
		got := httptest.NewRecorder()
		w.keys.ServeHTTP(got, httptest.NewRequest(method, JWKSPath, http.NoBody))
		if got.Code != want {
			t.Errorf("%s: %d, want %d", method, got.Code, want)
		}
		if want == 200 && (got.Body.String() != string(w.keys.JWKS()) || got.Header().Get("Content-Type") != "application/jwk-set+json") {
			t.Errorf("%s: %q", method, got.Body)
		}
	}
}
