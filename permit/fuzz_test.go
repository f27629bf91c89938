package permit

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// FuzzVerify: whatever is let through is letter by letter a permit that the gate signed, and every refusal has a reason.
func FuzzVerify(f *testing.F) {
	w := newWorld(f)
	signed := map[string]bool{}
	for _, change := range []func(*Claims){
		func(*Claims) {},
		func(c *Claims) { c.OnBehalfOf, c.Session = "", "" },
		func(c *Claims) { c.Tool = "refund" },
	} {
		c := claims(f)
		change(&c)
		signed[w.sign(f, c)] = true
	}
	for token := range signed {
		part := strings.Split(token, ".")
		for _, seed := range []string{
			token, token + "=", token + "\n", " " + token, part[0] + "." + part[1] + ".", part[0] + ".." + part[2],
			encodeJSON(f, `{"alg":"none"}`) + "." + part[1] + ".", token[:len(token)-1] + "A",
		} {
			f.Add(seed)
		}
	}
	f.Add(w.forge(f, map[string]any{"alg": "HS256"}, w.claimSet(f, nil)))
	f.Add("")
	f.Fuzz(func(t *testing.T, token string) {
		v := w.verify(t, w.keys, NewMemory(w.clock))
		c, err := v.Verify(t.Context(), token, call())
		if err == nil && (!signed[token] || c.Tool != "transfer") {
			t.Errorf("let through: %q", token)
		}
		// A library that reads any JWS comes to the same.
		if err == nil {
			other, parsed := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA})
			if parsed != nil {
				t.Fatalf("let through and no JWS: %q", token)
			}
			if _, signed := other.Verify(w.keys.public[0].Key); signed != nil {
				t.Errorf("let through and not signed: %q", token)
			}
		}
		if err != nil && (c != nil || messages[ReasonOf(err)] == "") {
			t.Errorf("refused with claims %+v and %v", c, err)
		}
	})
}

// FuzzClaims: claims under a good signature that are let through say exactly what the call is.
func FuzzClaims(f *testing.F) {
	w := newWorld(f)
	for _, change := range []map[string]any{
		nil, {"aud": "mail"}, {"tool": ""}, {"exp": int64(1) << 62}, {"iat": -1}, {"nbf": nil}, {"x": 1}, {"server": nil},
	} {
		f.Add(string(must(json.Marshal(w.claimSet(f, change)))(f)))
	}
	want := claims(f)
	f.Fuzz(func(t *testing.T, payload string) {
		v := w.verify(t, w.keys, NewMemory(w.clock))
		c, err := v.Verify(t.Context(), w.forge(t, nil, payload), call())
		if err != nil {
			if c != nil || messages[ReasonOf(err)] == "" {
				t.Errorf("refused with claims %+v and %v", c, err)
			}
			return
		}
		if c.Audience != want.Audience || c.Tool != want.Tool || c.Server != want.Server || c.ArgumentsDigest != want.ArgumentsDigest {
			t.Errorf("let through: %s", payload)
		}
		if life := c.ExpiresAt.Sub(c.IssuedAt); life > MaxLifetime+Leeway || !c.ExpiresAt.Add(Leeway).After(noon) {
			t.Errorf("let through with the times of %s", payload)
		}
	})
}

// FuzzParseUse: a line of the journal that is read is one that would be written.
func FuzzParseUse(f *testing.F) {
	f.Add("used 0123456789abcdef until 1767355200")
	f.Add("used 0123456789abcdef until 01")
	f.Add("used  until ")
	f.Fuzz(func(t *testing.T, line string) {
		if id, until, ok := parseUse([]byte(line)); ok && string(formatUse(id, until)) != line+"\n" {
			t.Errorf("%q is read as %s until %s", line, id, until)
		}
	})
}
