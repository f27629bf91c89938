// Package fetch downloads a file whose SHA-256 is known: over https, bounded, and to places that an address in a manifest
// may lead to. The file appears under its name whole and right, or not at all.
package fetch

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

const (
	// DefaultMaxBytes bounds a file where nothing else is said.
	DefaultMaxBytes = 32 << 30
	// DefaultIdle is how long a server may send nothing.
	DefaultIdle = time.Minute
	maxHops     = 5
	block       = 1 << 20
)

// Options say what to download. URL, SHA256 and Out are required.
type Options struct {
	// URL is https, without a user in it.
	URL string
	// SHA256 of the file, 64 lower-case hexadecimal digits.
	SHA256 string
	// Out is the path of the file. One that is there and right is not downloaded again.
	Out string
	// MaxBytes bounds it; DefaultMaxBytes if 0.
	MaxBytes int64
	// AllowPrivate lets redirects lead to private and loopback addresses. Link-local ones, where clouds keep credentials,
	// are refused always.
	AllowPrivate bool
	// Idle is how long a server may send nothing; DefaultIdle if 0.
	Idle time.Duration
	// TLS says whom to trust; the system's authorities if nil.
	TLS *tls.Config
	// Progress, if set, is told after each MiB how many bytes of how many have come; -1: nobody knows how many.
	Progress func(done, total int64)
	// Clock is the time; the system's by default.
	Clock clock.WithTicker
}

// HashError says that what came is not what was asked for.
type HashError struct{ Want, Got string }

func (e *HashError) Error() string {
	return fmt.Sprintf("the file has SHA-256 %s, want %s", e.Got, e.Want)
}

var digest = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (o *Options) check() (*url.URL, error) {
	switch {
	case !digest.MatchString(o.SHA256):
		return nil, errors.New("the SHA-256 has to be 64 lower-case hexadecimal digits")
	case o.Out == "":
		return nil, errors.New("a path for the file is required")
	case o.MaxBytes < 0 || o.Idle < 0:
		return nil, errors.New("bounds must not be negative")
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Idle == 0 {
		o.Idle = DefaultIdle
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return checkURL(o.URL)
}

func checkURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("the address cannot be read")
	case u.Scheme != "https" || u.Host == "":
		return nil, errors.New("the address has to be https: what is downloaded otherwise could be changed on its way, and its name be read by others")
	case u.User != nil:
		return nil, errors.New("the address holds a user: it would stand in manifests and logs")
	}
	return u, nil
}

// File downloads a file. It is written beside its place, hashed as it comes, and renamed when it is whole and right.
func File(ctx context.Context, o Options) error {
	from, err := o.check()
	if err != nil {
		return err
	}
	if isThere(o.Out, o.SHA256) {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alive := newWatchdog(o.Clock, o.Idle, cancel)
	defer alive.stop()
	body, size, err := o.open(ctx, from)
	if err != nil {
		return because(ctx, err)
	}
	defer body.Close()
	if size > o.MaxBytes {
		return fmt.Errorf("the file has %d bytes, at most %d are taken", size, o.MaxBytes)
	}
	return because(ctx, o.write(&watched{body, alive}, size))
}

// because prefers why the download was given up to what that did to the connection.
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// isThere says whether a file is there and right already.
func isThere(path, want string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	return errors.Join(err, f.Close()) == nil && hex.EncodeToString(h.Sum(nil)) == want
}

func (o *Options) write(body io.Reader, size int64) (err error) {
	f, err := os.CreateTemp(filepath.Dir(o.Out), ".download-*")
	if err != nil {
		return fmt.Errorf("making a file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreClosed(f.Close()), os.Remove(f.Name()))
		}
	}()
	sum, err := o.copyHashing(f, body, size)
	if err != nil {
		return err
	}
	if sum != o.SHA256 {
		return &HashError{o.SHA256, sum}
	}
	if err := errors.Join(f.Chmod(0o444), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("writing the file: %w", err)
	}
	return os.Rename(f.Name(), o.Out)
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

func (o *Options) copyHashing(to io.Writer, from io.Reader, size int64) (sum string, err error) {
	h := sha256.New()
	done := int64(0)
	for {
		n, err := io.CopyN(io.MultiWriter(to, h), from, min(block, o.MaxBytes-done+1))
		done += n
		if done > o.MaxBytes {
			return "", fmt.Errorf("the file has more than %d bytes", o.MaxBytes)
		}
		if o.Progress != nil && n > 0 {
			o.Progress(done, size)
		}
		switch {
		case errors.Is(err, io.EOF) && size >= 0 && done != size:
			return "", fmt.Errorf("the connection ended after %d of %d bytes", done, size)
		case errors.Is(err, io.EOF):
			return hex.EncodeToString(h.Sum(nil)), nil
		case err != nil:
			return "", fmt.Errorf("reading the file: %w", err)
		}
	}
}

// open follows redirects by hand: each has to pass the same checks, and where it leads is looked at when it is dialled, so
// that a name which resolves to something else the second time gains nothing.
func (o *Options) open(ctx context.Context, u *url.URL) (body io.ReadCloser, size int64, err error) {
	for hop := range maxHops + 1 {
		answer, err := o.get(ctx, u, hop > 0)
		if err != nil {
			return nil, 0, err
		}
		switch answer.StatusCode {
		case http.StatusOK:
			return answer.Body, answer.ContentLength, nil
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
			next, err := answer.Location()
			_ = answer.Body.Close()
			if err != nil {
				return nil, 0, errors.New("a redirect leads nowhere")
			}
			if u, err = checkURL(next.String()); err != nil {
				return nil, 0, fmt.Errorf("following a redirect: %w", err)
			}
		default:
			_ = answer.Body.Close()
			return nil, 0, fmt.Errorf("the server answered HTTP %d", answer.StatusCode)
		}
	}
	return nil, 0, fmt.Errorf("more than %d redirects", maxHops)
}

func (o *Options) get(ctx context.Context, u *url.URL, isRedirected bool) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, errors.New("the address makes no request")
	}
	dialer := &net.Dialer{Timeout: 30 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		return o.checkAddress(address, isRedirected)
	}}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: o.TLS.Clone(), TLSHandshakeTimeout: 30 * time.Second,
		DisableCompression: true, DisableKeepAlives: true, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10,
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		// The text of the library may hold the address with its query, which may be a credential.
		if denied, ok := errors.AsType[*addressError](err); ok {
			return nil, denied
		}
		return nil, fmt.Errorf("asking %s: %w", u.Host, err)
	}
	return answer, nil
}

// addressError is an address that may not be asked.
type addressError struct{ address, kind string }

func (e *addressError) Error() string {
	return fmt.Sprintf("address %s is %s, where nothing may lead", e.address, e.kind)
}

// Control is for the dialers of what a manifest names. It refuses addresses where clouds keep credentials, link-local ones among
// them, and those of no one host, whatever name has led there: it sees what is really dialled.
func Control(_, address string, _ syscall.RawConn) error {
	_, err := dialled(address)
	return err
}

func dialled(address string) (netip.Addr, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Addr{}, &addressError{address, "unreadable"}
	}
	ip := at.Addr().Unmap()
	switch {
	case ip.IsLinkLocalUnicast(), ip.IsLinkLocalMulticast(), ip.IsInterfaceLocalMulticast():
		return ip, &addressError{ip.String(), "link-local"}
	case ip.IsMulticast(), ip.IsUnspecified():
		return ip, &addressError{ip.String(), "no address of one host"}
	case slices.ContainsFunc(metadata, func(p netip.Prefix) bool { return p.Contains(ip) }):
		return ip, &addressError{ip.String(), "an address of a cloud's metadata"}
	}
	return ip, nil
}

// metadata are the addresses beside the link-local ones where clouds answer with credentials of the machine: those of Amazon's
// and Google's in IPv6, and that of Alibaba's.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("fd20:ce::254/128"), netip.MustParsePrefix("100.100.100.200/32"),
}

// checkAddress looks at what is really dialled. The address in the manifest may be private: the admin wrote it. Where a
// server sends us may not, unless that is allowed.
func (o *Options) checkAddress(address string, isRedirected bool) error {
	ip, err := dialled(address)
	switch {
	case err != nil:
		return err
	case !isRedirected || o.AllowPrivate:
		return nil
	case ip.IsLoopback():
		return &addressError{ip.String(), "loopback"}
	case ip.IsPrivate(), isShared(ip):
		return &addressError{ip.String(), "private"}
	}
	return nil
}

// shared are addresses of carriers, which clouds use inside (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

func isShared(ip netip.Addr) bool { return shared.Contains(ip) }
