package permit

import (
	"context"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/keyring"
	"gatewright.dev/gatewright/permit"
)

var (
	// ErrReadableByOthers says that a key file has a mode by which others can sign permits.
	ErrReadableByOthers = keyring.ErrReadableByOthers
	// ErrNoSigningKey says that no key is in force.
	ErrNoSigningKey = keyring.ErrNoSigningKey
)

// minOverlap is how long a retired key has to verify: until the last permit that it signed has expired.
const minOverlap = permit.MaxLifetime + permit.Leeway

// Keys are the keys of a gate for permits, in one file. The newest that is in force signs; the others verify until they
// end.
type Keys struct {
	ring  *keyring.Ring
	clock clock.PassiveClock
}

// LoadOrCreateKeys reads a key file, or makes one with a new key that only the user of this process can read. Of several
// processes that make it at once all get the same key.
func LoadOrCreateKeys(path string, c clock.PassiveClock) (*Keys, error) {
	return keysOf(path, c, keyring.Open)
}

// LoadKeys reads a key file that has to be there.
func LoadKeys(path string, c clock.PassiveClock) (*Keys, error) { return keysOf(path, c, keyring.Load) }

func keysOf(path string, c clock.PassiveClock, open func(keyring.Options) (*keyring.Ring, error)) (*Keys, error) {
	ring, err := open(keyring.Options{Path: path, Clock: c, MinOverlap: minOverlap})
	if err != nil {
		return nil, err
	}
	return &Keys{ring, c}, nil
}

// Ring is where the keys are, for rotating and reloading. A new key is published at once, so that verifiers know it
// before it signs.
func (k *Keys) Ring() *keyring.Ring { return k.ring }

// Rotate makes a key that signs after a lead and retires the others: they verify for an overlap beyond that, at least
// as long as a permit is good. Keys that have ended leave the file. Of several replicas one rotates, and the others reload.
func (k *Keys) Rotate(lead, overlap time.Duration) error { return k.ring.Rotate(lead, overlap) }

// Reload reads the file anew, after somebody else has rotated the keys. After an error the keys stay as they were.
func (k *Keys) Reload() error { return k.ring.Reload() }

// JWKS is the set of public keys, retired ones included until they end.
func (k *Keys) JWKS() []byte {
	now := k.clock.Now()
	var public []permit.PublicKey
	for _, key := range k.ring.Public() {
		if p := publicKey(key); !p.Ended(now) {
			public = append(public, p)
		}
	}
	data, err := permit.EncodeKeySet(public)
	if err != nil {
		return []byte(`{"keys":[]}`) // cannot be: texts and numbers have a JSON form
	}
	return data
}

func publicKey(k keyring.PublicKey) permit.PublicKey {
	return permit.PublicKey{ID: k.ID, Key: k.Key, NotAfter: k.NotAfter}
}

// ServeHTTP publishes the public keys, at JWKSPath.
func (k *Keys) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "use GET", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(k.JWKS()) // the verifier is gone if this fails, and asks again
}

// Key implements KeySource, for a verifier in the process of the gate.
func (k *Keys) Key(_ context.Context, kid string) (permit.PublicKey, error) {
	for _, key := range k.ring.Public() {
		if key.ID == kid {
			return publicKey(key), nil
		}
	}
	return permit.PublicKey{}, permit.ErrUnknownKey
}
