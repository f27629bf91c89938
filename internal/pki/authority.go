package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Authority issues certificates. It is immutable: what changes is a new one.
//
//	time ──▶        made            2/3 of its life   + Lead                      + Life        end
//	old authority   ├─ signs ───────────────────────────┤ trusted only ────────────┤ forgotten   ┆
//	new authority                   ├─ trusted only ────┤ signs ──────────────────────────────────────▶
//
// At no moment is there a certificate in use whose authority is not trusted by all: the new one is trusted for Lead before
// it signs, and the old one for as long as anything that it signed can hold.
type Authority struct {
	signing *pair
	next    *pair
	retired []*x509.Certificate
}

// NewAuthority makes an authority that signs at once, since nobody trusts another.
func NewAuthority(now time.Time) (*Authority, error) {
	p, err := newAuthorityPair(now)
	if err != nil {
		return nil, err
	}
	return &Authority{signing: p}, nil
}

func newAuthorityPair(now time.Time) (*pair, error) {
	now = now.UTC().Truncate(time.Second)
	return newPair(&x509.Certificate{
		Subject:               pkix.Name{CommonName: "Gatewright authority of " + now.Format(time.DateOnly)},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(AuthorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}, nil, nil)
}

// ParseAuthority reads an authority from the data of its Secret. It takes only what is whole: every certificate is an
// authority, every key fits, and what signs is trusted.
func ParseAuthority(data map[string][]byte) (*Authority, error) {
	signing, err := parsePair(data[KeyCertificate], data[KeyPrivate])
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", KeyCertificate, KeyPrivate, err)
	}
	a := &Authority{signing: signing}
	if len(data[KeyNextCertificate]) > 0 || len(data[KeyNextPrivate]) > 0 {
		if a.next, err = parsePair(data[KeyNextCertificate], data[KeyNextPrivate]); err != nil {
			return nil, fmt.Errorf("%s, %s: %w", KeyNextCertificate, KeyNextPrivate, err)
		}
	}
	trusted, err := ParseCertificates(data[KeyCA])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", KeyCA, err)
	}
	for _, c := range trusted {
		if !a.isOurs(c) {
			a.retired = append(a.retired, c)
		}
	}
	for _, c := range a.Trusted() {
		if !c.IsCA {
			return nil, errors.New("a certificate is not an authority's")
		}
	}
	if len(trusted) != len(a.Trusted()) {
		return nil, fmt.Errorf("%s does not hold each authority once", KeyCA)
	}
	return a, nil
}

func (a *Authority) isOurs(c *x509.Certificate) bool {
	return c.Equal(a.signing.cert) || a.next != nil && c.Equal(a.next.cert)
}

// Data is what its Secret holds.
func (a *Authority) Data() (map[string][]byte, error) {
	key, err := encodeKey(a.signing.key)
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{KeyCA: a.Bundle(), KeyCertificate: encodeCertificates(a.signing.cert), KeyPrivate: key}
	if a.next == nil {
		return data, nil
	}
	if data[KeyNextPrivate], err = encodeKey(a.next.key); err != nil {
		return nil, err
	}
	data[KeyNextCertificate] = encodeCertificates(a.next.cert)
	return data, nil
}

// Trusted are the authorities to trust, the one that signs first.
func (a *Authority) Trusted() []*x509.Certificate {
	out := []*x509.Certificate{a.signing.cert}
	if a.next != nil {
		out = append(out, a.next.cert)
	}
	return append(out, a.retired...)
}

// Bundle is Trusted in PEM.
func (a *Authority) Bundle() []byte { return encodeCertificates(a.Trusted()...) }

// NotAfter is when the authority that signs ends.
func (a *Authority) NotAfter() time.Time { return a.signing.cert.NotAfter }

// Advance gives the authority as it should be at a time, which is the same one where nothing is due: a successor is made
// at two thirds of its life, signs after Lead, and what it succeeded is forgotten when nothing of it can hold any more.
// An authority that has ended has a successor that signs at once: what it signed has ended with it. So has one that does not
// hold yet, because it was made while the clock was ahead: nobody takes what it signs until then.
func (a *Authority) Advance(now time.Time) (*Authority, error) {
	out := &Authority{signing: a.signing, next: a.next, retired: slices.Clone(a.retired)}
	isOver := !now.Before(a.signing.cert.NotAfter) || now.Before(a.signing.cert.NotBefore)
	if out.next != nil && now.Before(out.next.cert.NotBefore) {
		out.next = nil // it has signed nothing
	}
	if out.next == nil && (isOver || !now.Before(renewAt(out.signing.cert))) {
		next, err := newAuthorityPair(now)
		if err != nil {
			return nil, err
		}
		out.next = next
	}
	if out.next != nil && (isOver || !now.Before(made(out.next.cert).Add(Lead))) {
		out.retired = append(out.retired, out.signing.cert)
		out.signing, out.next = out.next, nil
	}
	out.retired = slices.DeleteFunc(out.retired, func(c *x509.Certificate) bool { return !now.Before(out.forgetAt(c)) })
	if out.signing == a.signing && out.next == a.next && len(out.retired) == len(a.retired) {
		return a, nil
	}
	return out, nil
}

// forgetAt is when nothing that a retired authority signed can hold any more.
func (a *Authority) forgetAt(retired *x509.Certificate) time.Time {
	last := made(a.signing.cert).Add(Lead + Life)
	if retired.NotAfter.Before(last) {
		return retired.NotAfter
	}
	return last
}

// NextChange is when Advance has something to do.
func (a *Authority) NextChange() time.Time {
	at := renewAt(a.signing.cert)
	if a.next != nil {
		at = made(a.next.cert).Add(Lead)
	}
	for _, c := range a.retired {
		if forget := a.forgetAt(c); forget.Before(at) {
			at = forget
		}
	}
	return at
}
