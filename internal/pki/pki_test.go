package pki_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/pki"
)

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var server = pki.Request{Name: "gate", DNSNames: []string{"gate.example.svc"}, Usage: x509.ExtKeyUsageServerAuth}

func newAuthority(t *testing.T, at time.Time) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority(at)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func advance(t *testing.T, a *pki.Authority, at time.Time) *pki.Authority {
	t.Helper()
	b, err := a.Advance(at)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func renew(t *testing.T, a *pki.Authority, at time.Time, data map[string][]byte, r pki.Request) pki.Leaf {
	t.Helper()
	leaf, err := a.Renew(at, data, r)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func dataOf(t *testing.T, a *pki.Authority) map[string][]byte {
	t.Helper()
	data, err := a.Data()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// call says whether a client that trusts a bundle takes a server's certificate at a time.
func call(t *testing.T, served map[string][]byte, bundle []byte, at time.Time) error {
	t.Helper()
	if _, err := tls.X509KeyPair(served[pki.KeyCertificate], served[pki.KeyPrivate]); err != nil {
		t.Fatal(err)
	}
	certs, err := pki.ParseCertificates(served[pki.KeyCertificate])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		t.Fatal("the bundle holds no certificate")
	}
	_, err = certs[0].Verify(x509.VerifyOptions{
		Roots: roots, DNSName: "gate.example.svc", CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}

// TestRollover follows an authority over its succession, hour by hour around the changes and week by week between them.
// Parts do not all see a change at once: each may be behind by days, and none may meet a certificate that it does not trust.
func TestRollover(t *testing.T) {
	const behind = 5 * 24 * time.Hour // less than Lead
	type view struct {
		at     time.Time
		bundle []byte
		leaf   map[string][]byte
	}
	authority := newAuthority(t, begin)
	var data map[string][]byte
	var views []view
	signers, bundles := map[string]bool{}, map[int]bool{}
	for at := begin; at.Before(begin.Add(pki.AuthorityLife + pki.Life)); at = at.Add(48 * time.Hour) {
		authority = advance(t, authority, at)
		leaf := renew(t, authority, at, data, server)
		data = leaf.Data
		views = append(views, view{at, authority.Bundle(), data})
		signers[string(dataOf(t, authority)[pki.KeyCertificate])] = true
		bundles[len(authority.Trusted())] = true
		for _, v := range views {
			if at.Sub(v.at) > behind {
				continue
			}
			if err := call(t, data, v.bundle, at); err != nil {
				t.Fatalf("%s after the beginning, a client that is %s behind: %v", at.Sub(begin), at.Sub(v.at), err)
			}
			if err := call(t, v.leaf, authority.Bundle(), at); err != nil {
				t.Fatalf("%s after the beginning, a server that is %s behind: %v", at.Sub(begin), at.Sub(v.at), err)
			}
		}
		for len(views) > 0 && at.Sub(views[0].at) > behind {
			views = views[1:]
		}
	}
	if len(signers) != 2 {
		t.Errorf("%d authorities signed, want the first and its successor", len(signers))
	}
	if diff := cmp.Diff(map[int]bool{1: true, 2: true}, bundles); diff != "" {
		t.Errorf("numbers of authorities that were trusted at a time (-want +got):\n%s", diff)
	}
}

func TestOldLeafIsTrustedDuringTheOverlapAndNotAfter(t *testing.T) {
	old := newAuthority(t, begin)
	due := begin.Add(pki.AuthorityLife / 3 * 2)
	both := advance(t, old, due)
	lastOld := renew(t, both, due.Add(pki.Lead-time.Second), nil, server)
	changed := advance(t, both, due.Add(pki.Lead))
	if err := call(t, lastOld.Data, changed.Bundle(), due.Add(pki.Lead)); err != nil {
		t.Errorf("a server with the old certificate is not trusted after the change: %v", err)
	}
	if err := call(t, renew(t, changed, due.Add(pki.Lead), lastOld.Data, server).Data, old.Bundle(), due.Add(pki.Lead)); err == nil {
		t.Error("the new certificate is of the old authority")
	}
	forgotten := advance(t, changed, due.Add(pki.Lead+pki.Life))
	if n := len(forgotten.Trusted()); n != 1 {
		t.Errorf("%d authorities are trusted at the end, want 1", n)
	}
	if err := call(t, lastOld.Data, forgotten.Bundle(), due.Add(pki.Lead)); err == nil {
		t.Error("a forgotten authority is trusted")
	}
}

func TestAdvanceChangesNothingBeforeNextChange(t *testing.T) {
	a := newAuthority(t, begin)
	for range 4 {
		at := a.NextChange()
		if same := advance(t, a, at.Add(-time.Second)); same != a {
			t.Fatalf("changed before %s", at)
		}
		b := advance(t, a, at)
		if b == a {
			t.Fatalf("nothing changed at %s", at)
		}
		a = b
	}
}

func TestAuthorityThatEndedUnseenHasASuccessorAtOnce(t *testing.T) {
	a := newAuthority(t, begin)
	late := begin.Add(pki.AuthorityLife + time.Hour)
	b := advance(t, a, late)
	if err := call(t, renew(t, b, late, nil, server).Data, b.Bundle(), late); err != nil {
		t.Error(err)
	}
	if n := len(b.Trusted()); n != 1 {
		t.Errorf("%d authorities are trusted, want the new one alone", n)
	}
}

// A clock that is ahead for a while may have an authority made, or its successor, that does not hold when it is right again.
func TestAClockThatWasAheadLeavesAnAuthorityThatHolds(t *testing.T) {
	tests := map[string]struct {
		was  func(t *testing.T, now time.Time) *pki.Authority
		want int // authorities that are trusted afterwards
	}{
		"the first was made then": {func(t *testing.T, now time.Time) *pki.Authority { return newAuthority(t, now.AddDate(70, 0, 0)) }, 2},
		"the first ended then": {func(t *testing.T, now time.Time) *pki.Authority {
			return advance(t, newAuthority(t, now.Add(-time.Hour)), now.AddDate(70, 0, 0))
		}, 2},
		"its successor was made then": {func(t *testing.T, now time.Time) *pki.Authority {
			return advance(t, newAuthority(t, now.Add(-time.Hour)), now.Add(pki.AuthorityLife*3/4))
		}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			was := test.was(t, begin)
			leaf := renew(t, was, begin.AddDate(70, 0, 0), nil, server)
			is := advance(t, was, begin)
			if is == was {
				t.Fatal("it stays")
			}
			now := renew(t, is, begin, leaf.Data, server)
			if err := call(t, now.Data, is.Bundle(), begin); err != nil {
				t.Error(err)
			}
			if n := len(is.Trusted()); n != test.want {
				t.Errorf("%d authorities are trusted, want %d", n, test.want)
			}
			if same := advance(t, is, begin); same != is {
				t.Error("it changes at each look")
			}
			if _, err := pki.ParseAuthority(dataOf(t, is)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAuthorityComesBackFromItsSecret(t *testing.T) {
	a := newAuthority(t, begin)
	due := begin.Add(pki.AuthorityLife / 3 * 2)
	for name, at := range map[string]time.Time{"the first": begin, "with a successor": due, "after the change": due.Add(pki.Lead)} {
		t.Run(name, func(t *testing.T) {
			want := advance(t, advance(t, a, earlier(at, due)), at)
			got, err := pki.ParseAuthority(dataOf(t, want))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(dataOf(t, want), dataOf(t, got)); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
			if !got.NextChange().Equal(want.NextChange()) {
				t.Errorf("next change at %s, want %s", got.NextChange(), want.NextChange())
			}
		})
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func TestParseAuthorityRefuses(t *testing.T) {
	a := advance(t, newAuthority(t, begin), begin.Add(pki.AuthorityLife/3*2))
	other := dataOf(t, newAuthority(t, begin))
	leaf := renew(t, a, begin, nil, server)
	for name, change := range map[string]func(map[string][]byte){
		"nothing":                             func(d map[string][]byte) { clear(d) },
		"a key of another":                    func(d map[string][]byte) { d[pki.KeyPrivate] = other[pki.KeyPrivate] },
		"a key that is cut":                   func(d map[string][]byte) { d[pki.KeyPrivate] = d[pki.KeyPrivate][:40] },
		"a key with something behind it":      func(d map[string][]byte) { d[pki.KeyPrivate] = append(d[pki.KeyPrivate], "more"...) },
		"a successor's key of another":        func(d map[string][]byte) { d[pki.KeyNextPrivate] = other[pki.KeyPrivate] },
		"a successor without its key":         func(d map[string][]byte) { delete(d, pki.KeyNextPrivate) },
		"no bundle":                           func(d map[string][]byte) { delete(d, pki.KeyCA) },
		"a bundle without the one that signs": func(d map[string][]byte) { d[pki.KeyCA] = d[pki.KeyNextCertificate] },
		"a bundle that has one twice":         func(d map[string][]byte) { d[pki.KeyCA] = append(d[pki.KeyCA], d[pki.KeyCertificate]...) },
		"a bundle that is text":               func(d map[string][]byte) { d[pki.KeyCA] = []byte("trust everybody") },
		"a bundle with a certificate that is no authority": func(d map[string][]byte) {
			d[pki.KeyCA] = append(d[pki.KeyCA], leaf.Data[pki.KeyCertificate]...)
		},
		"what signs is no authority": func(d map[string][]byte) {
			d[pki.KeyCertificate], d[pki.KeyPrivate] = leaf.Data[pki.KeyCertificate], leaf.Data[pki.KeyPrivate]
		},
		"more than is read": func(d map[string][]byte) { d[pki.KeyCA] = bytes.Repeat(d[pki.KeyCA], 200) },
	} {
		t.Run(name, func(t *testing.T) {
			data := maps.Clone(dataOf(t, a))
			change(data)
			if _, err := pki.ParseAuthority(data); err == nil {
				t.Error("was read")
			} else if bytes.Contains([]byte(err.Error()), []byte("BEGIN")) {
				t.Errorf("the error holds data: %v", err)
			}
		})
	}
}

func TestRenew(t *testing.T) {
	a := newAuthority(t, begin)
	held := renew(t, a, begin, nil, server).Data
	next := advance(t, a, begin.Add(pki.AuthorityLife/3*2))
	other := newAuthority(t, begin)
	client := pki.Request{Name: "gate", DNSNames: server.DNSNames, Usage: x509.ExtKeyUsageClientAuth}
	more := pki.Request{Name: "gate", DNSNames: append([]string{"other.example"}, server.DNSNames...), Usage: server.Usage}
	broken := maps.Clone(held)
	broken[pki.KeyPrivate] = []byte("none")
	chain := maps.Clone(held)
	chain[pki.KeyCertificate] = append(bytes.Clone(chain[pki.KeyCertificate]), a.Bundle()...)
	for name, row := range map[string]struct {
		authority *pki.Authority
		at        time.Time
		data      map[string][]byte
		request   pki.Request
		want      string
	}{
		"a good one stays": {a, begin.Add(pki.Life/3*2 - time.Second), held, server, ""},
		"it stays when another authority is trusted too": {next, begin, held, server, ""},
		"none is made": {a, begin, nil, server, "there is none"},
		"it is renewed at two thirds of its life":        {a, begin.Add(pki.Life / 3 * 2), held, server, "two thirds of its life are over"},
		"it is renewed after its end":                    {a, begin.Add(2 * pki.Life), held, server, "two thirds of its life are over"},
		"it is replaced when the authority is another":   {other, begin, held, server, "it is not of the authority that signs"},
		"it is replaced for other names":                 {a, begin, held, more, "it is for other names"},
		"it is replaced for another use":                 {a, begin, held, client, "it is for another use"},
		"it is replaced when it cannot be read":          {a, begin, broken, server, "it cannot be read: the key is not one block PRIVATE KEY in PEM"},
		"it is replaced when something stands beside it": {a, begin, chain, server, "there is something beside it"},
		"it is replaced when it is from the future":      {a, begin.Add(-2 * time.Hour), held, server, "it does not hold yet"},
	} {
		t.Run(name, func(t *testing.T) {
			got := renew(t, row.authority, row.at, row.data, row.request)
			if got.Renewed != row.want {
				t.Errorf("renewed because %q, want %q", got.Renewed, row.want)
			}
			isKept := row.data != nil && bytes.Equal(got.Data[pki.KeyPrivate], row.data[pki.KeyPrivate])
			if isKept != (row.want == "") {
				t.Errorf("the key is the same: %t", isKept)
			}
			if !bytes.Equal(got.Data[pki.KeyCA], row.authority.Bundle()) {
				t.Error("what is trusted is not the authority's bundle")
			}
		})
	}
}

func TestLeafDoesNotOutliveItsAuthority(t *testing.T) {
	a := newAuthority(t, begin)
	leaf := renew(t, a, begin.Add(pki.AuthorityLife-time.Hour), nil, server)
	if leaf.NotAfter.After(a.NotAfter()) {
		t.Errorf("ends at %s, its authority at %s", leaf.NotAfter, a.NotAfter())
	}
}

// TestClientCertificates shows that each certificate is good for one use: what serves cannot call, and the other way.
func TestClientCertificates(t *testing.T) {
	now := time.Now()
	a := newAuthority(t, now)
	local := pki.Request{Name: "decider", DNSNames: []string{"decider.gatewright.internal"}, Usage: x509.ExtKeyUsageServerAuth}
	caller := pki.Request{Name: "client", Usage: x509.ExtKeyUsageClientAuth}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.Bundle())
	pairOf := func(r pki.Request) tls.Certificate {
		d := renew(t, a, now, nil, r).Data
		pair, err := tls.X509KeyPair(d[pki.KeyCertificate], d[pki.KeyPrivate])
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pairOf(local)}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}
	s.StartTLS()
	defer s.Close()
	for name, row := range map[string]struct {
		certificates []tls.Certificate
		wantOK       bool
	}{
		"the client's certificate": {[]tls.Certificate{pairOf(caller)}, true},
		"a server's certificate":   {[]tls.Certificate{pairOf(local)}, false},
		"no certificate":           {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
				Certificates: row.certificates, RootCAs: roots, ServerName: local.DNSNames[0], MinVersion: tls.VersionTLS13,
			}}}
			defer c.CloseIdleConnections()
			response, err := c.Get(s.URL)
			if err == nil {
				response.Body.Close()
			}
			if (err == nil) != row.wantOK {
				t.Errorf("call: %v, want it to work: %t", err, row.wantOK)
			}
		})
	}
}

func TestParseCertificatesNeedsOne(t *testing.T) {
	if _, err := pki.ParseCertificates([]byte(" \n")); err == nil {
		t.Error("white space was read as certificates")
	}
}
