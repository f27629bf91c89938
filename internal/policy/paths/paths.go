// Package paths decides whether a path that a call names lies inside the directories that a policy allows.
//
// It compares text and never touches the file system: a symbolic link, a mount or a hard link inside an allowed directory
// that leads out of it cannot be seen here, and the tool has to refuse it (openat2 with RESOLVE_BENEATH, or os.Root).
package paths

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"

	"gatewright.dev/gatewright/internal/policy/paths/plain"
)

// Code says in which way a path is refused.
type Code string

const (
	// Empty: the value is empty.
	Empty Code = "Empty"
	// TooLong: the value has more than MaxLength bytes.
	TooLong Code = "TooLong"
	// NotText: NUL, control or invisible characters, or bytes that are not UTF-8.
	NotText Code = "NotText"
	// Escape: a parent directory element or a backslash, written in any encoding.
	Escape Code = "Escape"
	// OutsideRoots: a well-formed path that is not in an allowed directory.
	OutsideRoots Code = "OutsideRoots"
	// WindowsPath: a drive, share, device name, stream, or a name that Windows rewrites.
	WindowsPath Code = "WindowsPath"
	// URLForm: a URL instead of a path.
	URLForm Code = "URLForm"
	// HomeOrVariable: a home directory or a variable, which a shell replaces.
	HomeOrVariable Code = "HomeOrVariable"
	// Pattern: a glob or brace expression, which names more than one path.
	Pattern Code = "Pattern"
	// Option: the value begins with a dash and may be read as an option.
	Option Code = "Option"
)

// MaxLength is the longest path in bytes that is looked at: PATH_MAX of Linux.
const MaxLength = 4096

// Violation says why a value is refused. Detail is a sentence for people and repeats nothing of the value.
type Violation struct {
	Code   Code
	Detail string
}

// Roots is a compiled set of allowed directories. It is immutable and safe for concurrent use; the zero value allows nothing.
type Roots struct {
	roots []root
}

type root struct {
	absolute bool
	elements []string // empty for the working directory "."
}

// Compile prepares the allowed directories: absolute ("/srv/data") or relative ("workspace/", "."), by plain names.
func Compile(roots []string) (*Roots, error) {
	if len(roots) == 0 {
		return nil, errors.New("no allowed directory: name at least one")
	}
	compiled := &Roots{roots: make([]root, 0, len(roots))}
	for _, text := range roots {
		r, err := compileRoot(text)
		if err != nil {
			return nil, fmt.Errorf("allowed directory %q: %w", text, err)
		}
		compiled.roots = append(compiled.roots, r)
	}
	return compiled, nil
}

// compileRoot accepts only names that every reader reads alike. Values are compared as they are written, and that their
// decoded forms stay inside follows from the root itself having no other form.
func compileRoot(text string) (root, error) {
	if v := inspect(text); v != nil {
		return root{}, fmt.Errorf("%s: write a plain directory such as /srv/data or workspace/", v.Detail)
	}
	if strings.ContainsRune(text, '%') {
		return root{}, errors.New("holds %: write the directory without percent-encoding")
	}
	if folds.Replace(norm.NFKC.String(text)) != text {
		return root{}, errors.New("holds characters that have a plainer form: write it in Unicode normal form NFKC")
	}
	r := root{absolute: isAbsolute(text)}
	for element, rest, ok := next(text); ok; element, rest, ok = next(rest) {
		r.elements = append(r.elements, element)
	}
	if r.absolute && len(r.elements) == 0 {
		return root{}, errors.New("allows every path: name a directory below /")
	}
	return r, nil
}

// Check returns nil if value is an allowed directory or below one, under every reading that a tool may give it. Names are
// compared byte for byte, so another case or another Unicode form of an allowed directory is outside.
func (r *Roots) Check(value string) *Violation {
	if v := inspect(value); v != nil {
		return v
	}
	if !r.holds(value) {
		return &Violation{OutsideRoots, "the path is not in an allowed directory"}
	}
	return nil
}

func (r *Roots) holds(value string) bool {
	if r == nil {
		return false
	}
	absolute := isAbsolute(value)
	for i := range r.roots {
		// A relative value depends on the tool's working directory: only a relative root speaks of it.
		if r.roots[i].absolute == absolute && r.roots[i].holds(value) {
			return true
		}
	}
	return false
}

func (r root) holds(value string) bool {
	rest := value
	for _, want := range r.elements {
		var element string
		var ok bool
		if element, rest, ok = next(rest); !ok || element != want {
			return false
		}
	}
	return true
}

// next returns the first element of path and what follows it. Empty elements and "." are skipped, as path.Clean does.
func next(path string) (element, rest string, ok bool) {
	for path != "" {
		element, path, _ = strings.Cut(path, "/")
		if element != "" && element != "." {
			return element, path, true
		}
	}
	return "", "", false
}

func isAbsolute(path string) bool { return path[0] == '/' }

// folds are characters that look like a dot, slash or backslash, or are treated as one, but have no such compatibility
// form in Unicode; the others are covered by NFKC (full-width forms, leaders, ellipsis).
var folds = strings.NewReplacer(
	"\u3002", ".", "\uff61", ".", // ideographic full stops, which name resolution treats as dots
	"\u2044", "/", "\u2215", "/", "\u29f8", "/", "\u2571", "/", // fraction, division, big solidus, box diagonal
	"\u2216", `\`, "\u29f5", `\`, "\u29f9", `\`, "\u2572", `\`, // set minus, reverse solidus operators, box diagonal
	"\u2236", ":", "\ua789", ":", // ratio, modifier letter colon
)

// fold rewrites s as a reader does that replaces characters by their plain equivalents ("best fit", NFKC). It decomposes
// and does not compose again: composing would join the last digit of "%5c" with an accent that follows, and so hide an
// escape from the next decoding. Dots, slashes and percent signs take part in no composition.
func fold(s string) string {
	if plain.ASCII(s) {
		return s
	}
	return folds.Replace(norm.NFKD.String(s))
}
