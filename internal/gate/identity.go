package gate

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"gatewright.dev/gatewright/internal/policy"
)

// Identifier says which service account sent a request.
type Identifier interface {
	Identify(ctx context.Context, r *http.Request) (policy.Caller, error)
}

// What an Identifier returns. Any other error is taken for the first.
var (
	// ErrUnknownCaller: the caller is not known.
	ErrUnknownCaller = errors.New("unknown caller")
	// ErrTooManyUnknown: the caller is not looked up, because too many unknown ones came from where it is.
	ErrTooManyUnknown = errors.New("too many unknown callers")
	// ErrIdentityUnavailable: whoever knows callers does not answer.
	ErrIdentityUnavailable = errors.New("callers cannot be looked up")
)

// Anyone takes every request for one service account. Only for a gate that listens on loopback.
type Anyone struct{ Caller policy.Caller }

// Identify implements Identifier.
func (a Anyone) Identify(context.Context, *http.Request) (policy.Caller, error) { return a.Caller, nil }

// ServiceAccount makes a caller of names that an API server would take: one with a slash in it could be read as another.
func ServiceAccount(namespace, name string) (policy.Caller, error) {
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return policy.Caller{}, fmt.Errorf("%s/%s names no service account: want lower-case letters, digits and - in both", namespace, name)
	}
	return policy.Caller{Namespace: namespace, ServiceAccount: name}, nil
}

// UserName makes a caller of the user name that Kubernetes gives a service account, system:serviceaccount:NAMESPACE:NAME.
func UserName(s string) (policy.Caller, error) {
	account, ok := strings.CutPrefix(s, serviceAccountPrefix)
	if !ok {
		return policy.Caller{}, errors.New("the user is no service account")
	}
	namespace, name, _ := strings.Cut(account, ":")
	return ServiceAccount(namespace, name)
}

// Tokens knows callers by bearer tokens. It holds digests, so that no comparison leaks a token by its time.
type Tokens map[[sha256.Size]byte]policy.Caller

// serviceAccountPrefix is how Kubernetes writes the user name of a service account.
const serviceAccountPrefix = "system:serviceaccount:"

// minTokenLength keeps guessable tokens out.
const minTokenLength = 16

// LoadTokens reads a file in the format of kube-apiserver's --token-auth-file: token,user,uid[,groups], where user is
// system:serviceaccount:NAMESPACE:NAME. Lines that begin with # are skipped. The file must not be readable by others.
func LoadTokens(path string) (Tokens, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by others (mode %04o): chmod 600 it", path, info.Mode().Perm())
	}
	tokens, err := readTokens(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return tokens, nil
}

func readTokens(r io.Reader) (Tokens, error) {
	lines := csv.NewReader(bufio.NewReader(r))
	lines.Comment = '#'
	lines.FieldsPerRecord = -1
	lines.TrimLeadingSpace = true
	tokens := Tokens{}
	for {
		record, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := lines.FieldPos(0)
		if err := tokens.add(record); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
	if len(tokens) == 0 {
		return nil, errors.New("holds no token: add a line token,system:serviceaccount:NAMESPACE:NAME,uid")
	}
	return tokens, nil
}

func (t Tokens) add(record []string) error {
	if len(record) < 3 {
		return errors.New("want token,user,uid")
	}
	if len(record[0]) < minTokenLength {
		return fmt.Errorf("a token has at least %d characters", minTokenLength)
	}
	caller, err := UserName(record[1])
	if err != nil {
		return fmt.Errorf("user %q is no service account: want %sNAMESPACE:NAME", record[1], serviceAccountPrefix)
	}
	key := sha256.Sum256([]byte(record[0]))
	if _, twice := t[key]; twice {
		return errors.New("the same token stands twice")
	}
	t[key] = caller
	return nil
}

// Identify implements Identifier.
func (t Tokens) Identify(_ context.Context, r *http.Request) (policy.Caller, error) {
	token, ok := Bearer(r)
	if !ok {
		return policy.Caller{}, ErrUnknownCaller
	}
	caller, ok := t[sha256.Sum256([]byte(token))]
	if !ok {
		return policy.Caller{}, ErrUnknownCaller
	}
	return caller, nil
}

// Bearer returns the token of a request that has exactly one.
func Bearer(r *http.Request) (string, bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsAny(token, " \t") {
		return "", false
	}
	return token, true
}
