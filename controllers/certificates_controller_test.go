package controllers

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/pki"
)

// leafSecrets are those with a certificate of a part.
var leafSecrets = []string{names.GateTLSSecret, names.GateClientSecret, names.DeciderTLSSecret}

func (b *bench) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	var s corev1.Secret
	if err := b.Get(t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: name}, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// certify runs a pass and gives when the next is due.
func certify(t *testing.T, r *CertificateReconciler) time.Duration {
	t.Helper()
	result, err := r.Reconcile(t.Context(), ctrl.Request{})
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

func certificateOf(t *testing.T, s *corev1.Secret) *x509.Certificate {
	t.Helper()
	certs, err := pki.ParseCertificates(s.Data[pki.KeyCertificate])
	if err != nil {
		t.Fatal(err)
	}
	return certs[0]
}

// trusts says whether who trusts one Secret's bundle takes another's certificate at a time.
func trusts(t *testing.T, bundle, of *corev1.Secret, at time.Time) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle.Data[pki.KeyCA])
	_, err := certificateOf(t, of).Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err
}

func TestCertificatesAreMadeOnce(t *testing.T) {
	b := newBench(t)
	r := newCertificateReconciler(b.Client, b.parts)
	if wait := certify(t, r); wait != certificateAge {
		t.Errorf("next pass in %s, want %s", wait, certificateAge)
	}
	authority := b.secret(t, names.AuthoritySecret)
	for _, name := range leafSecrets {
		s := b.secret(t, name)
		if err := trusts(t, authority, s, noon); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.Type != corev1.SecretTypeTLS {
			t.Errorf("%s is of type %s", name, s.Type)
		}
		if _, ok := s.Data[pki.KeyNextPrivate]; ok || bytes.Equal(s.Data[pki.KeyPrivate], authority.Data[pki.KeyPrivate]) {
			t.Errorf("%s holds a key of the authority", name)
		}
	}
	wantNames := []string{
		"gatewright-gate", "gatewright-gate.gatewright-system", "gatewright-gate.gatewright-system.svc", "gatewright-gate.gatewright-system.svc.cluster.local",
	}
	if diff := cmp.Diff(wantNames, certificateOf(t, b.secret(t, names.GateTLSSecret)).DNSNames); diff != "" {
		t.Errorf("names of the gate (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{names.DeciderServerName}, certificateOf(t, b.secret(t, names.DeciderTLSSecret)).DNSNames); diff != "" {
		t.Errorf("names of a decider (-want +got):\n%s", diff)
	}
	count := b.count
	certify(t, r)
	if b.count != count {
		t.Errorf("another pass wrote %d times", b.count-count)
	}
}

// TestCertificatesOverTheYears lets five years pass in steps of two days, which is later than the reconciler asks for. At every step
// each part trusts each other, also those that have read their Secret up to five days ago, and keys change in time.
func TestCertificatesOverTheYears(t *testing.T) {
	const years, behind = 5, 5 * 24 * time.Hour
	b := newBench(t)
	r := newCertificateReconciler(b.Client, b.parts)
	type view struct {
		at      time.Time
		secrets map[string]*corev1.Secret
	}
	var views []view
	keys := map[string]map[string]bool{}
	for end := noon.AddDate(years, 0, 0); b.clock.Now().Before(end); {
		wait := certify(t, r)
		now := view{b.clock.Now(), map[string]*corev1.Secret{}}
		for _, name := range append([]string{names.AuthoritySecret}, leafSecrets...) {
			now.secrets[name] = b.secret(t, name)
			if keys[name] == nil {
				keys[name] = map[string]bool{}
			}
			keys[name][string(now.secrets[name].Data[pki.KeyPrivate])] = true
		}
		if len(views) == 0 || now.at.Sub(views[len(views)-1].at) >= 24*time.Hour {
			views = append(views, now)
		}
		views = slices.DeleteFunc(views, func(v view) bool { return now.at.Sub(v.at) > behind })
		old := views[0]
		for _, name := range leafSecrets {
			for _, check := range []error{
				trusts(t, now.secrets[names.GateTLSSecret], old.secrets[name], now.at), trusts(t, old.secrets[names.GateTLSSecret], now.secrets[name], now.at),
			} {
				if check != nil {
					t.Fatalf("on %s, %s: %v", now.at, name, check)
				}
			}
		}
		b.clock.Step(max(wait, 48*time.Hour)) // a manager that looks less often than it would is late everywhere
	}
	if n := len(keys[names.AuthoritySecret]); n != 3 {
		t.Errorf("%d authorities in %d years, want 3", n, years)
	}
	if n := len(keys[names.GateTLSSecret]); n < years*365/63 || n > years*365/60+4 {
		t.Errorf("%d keys of the gate in %d years, want one about every 60 days", n, years)
	}
}

func TestSecretsThatAreDamaged(t *testing.T) {
	for name, row := range map[string]struct {
		of         string
		change     func(*corev1.Secret)
		wantEvents []string
		wantKept   bool // the Secret is as it was after the change
	}{
		"an authority whose key is damaged is kept": {
			names.AuthoritySecret, func(s *corev1.Secret) { s.Data[pki.KeyPrivate] = []byte("oops") },
			[]string{"Warning Unreadable Keep on gatewright-authority"}, true,
		},
		"an empty authority is kept": {
			names.AuthoritySecret, func(s *corev1.Secret) { s.Data = nil }, []string{"Warning Unreadable Keep on gatewright-authority"}, true,
		},
		"a certificate that is damaged is made anew": {
			names.GateTLSSecret, func(s *corev1.Secret) { s.Data[pki.KeyCertificate] = []byte("oops") }, []string{"Normal Issued Issue on gatewright-gate-tls"}, false,
		},
		"a bundle that somebody added to is as it was": {
			names.DeciderTLSSecret, func(s *corev1.Secret) { s.Data[pki.KeyCA] = append(s.Data[pki.KeyCA], s.Data[pki.KeyCA]...) },
			[]string{"Normal Issued Issue on gatewright-decider-tls"}, false,
		},
		"a certificate that somebody else provides is kept": {
			names.GateTLSSecret, func(s *corev1.Secret) {
				s.Labels, s.Data = nil, map[string][]byte{pki.KeyCertificate: []byte("theirs")}
			},
			[]string{"Normal NotManaged Keep on gatewright-gate-tls"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			r := newCertificateReconciler(b.Client, b.parts)
			certify(t, r)
			s := b.secret(t, row.of)
			row.change(s)
			if err := b.Update(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			b.heard.take()
			changed := b.secret(t, row.of)
			certify(t, r)
			if diff := cmp.Diff(row.wantEvents, b.heard.take()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if isKept := cmp.Equal(changed.Data, b.secret(t, row.of).Data); isKept != row.wantKept {
				t.Errorf("kept: %t, want %t", isKept, row.wantKept)
			}
			if row.wantKept {
				return
			}
			if err := trusts(t, b.secret(t, names.AuthoritySecret), b.secret(t, row.of), noon); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCertificatesAfterAFailureBetweenWrites fails each write in turn, in the pass that makes everything and in the one
// that changes the authority. The next pass ends with parts that trust each other.
func TestCertificatesAfterAFailureBetweenWrites(t *testing.T) {
	due := pki.AuthorityLife / 3 * 2
	for _, after := range []time.Duration{0, due, due + pki.Lead} {
		for n := 1; n <= 4; n++ {
			t.Run(fmt.Sprintf("write %d, %s after the beginning", n, after), func(t *testing.T) {
				b := newBench(t)
				r := newCertificateReconciler(b.Client, b.parts)
				for _, at := range []time.Duration{0, due} {
					if at < after {
						b.clock.SetTime(noon.Add(at))
						certify(t, r)
					}
				}
				b.clock.SetTime(noon.Add(after))
				failed := false
				b.count, b.fail = 0, func(i int) error {
					if i == n {
						failed = true
						return errors.New("not now")
					}
					return nil
				}
				if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err == nil || !failed {
					t.Fatalf("error %v, a write failed: %t", err, failed)
				}
				b.fail = nil
				certify(t, r)
				for _, name := range leafSecrets {
					if err := trusts(t, b.secret(t, names.GateClientSecret), b.secret(t, name), b.clock.Now()); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
	}
}

func TestKeysOfGates(t *testing.T) {
	for name, row := range map[string]struct {
		change     func(*corev1.Secret)
		wantEvents []string
		wantBroken float64
	}{
		"they are good": {func(*corev1.Secret) {}, nil, 0},
		"one is damaged": {
			func(s *corev1.Secret) { s.Data[names.KeySeal] = []byte("{}") }, []string{"Warning Unreadable Keep on gatewright-gate-keys"}, 1,
		},
		"one is missing": {
			func(s *corev1.Secret) { delete(s.Data, names.KeyAudit) }, []string{"Warning Unreadable Keep on gatewright-gate-keys"}, 1,
		},
		"one is for another purpose, in another form": {
			func(s *corev1.Secret) { s.Data[names.KeyAudit] = s.Data[names.KeyPermit] }, []string{"Warning Unreadable Keep on gatewright-gate-keys"}, 1,
		},
		"all are gone": {func(s *corev1.Secret) { s.Data = nil }, []string{"Warning Unreadable Keep on gatewright-gate-keys"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			r := newKeyReconciler(b.Client, b.parts)
			if err := b.reconcile(t, r, client.ObjectKey{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"Normal Issued Make on gatewright-gate-keys"}, b.heard.take()); diff != "" {
				t.Errorf("events of the first pass (-want +got):\n%s", diff)
			}
			s := b.secret(t, names.GateKeysSecret)
			row.change(s)
			if err := b.Update(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			before, count := b.secret(t, names.GateKeysSecret), b.count
			if err := b.reconcile(t, r, client.ObjectKey{}); err != nil {
				t.Fatal(err)
			}
			if b.count != count || !cmp.Equal(before.Data, b.secret(t, names.GateKeysSecret).Data) {
				t.Error("the keys were written over")
			}
			if diff := cmp.Diff(row.wantEvents, b.heard.take()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if got := testutil.ToFloat64(r.broken); got != row.wantBroken {
				t.Errorf("%v keys count as unreadable, want %v", got, row.wantBroken)
			}
		})
	}
}

// bundleBench is a bench with certificates, a namespace with agents and one without.
func bundleBench(t *testing.T, objects ...client.Object) (*bench, *BundleReconciler) {
	t.Helper()
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.Namespace, UID: "own"}}
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "shop", Labels: map[string]string{names.InjectLabel: names.InjectEnabled}}}
	plain := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "plain", UID: "plain"}}
	b := newBench(t, append([]client.Object{own, shop, plain}, objects...)...)
	certify(t, newCertificateReconciler(b.Client, b.parts))
	b.heard.take()
	return b, &BundleReconciler{client: b.Client, namespace: names.Namespace, events: b.events}
}

func (b *bench) bundleIn(t *testing.T, namespace string) *corev1.ConfigMap {
	t.Helper()
	var m corev1.ConfigMap
	err := b.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: names.AuthorityConfigMap}, &m)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return &m
}

func TestBundlesAreWhereAgentsAre(t *testing.T) {
	b, r := bundleBench(t)
	for _, ns := range []string{"shop", "plain", "not-there"} {
		if err := b.reconcile(t, r, client.ObjectKey{Name: ns}); err != nil {
			t.Fatal(err)
		}
	}
	if b.bundleIn(t, "plain") != nil {
		t.Error("a namespace without agents has one")
	}
	m := b.bundleIn(t, "shop")
	if m == nil || m.Data[pki.KeyCA] != string(b.secret(t, names.GateTLSSecret).Data[pki.KeyCA]) {
		t.Fatalf("the namespace with agents has %v", m)
	}
	if len(m.OwnerReferences) != 1 || m.OwnerReferences[0].UID != "own" || m.OwnerReferences[0].Kind != "Namespace" {
		t.Errorf("it is owned by %v, want Gatewright's namespace", m.OwnerReferences)
	}
	count := b.count
	if err := b.reconcile(t, r, client.ObjectKey{Name: "shop"}); err != nil || b.count != count {
		t.Errorf("another pass: error %v, %d writes", err, b.count-count)
	}
	requests := r.injected(t.Context(), nil)
	if diff := cmp.Diff([]reconcile.Request{{NamespacedName: client.ObjectKey{Name: "shop"}}}, requests); diff != "" {
		t.Errorf("a new certificate concerns (-want +got):\n%s", diff)
	}

	m.Data[pki.KeyCA] = "trust me"
	if err := b.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := b.reconcile(t, r, client.ObjectKey{Name: "shop"}); err != nil {
		t.Fatal(err)
	}
	if got := b.bundleIn(t, "shop").Data[pki.KeyCA]; got == "trust me" {
		t.Error("what somebody wrote into it stays")
	}

	var shop corev1.Namespace
	if err := b.Get(t.Context(), client.ObjectKey{Name: "shop"}, &shop); err != nil {
		t.Fatal(err)
	}
	shop.Labels = nil
	if err := b.Update(t.Context(), &shop); err != nil {
		t.Fatal(err)
	}
	if err := b.reconcile(t, r, client.ObjectKey{Name: "shop"}); err != nil {
		t.Fatal(err)
	}
	if b.bundleIn(t, "shop") != nil {
		t.Error("it is still there after the label went")
	}
}

func TestBundleOfSomebodyElseIsKept(t *testing.T) {
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: names.AuthorityConfigMap}, Data: map[string]string{"a": "b"}}
	b, r := bundleBench(t, theirs)
	if err := b.reconcile(t, r, client.ObjectKey{Name: "shop"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(theirs.Data, b.bundleIn(t, "shop").Data); diff != "" {
		t.Errorf("it changed:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Warning NotManaged Keep on gatewright-ca"}, b.heard.take()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestBundleThatCannotBeReadIsNotHandedOut(t *testing.T) {
	b, r := bundleBench(t)
	s := b.secret(t, names.GateTLSSecret)
	s.Data[pki.KeyCA] = []byte("trust me")
	if err := b.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := b.reconcile(t, r, client.ObjectKey{Name: "shop"}); err != nil {
		t.Fatal(err)
	}
	if m := b.bundleIn(t, "shop"); m != nil {
		t.Errorf("handed out %v", m.Data)
	}
}
