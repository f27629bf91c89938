package serve

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"gatewright.dev/gatewright/internal/records"
)

// checkPlaces refuses to write into the folder of manifests: what is read as policy is for people to write.
func (c *Config) checkPlaces() error {
	folder, err := filepath.EvalSymlinks(c.Manifests)
	if err != nil {
		return fmt.Errorf("--manifests: %w", err)
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return err
	}
	places := map[string]string{"--audit-key": c.Audit.Key, "--audit-checkpoints": c.Audit.Checkpoints, "--capture-dir": c.Audit.Capture}
	if c.AuditLog != records.NoFile {
		places["--audit-log"] = c.AuditLog
	}
	for _, name := range slices.Sorted(maps.Keys(places)) {
		if places[name] == "" {
			continue
		}
		at, err := whereabouts(places[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if rest, err := filepath.Rel(folder, at); err == nil && filepath.IsLocal(rest) {
			return fmt.Errorf("%s %s is inside of --manifests: every record would look like a change of policies, so name a place elsewhere", name, places[name])
		}
	}
	return nil
}

// whereabouts is where a path that may not be there yet really is.
func whereabouts(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved, nil
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, os.ErrNotExist) {
		return path, nil // opening it says what is missing
	}
	return filepath.Join(dir, filepath.Base(path)), err
}
