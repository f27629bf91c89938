package permit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatewright.dev/gatewright/internal/strictjson"
	"gatewright.dev/gatewright/permit"
)

// ringKey is a key that signs from a time on, until a newer one does.
type ringKey struct {
	permit.PublicKey
	signsFrom time.Time
	private   ed25519.PrivateKey
	signer    jose.Signer
}

// fileKey is a key as it stands in the file: a JWK with two members of our own.
type fileKey struct {
	KeyType   string     `json:"kty"`
	Curve     string     `json:"crv"`
	X         string     `json:"x"`
	D         string     `json:"d"`
	ID        string     `json:"kid"`
	Use       string     `json:"use"`
	Alg       string     `json:"alg"`
	SignsFrom time.Time  `json:"signsFrom"`
	NotAfter  *time.Time `json:"notAfter,omitempty"`
}

type keyFile struct {
	Keys []fileKey `json:"keys"`
}

func newRingKey(signsFrom time.Time) (ringKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return ringKey{}, fmt.Errorf("making a key: %w", err)
	}
	return ringKeyOf(private, signsFrom.UTC().Truncate(time.Second), time.Time{})
}

func ringKeyOf(private ed25519.PrivateKey, signsFrom, notAfter time.Time) (ringKey, error) {
	public, ok := private.Public().(ed25519.PublicKey)
	if !ok {
		return ringKey{}, errors.New("is no Ed25519 key")
	}
	id := permit.Thumbprint(public)
	options := (&jose.SignerOptions{}).WithType(permit.Type)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: private, KeyID: id}}, options)
	if err != nil {
		return ringKey{}, fmt.Errorf("using a key: %w", err)
	}
	return ringKey{PublicKey: permit.PublicKey{ID: id, Key: public, NotAfter: notAfter}, signsFrom: signsFrom, private: private, signer: signer}, nil
}

func parseRing(data []byte) ([]ringKey, error) {
	var file keyFile
	if err := strictjson.Decode(data, strictjson.Limits{MaxBytes: permit.MaxKeySet}, &file); err != nil {
		return nil, err // holds no value of the file
	}
	if len(file.Keys) == 0 || len(file.Keys) > permit.MaxKeys {
		return nil, fmt.Errorf("want 1 to %d keys", permit.MaxKeys)
	}
	var ring []ringKey
	for i := range file.Keys {
		key, err := file.Keys[i].parse()
		if err != nil {
			return nil, fmt.Errorf("key %d %w", i, err)
		}
		if slices.ContainsFunc(ring, func(other ringKey) bool { return other.ID == key.ID }) {
			return nil, fmt.Errorf("key %d is there twice", i)
		}
		ring = append(ring, key)
	}
	slices.SortStableFunc(ring, func(a, b ringKey) int { return b.signsFrom.Compare(a.signsFrom) })
	return ring, nil
}

func (f *fileKey) parse() (ringKey, error) {
	if f.KeyType != "OKP" || f.Curve != "Ed25519" || f.Use != "sig" || f.Alg != string(jose.EdDSA) {
		return ringKey{}, errors.New("is not of kty OKP, crv Ed25519, use sig, alg EdDSA")
	}
	seed, err := base64.RawURLEncoding.Strict().DecodeString(f.D)
	if err != nil || len(seed) != ed25519.SeedSize {
		return ringKey{}, errors.New("has no private part of 32 bytes in base64url")
	}
	if f.SignsFrom.IsZero() {
		return ringKey{}, errors.New("does not say signsFrom")
	}
	var notAfter time.Time
	if f.NotAfter != nil {
		notAfter = f.NotAfter.UTC()
	}
	key, err := ringKeyOf(ed25519.NewKeyFromSeed(seed), f.SignsFrom.UTC(), notAfter)
	if err != nil {
		return ringKey{}, err
	}
	if f.X != base64.RawURLEncoding.EncodeToString(key.Key) || f.ID != key.ID {
		return ringKey{}, errors.New("has an x or kid that is not of its private part")
	}
	return key, nil
}

func writeRing(path string, ring []ringKey, place func(from, to string) error) error {
	file := keyFile{}
	for _, k := range ring {
		f := fileKey{
			KeyType: "OKP", Curve: "Ed25519", Use: "sig", Alg: string(jose.EdDSA), ID: k.ID, SignsFrom: k.signsFrom,
			X: base64.RawURLEncoding.EncodeToString(k.Key), D: base64.RawURLEncoding.EncodeToString(k.private.Seed()),
		}
		if !k.NotAfter.IsZero() {
			f.NotAfter = &k.NotAfter
		}
		file.Keys = append(file.Keys, f)
	}
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding keys: %w", err)
	}
	return replaceFile(path, append(data, '\n'), place)
}
