package fetch

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var content = bytes.Repeat([]byte("0123456789abcdef"), 200_000) // 3.2 MB: more than one block, and not a whole number of them

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// site is a server with a certificate, and options that trust it.
func site(t *testing.T, handle http.HandlerFunc) (url string, o Options) {
	t.Helper()
	s := httptest.NewTLSServer(handle)
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return s.URL, Options{
		SHA256: sum(content), Out: filepath.Join(t.TempDir(), "model"), TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, URL: s.URL + "/model.gguf?token=secret",
	}
}

func whole(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }

func sized(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	whole(w, r)
}

func TestAFileIsThereWholeOrNotAtAll(t *testing.T) {
	redirectTo := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/there" {
				whole(w, r)
				return
			}
			http.Redirect(w, r, to, http.StatusFound)
		}
	}
	tests := map[string]struct {
		handle http.HandlerFunc
		change func(*Options)
		want   string // empty: the file is there
	}{
		"the right file":                       {handle: whole},
		"a file that is exactly at the bound":  {handle: whole, change: func(o *Options) { o.MaxBytes = int64(len(content)) }},
		"a file of unknown length":             {handle: func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush(); whole(w, r) }},
		"another file":                         {handle: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "other") }, want: "the file has SHA-256 " + sum([]byte("other")) + ", want " + sum(content)},
		"a file that says it is too long":      {handle: sized, change: func(o *Options) { o.MaxBytes = int64(len(content)) - 1 }, want: "the file has 3200000 bytes, at most 3199999 are taken"},
		"a file that turns out to be too long": {handle: func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush(); whole(w, r) }, change: func(o *Options) { o.MaxBytes = 1000 }, want: "the file has more than 1000 bytes"},
		"a connection that ends early": {handle: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(content)))
			_, _ = w.Write(content[:1000])
		}, want: "reading the file: unexpected EOF"},
		"a server that refuses":      {handle: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, want: "the server answered HTTP 403"},
		"a part of the file":         {handle: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusPartialContent); whole(w, r) }, want: "the server answered HTTP 206"},
		"plain http":                 {handle: whole, change: func(o *Options) { o.URL = "http://example.com/m" }, want: "the address has to be https"},
		"a user in the address":      {handle: whole, change: func(o *Options) { o.URL = "https://me:pw@example.com/m" }, want: "the address holds a user"},
		"no hash":                    {handle: whole, change: func(o *Options) { o.SHA256 = "" }, want: "the SHA-256 has to be"},
		"a hash in capitals":         {handle: whole, change: func(o *Options) { o.SHA256 = strings.ToUpper(o.SHA256) }, want: "the SHA-256 has to be"},
		"nowhere to write":           {handle: whole, change: func(o *Options) { o.Out = filepath.Join(o.Out, "no", "such") }, want: "making a file"},
		"a server nobody knows":      {handle: whole, change: func(o *Options) { o.TLS = nil }, want: "asking 127.0.0.1"},
		"a redirect to loopback":     {handle: redirectTo("/there"), want: "address 127.0.0.1 is loopback, where nothing may lead"},
		"a redirect that is allowed": {handle: redirectTo("/there"), change: func(o *Options) { o.AllowPrivate = true }},
		"a redirect to credentials":  {handle: redirectTo("https://169.254.169.254/latest"), change: func(o *Options) { o.AllowPrivate = true }, want: "address 169.254.169.254 is link-local"},
		"an address of credentials":  {handle: whole, change: func(o *Options) { o.URL = "https://[::ffff:169.254.169.254]/m" }, want: "address 169.254.169.254 is link-local"},
		"credentials of Amazon":      {handle: whole, change: func(o *Options) { o.URL = "https://[fd00:ec2::254]/m" }, want: "address fd00:ec2::254 is an address of a cloud's metadata"},
		"credentials of Google":      {handle: whole, change: func(o *Options) { o.URL = "https://[fd20:ce::254]/m" }, want: "address fd20:ce::254 is an address of a cloud's metadata"},
		"credentials of Alibaba":     {handle: redirectTo("https://100.100.100.200/latest"), change: func(o *Options) { o.AllowPrivate = true }, want: "address 100.100.100.200 is an address of a cloud's metadata"},
		"a redirect to plain http":   {handle: redirectTo("http://example.com/"), want: "following a redirect: the address has to be https"},
		"a redirect with a user":     {handle: redirectTo("https://a:b@example.com/"), want: "following a redirect: the address holds a user"},
		"redirects without an end":   {handle: redirectTo("/again"), change: func(o *Options) { o.AllowPrivate = true }, want: "more than 5 redirects"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, o := site(t, test.handle)
			if test.change != nil {
				test.change(&o)
			}
			err := File(t.Context(), o)
			if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
				t.Fatalf("%v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("it repeats the query: %v", err)
			}
			got, readErr := os.ReadFile(o.Out)
			if (readErr == nil) != (test.want == "") || readErr == nil && !bytes.Equal(got, content) {
				t.Errorf("%d bytes: %v", len(got), readErr)
			}
			left, _ := filepath.Glob(filepath.Join(filepath.Dir(o.Out), ".*"))
			if len(left) > 0 {
				t.Errorf("it left %v", left)
			}
		})
	}
}

func TestAnotherHashIsAnErrorOfItsOwn(t *testing.T) {
	_, o := site(t, whole)
	o.SHA256 = strings.Repeat("0", 64)
	if e, ok := errors.AsType[*HashError](File(t.Context(), o)); !ok || e.Want != o.SHA256 || e.Got != sum(content) {
		t.Fatal(e)
	}
}

func TestAFileThatIsThereIsNotDownloadedAgain(t *testing.T) {
	asked := 0
	_, o := site(t, func(w http.ResponseWriter, r *http.Request) { asked++; whole(w, r) })
	for range 2 {
		if err := File(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	if err := os.Chmod(o.Out, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.Out, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := File(t.Context(), o); err != nil || asked != 2 {
		t.Errorf("a damaged file was left: %v, asked %d times", err, asked)
	}
}

func TestAServerThatSendsNothingIsGivenUp(t *testing.T) {
	released := make(chan struct{})
	_, o := site(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(content[:10])
		w.(http.Flusher).Flush()
		<-released
	})
	defer close(released)
	o.Idle = 50 * time.Millisecond
	if err := File(t.Context(), o); err == nil || err.Error() != "the server sent nothing for 50ms" {
		t.Fatal(err)
	}
}

func TestProgressComesToTheEnd(t *testing.T) {
	_, o := site(t, sized)
	var seen []int64
	o.Progress = func(done, total int64) {
		if total != int64(len(content)) {
			t.Errorf("of %d", total)
		}
		seen = append(seen, done)
	}
	if err := File(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if len(seen) < 4 || seen[len(seen)-1] != int64(len(content)) || !slices.IsSorted(seen) {
		t.Error(seen)
	}
}

func TestWhereDownloadsMayLead(t *testing.T) {
	tests := map[string]struct{ first, redirected, allowed bool }{
		"93.184.216.34:443":        {true, true, true},
		"[2606:2800:220:1::1]:443": {true, true, true},
		"10.0.0.1:443":             {true, false, true},
		"192.168.1.1:443":          {true, false, true},
		"[fd00::1]:443":            {true, false, true},
		"100.64.0.1:443":           {true, false, true},
		"127.0.0.1:443":            {true, false, true},
		"[::1]:443":                {true, false, true},
		"[::ffff:127.0.0.1]:443":   {true, false, true},
		"169.254.169.254:443":      {false, false, false},
		"[fe80::1%eth0]:443":       {false, false, false},
		"[::ffff:169.254.1.1]:443": {false, false, false},
		"0.0.0.0:443":              {false, false, false},
		"224.0.0.1:443":            {false, false, false},
		"name.example.com:443":     {false, false, false},
	}
	for address, want := range tests {
		got := struct{ first, redirected, allowed bool }{
			(&Options{}).checkAddress(address, false) == nil, (&Options{}).checkAddress(address, true) == nil,
			(&Options{AllowPrivate: true}).checkAddress(address, true) == nil,
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", address, got, want)
		}
		if err := Control("tcp", address, nil); (err == nil) != want.first {
			t.Errorf("%s: a dialer gets %v", address, err)
		}
	}
}

func TestADocument(t *testing.T) {
	small := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "0123456789") }
	for name, test := range map[string]struct {
		handle http.HandlerFunc
		change func(*DocumentOptions)
		want   string // in the error; empty: the document is there
	}{
		"at the bound":           {handle: small},
		"longer than the bound":  {handle: small, change: func(o *DocumentOptions) { o.MaxBytes = 9 }, want: "more than 9 bytes"},
		"that is not there":      {handle: http.NotFound, want: "HTTP 404"},
		"behind a redirect":      {handle: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/there", http.StatusFound) }, want: "HTTP 302"},
		"that ends early":        {handle: func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Length", "20"); small(w, r) }, want: "unexpected EOF"},
		"over plain http":        {handle: small, change: func(o *DocumentOptions) { o.URL = "http://issuer.example" }, want: "has to be https"},
		"of whom nobody trusts":  {handle: small, change: func(o *DocumentOptions) { o.TLS = nil }, want: "certificate"},
		"that a server has said": {handle: small, change: func(o *DocumentOptions) { o.IsNamedElsewhere = true }, want: "is loopback"},
	} {
		t.Run(name, func(t *testing.T) {
			url, base := site(t, test.handle)
			o := DocumentOptions{URL: url, MaxBytes: 10, TLS: base.TLS}
			if test.change != nil {
				test.change(&o)
			}
			got, err := Document(t.Context(), o)
			if test.want == "" && (err != nil || string(got) != "0123456789") || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%q, %v; want error %q", got, err, test.want)
			}
		})
	}
}
