package permit

import (
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// TestThumbprintIsThatOfOthers compares with the example of RFC 8037, appendix A.3, and with a library.
func TestThumbprintIsThatOfOthers(t *testing.T) {
	key := must(base64.RawURLEncoding.DecodeString("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"))(t)
	const want = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
	if got := Thumbprint(key); got != want {
		t.Errorf("Thumbprint = %s, want %s", got, want)
	}
	for range 10 {
		public, _, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		other := jose.JSONWebKey{Key: public}
		if got, want := Thumbprint(public), b64(must(other.Thumbprint(crypto.SHA256))(t)); got != want {
			t.Errorf("Thumbprint = %s, want %s", got, want)
		}
	}
}

func TestParseKeySet(t *testing.T) {
	w := newWorld(t)
	good := string(w.keys.set())
	key := strings.TrimSuffix(strings.TrimPrefix(good, `{"keys":[`), `]}`)
	secret := strings.Replace(key, `"kty"`, `"d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","kty"`, 1)
	for name, tc := range map[string]struct {
		set      string
		wantKeys int
		wantErr  string
	}{
		"one key":                       {good, 1, ""},
		"a key of another type beside":  {`{"keys":[` + key + `,{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"r"}]}`, 1, ""},
		"only keys of other types":      {`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"r"}]}`, 0, "no Ed25519 key"},
		"no keys":                       {`{"keys":[]}`, 0, "no Ed25519 key"},
		"an error object":               {`{"code":"Internal"}`, 0, "no Ed25519 key"},
		"HTML":                          {`<html>`, 0, "not JSON"},
		"nothing":                       {``, 0, "not JSON"},
		"a private key":                 {`{"keys":[` + secret + `]}`, 0, "is secret"},
		"a shared secret":               {`{"keys":[` + key + `,{"kty":"oct","k":"AAAA","kid":"o"}]}`, 0, "is secret"},
		"a key that is text":            {`{"keys":["x"]}`, 0, "no JSON Web Key"},
		"a kid that is no thumbprint":   {strings.Replace(good, w.kid(), "mine", 1), 0, "thumbprint"},
		"a key that is too short":       {strings.Replace(good, b64(w.private()[32:]), "AAAA", 1), 0, "no valid"},
		"more keys than a gate has":     {`{"keys":[` + strings.Repeat(key+",", MaxKeys) + key + `]}`, 0, "more than"},
		"a set that is too large":       {good + strings.Repeat(" ", MaxKeySet), 0, "larger"},
		"a key that is for another use": {strings.Replace(good, `"sig"`, `"enc"`, 1), 0, "no Ed25519 key"},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := ParseKeySet([]byte(tc.set))
			if len(keys) != tc.wantKeys || (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("ParseKeySet = %d keys, %v; want %d, %q", len(keys), err, tc.wantKeys, tc.wantErr)
			}
		})
	}
}
