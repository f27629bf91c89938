package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/keyring"
)

// ErrKeyReadable says that others can read the key file, and so sign checkpoints.
var ErrKeyReadable = errors.New("audit key file can be read by others: chmod 600 it, and rotate its key")

// PublicKeys are the keys that checkpoints are checked with, by kid.
type PublicKeys map[string]ed25519.PublicKey

// Key is one key of a key file.
type Key struct {
	KID     string    `json:"kid"`
	Created time.Time `json:"created"`
	Public  []byte    `json:"public"`
	// Seed of the private key. Only the newest key has one: the others are there to check what they have signed.
	Seed []byte `json:"seed,omitempty"`
}

// keySet is the form of a key file, newest first. Without a seed it is a file of public keys.
type keySet struct {
	Keys []Key `json:"keys"`
}

const maxKeyFile = 256 << 10

// Keys are the audit keys of a gate. Their methods are safe for concurrent use.
type Keys struct {
	path string
	held atomic.Pointer[heldKeys]
}

// heldKeys are the keys of one reading of the file.
type heldKeys struct {
	set  keySet
	sign ed25519.PrivateKey
}

// LoadOrCreateKeys reads a key file, or makes one with a new key that only the user of this process can read.
func LoadOrCreateKeys(path string, c clock.PassiveClock) (*Keys, error) {
	k, err := loadKeys(path)
	if !errors.Is(err, os.ErrNotExist) {
		return k, err
	}
	first, err := newKey(c.Now())
	if err != nil {
		return nil, err
	}
	if err := writeKeys(path, keySet{Keys: []Key{first}}, os.Link); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("making an audit key: %w", err)
	}
	return loadKeys(path)
}

// RotateKeys puts a new key in front of the others, which can then no longer sign, and for ever check what they have
// signed. A gate signs with the new one from its next Reload on.
func RotateKeys(path string, c clock.PassiveClock) (kid string, err error) {
	k, err := loadKeys(path)
	if err != nil {
		return "", err
	}
	next, err := newKey(c.Now())
	if err != nil {
		return "", err
	}
	set := keySet{Keys: []Key{next}}
	for _, old := range k.held.Load().set.Keys {
		old.Seed = nil
		set.Keys = append(set.Keys, old)
	}
	if err := writeKeys(path, set, os.Rename); err != nil {
		return "", fmt.Errorf("rotating the audit key: %w", err)
	}
	return next.KID, nil
}

func newKey(now time.Time) (Key, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, fmt.Errorf("making an audit key: %w", err)
	}
	return Key{KID: kidOf(public), Created: now.UTC().Truncate(time.Second), Public: public, Seed: private.Seed()}, nil
}

func kidOf(p ed25519.PublicKey) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:8])
}

// LoadKeys reads a key file that has to be there.
func LoadKeys(path string) (*Keys, error) { return loadKeys(path) }

func loadKeys(path string) (*Keys, error) {
	k := &Keys{path: path}
	if err := k.Reload(); err != nil {
		return nil, err
	}
	return k, nil
}

// Path is where the key file is.
func (k *Keys) Path() string { return k.path }

// Reload reads the file anew, after its key was rotated. After an error the keys stay as they were.
func (k *Keys) Reload() error {
	set, mode, err := readKeys(k.path)
	if err != nil {
		return fmt.Errorf("reading audit keys: %w", err)
	}
	if !keyring.IsPrivate(mode) {
		return fmt.Errorf("reading audit keys: %w (mode %04o)", ErrKeyReadable, mode.Perm())
	}
	sign, err := set.signer()
	if err != nil {
		return fmt.Errorf("reading audit keys: %w", err)
	}
	k.held.Store(&heldKeys{set, sign})
	return nil
}

// signer is the private half of the newest key.
func (s *keySet) signer() (ed25519.PrivateKey, error) {
	if len(s.Keys[0].Seed) != ed25519.SeedSize {
		return nil, errors.New("the first key has no seed, so it cannot sign: this is a file of public keys")
	}
	sign := ed25519.NewKeyFromSeed(s.Keys[0].Seed)
	if !sign.Public().(ed25519.PublicKey).Equal(ed25519.PublicKey(s.Keys[0].Public)) { //nolint:forcetypeassert // it is what the package gives
		return nil, errors.New("the first key's seed is not that of its public key")
	}
	return sign, nil
}

// NewKeyFile gives what a key file with one new key holds, for who keeps it elsewhere than in a file.
func NewKeyFile(c clock.PassiveClock) ([]byte, error) {
	first, err := newKey(c.Now())
	if err != nil {
		return nil, err
	}
	return encodeKeys(keySet{Keys: []Key{first}})
}

// CheckKeyFile says whether a gate could sign with what a key file holds.
func CheckKeyFile(data []byte) error {
	if len(data) > maxKeyFile {
		return errors.New("it is too long for a file of audit keys")
	}
	set, err := parseKeys(data)
	if err != nil {
		return err
	}
	_, err = set.signer()
	return err
}

// ReadPublicKeys reads the public keys of a key file, or of what WritePublic wrote.
func ReadPublicKeys(path string) (PublicKeys, error) {
	set, _, err := readKeys(path)
	if err != nil {
		return nil, fmt.Errorf("reading audit keys: %w", err)
	}
	return set.public(), nil
}

func (s *keySet) public() PublicKeys {
	out := PublicKeys{}
	for _, k := range s.Keys {
		out[k.KID] = k.Public
	}
	return out
}

func readKeys(path string) (keySet, os.FileMode, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return keySet{}, 0, err
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return keySet{}, 0, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return keySet{}, 0, err
	}
	set, err := parseKeys(data)
	if err != nil {
		return keySet{}, 0, err
	}
	return set, info.Mode(), nil
}

func parseKeys(data []byte) (keySet, error) {
	var set keySet
	if err := json.Unmarshal(data, &set); err != nil {
		return keySet{}, errors.New("it is no file of audit keys")
	}
	if len(set.Keys) == 0 {
		return keySet{}, errors.New("it holds no key")
	}
	for _, k := range set.Keys {
		if len(k.Public) != ed25519.PublicKeySize || k.KID != kidOf(k.Public) {
			return keySet{}, fmt.Errorf("key %q is no Ed25519 key with its own id", k.KID)
		}
	}
	return set, nil
}

func encodeKeys(set keySet) ([]byte, error) {
	data, err := json.MarshalIndent(set, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding audit keys: %w", err)
	}
	return append(data, '\n'), nil
}

// writeKeys makes a key file appear whole or not at all.
func writeKeys(path string, set keySet, place func(from, to string) error) (err error) {
	data, err := encodeKeys(set)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if rm := os.Remove(f.Name()); rm != nil && !errors.Is(rm, os.ErrNotExist) {
			err = errors.Join(err, rm)
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return place(f.Name(), path)
}

// KID of the key that signs.
func (k *Keys) KID() string { return k.held.Load().set.Keys[0].KID }

// Public keys, those that no longer sign included.
func (k *Keys) Public() PublicKeys { return k.held.Load().set.public() }

// WritePublic writes the public keys, to be kept where logs are checked.
func (k *Keys) WritePublic(w io.Writer) error {
	set := keySet{}
	for _, key := range k.held.Load().set.Keys {
		key.Seed = nil
		set.Keys = append(set.Keys, key)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(set)
}

// Checkpoint implements Signer.
func (k *Keys) Checkpoint(h Head, now time.Time) Checkpoint {
	held := k.held.Load()
	c := Checkpoint{Head: h, Time: now.UTC(), KID: held.set.Keys[0].KID}
	c.Signature = base64.RawStdEncoding.EncodeToString(ed25519.Sign(held.sign, c.Signed()))
	return c
}
