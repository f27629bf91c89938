package shell

import (
	"slices"
	"strings"

	"gatewright.dev/gatewright/internal/policy/effects/effect"
)

// logFlags are the flags of git's commands that show history. Those that write a file (--output), run a program
// (--ext-diff, --textconv, --show-signature) or open a pager are left out.
const logFlags = "oneline graph all branches? tags? decorate? stat? shortstat numstat name-only name-status patch no-patch " +
	"max-count= since= until= after= before= author= committer= grep= follow merges no-merges first-parent reverse format= " +
	"pretty? abbrev-commit date= no-color color? cached staged no-ext-diff no-textconv raw summary word-diff? unified? " +
	"diff-filter= ignore-all-space no-renames exit-code quiet left-right cherry-pick"

// gitReads is the table of git's commands that only read. Revisions count as paths, since they may be either.
var gitReads = map[string]spec{
	"status":       {short: "sbvz", long: "short branch porcelain? verbose long ignored? untracked-files? show-stash null"},
	"log":          {short: "pszi", valued: "nGS", long: logFlags, digits: true},
	"show":         {short: "psz", valued: "n", long: logFlags},
	"diff":         {short: "pszwbRa", valued: "GS", maybe: "U", long: logFlags},
	"shortlog":     {short: "sne", long: "summary numbered email all"},
	"blame":        {short: "wsefnltpCM", valued: "L", long: "porcelain line-porcelain"},
	"rev-parse":    {short: "q", long: "abbrev-ref? short? verify show-toplevel git-dir is-inside-work-tree symbolic-full-name show-prefix"},
	"rev-list":     {short: "", valued: "n", long: "count all max-count= since= until= author= no-merges merges first-parent left-right", digits: true},
	"ls-files":     {short: "cdmoszt", long: "cached deleted modified others exclude-standard stage"},
	"ls-tree":      {short: "rtdlz", long: "name-only name-status long full-tree"},
	"cat-file":     {short: "tspe"},
	"describe":     {long: "tags all always dirty? long abbrev? exact-match"},
	"merge-base":   {short: "a", long: "all is-ancestor"},
	"name-rev":     {long: "name-only tags"},
	"for-each-ref": {long: "format= sort= count= merged? contains?"},
	"grep":         {short: "iwvnlLcEFGPhHqo", valued: "eABC", long: "ignore-case word-regexp line-number count files-with-matches cached", args: patternHere},
}

// gitWrites is the table of git's commands that change the repository; deletes marks what may throw work away.
var gitWrites = map[string]effect.Set{
	"add": writes, "commit": writes, "init": writes,
	"checkout": deletes, "switch": deletes, "restore": deletes, "reset": deletes, "clean": deletes, "rm": deletes, "mv": deletes,
	"stash": deletes, "branch": deletes, "tag": deletes,
}

// gitLists are forms of commands that otherwise write, word by word.
var gitLists = map[string]bool{
	"branch": true, "branch -a": true, "branch -r": true, "branch -v": true, "branch -vv": true, "branch --list": true,
	"branch --all": true, "branch --show-current": true, "tag": true, "tag -l": true, "tag --list": true, "remote": true,
	"remote -v": true, "stash list": true, "worktree list": true, "config -l": true, "config --list": true, "reflog": true,
}

// checksSignature finds the placeholders of a format, and the keys of an order, that run gpg: %G?, signature and their like.
// The word alone, as in the name of a file, is none of them.
func checksSignature(args []string) bool {
	for i, arg := range args {
		flag, value, equals := strings.Cut(arg, "=")
		if !equals && i+1 < len(args) {
			value = args[i+1]
		}
		if strings.Contains(arg, "%G") || strings.Contains(arg, "%(signature") || strings.Contains(arg, "%(*signature") ||
			strings.HasPrefix(flag, "--") && strings.Contains(flag, "signature") || isFormat(flag) && strings.Contains(value, "signature") {
			return true
		}
	}
	return false
}

// isFormat tells a flag whose value is a format or an order. Git takes the beginning of a flag for the flag.
func isFormat(flag string) bool {
	return len(flag) > len("--") && slices.ContainsFunc([]string{"--format", "--pretty", "--sort"}, func(name string) bool {
		return strings.HasPrefix(name, flag)
	})
}

// git judges the commands of the tables. -c and other settings can name programs, and an alias is an unknown word. A
// repository's own configuration can name programs too: whoever may write there runs them by the next git status, so a
// policy that allows writing should keep paths with .git/ out of it.
func git(w *walker, args []string) {
	all, folder := args, w.folder
	defer func() { w.folder = folder }()
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch {
		case args[0] == "--no-pager":
			args = args[1:]
		case args[0] == "-C" && len(args) > 1 && w.folder == "" && !w.misplaced(args[1]):
			w.folder = args[1]
			w.path(".")
			args = args[2:]
		default:
			w.unknown(all, "a setting of git is not in the table")
			return
		}
	}
	if len(args) == 0 {
		return
	}
	w.path(".") // whatever git is asked, the repository of the folder answers
	if gitLists[strings.Join(args, " ")] {
		if args[0] == "config" { // which lists the user's own settings too
			w.path("~/.gitconfig")
		}
		return
	}
	if checksSignature(args) {
		w.unknown(all, "git runs a program that checks signatures")
		return
	}
	if s, ok := gitReads[args[0]]; ok {
		w.spec(s, args[1:])
		return
	}
	set, ok := gitWrites[args[0]]
	if !ok {
		w.unknown(all, "a command of git is not in the table")
		return
	}
	w.raise(set, "a command of git does more than read")
	w.anyPath(args[1:])
}
