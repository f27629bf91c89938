package kubetest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// User gives the configuration of a user with a client certificate. The API server adds the group
// system:authenticated; what the user may do is up to RBAC.
func (s *Server) User(t testing.TB, name string, groups ...string) *rest.Config {
	t.Helper()
	user, err := s.env.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: s.config.QPS, Burst: s.config.Burst})
	if err != nil {
		t.Fatalf("adding user %s: %v", name, err)
	}
	return user.Config()
}

// ServiceAccount makes a service account, if it is missing, and gives the configuration of who holds a token of it.
func (s *Server) ServiceAccount(t testing.TB, namespace, name string) *rest.Config {
	t.Helper()
	c := &rest.Config{
		Host: s.config.Host, QPS: s.config.QPS, Burst: s.config.Burst,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.config.CAData},
		BearerToken:     s.Token(t, namespace, name),
	}
	return c
}

// Token makes a service account, if it is missing, and gives a token of it for audiences; for the API server by default.
func (s *Server) Token(t testing.TB, namespace, name string, audiences ...string) string {
	t.Helper()
	ctx, accounts := t.Context(), s.Client(t).CoreV1().ServiceAccounts(namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("creating service account: %v", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	token, err := accounts.CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("requesting token: %v", err)
	}
	return token.Status.Token
}

// Client gives a client of the user whom nothing is forbidden.
func (s *Server) Client(t testing.TB) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatalf("making client: %v", err)
	}
	return client
}

// Namespace makes a namespace that no other test has.
func (s *Server) Namespace(t testing.TB) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	made, err := s.Client(t).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating namespace: %v", err)
	}
	return made.Name
}

// EnsureNamespace makes a namespace of a fixed name, which stays for the other tests of the package.
func (s *Server) EnsureNamespace(t testing.TB, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := s.Client(t).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("creating namespace: %v", err)
	}
}

// Kubeconfig writes a kubeconfig file of a user with a client certificate, mode 0600, and gives its path.
func (s *Server) Kubeconfig(t testing.TB, name string, groups ...string) string {
	t.Helper()
	return s.KubeconfigOf(t, s.User(t, name, groups...))
}

// KubeconfigOf writes a kubeconfig file for a configuration of this server, and gives its path.
func (s *Server) KubeconfigOf(t testing.TB, c *rest.Config) string {
	t.Helper()
	file := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"test": {Server: c.Host, CertificateAuthorityData: c.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"test": {
			ClientCertificateData: c.CertData, ClientKeyData: c.KeyData, Token: c.BearerToken,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		CurrentContext: "test",
	}
	data, err := clientcmd.Write(file)
	if err != nil {
		t.Fatalf("encoding kubeconfig: %v", err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatalf("writing kubeconfig: %v", err)
	}
	return path
}

// detached is a context for what has to be done although its test is over.
func detached(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }
