package permit

import (
	"errors"
	"testing"
)

func TestParseArguments(t *testing.T) {
	for name, tc := range map[string]struct {
		data    string
		wantErr bool
	}{
		"an object":                   {`{"to":"ACME","amount":1}`, false},
		"an object in other spelling": {` {"amount": 10e-1, "\u0074o": "ACME"} `, false},
		"a list":                      {`[1]`, true},
		"null":                        {`null`, true},
		"nothing":                     {``, true},
		"a name twice":                {`{"to":"ACME","to":"ACME"}`, true},
		"data that follows":           {`{} {}`, true},
		"a number without a double":   {`{"n":9007199254740993}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseArguments([]byte(tc.data))
			if tc.wantErr {
				if !errors.Is(err, ErrNoCall) || got != nil {
					t.Errorf("%v, %v, want ErrNoCall", got, err)
				}
				return
			}
			if digest := must(ArgumentsDigest(got))(t); err != nil || digest != must(ArgumentsDigest(transferArguments))(t) {
				t.Errorf("%v, %v: another digest", got, err)
			}
		})
	}
}

func TestRemoteKeysSayWhetherTheyAreReady(t *testing.T) {
	w := newWorld(t)
	gate := newIssuer(t, fail)
	keys := w.remote(t, gate.URL)
	if err := keys.Ready(t.Context()); !errors.Is(err, ErrKeysUnavailable) {
		t.Errorf("before they could be fetched: %v", err)
	}
	gate.say(w.keys.ServeHTTP)
	w.pass(fetchEvery)
	for range 3 {
		if err := keys.Ready(t.Context()); err != nil {
			t.Errorf("after that: %v", err)
		}
	}
	gate.wantFetches(t, 2)
	gate.say(fail)
	w.pass(freshFor)
	if err := keys.Ready(t.Context()); err != nil {
		t.Errorf("while the keys are not too old: %v", err)
	}
	w.pass(staleAfter)
	if err := keys.Ready(t.Context()); err == nil {
		t.Error("when they are too old: no error")
	}
}
