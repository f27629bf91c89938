package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// exchange is one request to a gate and its answer.
type exchange struct {
	url, method, path string
	// token is sent as a bearer token; empty: none is sent.
	token string
	// caFile has the only authorities to trust; empty: the system's.
	caFile  string
	timeout time.Duration
	// limit bounds the answer, in bytes.
	limit int64
}

// send sends a value as JSON and returns the status and body of the answer.
func (x exchange) send(ctx context.Context, v any) (status int, data []byte, err error) {
	body, err := json.Marshal(v)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, x.method, strings.TrimSuffix(x.url, "/")+x.path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if token := strings.TrimSpace(x.token); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client, err := x.client()
	if err != nil {
		return 0, nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("asking the gate at %s: %w (gatewright serve starts one; --url names another)", x.url, err)
	}
	defer answer.Body.Close()
	data, err = io.ReadAll(io.LimitReader(answer.Body, x.limit))
	if err != nil {
		return 0, nil, fmt.Errorf("reading the answer: %w", err)
	}
	return answer.StatusCode, data, nil
}

func (x exchange) client() (*http.Client, error) {
	if x.caFile == "" {
		return http.DefaultClient, nil
	}
	authorities, err := os.ReadFile(x.caFile)
	if err != nil {
		return nil, fmt.Errorf("reading the gate's authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", x.caFile)
	}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
	}}, nil
}
