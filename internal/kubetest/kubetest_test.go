package kubetest_test

import (
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"gatewright.dev/gatewright/internal/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

func TestAUserIsWhoItSaysAndMayDoNothing(t *testing.T) {
	s := kubetest.Start(t)
	namespace := s.Namespace(t)
	for name, test := range map[string]struct {
		config *rest.Config
		user   string
		group  string
	}{
		"a user with a certificate":      {s.User(t, "kim", "approvers"), "kim", "approvers"},
		"a service account with a token": {s.ServiceAccount(t, namespace, "agent"), "system:serviceaccount:" + namespace + ":agent", "system:serviceaccounts"},
	} {
		t.Run(name, func(t *testing.T) {
			client := kubernetes.NewForConfigOrDie(test.config)
			review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := review.Status.UserInfo; got.Username != test.user || !slices.Contains(got.Groups, test.group) {
				t.Errorf("is %+v", got)
			}
			_, err = client.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
			if !apierrors.IsForbidden(err) {
				t.Errorf("listing secrets without any role: %v", err)
			}
		})
	}
}

func TestATokenHasItsAudience(t *testing.T) {
	s := kubetest.Start(t)
	namespace := s.Namespace(t)
	token := s.Token(t, namespace, "agent", "gatewright")
	for audience, want := range map[string]bool{"gatewright": true, "vault": false} {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{audience}}}
		got, err := s.Client(t).AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil || got.Status.Authenticated != want {
			t.Errorf("authenticated for %s: %v (%v), want %v", audience, got.Status.Authenticated, err, want)
		}
	}
}

func TestManifestsAreAppliedAndKubectlSeesThem(t *testing.T) {
	s := kubetest.Start(t)
	s.Apply(t, "config/samples/deciders.yaml")
	path := s.KubeconfigOf(t, s.Config())
	out, err := s.Kubectl(t, path, "get", "decidermodels")
	if err != nil || !strings.Contains(out, "NAME") {
		t.Errorf("kubectl get decidermodels: %v\n%s", err, out)
	}
	out, err = s.Kubectl(t, s.Kubeconfig(t, "nobody-in-particular"), "get", "decidermodels")
	if err == nil || !strings.Contains(out, "Forbidden") {
		t.Errorf("kubectl by a user without any role: %v\n%s", err, out)
	}
}

func TestOwnServerCanBeStopped(t *testing.T) {
	s := kubetest.Own(t)
	client := s.Client(t)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	_, err := client.CoreV1().Namespaces().Get(t.Context(), corev1.NamespaceDefault, metav1.GetOptions{})
	if err == nil {
		t.Error("it still answers")
	}
}
