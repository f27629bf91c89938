package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"gatewright.dev/gatewright/internal/names"
)

const (
	certFile = "tls.crt"
	keyFile  = "tls.key"
)

// How often the Secret is looked at: each second until there is a certificate, and then often enough that one of another
// authority, which the API server trusts alone from when it is written, is shown before anybody notices.
const (
	firstLook = time.Second
	laterLook = 5 * time.Second
)

// certificateFiles writes the certificate of a Secret to files as soon as it is there. A mounted Secret would do the same
// a minute later, which is a minute in which nobody can write a policy.
type certificateFiles struct {
	reader client.Reader
	writer client.Client
	key    types.NamespacedName
	dir    string
	clock  clock.WithTicker
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica answers the API server.
func (*certificateFiles) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (f *certificateFiles) Start(ctx context.Context) error {
	wait := firstLook
	for {
		isThere, err := f.look(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			log.FromContext(ctx).Error(err, "certificate of the webhooks not taken over")
		case isThere:
			wait = laterLook
		}
		timer := f.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// look takes over what the Secret holds, and says whether it holds a certificate.
func (f *certificateFiles) look(ctx context.Context) (bool, error) {
	var secret corev1.Secret
	if err := f.reader.Get(ctx, f.key, &secret); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	cert, key := secret.Data[certFile], secret.Data[keyFile]
	if len(cert) == 0 || len(key) == 0 {
		return false, nil
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		return false, fmt.Errorf("reading %s: %w", f.key, err)
	}
	return true, writePair(f.dir, cert, key)
}

// ensureSecret makes the Secret that the rotator fills.
func (f *certificateFiles) ensureSecret(ctx context.Context) error {
	empty := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.key.Namespace, Name: f.key.Name,
			Labels: map[string]string{names.NameLabel: names.Name, names.ComponentLabel: names.ComponentManager},
		},
		Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{certFile: {}, keyFile: {}},
	}
	if err := f.writer.Create(ctx, empty); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the Secret of the webhooks' certificate: %w", err)
	}
	return nil
}

// writePair writes both files. The certificate is last: who waits for it finds the key there. The server reads both and
// takes a pair only when they fit, so that the moment between them does no harm.
func writePair(dir string, cert, key []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of the certificate: %w", err)
	}
	for _, file := range []struct {
		name string
		data []byte
	}{{keyFile, key}, {certFile, cert}} {
		if err := writeFile(filepath.Join(dir, file.name), file.data); err != nil {
			return fmt.Errorf("writing %s: %w", file.name, err)
		}
	}
	return nil
}

// writeFile replaces a file whole. Where the folder is a mounted Secret the kubelet writes, and this only looks.
func writeFile(path string, data []byte) error {
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
		return nil
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if errors.Is(err, syscall.EROFS) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		if removeErr := os.Remove(tmp.Name()); !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}
	return err
}
