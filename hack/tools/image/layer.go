package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// entry is one path of an image: a file of this machine, or a link.
type entry struct {
	path string
	file string
	link string
}

// layer is what one COPY brings, by path.
type layer []entry

func (l layer) print(w io.Writer) {
	for _, e := range l {
		if e.link != "" {
			fmt.Fprintf(w, "%s -> %s\n", e.path, e.link)
			continue
		}
		fmt.Fprintln(w, e.path)
	}
}

// sources says where files of a stage lie on this machine: the longest prefix wins.
type sources struct {
	context string
	from    map[string]string // STAGE:PREFIX to folder
}

func (s sources) find(stage, name string) (string, error) {
	if stage == "" {
		return filepath.Join(s.context, filepath.FromSlash(name)), nil
	}
	best, folder := "", ""
	for key, dir := range s.from {
		of, prefix, _ := strings.Cut(key, ":")
		if of != stage || len(prefix) <= len(best) || !within(name, prefix) {
			continue
		}
		best, folder = prefix, dir
	}
	if best == "" {
		return "", fmt.Errorf("no -from for %s of stage %s", name, stage)
	}
	return filepath.Join(folder, filepath.FromSlash(strings.TrimPrefix(name, best))), nil
}

func within(name, prefix string) bool {
	return strings.HasPrefix(name, strings.TrimSuffix(prefix, "/")+"/") || name == prefix
}

func (s stage) layers(from sources) ([]layer, error) {
	layers := make([]layer, 0, len(s.copies))
	for _, step := range s.copies {
		l, err := step.layer(from)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	return layers, nil
}

func (c copyStep) layer(from sources) (layer, error) {
	var l layer
	for _, source := range c.sources {
		file, err := from.find(c.from, source)
		if err != nil {
			return nil, err
		}
		entries, err := c.entries(source, file)
		if err != nil {
			return nil, fmt.Errorf("%s of stage %q: %w", source, c.from, err)
		}
		l = append(l, entries...)
	}
	slices.SortFunc(l, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return l, nil
}

// entries does as COPY does: a link that is named is followed, one inside a folder is kept; of a folder its content is taken.
func (c copyStep) entries(source, file string) ([]entry, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		target := c.target
		if strings.HasSuffix(target, "/") {
			target = path.Join(target, path.Base(source))
		}
		return []entry{{path: target, file: file}}, nil
	}
	// WalkDir does not follow a link, not even where it begins.
	if file, err = filepath.EvalSymlinks(file); err != nil {
		return nil, err
	}
	var found []entry
	err = filepath.WalkDir(file, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(file, name)
		if err != nil {
			return err
		}
		e := entry{path: path.Join(c.target, filepath.ToSlash(rel)), file: name}
		if d.Type()&fs.ModeSymlink != 0 {
			if e.link, err = linkWithin(file, name); err != nil {
				return err
			}
		} else if !d.Type().IsRegular() {
			return errors.New(name + " is no plain file")
		}
		found = append(found, e)
		return nil
	})
	return found, err
}

// linkWithin reads the link called name, which has to lead to something in folder: in the image it would lead elsewhere, or
// nowhere.
func linkWithin(folder, name string) (string, error) {
	link, err := os.Readlink(name)
	if err != nil {
		return "", err
	}
	dir, err := filepath.Rel(folder, filepath.Dir(name))
	if err != nil {
		return "", err
	}
	if filepath.IsAbs(link) || !filepath.IsLocal(filepath.Join(dir, link)) {
		return "", fmt.Errorf("link %s leads to %s, which is not in the folder that is copied", name, link)
	}
	if _, err := os.Stat(name); err != nil {
		return "", fmt.Errorf("link %s leads nowhere: %w", name, err)
	}
	return link, nil
}

// tar writes the layer with its folders. Owner and time of each entry are 0, so that the same files give the same bytes.
func (l layer) tar() ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	made := map[string]bool{}
	for _, e := range l {
		if err := writeParents(w, made, path.Dir(e.path)); err != nil {
			return nil, err
		}
		if err := e.write(w); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil { // writes the end of the archive
		return nil, err
	}
	return buffer.Bytes(), nil
}

func writeParents(w *tar.Writer, made map[string]bool, dir string) error {
	dir = strings.TrimPrefix(dir, "/")
	if dir == "" || dir == "." || made[dir] {
		return nil
	}
	made[dir] = true
	if err := writeParents(w, made, path.Dir(dir)); err != nil {
		return err
	}
	return w.WriteHeader(&tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o755})
}

func (e entry) write(w *tar.Writer) error {
	name := strings.TrimPrefix(e.path, "/")
	if e.link != "" {
		return w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: e.link, Mode: 0o777})
	}
	content, err := os.ReadFile(e.file)
	if err != nil {
		return err
	}
	info, err := os.Stat(e.file)
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err = w.Write(content)
	return err
}

// build adds a stage to an image, for Linux on amd64, which is what the engine's pinned libraries are for. What the stage does
// not say stays as it is in the image.
func build(image v1.Image, s stage, layers []layer) (v1.Image, error) {
	for _, l := range layers {
		content, err := l.tar()
		if err != nil {
			return nil, err
		}
		packed, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
		if err != nil {
			return nil, err
		}
		if image, err = mutate.AppendLayers(image, packed); err != nil {
			return nil, err
		}
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", "amd64"
	s.configure(&file.Config)
	return mutate.ConfigFile(image, file)
}

func (s stage) configure(c *v1.Config) {
	for _, pair := range s.env {
		name, _, _ := strings.Cut(pair, "=")
		c.Env = slices.DeleteFunc(c.Env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		c.Env = append(c.Env, pair)
	}
	c.User, c.WorkingDir = cmp.Or(s.user, c.User), cmp.Or(s.dir, c.WorkingDir)
	if len(s.entrypoint) > 0 {
		c.Entrypoint = s.entrypoint
	}
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	maps.Copy(c.Labels, s.labels)
	for _, port := range s.ports {
		if c.ExposedPorts == nil {
			c.ExposedPorts = map[string]struct{}{}
		}
		if !strings.Contains(port, "/") {
			port += "/tcp"
		}
		c.ExposedPorts[port] = struct{}{}
	}
}
