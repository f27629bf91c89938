package shell

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"

	"gatewright.dev/gatewright/internal/policy/effects/effect"
	"gatewright.dev/gatewright/internal/policy/effects/weburl"
	"gatewright.dev/gatewright/internal/policy/effects/words"
)

// walker gathers the result of one command line.
type walker struct {
	r     Result
	depth int
	// folder is the target of the one cd that a command line may hold. Whether it ran when a later path is used is not
	// decided here: such a path counts twice.
	folder string
	// patterns are the words of the command at hand that the shell may replace by any number of file names.
	patterns map[string]bool
}

// raise adds effects and keeps the first reason.
func (w *walker) raise(set effect.Set, why string) {
	w.r.Effects |= set
	if w.r.Why == "" {
		w.r.Why = why
	}
}

// fail marks what could not be understood.
func (w *walker) fail(why string) {
	w.raise(effect.Worst, why)
	w.r.Parsed = false
}

func (w *walker) stmts(stmts []*syntax.Stmt) {
	w.depth--
	defer func() { w.depth++ }()
	if w.depth < 0 {
		w.fail("commands are nested too deeply")
		return
	}
	for _, stmt := range stmts {
		w.stmt(stmt)
	}
}

func (w *walker) stmt(stmt *syntax.Stmt) {
	if stmt.Background || stmt.Coprocess || stmt.Disown {
		w.fail("a command runs in the background")
	}
	for _, redirect := range stmt.Redirs {
		w.redirect(redirect)
	}
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		w.call(c)
	case *syntax.BinaryCmd:
		w.binary(c)
	case *syntax.Subshell:
		w.stmts(c.Stmts)
	case *syntax.Block:
		w.stmts(c.Stmts)
	case *syntax.TimeClause:
		if c.Stmt == nil {
			w.fail("a construct is not in the table")
			return
		}
		w.stmts([]*syntax.Stmt{c.Stmt})
	default: // functions, loops, conditions, tests and arithmetic, all of which can hide evaluation
		w.fail("a construct is not in the table")
	}
}

// binary walks a chain of && || | and |& without recursing along it, since chains may be long.
func (w *walker) binary(c *syntax.BinaryCmd) {
	var leaves []*syntax.Stmt
	for open := []*syntax.Stmt{c.Y, c.X}; len(open) > 0; {
		last := open[len(open)-1]
		open = open[:len(open)-1]
		inner, ok := last.Cmd.(*syntax.BinaryCmd)
		if ok && len(last.Redirs) == 0 && !last.Background && !last.Coprocess && !last.Disown {
			open = append(open, inner.Y, inner.X)
			continue
		}
		leaves = append(leaves, last)
	}
	w.stmts(leaves)
}

func (w *walker) redirect(r *syntax.Redirect) {
	target, err := words.Literal(r.Word)
	switch {
	case r.N != nil && strings.HasPrefix(r.N.Value, "{"):
		w.fail("a redirection sets a variable")
	case r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc:
		w.document(r)
	case err != nil:
		w.fail(err.Error())
	case target.Glob:
		w.fail("a redirection goes to a pattern of file names")
	case r.Op == syntax.WordHdoc:
	case r.Op == syntax.DplIn || r.Op == syntax.DplOut:
		if strings.Trim(target.Text, "0123456789") != "" && target.Text != "-" || target.Text == "" {
			w.fail("a redirection copies an unknown descriptor")
		}
	case target.Text == "/dev/null":
	case path.Clean(target.Text) == "/dev" || strings.HasPrefix(path.Clean(target.Text), "/dev/"):
		w.fail("a redirection goes to a device or to the network")
	default:
		w.redirectFile(r.Op, target.Text)
	}
}

func (w *walker) redirectFile(op syntax.RedirOperator, target string) {
	w.path(target)
	switch op {
	case syntax.RdrIn:
	case syntax.AppOut, syntax.AppAll:
		w.raise(effect.Writes, "a redirection writes a file")
	case syntax.RdrOut, syntax.RdrClob, syntax.RdrAll:
		w.raise(effect.Writes|effect.Deletes, "a redirection overwrites a file")
	default:
		w.fail("a redirection is not in the table")
	}
}

// document allows a here-document whose text is fixed.
func (w *walker) document(r *syntax.Redirect) {
	if r.Hdoc == nil {
		return
	}
	for _, part := range r.Hdoc.Parts {
		if _, ok := part.(*syntax.Lit); !ok {
			w.fail("a here-document depends on an expansion")
			return
		}
	}
}

// call judges one simple command.
func (w *walker) call(c *syntax.CallExpr) {
	if len(c.Assigns) > 0 {
		w.fail("a variable is set")
	}
	var args []string
	w.patterns = map[string]bool{}
	for i, word := range c.Args {
		arg, err := words.Literal(word)
		switch {
		case err != nil:
			w.fail(err.Error())
		case arg.Glob && i == 0:
			w.fail("the program is a pattern of file names")
		case arg.GlobFirst || arg.Glob && strings.HasPrefix(arg.Text, "-"):
			w.fail("a pattern may become a flag")
		case arg.Glob && hidesParent(arg.Text):
			w.fail("a pattern may lead upwards")
		default:
			if arg.Glob { // whatever the program does with them, the names of files are read
				w.path(arg.Text)
				w.patterns[arg.Text] = true
			}
			args = append(args, arg.Text)
			continue
		}
		return
	}
	if len(args) > 0 {
		w.program(args)
	}
}

// hidesParent tells whether a pattern such as .* could match the folder above.
func hidesParent(pattern string) bool {
	for segment := range strings.SplitSeq(pattern, "/") {
		if strings.HasPrefix(segment, ".") && strings.ContainsAny(segment, "*?[") {
			return true
		}
	}
	return false
}

// program judges a program and its arguments.
func (w *walker) program(args []string) {
	folder, name := path.Split(args[0])
	w.r.Programs = append(w.r.Programs, name)
	if w.patterns[args[0]] {
		w.fail("the program is a pattern of file names")
		return
	}
	switch folder {
	case "", "/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/":
	default:
		w.unknown(args[1:], "a program lies in a folder of its own")
		return
	}
	if special := specialOf(name); special != nil {
		special(w, args[1:])
		return
	}
	spec, ok := programs[name]
	if !ok {
		w.unknown(args[1:], "a program is not in the table")
		return
	}
	w.spec(spec, args[1:])
}

// misplaced tells whether a pattern stands among words that mean something by their place. One pattern may become many
// words, and any of them a script, a value or a command.
func (w *walker) misplaced(args ...string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return w.patterns[arg] })
}

// environment notes that a program shows variables, where credentials are kept.
func (w *walker) environment() { w.path("/proc/self/environ") }

// unknown is the worst, and takes every argument for a path, and every word in it for a program: env, xargs and sudo run
// one, and an interpreter runs whatever its script names.
func (w *walker) unknown(args []string, why string) {
	w.raise(effect.Worst, why)
	w.anyPath(args)
	for _, arg := range args {
		w.r.Programs = append(w.r.Programs, strings.FieldsFunc(arg, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '_' && r != '-' && r != '+'
		})...)
	}
}

// anyPath notes whatever may be a file in arguments whose flags are not known: -ffile, -xffile, --flag=file, of=file,
// @file, file.
func (w *walker) anyPath(args []string) {
	for _, arg := range args {
		if u := weburl.Parse(arg); u.Parsed {
			w.r.Hosts = append(w.r.Hosts, u.Host)
			continue
		}
		name, value, equals := strings.Cut(arg, "=")
		switch {
		case equals && name != "":
			w.path(value)
		case len(arg) > 2 && arg[0] == '-' && arg[1] != '-':
			w.cluster(arg[1:])
		}
		if _, file, found := strings.Cut(arg, "@"); found {
			w.path(file)
		}
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			w.path(arg)
		}
	}
}

// maxFlags bounds the letters behind one dash of which each may be a flag, since the rest behind each may be a path: more
// letters would make more text than the command line holds, with the square of its length.
const maxFlags = 64

// cluster notes what may be the value of a flag among letters behind one dash: of -nofile, "ofile" and "file" among
// others. Letters and digits may be flags; the first other character is part of a value.
func (w *walker) cluster(letters string) {
	for i := 1; i < len(letters); i++ {
		if i > maxFlags {
			w.fail("a dash stands before too many letters")
			return
		}
		w.path(strings.TrimPrefix(letters[i:], "="))
		if c := letters[i]; c|0x20 < 'a' || c|0x20 > 'z' {
			if c < '0' || c > '9' {
				return
			}
		}
	}
}

// maxPaths bounds the paths while repetitions still count: each may be as long as the folder that cd goes to.
const maxPaths = 4 * maxItems

// path notes a file, and once more from the folder that cd may have gone to.
func (w *walker) path(name string) {
	if name == "" || name == "-" { // nothing, and standard input
		return
	}
	if len(w.r.Paths) >= maxPaths {
		w.fail("the text names too many files")
		return
	}
	if strings.HasPrefix(name, "~") { // "~/.." is refused where words are read
		w.r.Paths = append(w.r.Paths, name)
		return
	}
	w.r.Paths = append(w.r.Paths, path.Clean(name))
	if w.folder != "" && !path.IsAbs(name) {
		w.r.Paths = append(w.r.Paths, path.Join(w.folder, name))
	}
}

// merge adds the result of a command inside the command.
func (w *walker) merge(inner Result) {
	w.raise(inner.Effects, inner.Why)
	w.r.Parsed = w.r.Parsed && inner.Parsed
	w.r.Programs = append(w.r.Programs, inner.Programs...)
	w.r.Hosts = append(w.r.Hosts, inner.Hosts...)
	for _, p := range inner.Paths {
		w.path(p)
	}
}

// finish drops repetitions. Too long a list is an incomplete one, hence not parsed.
func (w *walker) finish() Result {
	r := w.r
	r.Programs, r.Paths, r.Hosts = unique(r.Programs), unique(r.Paths), unique(r.Hosts)
	if len(r.Programs) > maxItems || len(r.Paths) > maxItems || len(r.Hosts) > maxItems {
		return unparsed("the text names too many programs, files or hosts")
	}
	return r
}

func unique(list []string) []string {
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(s string) bool {
		defer func() { seen[s] = true }()
		return seen[s]
	})
}
