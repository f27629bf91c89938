package capture

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestARotatedPairReadsWhatWasKeptBefore(t *testing.T) {
	private, public := makeKey(t)
	dir := t.TempDir()
	old, err := os.ReadFile(private)
	if err != nil {
		t.Fatal(err)
	}
	w := open(t, dir, Options{Write: true, Recipient: public})
	first := w.Recipient()
	put(t, w, Encrypted, 1, `{"n":1}`)
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	kid, err := RotateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	if w.Recipient() != first {
		t.Error("the new key is used before it was read")
	}
	if err := w.Reload(); err != nil || w.Recipient() != kid || kid == first {
		t.Fatalf("Reload: %v; states are for %s, want %s", err, w.Recipient(), kid)
	}
	put(t, w, Encrypted, 2, `{"n":2}`)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	oldFile := filepath.Join(t.TempDir(), "old")
	if err := os.WriteFile(oldFile, old, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		identity string
		want     [2]error
	}{
		"the file of today reads both":                   {private, [2]error{nil, nil}},
		"one from before reads what was for its own key": {oldFile, [2]error{nil, ErrNoKey}},
		"none reads nothing":                             {"", [2]error{ErrNoKey, ErrNoKey}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, dir, Options{Identity: test.identity})
			for n, want := range test.want {
				if _, err := s.Get(digest(n + 1)); !errors.Is(err, want) {
					t.Errorf("state %d: %v, want %v", n+1, err, want)
				}
			}
		})
	}
}

func TestAPublicKeyThatCannotBeReadAgainStays(t *testing.T) {
	_, public := makeKey(t)
	w := open(t, t.TempDir(), Options{Write: true, Recipient: public})
	before := w.Recipient()
	if err := os.WriteFile(public, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.Reload(); err == nil || w.Recipient() != before || before == "" {
		t.Errorf("Reload: %v; states are for %q, want %q", err, w.Recipient(), before)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestARotationThatStoppedHalfWayIsNotOverwritten(t *testing.T) {
	private, _ := makeKey(t)
	before, err := os.ReadFile(private)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(private+".new", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := RotateKey(private); !errors.Is(err, os.ErrExist) {
		t.Errorf("%v, want a file that is there", err)
	}
	if after, err := os.ReadFile(private); err != nil || string(after) != string(before) {
		t.Errorf("the key was changed: %v", err)
	}
}
