package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/capture"
	"gatewright.dev/gatewright/internal/permit"
)

// made are key files as a gate makes them.
func madeKeys(t *testing.T) map[string]string {
	t.Helper()
	in := func(name string) string { return filepath.Join(t.TempDir(), name) }
	files := map[string]string{"--seal-key": in("seal"), "--permit-key": in("permit"), "--audit-key": in("audit"), "--capture-key": in("calls")}
	if _, err := approval.OpenSeals(files["--seal-key"], clock.RealClock{}); err != nil {
		t.Fatal(err)
	}
	if _, err := permit.LoadOrCreateKeys(files["--permit-key"], clock.RealClock{}); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.LoadOrCreateKeys(files["--audit-key"], clock.RealClock{}); err != nil {
		t.Fatal(err)
	}
	if _, err := capture.MakeKey(files["--capture-key"]); err != nil {
		t.Fatal(err)
	}
	return files
}

// kids are the names of the keys in a file.
func kids(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(regexp.MustCompile(`"kid": ?"[^"]+"`).FindAllString(string(data), -1), " ")
}

func TestKeysRotate(t *testing.T) {
	files := madeKeys(t)
	before := map[string]string{}
	args := []string{"keys", "rotate", "--lead", "0s"}
	for flag, path := range files {
		before[flag] = kids(t, path)
		args = append(args, flag, path)
	}
	public := kids(t, files["--capture-key"]+".pub")
	out, errs, code := command(t, "", args...)
	if code != exitOK || strings.Count(out, "\n") != 4 {
		t.Fatalf("exit %d %s%s", code, out, errs)
	}
	for flag, path := range files {
		now := kids(t, path)
		if !strings.HasSuffix(now, " "+before[flag]) {
			t.Errorf("%s held %s and holds %s: want a new key in front", flag, before[flag], now)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", flag, info.Mode(), err)
		}
		for _, kid := range regexp.MustCompile(`key (\S+) `).FindAllStringSubmatch(out, -1) {
			if strings.HasPrefix(now, `"kid": "`+kid[1]) || strings.HasPrefix(now, `"kid":"`+kid[1]) {
				delete(before, flag)
			}
		}
	}
	if len(before) != 0 {
		t.Errorf("the new keys of %v are not named in\n%s", before, out)
	}
	if now := kids(t, files["--capture-key"]+".pub"); now == public || strings.Contains(now, " ") {
		t.Errorf("the public key was %s and is %s", public, now)
	}
	data, err := os.ReadFile(files["--capture-key"] + ".pub")
	if err != nil || strings.Contains(string(data), "private") {
		t.Errorf("the file for gates holds %s, %v", data, err)
	}
}

func TestKeysRotateWaitsForTheLead(t *testing.T) {
	files := madeKeys(t)
	if out, errs, code := command(t, "", "keys", "rotate", "--permit-key", files["--permit-key"], "--lead", "1h"); code != exitOK {
		t.Fatalf("exit %d %s%s", code, out, errs)
	}
	var file struct {
		Keys []struct {
			SignsFrom time.Time  `json:"signsFrom"`
			NotAfter  *time.Time `json:"notAfter"`
		} `json:"keys"`
	}
	data, err := os.ReadFile(files["--permit-key"])
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil || len(file.Keys) != 2 {
		t.Fatalf("%s, %v", data, err)
	}
	next, old := file.Keys[0], file.Keys[1]
	if lead := next.SignsFrom.Sub(old.SignsFrom); lead < time.Hour || next.NotAfter != nil || old.NotAfter == nil || !old.NotAfter.After(next.SignsFrom) {
		t.Errorf("the new key signs %s after the old one, which ends %v", lead, old.NotAfter)
	}
}

func TestKeysRotateRefuses(t *testing.T) {
	files := madeKeys(t)
	none := filepath.Join(t.TempDir(), "none")
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no file at all":                    {nil, exitUsage, "name a file"},
		"a lead in the past":                {[]string{"--seal-key", files["--seal-key"], "--lead", "-1s"}, exitUsage, "--lead"},
		"a seal key that is not there":      {[]string{"--seal-key", none}, exitError, "no such file"},
		"a permit key that is not there":    {[]string{"--permit-key", none}, exitError, "no such file"},
		"an audit key that is not there":    {[]string{"--audit-key", none}, exitError, "no such file"},
		"a capture key that is not there":   {[]string{"--capture-key", none}, exitError, "no such file"},
		"a public key of kept calls":        {[]string{"--capture-key", files["--capture-key"] + ".pub"}, exitError, "without .pub"},
		"an audit key as a key for permits": {[]string{"--permit-key", files["--audit-key"]}, exitError, "--permit-key"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := command(t, "", append([]string{"keys", "rotate"}, test.args...)...)
			if code != test.code || !strings.Contains(errs, test.want) {
				t.Errorf("exit %d %s%s, want %d and %q", code, out, errs, test.code, test.want)
			}
		})
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("a file was made")
	}
}
