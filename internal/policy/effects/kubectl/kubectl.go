// Package kubectl tells from a kubectl command line what it does and to which objects. A verb or a flag that is not in
// a table is the worst.
package kubectl

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"gatewright.dev/gatewright/internal/policy/effects/effect"
	"gatewright.dev/gatewright/internal/policy/effects/words"
)

// Result is what a kubectl command line does.
type Result struct {
	Effects effect.Set
	// Parsed tells that the verb and every flag are known, so that the fields below are complete.
	Parsed bool
	// Why tells what makes it more than a read.
	Why string
	// Verb is the command, with its second word where it has one: get, rollout restart, auth can-i.
	Verb string
	// Resources are the kinds of objects, in lower case and plural where kubectl has a short or singular name. AnyKind is
	// among them where a manifest names the kinds, since it is not read.
	Resources []string
	// Names are the names of objects. AnyName is among them where the command line picks objects in another way: all of a
	// kind, by label, or by a manifest.
	Names []string
	// Namespace is empty where the command line names none, and where it reaches beyond the one that it names: with all
	// namespaces, or with a kind that is known to lie in none. Whether a kind of somebody's own lies in a namespace, or what a
	// manifest holds, is not known here.
	Namespace     string
	AllNamespaces bool
	// NamedNamespace is the namespace that the command line names, whatever else it reaches. Part of the objects may lie there.
	NamedNamespace string
	// Paths are the files that are read.
	Paths []string
}

// AnyKind stands for the kinds of objects in a manifest.
const AnyKind = "*"

// AnyName stands for objects that are not named.
const AnyName = "*"

// maxItems bounds each list of a result, so that a policy that walks one has a bounded cost.
const maxItems = 256

// Parse judges a command line with or without the leading kubectl. Anything beyond one plain command is the worst.
func Parse(line string) Result {
	file, err := words.Parse(line)
	if err != nil {
		return unparsed(err.Error())
	}
	if len(file.Stmts) != 1 {
		return unparsed("the text is not one command")
	}
	stmt := file.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || stmt.Negated || stmt.Background || stmt.Coprocess || stmt.Disown || len(stmt.Redirs)+len(call.Assigns) > 0 {
		return unparsed("the text is not one plain command")
	}
	var args []string
	for _, word := range call.Args {
		w, err := words.Literal(word)
		if err != nil {
			return unparsed(err.Error())
		}
		if w.Glob {
			return unparsed("a word is a pattern of file names")
		}
		args = append(args, w.Text)
	}
	switch args[0] {
	case "kubectl", "/usr/bin/kubectl", "/usr/local/bin/kubectl":
		args = args[1:]
	}
	return Args(args)
}

// Args judges the arguments of kubectl, without its own name.
func Args(args []string) Result {
	verb, rest := verbOf(args)
	command, ok := commands[verb]
	if !ok {
		return unparsed("the verb is not in the table")
	}
	p := parse(rest, command.flags)
	if p.problem != "" {
		return unparsed(p.problem)
	}
	r := Result{Effects: command.effects, Parsed: true, Verb: verb, Why: command.why(verb)}
	if command.effects.IsRead() && len(p.manifests()) > 0 {
		return unparsed("a manifest may name any object, a secret included")
	}
	if problem := r.targets(command.args, p); problem != "" {
		return unparsed(problem)
	}
	r.AllNamespaces = p.last("all-namespaces") == "true"
	r.NamedNamespace = p.last("namespace")
	if !r.AllNamespaces && !slices.ContainsFunc(r.Resources, func(kind string) bool { return clusterScoped[kind] }) {
		r.Namespace = r.NamedNamespace
	}
	if len(r.Resources) > 0 && (len(r.Names) == 0 || selects(p)) {
		r.Names = append(r.Names, AnyName)
	}
	if len(r.Resources) > maxItems || len(r.Names) > maxItems || len(r.Paths) > maxItems {
		return unparsed("the command names too many objects")
	}
	for _, flag := range command.deleting {
		if v := p.last(flag); v != "" && v != "false" {
			r.Effects |= effect.Deletes
			r.Why = "the flag " + flag + " deletes"
		}
	}
	return r
}

// selects tells whether objects are picked otherwise than by name.
func selects(p parsed) bool {
	return p.last("all") == "true" || p.last("all-pods") == "true" || len(p.manifests()) > 0 ||
		p.last("selector") != "" || p.last("field-selector") != ""
}

func unparsed(why string) Result { return Result{Effects: effect.Worst, Why: why} }

// verbOf finds the verb and gives the other words back. Only the namespace may stand before the verb: there, kubectl
// takes the word behind any other flag as its value, whatever the flag means to the verb.
func verbOf(args []string) (verb string, rest []string) {
	at := 0
	for at < len(args) && strings.HasPrefix(args[at], "-") {
		switch {
		case args[at] == "-n" || args[at] == "--namespace":
			at += 2
		case strings.HasPrefix(args[at], "--namespace="):
			at++
		default:
			return "", nil
		}
	}
	if at >= len(args) {
		return "", nil
	}
	if _, ok := commands[args[at]]; ok {
		return args[at], slices.Concat(args[:at], args[at+1:])
	}
	if at+1 < len(args) {
		return args[at] + " " + args[at+1], slices.Concat(args[:at], args[at+2:])
	}
	return "", nil
}

// targets fills in what the command is about.
func (r *Result) targets(kind argKind, p parsed) string {
	if len(p.manifests()) > 0 {
		r.Resources = append(r.Resources, AnyKind)
	}
	for _, file := range p.manifests() {
		if strings.Contains(file, "://") {
			return "a manifest comes from the network"
		}
		if file != "-" {
			r.Paths = append(r.Paths, path.Clean(file))
		}
	}
	switch kind {
	case noObjects:
		if len(p.args) > 0 {
			return "an argument is not expected here"
		}
	case freeWords:
		r.Names = append(r.Names, p.args...)
	case pods:
		return r.objects(p.args, "pods")
	case nodes:
		r.Resources, r.Names = append(r.Resources, "nodes"), p.args
	case requests:
		r.Resources, r.Names = append(r.Resources, "certificatesigningrequests"), p.args
	case newObject:
		return r.created(p.args)
	case objects:
		return r.objects(p.args, "")
	case keyed:
		return r.objects(slices.DeleteFunc(p.args, isPair), "")
	}
	return ""
}

// created reads "create TYPE NAME" and "create secret generic NAME".
func (r *Result) created(args []string) string {
	if len(args) == 0 {
		return ""
	}
	if problem := r.addTypes(args[0]); problem != "" {
		return problem
	}
	if args[0] == "token" {
		return "a credential is issued"
	}
	if !creatable[strings.ToLower(args[0])] {
		return "a kind to create is not in the table" // kubectl runs a plugin of that name
	}
	r.Names = append(r.Names, args[1:]...)
	return ""
}

// isPair tells a label, an annotation, a taint or an image to set, or one to remove.
func isPair(arg string) bool { return strings.Contains(arg, "=") || strings.HasSuffix(arg, "-") }

// objects reads TYPE[,TYPE] NAME..., TYPE/NAME..., or names of one kind that needs not be written.
func (r *Result) objects(args []string, kind string) string {
	for i, arg := range args {
		types, name, slash := strings.Cut(arg, "/")
		switch {
		case slash:
			if problem := r.addTypes(types); problem != "" {
				return problem
			}
			r.Names = append(r.Names, name)
		case kind == "" && i == 0:
			if problem := r.addTypes(arg); problem != "" {
				return problem
			}
		default:
			r.Names = append(r.Names, arg)
		}
	}
	if kind != "" && len(r.Resources) == 0 {
		r.Resources = []string{kind}
	}
	return ""
}

func (r *Result) addTypes(list string) string {
	for t := range strings.SplitSeq(strings.ToLower(list), ",") {
		for _, c := range t {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '-' {
				return "a kind of object has an unknown form"
			}
		}
		base, group, _ := strings.Cut(t, ".")
		if base == "" {
			return "a kind of object is empty"
		}
		if full, ok := shortNames[base]; ok {
			base = full
		}
		r.Resources = append(r.Resources, base)
		if group != "" {
			r.Resources = append(r.Resources, t)
		}
	}
	return ""
}
