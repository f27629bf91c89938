package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	parent "gatewright.dev/gatewright/internal/inference/child"
)

func TestASocketIsForThisUserAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.sock")
	l, err := listen(t.Context(), "unix:"+path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != fs.ModeSocket {
		t.Errorf("got %v, %v", info, err)
	}
	if _, err := listen(t.Context(), "unix:"+path); err == nil {
		t.Error("a socket in use was taken over")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if made, err := os.Stat(file); err != nil || made.Mode().Perm() == 0o600 {
		t.Errorf("the mask of the process did not come back: %v, %v", made, err)
	}
}

func TestAModelMustBeReadAndCalibratedAsAskedFor(t *testing.T) {
	a, b := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	for name, c := range map[string]struct {
		config config
		want   string
	}{
		"nothing is asked for":          {config{}, ""},
		"both as they are":              {config{readout: "LabelLogits", calibratedFor: a}, ""},
		"another way of reading":        {config{readout: "ClassHead"}, "ReadoutMismatch"},
		"temperatures of another model": {config{calibratedFor: b}, "CalibrationMismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.config.check("LabelLogits", a)
			var ends *exit
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.As(err, &ends) || ends.code != exitMismatch || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %s with code %d", err, c.want, exitMismatch)
			}
		})
	}
}

// A gate that runs this program as its child tells a mismatch from a decider that is away by the code.
func TestTheCodeOfAMismatchIsTheOneThatAParentKnows(t *testing.T) {
	if exitMismatch != parent.ExitMismatch {
		t.Errorf("code %d, the parent knows %d", exitMismatch, parent.ExitMismatch)
	}
}
