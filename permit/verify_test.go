package permit

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/strictjson"
)

func TestVerifyGivesTheClaimsThatWereSigned(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*Claims){
		"all claims are there": func(*Claims) {},
		"no server, end user and session": func(c *Claims) {
			c.ID, c.Server, c.OnBehalfOf, c.Session = "0123456789abcdef0123456789abcdef", "", "", ""
		},
		"texts need escapes": func(c *Claims) { c.ID, c.OnBehalfOf = "0123456789abcdef-escapes", "<Ä & \u2028 \x00>" },
	} {
		t.Run(name, func(t *testing.T) {
			want := claims(t)
			change(&want)
			here := call()
			here.Server = want.Server
			got, err := w.verifier.Verify(t.Context(), w.sign(t, want), here)
			if err != nil {
				t.Fatal(err)
			}
			want.Issuer, want.IssuedAt, want.NotBefore, want.ExpiresAt = "gate-1", noon, noon, noon.Add(30*time.Second)
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVerifyRefusesWhatNoGateSigned(t *testing.T) {
	w := newWorld(t)
	good := w.sign(t, claims(t))
	part := strings.Split(good, ".")
	payload := string(must(json.Marshal(w.claimSet(t, nil)))(t))
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	ours := jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: w.private(), KeyID: w.kid()}}
	theirs := jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: stranger, KeyID: w.kid()}}
	hmac := jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: []byte(w.private().Public().(ed25519.PublicKey)), KeyID: w.kid()}}
	for name, tc := range map[string]struct {
		token string
		want  Reason
	}{
		"nothing":                     {"", ReasonMissing},
		"one word":                    {"permit", ReasonMalformed},
		"two parts":                   {part[0] + "." + part[1], ReasonMalformed},
		"four parts":                  {good + "." + part[2], ReasonMalformed},
		"no signature":                {part[0] + "." + part[1] + ".", ReasonMalformed},
		"a space in front":            {" " + good, ReasonMalformed},
		"a line break inside":         {part[0] + "." + part[1] + "." + part[2][:10] + "\n" + part[2][10:], ReasonMalformed},
		"padding":                     {good + "==", ReasonMalformed},
		"spare bits in the signature": {good[:len(good)-1] + spareBits(good[len(good)-1]), ReasonMalformed},
		"longer than a permit can be": {part[0] + "." + strings.Repeat("A", MaxToken) + "." + part[2], ReasonMalformed},
		"alg none":                    {w.forge(t, map[string]any{"alg": "none"}, payload), ReasonBadSignature},
		"alg none without signature":  {encodeJSON(t, `{"alg":"none","typ":"`+Type+`","kid":"`+w.kid()+`"}`) + "." + part[1] + ".", ReasonMalformed},
		"HS256 with the public key as secret": {
			must(joseSign(t, payload, hmac).CompactSerialize())(t), ReasonBadSignature},
		"signed by a stranger under our kid": {must(joseSign(t, payload, theirs).CompactSerialize())(t), ReasonBadSignature},
		"two signatures, one of them ours":   {joseSign(t, payload, ours, theirs).FullSerialize(), ReasonMalformed},
		"the JSON form of one signature":     {joseSign(t, payload, ours).FullSerialize(), ReasonMalformed},
		"other claims under our signature":   {part[0] + "." + encodeJSON(t, w.claimSet(t, map[string]any{"tool": "x"})) + "." + part[2], ReasonBadSignature},
		"another header under our signature": {encodeJSON(t, `{"typ":"`+Type+`","alg":"EdDSA","kid":"`+w.kid()+`"}`) + "." + part[1] + "." + part[2], ReasonBadSignature},
		"another type":                       {w.forge(t, map[string]any{"typ": "JWT"}, payload), ReasonMalformed},
		"the type in another case":           {w.forge(t, map[string]any{"typ": strings.ToUpper(Type)}, payload), ReasonMalformed},
		"no type":                            {w.forge(t, map[string]any{"typ": nil}, payload), ReasonMalformed},
		"no kid":                             {w.forge(t, map[string]any{"kid": nil}, payload), ReasonMalformed},
		"another kid":                        {w.forge(t, map[string]any{"kid": "other"}, payload), ReasonUnknownKey},
		"a key in the header":                {w.forge(t, map[string]any{"jwk": map[string]any{}}, payload), ReasonMalformed},
		"an address of keys in the header":   {w.forge(t, map[string]any{"jku": "https://example.com"}, payload), ReasonMalformed},
		"a critical extension":               {w.forge(t, map[string]any{"crit": []string{"b64"}, "b64": false}, payload), ReasonMalformed},
		"b64 that is not listed as critical": {w.forge(t, map[string]any{"b64": false}, payload), ReasonMalformed},
		"a token within a token":             {w.forge(t, map[string]any{"cty": "JWT"}, payload), ReasonMalformed},
		"a certificate in the header":        {w.forge(t, map[string]any{"x5c": []string{"AAAA"}}, payload), ReasonMalformed},
		"alg in other capitals":              {w.forge(t, map[string]any{"alg": "eddsa"}, payload), ReasonBadSignature},
		"alg by its newer name":              {w.forge(t, map[string]any{"alg": "Ed25519"}, payload), ReasonBadSignature},
		"alg that is no text":                {w.forge(t, map[string]any{"alg": []string{"EdDSA"}}, payload), ReasonMalformed},
		"no alg":                             {w.forge(t, map[string]any{"alg": nil}, payload), ReasonBadSignature},
		"a kid that is a path":               {w.forge(t, map[string]any{"kid": "../../dev/null"}, payload), ReasonUnknownKey},
		"a header that is a list":            {encodeJSON(t, `["EdDSA"]`) + "." + part[1] + "." + part[2], ReasonMalformed},
		"a header that is not JSON":          {b64([]byte("EdDSA")) + "." + part[1] + "." + part[2], ReasonMalformed},
		"no payload":                         {part[0] + ".." + part[2], ReasonMalformed},
		"a detached payload":                 {part[0] + "." + b64([]byte("x")) + "." + part[2], ReasonBadSignature},
		"a signature cut within a byte":      {part[0] + "." + part[1] + "." + part[2][:41], ReasonMalformed},
		"a signature of half the length":     {part[0] + "." + part[1] + "." + b64(make([]byte, 32)), ReasonBadSignature},
		"a signature of zeros":               {part[0] + "." + part[1] + "." + b64(make([]byte, 64)), ReasonBadSignature},
		"standard base64":                    {part[0] + "." + strings.NewReplacer("-", "+", "_", "/").Replace(part[1]) + "+/." + part[2], ReasonMalformed},
		"Bearer in front":                    {"Bearer " + good, ReasonMalformed},
		"a header with one name twice":       {encodeJSON(t, `{"alg":"none","alg":"EdDSA","typ":"`+Type+`","kid":"`+w.kid()+`"}`) + "." + part[1] + "." + part[2], ReasonMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := w.verifier.Verify(t.Context(), tc.token, call())
			if got != nil {
				t.Errorf("claims = %+v, want none", got)
			}
			wantReason(t, err, tc.want)
		})
	}
	if _, err := w.verifier.Verify(t.Context(), good, call()); err != nil {
		t.Errorf("the good permit was used up by a refused one: %v", err)
	}
}

// spareBits is another last letter of the same 64 bytes.
func spareBits(c byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, c)|1])
}

func TestVerifyRefusesClaimsThatAreNotOurs(t *testing.T) {
	w := newWorld(t)
	at := func(d time.Duration) int64 { return noon.Add(d).Unix() }
	for name, tc := range map[string]struct {
		change map[string]any
		want   Reason // empty is good
	}{
		"nothing is changed":             {nil, ""},
		"a list of callers":              {map[string]any{"sub": []string{Subject("shop", "agent")}}, ReasonMalformed},
		"a tool that is a list":          {map[string]any{"tool": []string{"transfer"}}, ReasonMalformed},
		"an end that is text":            {map[string]any{"exp": "4102444800"}, ReasonMalformed},
		"an end of null":                 {map[string]any{"exp": nil, "Exp": at(time.Minute)}, ReasonMalformed},
		"a claim in other capitals":      {map[string]any{"Tool": "refund"}, ReasonMalformed},
		"a claim that is not known":      {map[string]any{"onlyOnMondays": true}, ReasonMalformed},
		"a list of audiences":            {map[string]any{"aud": []string{"payments"}}, ReasonMalformed},
		"no issuer":                      {map[string]any{"iss": nil}, ReasonMalformed},
		"no audience":                    {map[string]any{"aud": nil}, ReasonMalformed},
		"no tool":                        {map[string]any{"tool": ""}, ReasonMalformed},
		"no decision":                    {map[string]any{"decision": nil}, ReasonMalformed},
		"no id":                          {map[string]any{"jti": nil}, ReasonMalformed},
		"an id with a space":             {map[string]any{"jti": "0123456789abcdef x"}, ReasonMalformed},
		"a caller that is a user":        {map[string]any{"sub": "ann"}, ReasonMalformed},
		"a caller without a name":        {map[string]any{"sub": "system:serviceaccount:shop:"}, ReasonMalformed},
		"a digest in capitals":           {map[string]any{"argumentsDigest": strings.ToUpper(digest(t, transferArguments))}, ReasonMalformed},
		"no digest of policies":          {map[string]any{"policyDigest": nil}, ReasonMalformed},
		"a session in plain":             {map[string]any{"session": "s-1"}, ReasonMalformed},
		"an end user that is too long":   {map[string]any{"onBehalfOf": strings.Repeat("a", MaxText+1)}, ReasonMalformed},
		"no time of making":              {map[string]any{"iat": nil}, ReasonMalformed},
		"no beginning":                   {map[string]any{"nbf": nil}, ReasonMalformed},
		"no end":                         {map[string]any{"exp": nil}, ReasonMalformed},
		"an end in fractions":            {map[string]any{"exp": float64(at(0)) + 0.5}, ReasonMalformed},
		"an end beyond all times":        {map[string]any{"exp": int64(math.MaxInt64)}, ReasonMalformed},
		"an end that a sum would wrap":   {map[string]any{"exp": int64(1) << 52}, ReasonMalformed},
		"a minute and the leeway":        {map[string]any{"exp": at(65 * time.Second)}, ""},
		"a second more":                  {map[string]any{"exp": at(66 * time.Second)}, ReasonTooLong},
		"an end before it is made":       {map[string]any{"exp": at(-time.Second)}, ReasonMalformed},
		"a beginning before it is made":  {map[string]any{"nbf": at(-time.Second)}, ReasonMalformed},
		"begins within the leeway":       {map[string]any{"iat": at(5 * time.Second), "nbf": at(5 * time.Second)}, ""},
		"begins a second after it":       {map[string]any{"iat": at(6 * time.Second), "nbf": at(6 * time.Second)}, ReasonNotYetValid},
		"ended within the leeway":        {map[string]any{"iat": at(-30 * time.Second), "nbf": at(-30 * time.Second), "exp": at(-4 * time.Second)}, ""},
		"ended as long ago as it lasts":  {map[string]any{"iat": at(-30 * time.Second), "nbf": at(-30 * time.Second), "exp": at(-5 * time.Second)}, ReasonExpired},
		"the audience of another server": {map[string]any{"aud": "mail"}, ReasonWrongAudience},
	} {
		t.Run(name, func(t *testing.T) {
			v := w.verify(t, w.keys, NewMemory(w.clock))
			_, err := v.Verify(t.Context(), w.forge(t, nil, w.claimSet(t, tc.change)), call())
			wantReason(t, err, tc.want)
			if (err == nil) != (tc.want == "") {
				t.Errorf("error = %v", err)
			}
		})
	}
}

func TestVerifyRefusesAnotherCall(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		change func(*Call)
		want   Reason
	}{
		"another audience":                {func(c *Call) { c.Audience = "mail" }, ReasonWrongAudience},
		"no audience":                     {func(c *Call) { c.Audience = "" }, ReasonWrongAudience},
		"another tool":                    {func(c *Call) { c.Tool = "refund" }, ReasonWrongTool},
		"the tool in another case":        {func(c *Call) { c.Tool = "Transfer" }, ReasonWrongTool},
		"the tool of another server":      {func(c *Call) { c.Server = "shop" }, ReasonWrongTool},
		"the tool of no server":           {func(c *Call) { c.Server = "" }, ReasonWrongTool},
		"another amount":                  {func(c *Call) { c.Arguments = map[string]any{"to": "ACME", "amount": int64(2)} }, ReasonWrongArguments},
		"the amount as text":              {func(c *Call) { c.Arguments = map[string]any{"to": "ACME", "amount": "1"} }, ReasonWrongArguments},
		"one argument more":               {func(c *Call) { c.Arguments = map[string]any{"to": "ACME", "amount": int64(1), "x": nil} }, ReasonWrongArguments},
		"no arguments":                    {func(c *Call) { c.Arguments = nil }, ReasonWrongArguments},
		"arguments without a digest":      {func(c *Call) { c.Arguments = map[string]any{"x": json.Number("1")} }, ReasonWrongArguments},
		"another digest":                  {func(c *Call) { c.Arguments, c.ArgumentsDigest = nil, digest(t, "x") }, ReasonWrongArguments},
		"arguments and another's digest":  {func(c *Call) { c.ArgumentsDigest = digest(t, "x") }, ReasonWrongArguments},
		"the digest alone is enough":      {func(c *Call) { c.Arguments, c.ArgumentsDigest = nil, digest(t, transferArguments) }, ""},
		"the amount as a double":          {func(c *Call) { c.Arguments = map[string]any{"to": "ACME", "amount": 1.0} }, ""},
		"arguments and digest that agree": {func(c *Call) { c.ArgumentsDigest = digest(t, transferArguments) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := w.verify(t, w.keys, NewMemory(w.clock))
			token := w.sign(t, claims(t))
			c := call()
			tc.change(&c)
			_, err := v.Verify(t.Context(), token, c)
			wantReason(t, err, tc.want)
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if _, err := v.Verify(t.Context(), token, call()); err != nil {
				t.Errorf("the permit was used up by another call: %v", err)
			}
		})
	}
}

func TestNumbersThatAreEqualHaveOneDigest(t *testing.T) {
	w := newWorld(t)
	for name, body := range map[string]string{
		"1":            `{"to":"ACME","amount":1}`,
		"1.0":          `{"to":"ACME","amount":1.0}`,
		"10e-1":        `{"amount":10e-1,"to":"ACME"}`,
		"with escapes": `{"\u0074o":"\u0041CME","amount":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			tree, ok := must(strictjson.Parse([]byte(body), strictjson.Limits{}))(t).(map[string]any)
			if !ok {
				t.Fatal("not an object")
			}
			c := call()
			c.Arguments = tree
			if _, err := w.verify(t, w.keys, NewMemory(w.clock)).Verify(t.Context(), w.sign(t, claims(t)), c); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPermitIsGoodOnce(t *testing.T) {
	w := newWorld(t)
	token := w.sign(t, claims(t))
	if _, err := w.verifier.Verify(t.Context(), token, call()); err != nil {
		t.Fatal(err)
	}
	_, err := w.verifier.Verify(t.Context(), token, call())
	wantReason(t, err, ReasonUsed)
	if !errors.Is(err, ErrUsed) {
		t.Errorf("%v is not ErrUsed", err)
	}
	// The gate answers the same request again while its uid is fresh, up to 360 s. None of those is good.
	for range 36 {
		w.pass(10 * time.Second)
		_, err := w.verifier.Verify(t.Context(), w.sign(t, claims(t)), call())
		wantReason(t, err, ReasonUsed)
	}
	last := w.sign(t, claims(t))
	w.pass(30*time.Second + Leeway - time.Nanosecond)
	_, err = w.verifier.Verify(t.Context(), last, call())
	wantReason(t, err, ReasonUsed)
}

func TestOneOfManyUsesWins(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			v := w.verify(t, w.keys, open(t, w.clock))
			token := w.sign(t, claims(t))
			var good, used atomic.Int32
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					_, err := v.Verify(context.WithoutCancel(t.Context()), token, call())
					switch {
					case err == nil:
						good.Add(1)
					case ReasonOf(err) == ReasonUsed:
						used.Add(1)
					}
				})
			}
			all.Wait()
			if good.Load() != 1 || used.Load() != 49 {
				t.Errorf("%d were let through and %d refused as used, want 1 and 49", good.Load(), used.Load())
			}
		})
	}
}

func TestVerifyRefusesWhatItCannotCheck(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		keys  KeySource
		store Store
		want  Reason
	}{
		"the store fails":             {w.keys, scripted{errors.New("disk full")}, ReasonStoreUnavailable},
		"the store is full":           {w.keys, scripted{ErrStoreFull}, ReasonStoreUnavailable},
		"the store ran out of time":   {w.keys, scripted{context.DeadlineExceeded}, ReasonStoreUnavailable},
		"the keys cannot be had":      {scripted{ErrKeysUnavailable}, w.store, ReasonKeysUnavailable},
		"the keys fail otherwise":     {scripted{errors.New("x")}, w.store, ReasonKeysUnavailable},
		"the key is not there":        {scripted{ErrUnknownKey}, w.store, ReasonUnknownKey},
		"another key than asked for":  {scripted{}, w.store, ReasonUnknownKey},
		"a key that has ended":        {StaticKeys{w.kid(): {ID: w.kid(), Key: w.private().Public().(ed25519.PublicKey), NotAfter: noon}}, w.store, ReasonUnknownKey},
		"the caller has already gone": {w.keys, cancelled{NewMemory(w.clock)}, ReasonStoreUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.verify(t, tc.keys, tc.store).Verify(t.Context(), w.sign(t, claims(t)), call())
			wantReason(t, err, tc.want)
		})
	}
}

// cancelled hands a store a context that has ended.
type cancelled struct{ Store }

func (c cancelled) Use(ctx context.Context, jti string, until time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return c.Store.Use(ctx, jti, until)
}

// slow is a store that lets time pass.
type slow struct {
	Store
	w *world
}

func (s slow) Use(ctx context.Context, jti string, until time.Time) error {
	s.w.pass(time.Minute)
	return s.Store.Use(ctx, jti, until)
}

func TestPermitThatExpiresInTheStoreIsRefused(t *testing.T) {
	w := newWorld(t)
	_, err := w.verify(t, w.keys, slow{w.store, w}).Verify(t.Context(), w.sign(t, claims(t)), call())
	wantReason(t, err, ReasonExpired)
}

type sharedMemory struct{ *Memory }

func (sharedMemory) SharedByReplicas() {}

func TestNewVerifierRefuses(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		options VerifierOptions
		wantErr bool
	}{
		"no keys":                         {VerifierOptions{Store: w.store, Clock: w.clock}, true},
		"no store":                        {VerifierOptions{Keys: w.keys, Clock: w.clock}, true},
		"no clock takes the system's":     {VerifierOptions{Keys: w.keys, Store: w.store}, false},
		"a negative number of replicas":   {VerifierOptions{Keys: w.keys, Store: w.store, Clock: w.clock, Replicas: -1}, true},
		"two replicas with stores apart":  {VerifierOptions{Keys: w.keys, Store: w.store, Clock: w.clock, Replicas: 2}, true},
		"one replica":                     {VerifierOptions{Keys: w.keys, Store: w.store, Clock: w.clock, Replicas: 1}, false},
		"two replicas that share a store": {VerifierOptions{Keys: w.keys, Store: sharedMemory{NewMemory(w.clock)}, Clock: w.clock, Replicas: 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewVerifier(tc.options); (err != nil) != tc.wantErr {
				t.Errorf("NewVerifier: %v, want an error: %t", err, tc.wantErr)
			}
		})
	}
}

func TestEveryReasonSaysWhatWouldHelp(t *testing.T) {
	for r, text := range messages {
		if got := refuse(r, errors.New("secret")).Error(); got != text || text == "" || strings.Contains(got, "secret") {
			t.Errorf("%s says %q", r, got)
		}
	}
	if got := ReasonOf(errors.New("x")); got != "" {
		t.Errorf("ReasonOf another error = %q", got)
	}
}
