package permit

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrUnknownKey says that a source has no key of that id.
	ErrUnknownKey = errors.New("no key has this id")
	// ErrKeysUnavailable says that a source cannot say which keys there are.
	ErrKeysUnavailable = errors.New("keys are not available")
)

// PublicKey verifies permits.
type PublicKey struct {
	// ID is the thumbprint of the key (RFC 7638), the kid of what it has signed.
	ID  string
	Key ed25519.PublicKey
	// NotAfter is when a retired key ends; zero for a key that is not retired.
	NotAfter time.Time
}

// Ended says whether a key is no longer good for anything.
func (p PublicKey) Ended(now time.Time) bool { return !p.NotAfter.IsZero() && !now.Before(p.NotAfter) }

// KeySource finds the key of a kid, or gives ErrUnknownKey or ErrKeysUnavailable.
type KeySource interface {
	Key(ctx context.Context, kid string) (PublicKey, error)
}

// StaticKeys is a KeySource that does not change.
type StaticKeys map[string]PublicKey

// Key implements KeySource.
func (s StaticKeys) Key(_ context.Context, kid string) (PublicKey, error) {
	k, ok := s[kid]
	if !ok {
		return PublicKey{}, ErrUnknownKey
	}
	return k, nil
}

// Bounds of a key set. A gate has two or three keys.
const (
	// MaxKeySet is the length of the longest key set in bytes.
	MaxKeySet = 64 << 10
	// MaxKeys is how many keys a set has at most.
	MaxKeys = 32
)

// What a key of permits is, in a set and in a header (RFC 8037).
const (
	keyType   = "OKP"
	curve     = "Ed25519"
	keyUse    = "sig"
	algorithm = "EdDSA"
)

// publicJWK is one key as it is published. Exp is when a retired key ends, as OpenID Federation writes it.
type publicJWK struct {
	KeyType string `json:"kty"`
	Curve   string `json:"crv"`
	X       string `json:"x"`
	ID      string `json:"kid"`
	Use     string `json:"use"`
	Alg     string `json:"alg"`
	Expires int64  `json:"exp,omitempty"`
}

// EncodeKeySet writes a JWKS as gates publish it.
func EncodeKeySet(keys []PublicKey) ([]byte, error) {
	set := struct {
		Keys []publicJWK `json:"keys"`
	}{Keys: []publicJWK{}}
	for _, k := range keys {
		p := publicJWK{KeyType: keyType, Curve: curve, X: base64.RawURLEncoding.EncodeToString(k.Key), ID: k.ID, Use: keyUse, Alg: algorithm}
		if !k.NotAfter.IsZero() {
			p.Expires = k.NotAfter.Unix()
		}
		set.Keys = append(set.Keys, p)
	}
	return json.Marshal(set)
}

// ParseKeySet reads a JWKS. Keys of other types are left out, as RFC 7517 asks; a private key, a kid that is not the
// key's thumbprint, or a set without a key for permits is an error.
func ParseKeySet(data []byte) (StaticKeys, error) {
	if len(data) > MaxKeySet {
		return nil, fmt.Errorf("key set is larger than %d bytes", MaxKeySet)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, errors.New("key set is not JSON with a list of keys")
	}
	if len(set.Keys) > MaxKeys {
		return nil, fmt.Errorf("key set has more than %d keys", MaxKeys)
	}
	keys := StaticKeys{}
	for i, raw := range set.Keys {
		k, ok, err := parsePublicKey(raw)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i, err)
		}
		if ok {
			keys[k.ID] = k
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("key set has no Ed25519 key for signatures")
	}
	return keys, nil
}

// parsePublicKey is not ok for a key of another kind.
func parsePublicKey(raw []byte) (k PublicKey, ok bool, err error) {
	var head struct {
		publicJWK
		D json.RawMessage `json:"d"`
		K json.RawMessage `json:"k"`
	}
	if json.Unmarshal(raw, &head) != nil {
		return k, false, errors.New("is no JSON Web Key")
	}
	if head.D != nil || head.K != nil {
		return k, false, errors.New("is secret: publish public keys only, and replace this one")
	}
	if head.KeyType != keyType || head.Curve != curve || head.Use != keyUse || head.Alg != algorithm {
		return k, false, nil
	}
	public, err := base64.RawURLEncoding.Strict().DecodeString(head.X)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return k, false, errors.New("is no valid Ed25519 key")
	}
	if id := Thumbprint(public); head.ID != id {
		return k, false, errors.New("has a kid that is not its thumbprint")
	}
	k = PublicKey{ID: head.ID, Key: public}
	if head.Expires != 0 {
		k.NotAfter = seconds(head.Expires)
	}
	return k, true, nil
}

// Thumbprint names a key by itself (RFC 7638), so that a kid can never mean two keys.
func Thumbprint(key ed25519.PublicKey) string {
	// The members that RFC 8037 names, in the order of their names. None of the values needs an escape.
	sum := sha256.Sum256([]byte(`{"crv":"` + curve + `","kty":"` + keyType + `","x":"` + base64.RawURLEncoding.EncodeToString(key) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
