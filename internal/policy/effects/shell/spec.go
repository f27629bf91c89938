package shell

import (
	"slices"
	"strings"

	"gatewright.dev/gatewright/internal/policy/effects/effect"
)

// argKind says what a program's arguments are, flags aside.
type argKind int

const (
	files         argKind = iota
	filesOrHere           // files, or the current folder where none is named
	patternFiles          // a pattern, then files; the current folder where none is named and -r is
	patternHere           // a pattern, then files, or the current folder
	modeFiles             // a mode or an owner, then files
	text                  // no files
	nothing               // none at all
	oneFile               // at most one file; a second would be written
	environment           // names of variables, if any
	formatOrEmpty         // at most one, which starts with +
)

// spec is a row of the table of programs. A flag that is not listed makes the call the worst.
type spec struct {
	effects effect.Set // zero means a read
	short   string     // letters without a value
	valued  string     // letters with a value
	maybe   string     // letters that take a value only in the same word
	long    string     // names; one that ends in = takes a value, one that ends in ? may take one after =
	args    argKind
	digits  bool                  // -20 is a number of lines
	worse   map[string]effect.Set // flags that are known to do more
	// anyFlag allows flags that are not listed: effects is then the most that any of them does.
	anyFlag bool
}

// parsedArgs is a command line split into flags and the rest.
type parsedArgs struct {
	flags []string // with their dashes, without values
	rest  []string
	// values are those that stand in a word of their own; late ones come behind the first of rest, where a program that
	// stops reading flags there takes them for files.
	values, late []string
	bad          bool
}

func (p parsedArgs) has(flags ...string) bool {
	return slices.ContainsFunc(p.flags, func(f string) bool { return slices.Contains(flags, f) })
}

// split reads arguments as getopt_long does, but accepts full names only.
func (s spec) split(args []string) parsedArgs {
	var p parsedArgs
	for i := 0; i < len(args) && !p.bad; i++ {
		arg, at := args[i], i
		switch {
		case arg == "--":
			p.rest = append(p.rest, args[i+1:]...)
			return p
		case strings.HasPrefix(arg, "--"):
			i += s.longFlag(&p, arg[2:])
		case strings.HasPrefix(arg, "-") && len(arg) > 1:
			i += s.letters(&p, arg[1:])
		default:
			p.rest = append(p.rest, arg)
			continue
		}
		switch {
		case i >= len(args):
			p.bad = true
		case i > at:
			p.values = append(p.values, args[i])
			if len(p.rest) > 0 {
				p.late = append(p.late, args[i])
			}
		}
	}
	return p
}

// longFlag notes --name or --name=value, and tells whether the next word is its value.
func (s spec) longFlag(p *parsedArgs, arg string) int {
	name, _, equals := strings.Cut(arg, "=")
	p.flags = append(p.flags, "--"+name)
	for known := range strings.FieldsSeq(s.long) {
		switch known {
		case name:
			p.bad = p.bad || equals
			return 0
		case name + "?":
			return 0
		case name + "=":
			if equals {
				return 0
			}
			return 1
		}
	}
	p.bad = p.bad || !s.anyFlag
	return 0
}

// letters notes the letters behind one dash, and tells whether the next word is the value of the last.
func (s spec) letters(p *parsedArgs, letters string) int {
	if s.digits && strings.Trim(letters, "0123456789") == "" {
		return 0
	}
	for i := 0; i < len(letters); i++ {
		flag := "-" + letters[i:i+1]
		p.flags = append(p.flags, flag)
		switch {
		case strings.IndexByte(s.short, letters[i]) >= 0:
		case strings.IndexByte(s.maybe, letters[i]) >= 0:
			return 0
		case strings.IndexByte(s.valued, letters[i]) >= 0:
			if i+1 < len(letters) {
				return 0
			}
			return 1
		default:
			p.bad = p.bad || !s.anyFlag
		}
	}
	return 0
}

// spec judges a program of the table.
func (w *walker) spec(s spec, args []string) {
	p := s.split(args)
	if p.bad {
		w.unknown(args, "a flag of a program is not in the table")
		return
	}
	if w.misplaced(p.values...) {
		w.unknown(args, "a pattern may be more than the value of a flag")
		return
	}
	if s.anyFlag && s.args != text {
		w.anyPath(args)
	}
	if s.effects != 0 {
		w.raise(s.effects, "a program does more than read")
	}
	for _, flag := range p.flags {
		if set, ok := s.worse[flag]; ok {
			w.raise(set, "a flag of a program does more than read")
			w.anyPath(args)
			break
		}
	}
	w.operands(s.args, p, args)
}

// operands notes what is not a flag.
func (w *walker) operands(kind argKind, p parsedArgs, args []string) {
	rest := p.rest
	switch kind {
	case patternFiles, patternHere:
		if len(rest) > 0 && !p.has("-e", "--regexp") {
			rest = rest[1:]
		}
		if len(rest) == 0 && (kind == patternHere || p.has("-r", "-R", "-d", "--recursive", "--dereference-recursive")) {
			w.path(".")
		}
	case modeFiles:
		if len(rest) > 0 {
			rest = rest[1:]
		}
	case filesOrHere:
		if len(rest) == 0 {
			w.path(".")
		}
	case text:
		return
	case environment:
		w.environment()
		return
	case nothing:
		if len(rest) > 0 {
			w.unknown(args, "a program has an argument that is not in the table")
		}
		return
	case oneFile:
		// Where flags end at the first file, a flag behind it is the second one.
		isLast := len(rest) == 0 || args[len(args)-1] == rest[0]
		if len(rest) > 1 || !isLast || w.misplaced(rest...) {
			w.raise(effect.Writes|effect.Deletes, "a program writes its second file")
		}
	case formatOrEmpty:
		if len(rest) > 1 || len(rest) == 1 && !strings.HasPrefix(rest[0], "+") {
			w.unknown(args, "a program has an argument that is not in the table")
		}
		return
	}
	for _, file := range slices.Concat(rest, p.late) {
		w.path(file)
	}
}
