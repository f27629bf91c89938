package kubectl

import "strings"

// flagSet names the flags that a command may have: true means that a value follows.
type flagSet map[string]bool

// attached are the flags whose value is not taken from the next word: without an equals sign they have one of their own.
var attached = map[string]bool{"dry-run": true, "cascade": true, "validate": true}

// shorthands are the one-letter names. A letter means different flags to different commands, so a command's own
// letters are part of its flag set, written "f:filename".
func (f flagSet) short(letter byte) (string, bool) {
	switch letter {
	case 'n':
		return "namespace", true
	case 'A':
		return "all-namespaces", f.has("all-namespaces")
	case 'o':
		return "output", f.has("output")
	case 'l':
		return "selector", f.has("selector")
	case 'f':
		if f.has("filename") {
			return "filename", true
		}
		return "follow", f.has("follow")
	case 'w':
		return "watch", f.has("watch")
	case 'L':
		return "label-columns", f.has("label-columns")
	case 'c':
		return "container", f.has("container")
	case 'p':
		if f.has("previous") {
			return "previous", true
		}
		return "patch", f.has("patch")
	case 'R':
		return "recursive", f.has("recursive")
	}
	return "", false
}

func (f flagSet) has(name string) bool { _, ok := f[name]; return ok }

// parsed is a command's flags and arguments.
type parsed struct {
	flags   map[string][]string
	args    []string
	problem string
}

// manifests are the files that the command reads.
func (p parsed) manifests() []string { return p.flags["filename"] }

func (p parsed) last(name string) string {
	if v := p.flags[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// repeatable flags add up; any other flag that is given twice is refused, since readers may differ in which one wins.
var repeatable = map[string]bool{"filename": true, "label-columns": true, "from-literal": true, "image": true, "verb": true, "resource": true}

// parse reads flags as pflag does: exact names, --name=value or --name value, clusters of letters, and -- at the end.
func parse(args []string, flags flagSet) parsed {
	p := parsed{flags: map[string][]string{}}
	for i := 0; i < len(args) && p.problem == ""; i++ {
		arg := args[i]
		switch {
		case arg == "--":
			p.args = append(p.args, args[i+1:]...)
			return p
		case strings.HasPrefix(arg, "--"):
			i += p.long(arg[2:], args[i+1:], flags)
		case strings.HasPrefix(arg, "-") && arg != "-":
			i += p.cluster(arg[1:], args[i+1:], flags)
		default:
			p.args = append(p.args, arg)
		}
	}
	return p
}

// long reads one long flag and tells how many of the next words it took.
func (p *parsed) long(text string, next []string, flags flagSet) int {
	name, value, equals := strings.Cut(text, "=")
	valued, ok := lookup(flags, name)
	switch {
	case !ok:
		p.problem = "a flag is not in the table"
	case equals:
		p.set(name, value, valued)
	case !valued:
		p.set(name, "true", false)
	case attached[name]:
		p.set(name, "true", true)
	case len(next) == 0:
		p.problem = "a flag has no value"
	default:
		p.set(name, next[0], true)
		return 1
	}
	return 0
}

// cluster reads letters behind one dash; the first with a value takes the rest, or the next word.
func (p *parsed) cluster(letters string, next []string, flags flagSet) int {
	for i := 0; i < len(letters); i++ {
		name, ok := flags.short(letters[i])
		if !ok {
			p.problem = "a flag is not in the table"
			return 0
		}
		valued, _ := lookup(flags, name)
		rest := letters[i+1:]
		switch {
		case !valued && strings.HasPrefix(rest, "="):
			p.set(name, rest[1:], false)
			return 0
		case !valued:
			p.set(name, "true", false)
		case rest != "":
			p.set(name, strings.TrimPrefix(rest, "="), true)
			return 0
		case len(next) == 0:
			p.problem = "a flag has no value"
			return 0
		default:
			p.set(name, next[0], true)
			return 1
		}
	}
	return 0
}

func lookup(flags flagSet, name string) (valued, ok bool) {
	if name == "namespace" || name == "request-timeout" {
		return true, true
	}
	valued, ok = flags[name]
	return valued, ok
}

func (p *parsed) set(name, value string, valued bool) {
	switch {
	case len(p.flags[name]) > 0 && !repeatable[name]:
		p.problem = "a flag is given twice"
	case !valued && value != "true" && value != "false":
		p.problem = "a switch has an unknown value"
	case name == "output" && !plainOutput(value):
		p.problem = "the output format reads a file or is unknown"
	case name == "namespace" && value == "":
		p.problem = "the namespace is empty"
	}
	p.flags[name] = append(p.flags[name], value)
}

// plainOutput allows the formats whose template stands on the command line.
func plainOutput(format string) bool {
	kind, _, _ := strings.Cut(format, "=")
	switch kind {
	case "json", "yaml", "name", "wide", "jsonpath", "jsonpath-as-json", "custom-columns", "go-template":
		return true
	}
	return false
}
