// Package keyring keeps the Ed25519 keys that one part of a gate signs with. Each part has a ring of its own, so that a
// signature that was made for one purpose can never be taken for another's.
//
// The newest key that is in force signs. A key that was retired by a rotation still verifies until it ends.
package keyring

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

var (
	// ErrReadableByOthers says that a key file has a mode by which others can sign.
	ErrReadableByOthers = errors.New("key file can be read by others: chmod 600 it, and replace its keys")
	// ErrNoSigningKey says that no key is in force.
	ErrNoSigningKey = errors.New("no key is in force: rotate the keys")
	// ErrUnknownKey says that a signature names a key that this ring does not hold, or one that has ended.
	ErrUnknownKey = errors.New("key is not known, or has ended")
	// ErrBadSignature says that a signature is not that of its key over this message.
	ErrBadSignature = errors.New("signature does not fit")
)

// maxKeys bounds a ring.
const maxKeys = 16

// Options of a ring.
type Options struct {
	// Path of the file, mode 0600. Empty: the keys live as long as the process.
	Path string
	// Clock is the time; the system's by default.
	Clock clock.PassiveClock
	// MinOverlap is how long a retired key has to verify: as long as anything that it signed can count.
	MinOverlap time.Duration
}

// Ring holds the keys. Its methods are safe for concurrent use.
type Ring struct {
	options Options
	write   sync.Mutex
	keys    atomic.Pointer[[]key] // newest first, never empty
}

type key struct {
	id        string
	private   ed25519.PrivateKey
	public    ed25519.PublicKey
	signsFrom time.Time
	notAfter  time.Time // zero: not retired
}

// ended says whether a key is no longer good for anything.
func (k *key) ended(now time.Time) bool { return !k.notAfter.IsZero() && !now.Before(k.notAfter) }

// Open reads the ring's file, or makes it with a new key that only the user of this process can read. Of several
// processes that make it at once all get the same key. Without a path it makes a key that is not kept.
func Open(o Options) (*Ring, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := &Ring{options: o}
	if o.Path == "" {
		first, err := newKey(o.Clock.Now())
		r.keys.Store(&[]key{first})
		return r.orNil(err)
	}
	err := r.Reload()
	if !errors.Is(err, os.ErrNotExist) {
		return r.orNil(err)
	}
	first, err := newKey(o.Clock.Now())
	if err != nil {
		return nil, err
	}
	if err := writeKeys(o.Path, []key{first}, os.Link); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("creating key file: %w", err)
	}
	return r.orNil(r.Reload())
}

// Load reads a ring's file, which has to be there.
func Load(o Options) (*Ring, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Path == "" {
		return nil, errors.New("reading key file: no file is named")
	}
	r := &Ring{options: o}
	return r.orNil(r.Reload())
}

func (r *Ring) orNil(err error) (*Ring, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Reload reads the file anew, after somebody else has rotated its keys. After an error the keys stay as they were.
func (r *Ring) Reload() error {
	if r.options.Path == "" {
		return nil
	}
	data, err := readSecret(r.options.Path)
	if err != nil {
		return fmt.Errorf("reading key file: %w", err)
	}
	keys, err := parseKeys(data)
	if err != nil {
		return fmt.Errorf("reading key file: %w", err)
	}
	r.keys.Store(&keys)
	return nil
}

// Path is where the ring's file is, empty if it has none.
func (r *Ring) Path() string { return r.options.Path }

// MinOverlap is how long a retired key verifies at least.
func (r *Ring) MinOverlap() time.Duration { return r.options.MinOverlap }

// Rotate makes a key that signs after a lead, and retires the others: they verify for an overlap beyond that, at least
// MinOverlap. Keys that have ended leave the ring. Of several replicas one rotates, and the others reload within the lead.
func (r *Ring) Rotate(lead, overlap time.Duration) error {
	if lead < 0 || overlap < r.options.MinOverlap {
		return fmt.Errorf("rotating keys: want a lead that is not negative and an overlap of at least %s", r.options.MinOverlap)
	}
	r.write.Lock()
	defer r.write.Unlock()
	now := r.options.Clock.Now()
	next, err := newKey(now.Add(lead))
	if err != nil {
		return err
	}
	keys, ends := []key{next}, next.signsFrom.Add(overlap)
	for _, old := range *r.keys.Load() {
		if old.ended(now) {
			continue
		}
		if old.notAfter.IsZero() || old.notAfter.After(ends) {
			old.notAfter = ends
		}
		keys = append(keys, old)
	}
	if len(keys) > maxKeys {
		return fmt.Errorf("rotating keys: there are %d keys already, wait until some have ended", maxKeys)
	}
	if r.options.Path == "" {
		r.keys.Store(&keys)
		return nil
	}
	if err := writeKeys(r.options.Path, keys, os.Rename); err != nil {
		return fmt.Errorf("rotating keys: %w", err)
	}
	return r.Reload()
}

// Sign signs a message with the key in force, and says which that is.
func (r *Ring) Sign(message []byte) (kid string, signature []byte, err error) {
	k, err := r.signing(r.options.Clock.Now())
	if err != nil {
		return "", nil, err
	}
	return k.id, ed25519.Sign(k.private, message), nil
}

// Signing gives the key in force, for a message that has to name it.
func (r *Ring) Signing() (SigningKey, error) {
	k, err := r.signing(r.options.Clock.Now())
	if err != nil {
		return SigningKey{}, err
	}
	return SigningKey{k.id, k.private}, nil
}

// SigningKey signs under one name.
type SigningKey struct {
	// ID is the thumbprint of the key (RFC 7638).
	ID      string
	private ed25519.PrivateKey
}

// Sign signs a message.
func (k SigningKey) Sign(message []byte) []byte { return ed25519.Sign(k.private, message) }

// PublicKey is what others need to verify.
type PublicKey struct {
	// ID is the thumbprint of the key (RFC 7638).
	ID  string
	Key ed25519.PublicKey
	// SignsFrom is when its time comes.
	SignsFrom time.Time
	// NotAfter is when a retired key ends; zero for one that is not retired.
	NotAfter time.Time
}

// Public gives all keys of the ring, newest first, those that have ended too.
func (r *Ring) Public() []PublicKey {
	var out []PublicKey
	for _, k := range *r.keys.Load() {
		out = append(out, PublicKey{k.id, k.public, k.signsFrom, k.notAfter})
	}
	return out
}

// Verify says whether a key of the ring that has not ended has signed a message.
func (r *Ring) Verify(kid string, message, signature []byte) error {
	now := r.options.Clock.Now()
	for _, k := range *r.keys.Load() {
		if k.id != kid || k.ended(now) {
			continue
		}
		if len(signature) != ed25519.SignatureSize || !ed25519.Verify(k.public, message, signature) {
			return ErrBadSignature
		}
		return nil
	}
	return ErrUnknownKey
}

// KeyIDs names the keys that have not ended, newest first.
func (r *Ring) KeyIDs() []string {
	now := r.options.Clock.Now()
	var ids []string
	for _, k := range *r.keys.Load() {
		if !k.ended(now) {
			ids = append(ids, k.id)
		}
	}
	return ids
}

// signing gives the newest key whose time has come, or the oldest where the clock was set back to before all of them. An
// older one never steps in for a newer one that has ended.
func (r *Ring) signing(now time.Time) (*key, error) {
	keys := *r.keys.Load()
	for i := range keys {
		if keys[i].signsFrom.After(now) && i < len(keys)-1 {
			continue
		}
		if keys[i].ended(now) {
			break
		}
		return &keys[i], nil
	}
	return nil, ErrNoSigningKey
}
