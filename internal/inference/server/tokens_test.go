package server

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	gateToken  = "gate-0123456789abcdefghij"
	otherToken = "other-0123456789abcdefghij"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	// A file that replaces another has another identity, so that no clock is asked whether it is newer.
	fresh := path + ".fresh"
	if err := os.WriteFile(fresh, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		t.Fatal(err)
	}
}

func TestTokens(t *testing.T) {
	tests := map[string]struct {
		header string
		status int
	}{
		"the first token":        {"Bearer " + gateToken, 200},
		"the second":             {"Bearer " + otherToken, 200},
		"the scheme in small":    {"bearer " + gateToken, 200},
		"no header":              {"", 401},
		"another token":          {"Bearer " + gateToken + "x", 401},
		"a part of a token":      {"Bearer " + gateToken[:22], 401},
		"a name":                 {"Bearer gate", 401},
		"another scheme":         {"Basic " + gateToken, 401},
		"no scheme":              {gateToken, 401},
		"a token that is empty":  {"Bearer ", 401},
		"a token behind a space": {"Bearer  " + gateToken, 401},
		"a comment of the file":  {"Bearer #-a-comment-that-is-long-enough", 401},
	}
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, "# who may ask\n\ngate "+gateToken+"\n"+otherToken+"\n#-a-comment-that-is-long-enough\n")
	tokens, err := OpenTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, newScripted(), func(o *Options) { o.Callers = tokens })
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := r.post(t, asks(`"s"`), "Authorization", tt.header)
			if got.status != tt.status || got.status == 401 && (codeIn(t, got) != CodeUnauthorized || got.header.Get("WWW-Authenticate") != "Bearer") {
				t.Errorf("got %+v", got)
			}
			models, err := r.send(t.Context(), http.MethodGet, PathModels, "", "Authorization", tt.header)
			if err != nil || models.status != tt.status {
				t.Errorf("models: %+v, %v", models, err)
			}
		})
	}
	for _, open := range []string{"/healthz", "/readyz", "/metrics"} {
		if got := r.get(t, open); got.status != 200 {
			t.Errorf("%s: %+v", open, got)
		}
	}
	if strings.Contains(r.log.String(), gateToken) || strings.Contains(r.get(t, "/metrics").body, "gate-") {
		t.Error("a token was logged or counted")
	}
}

func TestTokensAreReadAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, gateToken)
	tokens, err := OpenTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, newScripted(), func(o *Options) { o.Callers = tokens })
	knows := func(token string, want bool) {
		t.Helper()
		if got := r.post(t, asks(`"s"`), "Authorization", "Bearer "+token); (got.status == 200) != want {
			t.Errorf("%s: %+v", token, got)
		}
	}
	knows(gateToken, true)
	write(t, path, otherToken)
	knows(gateToken, false)
	knows(otherToken, true)
	write(t, path, "short")
	knows(otherToken, false)
	write(t, path, otherToken)
	knows(otherToken, true)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	knows(otherToken, false)
}

func TestTokenFilesThatCannotBe(t *testing.T) {
	for name, text := range map[string]string{
		"no token": "# none\n", "a short token": "gate short", "three words on a line": "the gate " + gateToken, "a line without end": strings.Repeat("x", 1<<17),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tokens")
			write(t, path, text)
			if _, err := OpenTokens(path); err == nil || strings.Contains(err.Error(), "short ") {
				t.Errorf("error = %v", err)
			}
		})
	}
	if _, err := OpenTokens(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no error for a file that is not there")
	}
}

// TestCallersWithNamesTakeTurns has one caller fill the queue before another comes.
func TestCallersWithNamesTakeTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, "gate "+gateToken+"\nother "+otherToken)
	tokens, err := OpenTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	e := newScripted()
	entered, proceed := gated(e)
	r := start(t, e, func(o *Options) { o.Callers = tokens })
	answers := make(chan response, 8)
	ask := func(state, token string) {
		waiting := r.queue.length()
		go func() { answers <- r.post(t, asks(`"`+state+`"`), "Authorization", "Bearer "+token) }()
		if state == "g0" {
			<-entered
			return
		}
		eventually(t, state+" waits", func() bool { return r.queue.length() == waiting+1 })
	}
	for _, state := range []string{"g0", "g1", "g2", "g3"} {
		ask(state, gateToken)
	}
	ask("o1", otherToken)
	close(proceed)
	for range 5 {
		if got := <-answers; got.status != 200 {
			t.Errorf("got %+v", got)
		}
	}
	if order := strings.Join(e.asked(), " "); order != "g0 g1 o1 g2 g3" {
		t.Errorf("order %s", order)
	}
}
