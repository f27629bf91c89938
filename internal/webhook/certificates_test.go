package webhook

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"gatewright.dev/gatewright/internal/names"
)

func coreScheme(t *testing.T) *apiruntime.Scheme {
	t.Helper()
	s := apiruntime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func files(t *testing.T, objects ...client.Object) *certificateFiles {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(coreScheme(t)).WithObjects(objects...).Build()
	return &certificateFiles{reader: c, writer: c, key: secretKey(names.Namespace), dir: filepath.Join(t.TempDir(), "certificate")}
}

func tlsSecret(cert, key string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: names.WebhookTLSSecret},
		Data:       map[string][]byte{certFile: []byte(cert), keyFile: []byte(key)},
	}
}

func TestCertificateIsTakenOver(t *testing.T) {
	cert, key := inPEM(t)
	other, _ := inPEM(t)
	tests := map[string]struct {
		objects   []client.Object
		wantThere bool
		wantErr   bool
	}{
		"without the Secret there is nothing yet":     {},
		"an empty Secret is nothing yet":              {objects: []client.Object{tlsSecret("", "")}},
		"a pair is written":                           {objects: []client.Object{tlsSecret(cert, key)}, wantThere: true},
		"a key of another certificate is not written": {objects: []client.Object{tlsSecret(other, key)}, wantErr: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := files(t, tt.objects...)
			isThere, err := f.look(t.Context())
			if isThere != tt.wantThere || (err != nil) != tt.wantErr {
				t.Fatalf("%v, %v", isThere, err)
			}
			have, err := os.ReadFile(filepath.Join(f.dir, certFile))
			if tt.wantThere && string(have) != cert || !tt.wantThere && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the file holds %q, %v", have, err)
			}
		})
	}
}

func TestARenewedCertificateReplacesTheOld(t *testing.T) {
	cert, key := inPEM(t)
	f := files(t, tlsSecret(cert, key))
	if _, err := f.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(filepath.Join(f.dir, certFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(filepath.Join(f.dir, certFile)); err != nil || !os.SameFile(before, after) {
		t.Errorf("a file that is as it should be was written again: %v", err)
	}
	newCert, newKey := inPEM(t)
	if err := f.writer.Update(t.Context(), tlsSecret(newCert, newKey)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(filepath.Join(f.dir, certFile))
	if err != nil || string(have) != newCert {
		t.Errorf("the file holds %q, %v", have, err)
	}
	if left, err := filepath.Glob(filepath.Join(f.dir, ".new-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTheSecretIsMadeOnce(t *testing.T) {
	cert, key := inPEM(t)
	for name, objects := range map[string][]client.Object{"it is missing": nil, "it is there": {tlsSecret(cert, key)}} {
		t.Run(name, func(t *testing.T) {
			f := files(t, objects...)
			for range 2 {
				if err := f.ensureSecret(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			var got corev1.Secret
			if err := f.reader.Get(t.Context(), f.key, &got); err != nil {
				t.Fatal(err)
			}
			if objects != nil && string(got.Data[certFile]) != cert {
				t.Error("a Secret that was there was changed")
			}
		})
	}
}

func TestWaitForFiles(t *testing.T) {
	dir := t.TempDir()
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	found, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- waitForFiles(t.Context(), clock, dir, found) }()
	for !clock.HasWaiters() {
		runtime.Gosched()
	}
	select {
	case <-found:
		t.Fatal("it found files in an empty folder")
	default:
	}
	cert, key := inPEM(t)
	if err := writePair(dir, []byte(cert), []byte(key)); err != nil {
		t.Fatal(err)
	}
	clock.Step(time.Second)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	<-found
}

func TestOptions(t *testing.T) {
	good := Options{Namespace: names.Namespace, CertDir: "/tmp/x"}
	tests := map[string]struct {
		change func(*Options)
		want   string
	}{
		"good options":                   {func(*Options) {}, ""},
		"cert-manager":                   {func(o *Options) { o.CertSource = CertSourceCertManager }, ""},
		"no namespace":                   {func(o *Options) { o.Namespace = "" }, "namespace"},
		"no folder":                      {func(o *Options) { o.CertDir = "" }, "folder"},
		"a source that is none":          {func(o *Options) { o.CertSource = "vault" }, `"vault" is not known: use rotator or cert-manager`},
		"a port that is none":            {func(o *Options) { o.Port = 70000 }, "port 70000"},
		"a port below what there can be": {func(o *Options) { o.Port = -1 }, "port -1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := good
			tt.change(&o)
			err := o.Validate()
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want %q", err, tt.want)
			}
		})
	}
}
