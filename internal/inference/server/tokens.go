package server

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// Tokens knows the bearer tokens that may ask, from a file that is read anew when it changes. While it cannot be read, no
// token is known: a token that was taken out must not live on because of a slip.
type Tokens struct{ list *reloaded[[]token] }

type token struct {
	name string
	hash [sha256.Size]byte
}

// minToken is the shortest token taken: 128 bits in base64.
const minToken = 22

// OpenTokens reads a file with one token a line, or a name and a token, such as "gate 8f0c...". Lines that begin with #
// and empty ones say nothing. Callers with different names get equal shares of the queue.
func OpenTokens(path string) (*Tokens, error) {
	t := &Tokens{newReloaded(func() ([]token, error) { return readTokens(path) }, path)}
	_, _, err := t.list.get()
	return t, err
}

func readTokens(path string) ([]token, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading tokens: %w", err)
	}
	var list []token
	lines := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		secret := fields[len(fields)-1]
		if len(fields) > 2 || len(secret) < minToken {
			return nil, fmt.Errorf("reading tokens: line %d is not a token of at least %d characters, with a name before it or not", number, minToken)
		}
		t := token{name: fmt.Sprintf("line %d", number), hash: sha256.Sum256([]byte(secret))}
		if len(fields) == 2 {
			t.name = fields[0]
		}
		list = append(list, t)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading tokens: %w", err)
	}
	if len(list) == 0 {
		return nil, errors.New("reading tokens: the file holds none")
	}
	return list, nil
}

// caller is the name that goes with the token of a request.
func (t *Tokens) caller(h http.Header) (string, bool) {
	kind, secret, ok := strings.Cut(h.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(kind, "Bearer") {
		return "", false
	}
	list, _, err := t.list.get()
	if err != nil {
		return "", false
	}
	hash, name, found := sha256.Sum256([]byte(secret)), "", false
	for _, known := range list {
		if subtle.ConstantTimeCompare(hash[:], known.hash[:]) == 1 {
			name, found = known.name, true
		}
	}
	return name, found
}
