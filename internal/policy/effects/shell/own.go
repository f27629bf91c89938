package shell

import (
	"strings"
)

// env shows the environment; with an argument it runs a program in another one.
func env(w *walker, args []string) {
	if len(args) > 0 {
		w.unknown(args, "a program has an argument that is not in the table")
		return
	}
	w.environment()
}

// printf judges a format without %n, which sets the variable that an argument names: PATH, for one. Some shells
// evaluate the argument of a number, so that it has to be one.
func printf(w *walker, args []string) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || w.misplaced(args[0]) {
		w.unknown(args, "a format of printf is not plain")
		return
	}
	numbers, ok := plainFormat(args[0])
	for _, arg := range args[1:] {
		ok = ok && (!numbers || digits(strings.TrimPrefix(arg, "-")))
	}
	if !ok {
		w.unknown(args, "a format of printf is not plain")
	}
}

// plainFormat tells whether a format holds plain conversions only, and whether one of them is of a number.
func plainFormat(format string) (numbers, ok bool) {
	for {
		_, rest, found := strings.Cut(format, "%")
		if !found {
			return numbers, true
		}
		rest = strings.TrimLeft(rest, "0123456789.-+# ")
		if rest == "" {
			return numbers, false
		}
		switch rest[0] {
		case '%', 's', 'b', 'q', 'c':
		case 'd', 'i', 'u', 'o', 'x', 'X', 'e', 'E', 'f', 'F', 'g', 'G':
			numbers = true
		default:
			return numbers, false
		}
		format = rest[1:]
	}
}

// ps shows the environment of programs where a word without a dash holds an e, as in "ps aux e", or a format names it.
func ps(w *walker, args []string) {
	p := spec{short: "AadefFlMyjcHwLT", valued: "opuUtCg", long: "sort= no-headers forest pid= ppid= user="}.split(args)
	if p.bad || w.misplaced(p.values...) {
		w.unknown(args, "a flag of a program is not in the table")
		return
	}
	for _, word := range p.rest {
		if strings.Contains(word, "e") {
			w.environment()
		}
	}
	for _, arg := range args {
		if strings.Contains(strings.ToLower(arg), "environ") {
			w.environment()
		}
	}
}

// tree takes the words behind a cluster for the values of its letters, and reads on in the cluster: -Po takes two. So
// each letter with a value has to stand alone.
func tree(w *walker, args []string) {
	s := spec{short: "adflsDhpugirtcSFNxC", long: "dirsfirst noreport du", args: filesOrHere}
	var rest []string
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-L", "-P", "-I":
			if i++; i == len(args) || w.misplaced(args[i]) {
				w.unknown(args, "a flag of a program has no value")
				return
			}
		case "--": // read as the end of the flags by some versions only
			w.unknown(args, "a flag of a program is not in the table")
			return
		default:
			rest = append(rest, args[i])
		}
	}
	w.spec(s, rest)
}

// stringsOf shows the text in files. It reads further arguments from a file that is named behind an at sign.
func stringsOf(w *walker, args []string) {
	for _, arg := range args {
		if strings.HasPrefix(arg, "@") {
			w.unknown(args, "a program reads its arguments from a file")
			return
		}
	}
	w.spec(spec{short: "afw", valued: "nte"}, args)
}
