// Package pki is the authority of an installation: it issues the certificates by which its parts know each other, renews
// them, and gives way to a successor before it ends. It is pure but for random numbers: it gets the time and the data of
// Secrets, and returns data of Secrets.
package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Keys of the data of a Secret. The first three are those of type kubernetes.io/tls.
const (
	// KeyCA holds the certificates to trust.
	KeyCA = "ca.crt"
	// KeyCertificate holds the certificate, and of an authority the one that signs.
	KeyCertificate = "tls.crt"
	// KeyPrivate holds its private key.
	KeyPrivate = "tls.key"
	// KeyNextCertificate holds the authority that is trusted already and will sign next. It may be missing.
	KeyNextCertificate = "next.crt"
	// KeyNextPrivate holds its private key.
	KeyNextPrivate = "next.key"
)

// How long things hold.
const (
	// AuthorityLife is for how long an authority is good. It is to be replaced at two thirds of it.
	AuthorityLife = 3 * 365 * 24 * time.Hour
	// Life is for how long a certificate is good. It is renewed at two thirds of it, which leaves a month to notice.
	Life = 90 * 24 * time.Hour
	// Lead is for how long an authority is trusted before it signs: pods read what they trust when they start or when
	// their file changes, and all have to know the successor before they meet it.
	Lead = 7 * 24 * time.Hour
	// backdate is by how much a certificate holds earlier than it was made, for clocks that are behind.
	backdate = time.Hour
)

// Blocks of PEM.
const (
	blockCertificate = "CERTIFICATE"
	blockPrivate     = "PRIVATE KEY"
)

// maxData bounds each value of a Secret in bytes before it is read.
const maxData = 64 << 10

// pair is a certificate with its key.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newPair(template, parent *x509.Certificate, by *ecdsa.PrivateKey) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1)) // zero is none
	if by == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate that was made: %w", err)
	}
	return &pair{cert, key}, nil
}

// made is when a certificate of ours was made.
func made(c *x509.Certificate) time.Time { return c.NotBefore.Add(backdate) }

// renewAt is when two thirds of a certificate's life are over.
func renewAt(c *x509.Certificate) time.Time {
	begin := made(c)
	return begin.Add(c.NotAfter.Sub(begin) / 3 * 2)
}

func encodeCertificates(list ...*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, c := range list {
		_ = pem.Encode(&out, &pem.Block{Type: blockCertificate, Bytes: c.Raw}) // a buffer takes all
	}
	return out.Bytes()
}

func encodeKey(k *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockPrivate, Bytes: der}), nil
}

// parsePair reads a certificate and the key that belongs to it. Errors hold nothing of the key.
func parsePair(certificate, private []byte) (*pair, error) {
	certs, err := ParseCertificates(certificate)
	if err != nil {
		return nil, err
	}
	if len(private) > maxData {
		return nil, errors.New("the key is too long")
	}
	block, rest := pem.Decode(private)
	if block == nil || block.Type != blockPrivate || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("the key is not one block " + blockPrivate + " in PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the key is not in PKCS #8")
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("the key is not an ECDSA key")
	}
	if public, ok := certs[0].PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(key.Public()) {
		return nil, errors.New("the key is not that of the certificate")
	}
	return &pair{certs[0], key}, nil
}

// ParseCertificates reads one or more certificates in PEM.
func ParseCertificates(data []byte) ([]*x509.Certificate, error) {
	if len(data) > maxData {
		return nil, errors.New("the certificates are too long")
	}
	var out []*x509.Certificate
	for rest := bytes.TrimSpace(data); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil || block.Type != blockCertificate {
			return nil, errors.New("there is something else than certificates in PEM")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("reading a certificate: %w", err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("there is no certificate")
	}
	return out, nil
}
