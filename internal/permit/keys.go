package permit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/permit"
)

var (
	// ErrReadableByOthers says that a key file has a mode by which others can sign permits.
	ErrReadableByOthers = errors.New("key file can be read by others: chmod 600 it, and replace its keys")
	// ErrNoSigningKey says that no key is in force.
	ErrNoSigningKey = errors.New("no key is in force: rotate the keys")
)

// minOverlap is how long a retired key has to verify: until the last permit that it signed has expired.
const minOverlap = permit.MaxLifetime + permit.Leeway

// Keys are the keys of a gate, in one file. The newest that is in force signs; the others verify until they end.
type Keys struct {
	path  string
	clock clock.PassiveClock
	write sync.Mutex
	ring  atomic.Pointer[[]ringKey] // newest first, never empty
}

// LoadOrCreateKeys reads a key file, or makes one with a new key that only the user of this process can read. Of several
// processes that make it at once all get the same key.
func LoadOrCreateKeys(path string, c clock.PassiveClock) (*Keys, error) {
	k := &Keys{path: path, clock: c}
	err := k.Reload()
	if !errors.Is(err, os.ErrNotExist) {
		return k.orNil(err)
	}
	first, err := newRingKey(c.Now())
	if err != nil {
		return nil, err
	}
	if err := writeRing(path, []ringKey{first}, os.Link); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("creating key file: %w", err)
	}
	return k.orNil(k.Reload())
}

// LoadKeys reads a key file that has to be there.
func LoadKeys(path string, c clock.PassiveClock) (*Keys, error) {
	k := &Keys{path: path, clock: c}
	return k.orNil(k.Reload())
}

func (k *Keys) orNil(err error) (*Keys, error) {
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Reload reads the file anew, after another replica has rotated the keys or a secret was replaced. After an error the
// keys stay as they were.
func (k *Keys) Reload() error {
	data, err := readSecretFile(k.path)
	if err != nil {
		return fmt.Errorf("reading key file: %w", err)
	}
	ring, err := parseRing(data)
	if err != nil {
		return fmt.Errorf("reading key file: %w", err)
	}
	k.ring.Store(&ring)
	return nil
}

// Rotate makes a key that signs after a lead and retires the others: they verify for an overlap beyond that, at least
// as long as a permit is good. The new key is published at once, so that verifiers know it before it signs. Keys that
// have ended leave the file. Of several replicas one rotates, and the others reload.
func (k *Keys) Rotate(lead, overlap time.Duration) error {
	if lead < 0 || overlap < minOverlap {
		return fmt.Errorf("rotating keys: want a lead that is not negative and an overlap of at least %s", minOverlap)
	}
	k.write.Lock()
	defer k.write.Unlock()
	now := k.clock.Now()
	next, err := newRingKey(now.Add(lead))
	if err != nil {
		return err
	}
	ring := []ringKey{next}
	ends := next.signsFrom.Add(overlap)
	for _, old := range *k.ring.Load() {
		if old.Ended(now) {
			continue
		}
		if old.NotAfter.IsZero() || old.NotAfter.After(ends) {
			old.NotAfter = ends
		}
		ring = append(ring, old)
	}
	if len(ring) > permit.MaxKeys {
		return fmt.Errorf("rotating keys: there are %d keys already, wait until some have ended", permit.MaxKeys)
	}
	if err := writeRing(k.path, ring, os.Rename); err != nil {
		return fmt.Errorf("rotating keys: %w", err)
	}
	return k.Reload()
}

// JWKS is the set of public keys, retired ones included until they end.
func (k *Keys) JWKS() []byte {
	now := k.clock.Now()
	var public []permit.PublicKey
	for _, key := range *k.ring.Load() {
		if !key.Ended(now) {
			public = append(public, key.PublicKey)
		}
	}
	data, err := permit.EncodeKeySet(public)
	if err != nil {
		return []byte(`{"keys":[]}`) // cannot be: texts and numbers have a JSON form
	}
	return data
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
	for _, key := range *k.ring.Load() {
		if key.ID == kid {
			return key.PublicKey, nil
		}
	}
	return permit.PublicKey{}, permit.ErrUnknownKey
}

// signing gives the newest key whose time has come. An older one never steps in for it after it has ended.
func (k *Keys) signing(now time.Time) (*ringKey, error) {
	ring := *k.ring.Load()
	for i := range ring {
		if ring[i].signsFrom.After(now) {
			continue
		}
		if ring[i].Ended(now) {
			break
		}
		return &ring[i], nil
	}
	return nil, ErrNoSigningKey
}
