package serve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approverapi"
)

// approvers are those who may decide, each known by a secret of their own. No token of a caller is among them.
type approvers []localApprover

type localApprover struct {
	name   string
	secret [sha256.Size]byte // digest of it
}

// soleApprover is the name of whoever holds the secret of a file that names nobody.
const soleApprover = "approver"

// secretBytes is the length of a secret that is made, and the shortest in characters that is taken.
const secretBytes = 32

// hashedSecret marks a secret of which the file holds the digest only.
const hashedSecret = "sha256:"

// approverName is what an approver may be called: it stands in records.
var approverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// loadApprovers reads the file of secrets, or makes one with a secret that only the user of this process can read. A line
// is a secret, or NAME:SECRET, or NAME:sha256:DIGEST with the digest of the secret in hexadecimal digits; empty lines and
// those that begin with # say nothing.
func loadApprovers(path string) (approvers, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		data, err = makeSecret(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the approver's secret: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the approver's secret: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the approver's secret in %s can be read by others (mode %04o): chmod 600 it, and make a new one", path, info.Mode().Perm())
	}
	var all approvers
	for i, text := range strings.Split(string(data), "\n") {
		if text = strings.TrimSpace(text); text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		a, err := parseApprover(text)
		if err == nil {
			err = all.admit(a)
		}
		if err != nil {
			return nil, fmt.Errorf("the approvers' secrets in %s: line %d: %w", path, i+1, err)
		}
		all = append(all, a)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the approver's secret in %s is shorter than %d characters: remove the file, and a new one is made", path, secretBytes)
	}
	return all, nil
}

func parseApprover(text string) (localApprover, error) {
	name, secret, isNamed := strings.Cut(text, ":")
	if !isNamed {
		name, secret = soleApprover, text
	}
	if !approverName.MatchString(name) {
		return localApprover{}, errors.New("an approver's name has letters, digits and . _ @ -, at most 64")
	}
	if digest, ok := strings.CutPrefix(secret, hashedSecret); ok && isNamed {
		sum, err := hex.DecodeString(digest)
		if err != nil || len(sum) != sha256.Size {
			return localApprover{}, errors.New("what follows sha256: is no SHA-256 in hexadecimal digits")
		}
		return localApprover{name, [sha256.Size]byte(sum)}, nil
	}
	if len(secret) < secretBytes {
		return localApprover{}, fmt.Errorf("a secret is shorter than %d characters: make a longer one, or remove the file, and one is made", secretBytes)
	}
	return localApprover{name, sha256.Sum256([]byte(secret))}, nil
}

// admit refuses two of one name, since records could not tell them apart, and two of one secret.
func (a approvers) admit(o localApprover) error {
	for i := range a {
		if a[i].name == o.name {
			return fmt.Errorf("%s is there twice", o.name)
		}
		if a[i].secret == o.secret {
			return fmt.Errorf("%s has the secret of %s", o.name, a[i].name)
		}
	}
	return nil
}

// find names who holds a secret. It takes the same time for every secret.
func (a approvers) find(secret string) (name string, ok bool) {
	sum := sha256.Sum256([]byte(secret))
	for i := range a {
		if subtle.ConstantTimeCompare(sum[:], a[i].secret[:]) == 1 {
			name, ok = a[i].name, true
		}
	}
	return name, ok
}

func makeSecret(path string) ([]byte, error) {
	random := make([]byte, secretBytes)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	secret := []byte(hex.EncodeToString(random) + "\n")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(secret)
	return secret, errors.Join(err, f.Close())
}

type approverKey struct{}

// approverOf says who has sent a request that guard let in.
func approverOf(ctx context.Context) approval.Approver {
	who, ok := ctx.Value(approverKey{}).(approval.Approver)
	if !ok {
		return approval.Approver{Type: approval.LocalSecret, Name: soleApprover}
	}
	return who
}

// holder names who holds a secret, or a token of the issuer that this gate knows.
func (d *desk) holder(ctx context.Context, secret string) (approval.Approver, bool) {
	if name, ok := d.approvers.find(secret); ok {
		return approval.Approver{Type: approval.LocalSecret, Name: name}, true
	}
	return d.tokens.approver(ctx, secret)
}

// guard lets in who holds a secret or a token. No browser sends it by itself, so a page of another site cannot decide.
func (d *desk) guard(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		secret, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		who, known := d.holder(r.Context(), secret)
		if !ok || !known {
			w.Header().Set("WWW-Authenticate", "Bearer")
			approverapi.Refuse(w, http.StatusUnauthorized, "Unauthorized", "send the approver's secret as a bearer token; a caller's token does not do")
			return
		}
		h(w, r.WithContext(context.WithValue(r.Context(), approverKey{}, who)))
	}
}
