package keyring

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/strictjson"
)

// maxFile bounds a key file in bytes: 16 keys of less than 512.
const maxFile = 16 << 10

// fileKey is a key as it stands in the file: a JSON Web Key with two members of our own.
type fileKey struct {
	KeyType   string     `json:"kty"`
	Curve     string     `json:"crv"`
	X         string     `json:"x"`
	D         string     `json:"d"`
	ID        string     `json:"kid"`
	Use       string     `json:"use,omitempty"`
	Alg       string     `json:"alg,omitempty"`
	SignsFrom time.Time  `json:"signsFrom"`
	NotAfter  *time.Time `json:"notAfter,omitempty"`
}

// keyUse and keyAlg are what a key is good for, where its file says it.
const (
	keyUse = "sig"
	keyAlg = string(jose.EdDSA)
)

type keyFile struct {
	Keys []fileKey `json:"keys"`
}

func newKey(signsFrom time.Time) (key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return key{}, fmt.Errorf("making a key: %w", err)
	}
	return keyOf(private, signsFrom.UTC().Truncate(time.Second), time.Time{})
}

// keyOf names a key by its thumbprint (RFC 7638), so that a name never stands for another key.
func keyOf(private ed25519.PrivateKey, signsFrom, notAfter time.Time) (key, error) {
	public, ok := private.Public().(ed25519.PublicKey)
	if !ok {
		return key{}, errors.New("is no Ed25519 key")
	}
	sum, err := (&jose.JSONWebKey{Key: public}).Thumbprint(crypto.SHA256)
	if err != nil {
		return key{}, fmt.Errorf("naming a key: %w", err)
	}
	return key{base64.RawURLEncoding.EncodeToString(sum), private, public, signsFrom, notAfter}, nil
}

func parseKeys(data []byte) ([]key, error) {
	var file keyFile
	if err := strictjson.Decode(data, strictjson.Limits{MaxBytes: maxFile}, &file); err != nil {
		return nil, err // holds no value of the file
	}
	if len(file.Keys) == 0 || len(file.Keys) > maxKeys {
		return nil, fmt.Errorf("want 1 to %d keys", maxKeys)
	}
	var keys []key
	for i := range file.Keys {
		k, err := file.Keys[i].parse()
		if err != nil {
			return nil, fmt.Errorf("key %d %w", i, err)
		}
		if slices.ContainsFunc(keys, func(o key) bool { return o.id == k.id }) {
			return nil, fmt.Errorf("key %d is there twice", i)
		}
		keys = append(keys, k)
	}
	slices.SortStableFunc(keys, func(a, b key) int { return b.signsFrom.Compare(a.signsFrom) })
	return keys, nil
}

func (f *fileKey) parse() (key, error) {
	if f.KeyType != "OKP" || f.Curve != "Ed25519" {
		return key{}, errors.New("is not of kty OKP, crv Ed25519")
	}
	if f.Use != "" && f.Use != keyUse || f.Alg != "" && f.Alg != keyAlg {
		return key{}, errors.New("is not of use sig, alg EdDSA")
	}
	seed, err := base64.RawURLEncoding.Strict().DecodeString(f.D)
	if err != nil || len(seed) != ed25519.SeedSize {
		return key{}, errors.New("has no private part of 32 bytes in base64url")
	}
	if f.SignsFrom.IsZero() {
		return key{}, errors.New("does not say signsFrom")
	}
	var notAfter time.Time
	if f.NotAfter != nil {
		notAfter = f.NotAfter.UTC()
	}
	k, err := keyOf(ed25519.NewKeyFromSeed(seed), f.SignsFrom.UTC(), notAfter)
	if err != nil {
		return key{}, err
	}
	if f.X != base64.RawURLEncoding.EncodeToString(k.public) || f.ID != k.id {
		return key{}, errors.New("has an x or kid that is not of its private part")
	}
	return k, nil
}

func writeKeys(path string, keys []key, place func(from, to string) error) error {
	data, err := encodeKeys(keys)
	if err != nil {
		return err
	}
	return replaceFile(path, data, place)
}

// NewFile gives what a ring's file with one new key holds, for who keeps it elsewhere than in a file.
func NewFile(c clock.PassiveClock) ([]byte, error) {
	first, err := newKey(c.Now())
	if err != nil {
		return nil, err
	}
	return encodeKeys([]key{first})
}

// CheckFile says whether what a ring's file holds can be read.
func CheckFile(data []byte) error {
	_, err := parseKeys(data)
	return err
}

func encodeKeys(keys []key) ([]byte, error) {
	file := keyFile{}
	for _, k := range keys {
		f := fileKey{
			KeyType: "OKP", Curve: "Ed25519", Use: keyUse, Alg: keyAlg, ID: k.id, SignsFrom: k.signsFrom,
			X: base64.RawURLEncoding.EncodeToString(k.public), D: base64.RawURLEncoding.EncodeToString(k.private.Seed()),
		}
		if !k.notAfter.IsZero() {
			f.NotAfter = &k.notAfter
		}
		file.Keys = append(file.Keys, f)
	}
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding keys: %w", err)
	}
	return append(data, '\n'), nil
}

// readSecret reads a file that nobody else can read. The mode is that of the file that was opened, not of what stands at
// its path a moment later.
func readSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is no regular file")
	}
	if !IsPrivate(info.Mode()) {
		return nil, fmt.Errorf("%w (mode %04o)", ErrReadableByOthers, info.Mode().Perm())
	}
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// IsPrivate says whether the mode of a key file keeps others from it. The group may read one that nobody can write: so a
// Secret is mounted for a process that is not root, and its group is the pod's own.
func IsPrivate(m os.FileMode) bool {
	if m.Perm()&0o222 == 0 {
		return m.Perm()&0o037 == 0
	}
	return m.Perm()&0o077 == 0
}

// replaceFile makes a file appear whole or not at all, with mode 0600. Place is os.Link, which keeps a file that is
// there, or os.Rename, which replaces it.
func replaceFile(path string, data []byte, place func(from, to string) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".keys-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if removed := os.Remove(f.Name()); err == nil && removed != nil && !errors.Is(removed, os.ErrNotExist) {
			err = removed
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := place(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
