package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/fetch"
	"gatewright.dev/gatewright/internal/keycache"
	"gatewright.dev/gatewright/internal/keywatch"
)

const maxJWKS = 256 << 10

// readFetched reads the keys that an issuer publishes for everybody: those of kinds that are not understood here are for others,
// and are left out (RFC 7517, section 5).
func readFetched(data []byte) (*jose.JSONWebKeySet, error) {
	var raw struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, errors.New("it is no JWKS")
	}
	var set jose.JSONWebKeySet
	for _, text := range raw.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(text, &key) != nil {
			continue
		}
		if _, isSecret := key.Key.([]byte); !isSecret {
			set.Keys = append(set.Keys, key)
		}
	}
	return usable(&set)
}

// readJWKS reads the keys of an issuer that signatures can be checked with. All of them have to be understood.
func readJWKS(data []byte) (*jose.JSONWebKeySet, error) {
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, errors.New("it is no JWKS")
	}
	return usable(&set)
}

func usable(set *jose.JSONWebKeySet) (*jose.JSONWebKeySet, error) {
	for i := range set.Keys {
		if !set.Keys[i].IsPublic() {
			return nil, fmt.Errorf("key %d is not public: whoever has it could sign", i)
		}
	}
	set.Keys = slices.DeleteFunc(set.Keys, func(k jose.JSONWebKey) bool { return !k.Valid() || k.Use != "" && k.Use != "sig" })
	if len(set.Keys) == 0 {
		return nil, errors.New("it holds no key to check signatures with")
	}
	return set, nil
}

// keySource finds the keys of an id. Without any there is nobody to believe, whatever the cause.
type keySource interface {
	find(ctx context.Context, kid string) []jose.JSONWebKey
}

// keysInFile are an issuer's keys as a file holds them.
type keysInFile struct {
	path string
	keys atomic.Pointer[jose.JSONWebKeySet]
}

func (f *keysInFile) find(_ context.Context, kid string) []jose.JSONWebKey {
	return f.keys.Load().Key(kid)
}

// reload reads the keys anew. After an error they stay as they were.
func (f *keysInFile) reload() error {
	file, err := os.Open(filepath.Clean(f.path))
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // read only
	data, err := io.ReadAll(io.LimitReader(file, maxJWKS))
	if err != nil {
		return err
	}
	set, err := readJWKS(data)
	if err != nil {
		return err
	}
	f.keys.Store(set)
	return nil
}

// watched is what looks at the file.
func (f *keysInFile) watched() *keywatch.File {
	return &keywatch.File{Name: "approver-jwks", Paths: []string{f.path}, Reload: f.reload, IDs: f.ids}
}

// ids name the keys that are held.
func (f *keysInFile) ids() []string {
	var out []string
	for _, k := range f.keys.Load().Keys {
		out = append(out, k.KeyID)
	}
	return out
}

const (
	// issuerEvery is how often an issuer is asked at most, whatever tokens name.
	issuerEvery = 10 * time.Second
	// issuerFresh is for how long its keys are used without asking again: so long does a key count that it has taken back.
	issuerFresh = 5 * time.Minute
	// issuerStale is for how long they are used while it does not answer.
	issuerStale = time.Hour
	// discoveryPath is where an issuer says where its keys are (OpenID Connect Discovery 1.0, section 4).
	discoveryPath = "/.well-known/openid-configuration"
)

// keysOfIssuer are fetched from the issuer.
type keysOfIssuer struct {
	issuer string
	tls    *tls.Config
	log    *slog.Logger
	cache  *keycache.Cache[*jose.JSONWebKeySet]
}

func newKeysOfIssuer(issuer, authorities string, clk clock.PassiveClock, log *slog.Logger) (*keysOfIssuer, error) {
	k := &keysOfIssuer{issuer: issuer, tls: &tls.Config{MinVersion: tls.VersionTLS12}, log: log}
	if authorities != "" {
		pem, err := os.ReadFile(filepath.Clean(authorities))
		if err != nil {
			return nil, err
		}
		k.tls.RootCAs = x509.NewCertPool()
		if !k.tls.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", authorities)
		}
	}
	k.cache = keycache.New(keycache.Options[*jose.JSONWebKeySet]{
		Fetch: k.fetch, Every: issuerEvery, Fresh: issuerFresh, Stale: issuerStale, Clock: clk,
	})
	return k, nil
}

func (k *keysOfIssuer) find(ctx context.Context, kid string) []jose.JSONWebKey {
	set, found, err := k.cache.Find(ctx, func(s *jose.JSONWebKeySet) bool { return len(s.Key(kid)) > 0 })
	if err != nil || !found {
		return nil // a failed fetch is in the log
	}
	return set.Key(kid)
}

// fetch asks the issuer where its keys are, and gets them from there.
func (k *keysOfIssuer) fetch(ctx context.Context) (*jose.JSONWebKeySet, error) {
	set, err := k.discover(ctx)
	if err != nil {
		err = fmt.Errorf("fetching the keys of the issuer: %w", err)
		k.log.WarnContext(ctx, "keys of the approvers' issuer could not be fetched", "issuer", k.issuer, "error", err)
	}
	return set, err
}

func (k *keysOfIssuer) discover(ctx context.Context) (*jose.JSONWebKeySet, error) {
	data, err := fetch.Document(ctx, fetch.DocumentOptions{URL: strings.TrimSuffix(k.issuer, "/") + discoveryPath, MaxBytes: maxJWKS, TLS: k.tls})
	if err != nil {
		return nil, err
	}
	var said struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(data, &said); err != nil {
		return nil, errors.New("what it says of itself is no JSON")
	}
	if said.Issuer != k.issuer {
		return nil, errors.New("it says that it is another issuer: --approver-issuer has to be what its tokens name, a slash at the end included")
	}
	if data, err = fetch.Document(ctx, fetch.DocumentOptions{
		URL: said.JWKSURI, MaxBytes: maxJWKS, TLS: k.tls, IsNamedElsewhere: !isSameHost(k.issuer, said.JWKSURI),
	}); err != nil {
		return nil, fmt.Errorf("jwks_uri: %w", err)
	}
	set, err := readFetched(data)
	if err != nil {
		return nil, fmt.Errorf("jwks_uri: %w", err)
	}
	return set, nil
}

func isSameHost(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	return errX == nil && errY == nil && x.Host == y.Host
}
