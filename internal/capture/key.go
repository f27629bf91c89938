package capture

import (
	"crypto/ecdh"
	"crypto/hpke"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// keyFile is a public or private key in a file. The algorithm is fixed: HPKE (RFC 9180) with X25519, HKDF-SHA256 and
// AES-256-GCM.
type keyFile struct {
	KID     string `json:"kid"`
	Public  string `json:"public"`
	Private string `json:"private,omitempty"`
	// Retired are pairs that nothing is encrypted for any more. They read what is kept.
	Retired []keyFile `json:"retired,omitempty"`
}

// maxRetired bounds how many pairs a file has beside the newest, and maxKeyFile its bytes: each has less than 256.
const (
	maxRetired = 128
	maxKeyFile = 64 << 10
)

func kem() hpke.KEM { return hpke.DHKEM(ecdh.X25519()) }

// MakeKey makes a key pair: a file with the private key, mode 0600, and beside it path.pub with the public one, which
// is all that a gate needs. A file that is there is left alone, and is an error.
func MakeKey(path string) (kid string, err error) {
	k, err := newPair()
	if err != nil {
		return "", err
	}
	if err := writeKey(path+".pub", k.public(), 0o644); err != nil {
		return "", err
	}
	return k.KID, writeKey(path, k, 0o600)
}

// RotateKey puts a new pair in front of that in a file that MakeKey has made, and the new public key in path.pub. The
// pairs before it stay in the file, to read what was encrypted for them.
func RotateKey(path string) (kid string, err error) {
	old, err := readPrivate(path)
	if err != nil {
		return "", err
	}
	if len(old.Retired) >= maxRetired {
		return "", fmt.Errorf("rotating a key: %s holds %d retired pairs: make a new file, and keep this one to read with", path, maxRetired)
	}
	next, err := newPair()
	if err != nil {
		return "", err
	}
	next.Retired = append([]keyFile{{KID: old.KID, Public: old.Public, Private: old.Private}}, old.Retired...)
	// The private one first: what a gate encrypts can be read whenever this ends.
	if err := replaceKey(path, next, 0o600); err != nil {
		return "", err
	}
	return next.KID, replaceKey(path+".pub", next.public(), 0o644)
}

func newPair() (keyFile, error) {
	private, err := kem().GenerateKey()
	if err != nil {
		return keyFile{}, fmt.Errorf("making a key: %w", err)
	}
	secret, err := private.Bytes()
	if err != nil {
		return keyFile{}, fmt.Errorf("making a key: %w", err)
	}
	return keyFile{
		KID: keyID(private.PublicKey()), Public: base64.StdEncoding.EncodeToString(private.PublicKey().Bytes()),
		Private: base64.StdEncoding.EncodeToString(secret),
	}, nil
}

func (k *keyFile) public() keyFile { return keyFile{KID: k.KID, Public: k.Public} }

// replaceKey makes a key file appear whole or not at all.
func replaceKey(path string, k keyFile, mode os.FileMode) error {
	next := path + ".new"
	if err := writeKey(next, k, mode); err != nil {
		return fmt.Errorf("%w: if no other rotation is running, remove %s", err, next)
	}
	if err := os.Rename(next, path); err != nil {
		return errors.Join(fmt.Errorf("writing a key: %w", err), os.Remove(next))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("writing a key: %w", err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func keyID(p hpke.PublicKey) string {
	sum := sha256.Sum256(p.Bytes())
	return hex.EncodeToString(sum[:8])
}

func writeKey(path string, k keyFile, mode os.FileMode) error {
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Clean(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("writing a key: %w", err)
	}
	_, err = f.Write(append(data, '\n'))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// recipient seals states.
type recipient struct {
	kid string
	key hpke.PublicKey
}

func loadRecipient(path string) (*recipient, error) {
	k, _, err := readKey(path)
	if err != nil {
		return nil, err
	}
	raw, err := base64.StdEncoding.DecodeString(k.Public)
	if err != nil {
		return nil, fmt.Errorf("reading key %s: public: %w", path, err)
	}
	public, err := kem().NewPublicKey(raw)
	if err != nil {
		return nil, fmt.Errorf("reading key %s: %w", path, err)
	}
	return &recipient{keyID(public), public}, nil
}

// identity opens what was sealed for one of its keys.
type identity struct {
	kid  string // of the newest
	keys map[string]hpke.PrivateKey
}

func loadIdentity(path string) (*identity, error) {
	k, err := readPrivate(path)
	if err != nil {
		return nil, err
	}
	id := &identity{kid: k.KID, keys: map[string]hpke.PrivateKey{}}
	for _, pair := range append(k.Retired, k) {
		raw, err := base64.StdEncoding.DecodeString(pair.Private)
		if err != nil {
			return nil, fmt.Errorf("reading key %s: private is not base64", path)
		}
		private, err := kem().NewPrivateKey(raw)
		if err != nil {
			return nil, fmt.Errorf("reading key %s: %w", path, err)
		}
		id.kid = keyID(private.PublicKey())
		id.keys[id.kid] = private
	}
	return id, nil
}

// readPrivate reads a file with a private key that nobody else can read.
func readPrivate(path string) (keyFile, error) {
	k, mode, err := readKey(path)
	if err != nil {
		return keyFile{}, err
	}
	if k.Private == "" {
		return keyFile{}, fmt.Errorf("reading key %s: it has no private key: give the file without .pub", path)
	}
	if mode.Perm()&0o077 != 0 {
		return keyFile{}, fmt.Errorf("reading key %s: it can be read by others (mode %04o): chmod 600 it", path, mode.Perm())
	}
	return k, nil
}

func readKey(path string) (keyFile, os.FileMode, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return keyFile{}, 0, fmt.Errorf("reading key: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return keyFile{}, 0, fmt.Errorf("reading key: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return keyFile{}, 0, fmt.Errorf("reading key: %w", err)
	}
	var k keyFile
	if err := json.Unmarshal(data, &k); err != nil || k.Public == "" || len(k.Retired) > maxRetired {
		return keyFile{}, 0, fmt.Errorf("reading key %s: it is no key of this kind", path)
	}
	return k, info.Mode(), nil
}

// info binds what is sealed to what it is and to its digest, so that one state cannot stand in for another.
func info(digest string) []byte { return []byte("gatewright.dev/capture/v1 " + digest) }

func (r *recipient) seal(digest string, state []byte) ([]byte, error) {
	return hpke.Seal(r.key, hpke.HKDFSHA256(), hpke.AES256GCM(), info(digest), state)
}

func (i *identity) open(kid, digest string, box []byte) ([]byte, error) {
	state, err := hpke.Open(i.keys[kid], hpke.HKDFSHA256(), hpke.AES256GCM(), info(digest), box)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return state, nil
}
