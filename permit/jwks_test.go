package permit

import (
	"strings"
	"testing"
)

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
