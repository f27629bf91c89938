package permit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/keycache"
	"gatewright.dev/gatewright/internal/loopback"
)

const (
	// fetchEvery is how often keys are fetched at most, whatever permits ask for.
	fetchEvery = 10 * time.Second
	// freshFor is how long fetched keys are used without asking again, so that a key that was taken back is noticed.
	freshFor = 60 * time.Second
	// staleAfter is how long fetched keys are used while the gate does not answer.
	staleAfter = 300 * time.Second
	// fetchTimeout bounds one fetch, and so how long a permit with an unknown key waits.
	fetchTimeout = 3 * time.Second
)

// RemoteOptions of NewRemoteKeys.
type RemoteOptions struct {
	// URL of the gate's JWKS: https, or http on loopback.
	URL string
	// TLS says whom to trust. Nil trusts what the system trusts.
	TLS *tls.Config
	// Clock of the cache, the system's if nil.
	Clock clock.PassiveClock
}

// RemoteKeys is a KeySource that fetches a JWKS and keeps it. It asks again for a kid that it does not know, and once a
// minute, and never more often than every 10 s. Keys older than 5 minutes count as unavailable.
type RemoteKeys struct {
	url    string
	client *http.Client
	cache  *keycache.Cache[StaticKeys]
}

var _ KeySource = (*RemoteKeys)(nil)

// NewRemoteKeys fetches nothing yet.
func NewRemoteKeys(o RemoteOptions) (*RemoteKeys, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, errors.New("address of the keys is no URL of a host without user and fragment")
	}
	plain := u.Scheme == "http" && loopback.IsHost(u.Hostname())
	if u.Scheme != "https" && !plain {
		return nil, errors.New("address of the keys has to be https, or http on loopback")
	}
	r := &RemoteKeys{url: u.String(), client: newClient(o.TLS, plain)}
	r.cache = keycache.New(keycache.Options[StaticKeys]{Fetch: r.fetch, Every: fetchEvery, Fresh: freshFor, Stale: staleAfter, Clock: orSystem(o.Clock)})
	return r, nil
}

// newClient keeps no connection, since it is used about once a minute, and follows no redirect: the keys are where the
// operator said. In plain HTTP it connects to loopback only, whatever a name resolves to.
func newClient(c *tls.Config, plain bool) *http.Client {
	dialer := &net.Dialer{Timeout: fetchTimeout}
	if plain {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			host, _, err := net.SplitHostPort(address)
			if err != nil || !loopback.IsHost(host) {
				return errors.New("plain http is for loopback only")
			}
			return nil
		}
	}
	if c == nil {
		c = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &http.Client{
		Timeout: fetchTimeout,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: c.Clone(), TLSHandshakeTimeout: fetchTimeout,
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 16 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirects are not followed") },
	}
}

// Key implements KeySource.
func (r *RemoteKeys) Key(ctx context.Context, kid string) (PublicKey, error) {
	keys, known, err := r.cache.Find(ctx, func(k StaticKeys) bool {
		_, ok := k[kid]
		return ok
	})
	switch {
	case err != nil:
		return PublicKey{}, errors.Join(ErrKeysUnavailable, err)
	case !known:
		return PublicKey{}, ErrUnknownKey
	}
	return keys[kid], nil
}

// Ready says whether permits can be checked now. It fetches the keys if that is due.
func (r *RemoteKeys) Ready(ctx context.Context) error {
	if err := r.cache.Ready(ctx); err != nil {
		return errors.Join(ErrKeysUnavailable, err)
	}
	return nil
}

func (r *RemoteKeys) fetch(ctx context.Context) (StaticKeys, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("fetching keys: %w", err)
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetching keys: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetching keys: HTTP %d", resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, MaxKeySet+1))
	if err != nil {
		return nil, fmt.Errorf("fetching keys: %w", err)
	}
	keys, err := ParseKeySet(data)
	if err != nil {
		return nil, fmt.Errorf("fetching keys: %w", err)
	}
	return keys, nil
}
