// Package shell tells from a command line what a shell would do with it: which programs run, which files and hosts they
// touch, and whether all of it only reads. Whatever is not in a table, and whatever only a running shell could know, is
// the worst.
package shell

import (
	"gatewright.dev/gatewright/internal/policy/effects/effect"
	"gatewright.dev/gatewright/internal/policy/effects/words"
)

// Result is what a command line does.
type Result struct {
	Effects effect.Set
	// Parsed tells that the text is a command line whose every word is known. Only then the lists are complete.
	Parsed bool
	// Why tells what makes it more than a read; the first of several reasons.
	Why string
	// Programs are the names of the programs and builtins, without their folder, in order, each once. Behind a program
	// that is not in a table every word counts as one.
	Programs []string
	// Paths are the files and folders, cleaned, each once. An argument of which it is not known whether it is a path
	// counts as one. A relative path is relative to where the shell starts. Links are not followed.
	Paths []string
	// Hosts are the hosts of URLs.
	Hosts []string
}

// maxItems bounds each list of a result, so that a policy that walks one has a bounded cost.
const maxItems = 256

// maxDepth bounds commands inside commands: sh -c, and brackets.
const maxDepth = 8

// Parse judges a command line for bash or a POSIX shell.
func Parse(text string) Result {
	return parse(text, maxDepth)
}

func parse(text string, depth int) Result {
	file, err := words.Parse(text)
	if err != nil {
		return unparsed(err.Error())
	}
	w := walker{depth: depth}
	w.r.Effects, w.r.Parsed = effect.Reads, true
	w.stmts(file.Stmts)
	if len(w.r.Programs) == 0 && w.r.Parsed {
		return unparsed("the text runs nothing")
	}
	return w.finish()
}

func unparsed(why string) Result { return Result{Effects: effect.Worst, Why: why} }
