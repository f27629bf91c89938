package pki

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"time"
)

// Request is a certificate that is wanted.
type Request struct {
	// Name of whom it is for, shown to people.
	Name string
	// DNSNames that it is good for.
	DNSNames []string
	// Usage is what it is good for: to serve, or to call.
	Usage x509.ExtKeyUsage
}

// Issue makes a certificate with a new key, as the data of a Secret. It does not outlive its authority.
func (a *Authority) Issue(now time.Time, r Request) (map[string][]byte, error) {
	now = now.UTC().Truncate(time.Second)
	end := now.Add(Life)
	if a.signing.cert.NotAfter.Before(end) {
		end = a.signing.cert.NotAfter
	}
	leaf, err := newPair(&x509.Certificate{
		Subject:               pkix.Name{CommonName: r.Name},
		DNSNames:              r.DNSNames,
		NotBefore:             now.Add(-backdate),
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{r.Usage},
		BasicConstraintsValid: true,
	}, a.signing.cert, a.signing.key)
	if err != nil {
		return nil, fmt.Errorf("issuing the certificate of %s: %w", r.Name, err)
	}
	key, err := encodeKey(leaf.key)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{KeyCA: a.Bundle(), KeyCertificate: encodeCertificates(leaf.cert), KeyPrivate: key}, nil
}

// Leaf is a certificate as it should be.
type Leaf struct {
	// Data of its Secret.
	Data map[string][]byte
	// Renewed says why there is a new certificate; empty if the one that was there stays.
	Renewed string
	// RenewAt is when the next is due.
	RenewAt time.Time
	// NotAfter is when it ends.
	NotAfter time.Time
}

// Renew gives the certificate that a Secret should hold: the one that is there as long as it serves, with what is to be
// trusted now, or else a new one.
func (a *Authority) Renew(now time.Time, data map[string][]byte, r Request) (Leaf, error) {
	why := a.wrong(now, data, r)
	if why == "" {
		data = map[string][]byte{KeyCA: a.Bundle(), KeyCertificate: data[KeyCertificate], KeyPrivate: data[KeyPrivate]}
	} else {
		issued, err := a.Issue(now, r)
		if err != nil {
			return Leaf{}, err
		}
		data = issued
	}
	held, err := parsePair(data[KeyCertificate], data[KeyPrivate])
	if err != nil {
		return Leaf{}, fmt.Errorf("reading the certificate of %s: %w", r.Name, err)
	}
	return Leaf{Data: data, Renewed: why, RenewAt: renewAt(held.cert), NotAfter: held.cert.NotAfter}, nil
}

// wrong says why a certificate has to be made anew, or nothing.
func (a *Authority) wrong(now time.Time, data map[string][]byte, r Request) string {
	if len(data[KeyCertificate]) == 0 && len(data[KeyPrivate]) == 0 {
		return "there is none"
	}
	held, err := parsePair(data[KeyCertificate], data[KeyPrivate])
	if err != nil {
		return "it cannot be read: " + err.Error()
	}
	c := held.cert
	switch {
	case !bytes.Equal(data[KeyCertificate], encodeCertificates(c)):
		return "there is something beside it"
	case c.CheckSignatureFrom(a.signing.cert) != nil:
		return "it is not of the authority that signs"
	case !now.Before(renewAt(c)):
		return "two thirds of its life are over"
	case now.Before(c.NotBefore):
		return "it does not hold yet"
	case !slices.Equal(c.DNSNames, r.DNSNames) || c.Subject.CommonName != r.Name:
		return "it is for other names"
	case !slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{r.Usage}):
		return "it is for another use"
	}
	return ""
}
