package shell

import (
	"slices"
	"strings"

	"gatewright.dev/gatewright/internal/policy/effects/effect"
	"gatewright.dev/gatewright/internal/policy/effects/kubectl"
	"gatewright.dev/gatewright/internal/policy/effects/weburl"
)

// specialOf gives the judge of a program whose arguments are a small language of their own.
func specialOf(program string) func(*walker, []string) {
	switch program {
	case "sh", "bash", "dash":
		return script
	case "awk", "gawk", "mawk":
		return awk
	case "command", "type":
		return command
	case "[":
		return bracket
	case "cd":
		return cd
	case "curl":
		return curl
	case "env":
		return env
	case "find":
		return find
	case "git":
		return git
	case "jq":
		return jq
	case "kubectl":
		return kubectlArgs
	case "printf":
		return printf
	case "ps":
		return ps
	case "sed":
		return sed
	case "strings":
		return stringsOf
	case "tar":
		return tar
	case "test":
		return test
	case "timeout":
		return timeout
	case "tree":
		return tree
	case "unzip":
		return unzip
	}
	return nil
}

// script judges `sh -c 'text'`. Anything else runs a file, or standard input.
func script(w *walker, args []string) {
	if len(args) != 2 || args[0] != "-c" || w.misplaced(args...) {
		w.unknown(args, "a shell runs what is not on the command line")
		return
	}
	w.depth--
	defer func() { w.depth++ }()
	if w.depth < 0 {
		w.fail("commands are nested too deeply")
		return
	}
	w.merge(parse(args[1], w.depth))
}

// timeout judges `timeout DURATION command`.
func timeout(w *walker, args []string) {
	if len(args) < 2 || args[0] == "" || strings.Trim(args[0], "0123456789.smhd") != "" {
		w.unknown(args, "a flag of a program is not in the table")
		return
	}
	w.depth--
	defer func() { w.depth++ }()
	if w.depth < 0 {
		w.fail("commands are nested too deeply")
		return
	}
	w.program(args[1:])
}

// command judges `type name` and `command -v name`; command without -v runs the name.
func command(w *walker, args []string) {
	last := w.r.Programs[len(w.r.Programs)-1]
	if last == "type" && !anyFlag(args) || len(args) > 1 && args[0] == "-v" && !anyFlag(args[1:]) {
		return
	}
	w.unknown(args, "a flag of a program is not in the table")
}

func anyFlag(args []string) bool {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			return true
		}
	}
	return false
}

// cd notes where later paths may start. A second cd would multiply the places.
func cd(w *walker, args []string) {
	switch {
	case len(args) != 1 || args[0] == "" || strings.HasPrefix(args[0], "-") || w.misplaced(args...):
		w.fail("the folder of cd is not known")
	case w.folder != "":
		w.fail("the folder is changed twice")
	default:
		w.path(args[0])
		w.folder = args[0]
	}
}

// test judges the plain operators. -v and -R are left out because bash evaluates what they name, and comparisons of
// anything but numbers because ksh evaluates both sides.
func test(w *walker, args []string) {
	if w.misplaced(args...) {
		w.unknown(args, "a test holds a pattern of file names")
		return
	}
	for i, arg := range args {
		switch arg {
		case "-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h":
			if i+1 < len(args) {
				w.path(args[i+1])
			}
		case "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
			if i == 0 || i+1 == len(args) || !digits(args[i-1]) || !digits(args[i+1]) {
				w.unknown(args, "a test compares what is not a number")
				return
			}
		case "-n", "-z", "=", "!=", "!":
		default:
			if strings.HasPrefix(arg, "-") {
				w.unknown(args, "a flag of a program is not in the table")
				return
			}
		}
	}
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func bracket(w *walker, args []string) {
	if len(args) == 0 || args[len(args)-1] != "]" {
		w.fail("a test is not closed")
		return
	}
	test(w, args[:len(args)-1])
}

// findTests are the tests and actions of find that only look, and how many arguments each takes.
var findTests = map[string]int{
	"-name": 1, "-iname": 1, "-path": 1, "-ipath": 1, "-wholename": 1, "-regex": 1, "-iregex": 1, "-regextype": 1,
	"-type": 1, "-size": 1, "-mtime": 1, "-atime": 1, "-ctime": 1, "-mmin": 1, "-amin": 1, "-cmin": 1, "-perm": 1,
	"-user": 1, "-group": 1, "-uid": 1, "-gid": 1, "-maxdepth": 1, "-mindepth": 1, "-links": 1, "-inum": 1, "-fstype": 1,
	"-printf": 1, "-empty": 0, "-executable": 0, "-readable": 0, "-writable": 0, "-nouser": 0, "-nogroup": 0, "-true": 0,
	"-false": 0, "-print": 0, "-print0": 0, "-ls": 0, "-prune": 0, "-quit": 0, "-depth": 0, "-mount": 0, "-xdev": 0,
	"-follow": 0, "-daystart": 0, "-a": 0, "-and": 0, "-o": 0, "-or": 0, "-not": 0, "!": 0, "(": 0, ")": 0, ",": 0,
}

func find(w *walker, args []string) {
	for len(args) > 0 && (args[0] == "-H" || args[0] == "-L" || args[0] == "-P") {
		args = args[1:]
	}
	start := 0
	for ; start < len(args) && !strings.HasPrefix(args[start], "-") && !strings.ContainsAny(args[start][:min(1, len(args[start]))], "(!,)"); start++ {
		w.path(args[start])
	}
	if start == 0 {
		w.path(".")
	}
	if w.misplaced(args[start:]...) {
		w.unknown(args, "a pattern may become an action of find")
		return
	}
	for i := start; i < len(args); i++ {
		arity, ok := findTests[args[i]]
		switch {
		case args[i] == "-delete":
			w.raise(effect.Writes|effect.Deletes, "find deletes")
		case !ok || i+arity >= len(args):
			w.unknown(args, "an action of find is not in the table")
			return
		}
		i += arity
	}
}

// sed judges one script of plain commands; in-place editing overwrites.
func sed(w *walker, args []string) {
	// The value of --in-place may name another folder, and is left out.
	s := spec{short: "nrEsuzi", valued: "", long: "quiet silent regexp-extended separate unbuffered null-data in-place"}
	p := s.split(args)
	if p.bad || len(p.rest) == 0 || w.misplaced(p.rest[0]) || !plainSed(p.rest[0]) {
		w.unknown(args, "a script of sed is not plain")
		return
	}
	if p.has("-i", "--in-place") {
		w.raise(effect.Writes|effect.Deletes, "sed edits in place")
	}
	for _, file := range p.rest[1:] {
		w.path(file)
	}
}

// plainSed accepts addresses by line followed by p, d, q or =, and s/old/new/ without w and e. A bracket could hide a
// slash and a backslash could escape one, so neither is allowed.
func plainSed(script string) bool {
	rest := strings.TrimLeft(script, "0123456789,$")
	switch rest {
	case "p", "d", "q", "=":
		return true
	}
	if !strings.HasPrefix(rest, "s/") || strings.ContainsAny(rest, "[\\\n;{}") {
		return false
	}
	parts := strings.Split(rest, "/")
	return len(parts) == 4 && strings.Trim(parts[3], "gpIi0123456789") == ""
}

// awk judges `{print $1, $NF}`, with -F at most. All else is a program. Behind the program everything is a file.
func awk(w *walker, args []string) {
	rest := args
	switch {
	case len(rest) > 1 && rest[0] == "-F" && !w.misplaced(rest[1]):
		rest = rest[2:]
	case len(rest) > 0 && strings.HasPrefix(rest[0], "-F") && rest[0] != "-F":
		rest = rest[1:]
	}
	if len(rest) == 0 || w.misplaced(rest[0]) || !plainAwk(rest[0]) {
		w.unknown(args, "a program of awk is not plain")
		return
	}
	for _, file := range rest[1:] {
		if strings.Contains(file, "=") || strings.HasPrefix(file, "/inet") || strings.HasPrefix(file, "-") && file != "-" {
			w.unknown(args, "a file of awk sets a variable, opens the network, or may be a flag")
			return
		}
		w.path(file)
	}
}

func plainAwk(program string) bool {
	body, ok := strings.CutPrefix(strings.TrimSpace(program), "{")
	if !ok {
		return false
	}
	body, ok = strings.CutSuffix(body, "}")
	if !ok {
		return false
	}
	words := strings.FieldsFunc(body, func(r rune) bool { return r == ' ' || r == ',' })
	if len(words) == 0 || words[0] != "print" {
		return false
	}
	for _, word := range words[1:] {
		field, ok := strings.CutPrefix(word, "$")
		if word != "NF" && word != "NR" && (!ok || field == "" || field != "NF" && strings.Trim(field, "0123456789") != "") {
			return false
		}
	}
	return true
}

// jq judges a filter without modules.
func jq(w *walker, args []string) {
	p := spec{short: "rcsSenRjaMC", long: "raw-output compact-output slurp sort-keys exit-status null-input raw-input join-output tab"}.split(args)
	if p.bad || len(p.rest) == 0 || w.misplaced(p.rest[0]) || strings.Contains(p.rest[0], "import") || strings.Contains(p.rest[0], "include") {
		w.unknown(args, "a filter of jq is not plain")
		return
	}
	if strings.Contains(strings.ToLower(p.rest[0]), "env") {
		w.environment()
	}
	for _, file := range p.rest[1:] {
		w.path(file)
	}
}

// tar lists an archive, or unpacks one into the current folder. A colon in its name would mean another machine.
func tar(w *walker, args []string) {
	if len(args) < 2 || strings.Contains(args[1], ":") || anyFlag(args[1:]) || w.misplaced(args...) {
		w.unknown(args, "a flag of a program is not in the table")
		return
	}
	switch strings.TrimPrefix(args[0], "-") {
	case "tf", "tvf", "tzf", "tjf", "tJf", "tzvf", "ztf", "ztvf", "tvzf":
	case "xf", "xvf", "xzf", "xjf", "xJf", "xzvf", "zxf", "zxvf", "xvzf":
		w.raise(effect.Writes|effect.Deletes, "tar unpacks over files")
		w.path(".")
	default:
		w.unknown(args, "a flag of a program is not in the table")
		return
	}
	w.path(args[1])
}

// unzip lists an archive.
func unzip(w *walker, args []string) {
	if len(args) != 2 || args[0] != "-l" && args[0] != "-v" || anyFlag(args[1:]) || w.misplaced(args...) {
		w.unknown(args, "a flag of a program is not in the table")
		return
	}
	w.path(args[1])
}

// curl sends. With flags of the table it neither uploads, nor changes the method, nor writes a file, nor follows a
// server to another host.
func curl(w *walker, args []string) {
	p := spec{short: "sSfIivk46gG#", valued: "Aem", long: "silent show-error fail head include verbose compressed user-agent= max-time= connect-timeout= retry="}.split(args)
	if p.bad || len(p.rest) == 0 || w.misplaced(args...) {
		w.unknown(args, "a flag of a program is not in the table")
		return
	}
	w.raise(effect.Writes|effect.Sends, "a program sends")
	for _, arg := range p.rest {
		w.url(arg)
	}
}

// url notes the host of a URL, without which the call is the worst: curl reads file: URLs, and guesses schemes.
func (w *walker) url(text string) {
	u := weburl.Parse(text)
	if !u.Parsed || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(text, "{}[]") {
		w.fail("a URL is not plain")
		return
	}
	w.r.Hosts = append(w.r.Hosts, u.Host)
}

// kubectlArgs leaves kubectl to its own parser.
func kubectlArgs(w *walker, args []string) {
	if w.misplaced(args...) {
		w.unknown(args, "kubectl: a word is a pattern of file names")
		return
	}
	r := kubectl.Args(args)
	if !r.Parsed {
		w.unknown(args, "kubectl: "+r.Why)
		return
	}
	switch {
	case slices.Contains(r.Resources, "secrets"): // nothing else in a shell's result would show it
		w.raise(effect.Worst, "kubectl: secrets are named")
	case !r.Effects.IsRead():
		w.raise(r.Effects, "kubectl: "+r.Why)
	}
	for _, file := range r.Paths {
		w.path(file)
	}
}
