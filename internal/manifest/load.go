package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gatewright.dev/gatewright/internal/manifest/structural"
)

// DefaultNamespace is where an object is that names no namespace.
const DefaultNamespace = "default"

// LoadDir reads every .yaml, .yml and .json file of a folder and the folders in it. What is wrong with a manifest or a
// file is in Set.Problems. The error is for a folder that cannot be read at all. Names that start with a dot are left
// out, so that a mounted ConfigMap is read once.
func LoadDir(dir string) (*Set, error) {
	if _, err := structural.All(); err != nil {
		return nil, fmt.Errorf("loading schemas: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("reading manifests: %s is not a folder: name the folder that holds the manifests", dir)
	}
	// With the slash a folder that is itself a link, as a mount may be, is walked and not only looked at.
	root := strings.TrimSuffix(dir, string(filepath.Separator)) + string(filepath.Separator)
	set := &Set{}
	if err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		return set.visit(root, path, entry, err)
	}); err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	set.refuseDuplicates()
	return set, nil
}

// visit reads one entry of the folder. A folder in it that cannot be read may hold any policy, so it is a problem of
// everybody; only the root itself ends the walk.
func (s *Set) visit(root, path string, entry fs.DirEntry, err error) error {
	name, relErr := filepath.Rel(root, path)
	switch {
	case relErr != nil:
		return relErr
	case err != nil && name == ".":
		return err
	case err != nil:
		s.Problems = append(s.Problems, Problem{File: name, Err: fmt.Errorf("reading: %w", err)})
		return nil
	case name == ".":
		return nil
	case strings.HasPrefix(entry.Name(), ".") && entry.IsDir():
		return fs.SkipDir
	case strings.HasPrefix(entry.Name(), ".") || entry.IsDir():
		return nil
	}
	s.readFile(name, path)
	return nil
}

// readFile reads one file, whatever a link to it points to.
func (s *Set) readFile(name, path string) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		s.ignore(name, 0, "it is a link to a folder: give the folder itself")
		return
	}
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
	default:
		s.ignore(name, 0, "it is not a .yaml, .yml or .json file")
		return
	}
	var data []byte
	if err == nil {
		data, err = readRegular(path, info)
	}
	if err != nil {
		s.Problems = append(s.Problems, Problem{File: name, Err: fmt.Errorf("reading: %w", err)})
		return
	}
	s.read(name, data)
}

// readRegular reads a file that ends: a pipe or device might not.
func readRegular(path string, info fs.FileInfo) (_ []byte, err error) {
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file: put the manifest itself here")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxFileBytes {
		return nil, fmt.Errorf("it has more than %d bytes: split it", MaxFileBytes)
	}
	return data, nil
}

// Read reads the manifests of one file. Its name is for messages.
func Read(name string, data []byte) *Set {
	set := &Set{}
	if len(data) > MaxFileBytes {
		set.Problems = []Problem{{File: name, Err: fmt.Errorf("it has more than %d bytes: split it", MaxFileBytes)}}
		return set
	}
	set.read(name, data)
	set.refuseDuplicates()
	return set
}

// Load reads the manifests of one file. The error joins all that is wrong; the objects that are good come back beside
// it.
func Load(name string, data []byte) ([]Object, error) {
	set := Read(name, data)
	return set.Objects, set.Err()
}

func (s *Set) read(name string, data []byte) {
	for _, doc := range documents(data) {
		r := reader{set: s, file: name, document: doc.index}
		r.take(doc.tree, doc.err, true)
	}
}

func (s *Set) ignore(file string, document int, reason string) {
	s.Ignored = append(s.Ignored, Ignored{File: file, Document: document, Reason: reason})
}
