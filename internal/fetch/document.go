package fetch

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"
)

// documentTimeout bounds the whole of a Document.
const documentTimeout = 5 * time.Second

// DocumentOptions say which document to get. URL and MaxBytes are required.
type DocumentOptions struct {
	// URL is https, without a user in it.
	URL string
	// MaxBytes bounds it: a longer one is an error.
	MaxBytes int64
	// TLS says whom to trust; the system's authorities if nil.
	TLS *tls.Config
	// IsNamedElsewhere says that a server has named the URL and not an operator: then it may not lead to private and loopback
	// addresses. Link-local ones, where clouds keep credentials, are refused always.
	IsNamedElsewhere bool
}

// Document gets a small document in at most five seconds. It follows no redirect: the document is where somebody said.
func Document(ctx context.Context, o DocumentOptions) ([]byte, error) {
	u, err := checkURL(o.URL)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	answer, err := (&Options{TLS: o.TLS}).get(ctx, u, o.IsNamedElsewhere)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered HTTP %d", u.Host, answer.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, o.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading from %s: %w", u.Host, err)
	}
	if int64(len(data)) > o.MaxBytes {
		return nil, fmt.Errorf("what %s sends has more than %d bytes", u.Host, o.MaxBytes)
	}
	return data, nil
}
