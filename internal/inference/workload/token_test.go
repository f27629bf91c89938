package workload

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
)

func TestATokenGoesOnlyToTheHostThatItsSecretNames(t *testing.T) {
	released := map[string]string{names.ExternalTokenLabel: names.ExternalTokenEnabled}
	const noLabel, otherHost, noKey = "is not released", "may be sent to host", "has no key token"
	tests := map[string]struct {
		labels map[string]string
		host   string
		url    string
		token  string
		want   string // in the error
	}{
		"the host of the URL":                        {released, "a.example.com", "https://a.example.com/v1", "t", ""},
		"in other letters":                           {released, "A.example.com", "https://a.EXAMPLE.com", "t", ""},
		"with the port that https has":               {released, "a.example.com:443", "https://a.example.com", "t", ""},
		"the port of the URL":                        {released, "a.example.com:8443", "https://a.example.com:8443", "t", ""},
		"an address of IPv6":                         {released, "[::1]:8080", "http://[::1]:8080", "t", ""},
		"plain http on loopback":                     {released, "127.0.0.1", "http://127.0.0.1/", "t", ""},
		"no label":                                   {nil, "a.example.com", "https://a.example.com", "t", noLabel},
		"a label that says no":                       {map[string]string{names.ExternalTokenLabel: "false"}, "a.example.com", "https://a.example.com", "t", noLabel},
		"no host":                                    {released, "", "https://a.example.com", "t", otherHost},
		"another host":                               {released, "a.example.com", "https://b.example.com", "t", otherHost},
		"a host that ends like it":                   {released, "example.com", "https://a.example.com", "t", otherHost},
		"a host that begins like it":                 {released, "a.example.com", "https://a.example.com.evil.net", "t", otherHost},
		"another port":                               {released, "a.example.com", "https://a.example.com:8443", "t", otherHost},
		"everything by a star":                       {released, "*", "https://a.example.com", "t", otherHost},
		"an annotation with a path":                  {released, "a.example.com/v1", "https://a.example.com/v1", "t", otherHost},
		"an annotation with a user":                  {released, "x@a.example.com", "https://a.example.com", "t", otherHost},
		"a URL without a host":                       {released, "", "https:///v1", "t", "has no host"},
		"a URL that is none":                         {released, "", "https://a b", "t", "has no host"},
		"a Secret without the key":                   {released, "a.example.com", "https://a.example.com", "", noKey},
		"a port that is none beside an empty scheme": {released, "a.example.com", "a.example.com", "t", "has no host"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: test.labels, Annotations: map[string]string{names.AllowedHostAnnotation: test.host}},
				Data:       map[string][]byte{TokenKey: []byte(test.token), "password": []byte("other")},
			}
			got, err := Token(s, &v1alpha1.ExternalRuntime{URL: test.url})
			switch {
			case test.want == "" && (err != nil || got != test.token):
				t.Errorf("%q, %v", got, err)
			case test.want != "" && (err == nil || got != "" || !strings.Contains(err.Error(), test.want)):
				t.Errorf("%q, %v, want an error with %q", got, err, test.want)
			}
		})
	}
}

func TestAPriorityOfTheClusterItselfReachesNoPod(t *testing.T) {
	for name, want := range map[string]string{"system-node-critical": "", "system-cluster-critical": "", "deciders": "deciders", "systematic": "systematic"} {
		t.Run(name, func(t *testing.T) {
			r := revision(t, model(func(s *v1alpha1.DeciderModelSpec) { s.Pod = &v1alpha1.DeciderPod{PriorityClassName: name} }))
			got := ""
			if p := Deployment(install, r).Spec.Template.Spec.PriorityClassName; p != nil {
				got = *p
			}
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestTheFileOfATokenGoesBySecretAndHost(t *testing.T) {
	file := func(secret, url string) string {
		return TokenFile(&v1alpha1.ExternalRuntime{URL: url, TokenSecretRef: &v1alpha1.SecretReference{Name: v1alpha1.ObjectName(secret)}})
	}
	one := file("one", "https://a.example.com/v1")
	for _, url := range []string{"https://A.example.com:443", "https://a.example.com/v2"} {
		if got := file("one", url); got != one {
			t.Errorf("%s has %s, want %s", url, got, one)
		}
	}
	long := strings.Repeat("n", 253)
	seen := map[string]bool{one: true}
	for _, other := range []string{
		file("two", "https://a.example.com"), file("one", "https://b.example.com"), file("one", "https://a.example.com:8443"), file("one", "http://a.example.com"),
		file(long, "https://a.example.com"), file(long[1:], "https://a.example.com"),
	} {
		if seen[other] {
			t.Errorf("%s stands for two", other)
		}
		seen[other] = true
		if problems := validation.IsConfigMapKey(other); len(problems) > 0 {
			t.Errorf("%s is no key of a Secret: %s", other, problems)
		}
	}
	if got := TokenFile(&v1alpha1.ExternalRuntime{URL: "https://a.example.com"}); got != "" {
		t.Errorf("a server without a token has %s", got)
	}
}
