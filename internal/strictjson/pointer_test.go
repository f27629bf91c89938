package strictjson

import "testing"

func TestTokensOfPointers(t *testing.T) {
	for name, token := range map[string]string{"": "", "plain": "plain", "a/b": "a~1b", "m~n": "m~0n", "~1": "~01", "~/~0": "~0~1~00"} {
		if got := EscapeToken(name); got != token {
			t.Errorf("%q is written %q, want %q", name, got, token)
		}
		if got := UnescapeToken(token); got != name {
			t.Errorf("%q is read %q, want %q", token, got, name)
		}
	}
}
