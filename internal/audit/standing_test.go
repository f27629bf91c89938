package audit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestStandingOfALog(t *testing.T) {
	keys, other := testKeys(t), testKeys(t)
	l, outside := signedLog(t, keys)
	made := outside[0]
	made.Signature = outside[1].Signature
	broken := append(append([]string{}, l[:3]...), l[4:]...)
	for name, test := range map[string]struct {
		log  []string
		keys PublicKeys
		last Checkpoint
		want error
	}{
		"no lines":                                  {nil, keys.Public(), Checkpoint{}, nil},
		"signed by itself":                          {l, keys.Public(), Checkpoint{}, nil},
		"signed outside":                            {l, keys.Public(), outside[2], nil},
		"a few lines behind its signature":          {l[:5], keys.Public(), Checkpoint{}, nil},
		"a torn end, which opening sets aside":      {append(append([]string{}, l...), `{"v":1,"seq":9`), keys.Public(), Checkpoint{}, nil},
		"no signature at all":                       {l[:2], keys.Public(), Checkpoint{}, ErrUnsigned},
		"written anew":                              {forge(t, l, 0, nil), keys.Public(), Checkpoint{}, ErrUnsigned},
		"written anew and signed with another key":  {forge(t, l, 0, other), keys.Public(), Checkpoint{}, ErrUnsigned},
		"signed, with a line missing":               {broken, keys.Public(), Checkpoint{}, ErrUnsigned},
		"written anew, with what was kept of it":    {forge(t, l, 0, nil), keys.Public(), outside[0], ErrBehind},
		"signed outside by a key that is not known": {l, other.Public(), outside[2], ErrUnsigned},
		"signed outside by nobody":                  {l, keys.Public(), made, ErrUnsigned},
		"gone, with what was kept of it":            {nil, keys.Public(), outside[0], ErrBehind},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			if test.log != nil {
				if err := os.WriteFile(path, []byte(strings.Join(test.log, "")), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := CheckStanding(t.Context(), path, test.keys, test.last); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
		})
	}
}

// A log that signs at once is never without a checkpoint, and signs what a killed process left when it is opened.
func TestSigningAtOnce(t *testing.T) {
	keys := testKeys(t)
	path := filepath.Join(t.TempDir(), "audit.log")
	c := clocktesting.NewFakePassiveClock(noon)
	o := Options{Signer: keys, SignAtOnce: true, Clock: c, SignEvery: time.Hour}
	f := mustOpen(t, path, o)
	mustAppend(t, f, "1")
	if got := entries(t, read(t, path)); len(got) != 2 || got[1].Kind != KindCheckpoint {
		t.Errorf("the first record stands with %+v", got)
	}
	closeLog(t, f)
	fill(t, path, Options{Clock: c}, 1, 2) // without a key, as a process that is killed leaves it
	o.Adopted = true
	closeLog(t, mustOpen(t, path, o))
	got := entries(t, read(t, path))
	if len(got) != 6 || got[4].Kind != KindAdopted || got[5].Kind != KindCheckpoint {
		t.Fatalf("the log holds %+v", got)
	}
	s, err := verifyParts(t, path, Evidence{Keys: keys.Public()})
	if err != nil || s.Adopted != 4 || s.Signed != 6 {
		t.Errorf("%+v, %v", s, err)
	}
	if end, err := EndOf(t.Context(), path); err != nil || end != s.Head {
		t.Errorf("its end is %v, %v, want %v", end, err, s.Head)
	}
}
