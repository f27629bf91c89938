// Package doctest checks the documentation: commands that it shows are run, links are followed, and reference pages are
// compared with the source that they describe.
package doctest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the repository, seen from this folder.
const root = "../.."

// binaries is the folder with the built gatewright.
var binaries string

func TestMain(m *testing.M) {
	code, err := build(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "doctest: "+err.Error())
		code = 1
	}
	os.Exit(code)
}

// build runs the tests with a binary that is built once.
func build(run func() int) (int, error) {
	dir, err := os.MkdirTemp("", "doctest")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	command := exec.Command("go", "build", "-o", filepath.Join(dir, "gatewright"), "./cmd/gatewright")
	command.Dir, command.Stderr = root, os.Stderr
	if err := command.Run(); err != nil {
		return 1, fmt.Errorf("building gatewright: %w", err)
	}
	binaries = dir
	return run(), nil
}

// pages returns every Markdown file of the repository, by its path below root.
func pages(t *testing.T) []string {
	t.Helper()
	found := filesBelow(t, ".", ".md")
	if !slices.Contains(found, "README.md") {
		t.Fatal("README.md was not found")
	}
	return found
}

// filesBelow gives the files below a folder with one of these endings, by their path below root. What is hidden, built or
// installed is left out.
func filesBelow(t *testing.T, folder string, endings ...string) []string {
	t.Helper()
	var found []string
	top := filepath.Join(root, filepath.FromSlash(folder))
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != top && (strings.HasPrefix(name, ".") || name == "bin" || name == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if slices.Contains(endings, filepath.Ext(name)) {
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			found = append(found, filepath.ToSlash(relative))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func read(t *testing.T, page string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// fence is a fenced block of a page.
type fence struct {
	line int    // of its first line of content, from 1
	info string // what stands behind the opening fence
	text []string
}

// split parts a page into its fenced blocks and its prose. Prose keeps its line numbers: fenced lines are empty in it.
func split(text string) (prose []string, fences []fence) {
	var open *fence
	mark := ""
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case open != nil && trimmed == mark:
			fences = append(fences, *open)
			open = nil
		case open != nil:
			open.text = append(open.text, line)
		case strings.HasPrefix(trimmed, "```"):
			ticks := len(trimmed) - len(strings.TrimLeft(trimmed, "`"))
			mark = trimmed[:ticks]
			open = &fence{line: i + 2, info: strings.TrimSpace(trimmed[ticks:])}
		default:
			prose = append(prose, line)
			continue
		}
		prose = append(prose, "")
	}
	return prose, fences
}
