package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
)

// TokenKey is the key of a Secret that spec.external.tokenSecretRef names.
const TokenKey = "token"

// Token is the bearer token in a Secret, if whoever keeps that Secret has allowed it for the host of the server. Otherwise
// who may write a DeciderModel could have any Secret of this namespace sent to a server of their own.
func Token(s *corev1.Secret, x *v1alpha1.ExternalRuntime) (string, error) {
	host := authority(x.URL)
	switch {
	case host == "":
		return "", fmt.Errorf("spec.external.url: %q has no host", x.URL)
	case s.Labels[names.ExternalTokenLabel] != names.ExternalTokenEnabled:
		return "", fmt.Errorf("spec.external.tokenSecretRef: Secret %s is not released for servers outside: if it holds nothing but the token for %s, label it %s=%s and annotate it %s=%s",
			s.Name, host, names.ExternalTokenLabel, names.ExternalTokenEnabled, names.AllowedHostAnnotation, host)
	case !isHost(s.Annotations[names.AllowedHostAnnotation], x.URL, host):
		return "", fmt.Errorf("spec.external.tokenSecretRef: Secret %s may be sent to host %q only, and spec.external.url names %s: correct the URL, or the annotation %s",
			s.Name, s.Annotations[names.AllowedHostAnnotation], host, names.AllowedHostAnnotation)
	case len(s.Data[TokenKey]) == 0:
		return "", fmt.Errorf("spec.external.tokenSecretRef: Secret %s has no key %s", s.Name, TokenKey)
	}
	return string(s.Data[TokenKey]), nil
}

// TokenFile is the name under which a gate finds the token for a server. It goes by the Secret and by the host that the
// token may be sent to: what was released for one host is not there for a decider at another that names the same Secret.
// Empty: the server has no token.
func TokenFile(x *v1alpha1.ExternalRuntime) string {
	if x.TokenSecretRef == nil {
		return ""
	}
	name := string(x.TokenSecretRef.Name)
	sum := sha256.Sum256([]byte(name + "\n" + authority(x.URL)))
	return strings.TrimRight(name[:min(len(name), maxTokenName)], "-.") + "." + hex.EncodeToString(sum[:16])
}

// maxTokenName leaves room for a dot and the digest in the key of a Secret, which has at most 253 bytes.
const maxTokenName = 200

// isHost says whether an annotation names the host and port that a URL leads to, and nothing else.
func isHost(allowed, target, host string) bool {
	scheme, _, ok := strings.Cut(target, "://")
	if !ok || allowed == "" || strings.ContainsAny(allowed, "/?#@\\ ") {
		return false
	}
	return authority(scheme+"://"+allowed) == host
}

// authority is HOST:PORT of a URL in lower case, with the port of its scheme if it has none. Empty: it has no host.
func authority(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + port
}

// tokenVolume has the token of a Secret and nothing else of it.
func tokenVolume(name, secret string) *corev1ac.VolumeApplyConfiguration {
	v := secretVolume(name, secret)
	v.Secret.WithItems(corev1ac.KeyToPath().WithKey(TokenKey).WithPath(TokenKey))
	return v
}
