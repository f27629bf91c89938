package permit

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestVerifyRefusesPayloadsThatTwoReadersCouldReadDifferently(t *testing.T) {
	w := newWorld(t)
	good := string(must(json.Marshal(w.claimSet(t, nil)))(t))
	for name, payload := range map[string]string{
		"a claim twice":               strings.Replace(good, `"tool":"transfer"`, `"tool":"refund","tool":"transfer"`, 1),
		"a claim twice, once escaped": strings.Replace(good, `"tool":"transfer"`, `"t\u006fol":"refund","tool":"transfer"`, 1),
		"data that follows":           good + `{"tool":"refund"}`,
		"a byte order mark":           "\ufeff" + good,
		"bytes that are not UTF-8":    strings.Replace(good, "ann", "ann\xff", 1),
		"a comment":                   strings.Replace(good, "{", "{/**/", 1),
		"a list":                      "[" + good + "]",
		"text":                        `"permit"`,
		"null":                        "null",
		"not JSON":                    "permit",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.verifier.Verify(t.Context(), w.forge(t, nil, payload), call())
			wantReason(t, err, ReasonMalformed)
		})
	}
	if _, err := w.verifier.Verify(t.Context(), w.forge(t, nil, good), call()); err != nil {
		t.Errorf("the payload itself: %v", err)
	}
}

func TestVerifyTakesOneIssuer(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		issuer string
		want   Reason
	}{
		"any issuer whose keys are trusted": {"", ""},
		"the issuer":                        {"gate-1", ""},
		"another issuer":                    {"gate-2", ReasonWrongIssuer},
		"the issuer in other capitals":      {"Gate-1", ReasonWrongIssuer},
	} {
		t.Run(name, func(t *testing.T) {
			v := must(NewVerifier(VerifierOptions{Keys: w.keys, Store: NewMemory(w.clock), Clock: w.clock, Issuer: tc.issuer}))(t)
			_, err := v.Verify(t.Context(), w.sign(t, claims(t)), call())
			wantReason(t, err, tc.want)
		})
	}
}

func TestRetiredKeysVerifyUntilTheyEnd(t *testing.T) {
	w := newWorld(t)
	w.keys.rotate(t, noon.Add(time.Minute))
	for name, tc := range map[string]struct {
		at   time.Duration
		key  int
		want Reason
	}{
		"the new key":                        {0, 0, ""},
		"the old key":                        {0, 1, ""},
		"the old key at its last moment":     {time.Minute - 1, 1, ""},
		"the old key when it has ended":      {time.Minute, 1, ReasonUnknownKey},
		"the new key when the old one ended": {time.Minute, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w.clock.SetTime(noon.Add(tc.at))
			_, err := w.verify(t, must(ParseKeySet(w.keys.set()))(t), NewMemory(w.clock)).Verify(t.Context(), w.signWith(t, claims(t), tc.key), call())
			wantReason(t, err, tc.want)
		})
	}
}
