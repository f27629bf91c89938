package chart_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// programs have a section of their name in the values, and flags that its extraArgs may hold: the folders that declare them.
var programs = map[string][]string{
	"gate":    {"cmd/gate", "internal/records"},
	"manager": {"cmd/manager", "controllers"},
}

var (
	section = regexp.MustCompile(`^(\w+):`)
	example = regexp.MustCompile(`^  # Flags as they are, for example (\[.*\])\.$`)
)

// examples gives the flags that the comments above extraArgs show, by section.
func examples(t *testing.T, values string) map[string][]string {
	t.Helper()
	found, of := map[string][]string{}, ""
	for line := range strings.SplitSeq(values, "\n") {
		if m := section.FindStringSubmatch(line); m != nil {
			of = m[1]
		}
		m := example.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		var flags []string
		if err := json.Unmarshal([]byte(m[1]), &flags); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		found[of] = flags
	}
	return found
}

// flagsOf gives the names of the flags that the functions BindFlags in folders declare.
func flagsOf(t *testing.T, folders []string) []string {
	t.Helper()
	var found []string
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && strings.EqualFold(f.Name.Name, "BindFlags") {
					found = append(found, declared(f.Body)...)
				}
			}
		}
	}
	return found
}

// declared gives the first text that each call of a ...Var or Func gets: the name of a flag.
func declared(body *ast.BlockStmt) []string {
	var found []string
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || method.Sel.Name != "Func" && !strings.HasSuffix(method.Sel.Name, "Var") {
			return true
		}
		for _, arg := range call.Args {
			if literal, ok := arg.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if name, err := strconv.Unquote(literal.Value); err == nil {
					found = append(found, name)
				}
				break
			}
		}
		return true
	})
	return found
}

func checkFlags(t *testing.T, program string, args []string) {
	t.Helper()
	known := flagsOf(t, programs[program])
	if len(known) < 10 {
		t.Fatalf("only the flags %v of %s are found", known, program)
	}
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !strings.HasPrefix(arg, "-") || !slices.Contains(known, name) {
			t.Errorf("%s has no flag %s", program, arg)
		}
	}
}

// A flag that a program does not know ends it, so what the values show as an example has to be one.
func TestExamplesOfFlagsAreFlagsOfThePrograms(t *testing.T) {
	shown := examples(t, mustRead(t, "values.yaml"))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(programs)), slices.Sorted(maps.Keys(shown))); diff != "" {
		t.Fatalf("programs with an example (-want +got)\n%s", diff)
	}
	for program, flags := range shown {
		checkFlags(t, program, flags)
	}
}

// The same for the flags that the manifests in config/ give, which are rendered from the chart.
func TestFlagsOfTheManifestsAreFlagsOfThePrograms(t *testing.T) {
	for program, kind := range map[string]string{"gate": "StatefulSet", "manager": "Deployment"} {
		objects := parse(t, mustRead(t, filepath.Join("../../config", program, program+".yaml")))
		checkFlags(t, program, args(t, find(t, objects, kind, "gatewright-"+program)))
	}
}
