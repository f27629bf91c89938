package main

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/testkit"
)

func rows(t *testing.T, heading string) map[string][]string {
	t.Helper()
	return testkit.ReferenceTable(t, "../../docs/reference/gate.md", heading)
}

func TestFlagsAreInTheReference(t *testing.T) {
	var c config
	f := flag.NewFlagSet("gate", flag.ContinueOnError)
	c.BindFlags(f)
	got, want := map[string]string{}, map[string]string{}
	f.VisitAll(func(f *flag.Flag) {
		def := f.DefValue
		if def == "" {
			def = "none"
		}
		want["-"+f.Name] = def
	})
	inWords := []string{"none", "the pod's service account", "the host's name", "beside the log"}
	for name, cells := range rows(t, "Flags") {
		got[name] = strings.Trim(cells[0], "`")
		if slices.Contains(inWords, cells[0]) {
			got[name] = "none"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-flags +reference):\n%s", diff)
	}
}

// Metrics of this folder and of internal/cluster, with their labels; those of other packages are in pages of their own.
func TestMetricsAreInTheReference(t *testing.T) {
	got, want := map[string]string{}, map[string]string{}
	for name, cells := range rows(t, "Metrics") {
		got[name] = strings.ReplaceAll(cells[1], "`", "")
	}
	for _, dir := range []string{".", "../../internal/cluster"} {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if !strings.HasSuffix(path, "_test.go") {
				metricsOf(t, path, want)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-source +reference):\n%s", diff)
	}
}

func metricsOf(t *testing.T, path string, into map[string]string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		options, ok := call.Args[0].(*ast.CompositeLit)
		if !ok {
			return true
		}
		for _, e := range options.Elts {
			kv, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			key, isIdent := kv.Key.(*ast.Ident)
			value, isText := kv.Value.(*ast.BasicLit)
			if isIdent && isText && key.Name == "Name" && strings.Contains(value.Value, "gatewright_") {
				into[unquote(t, value)] = labelsOf(t, call)
			}
		}
		return true
	})
}

func labelsOf(t *testing.T, call *ast.CallExpr) string {
	t.Helper()
	if len(call.Args) < 2 {
		return "none"
	}
	list, ok := call.Args[1].(*ast.CompositeLit)
	if !ok {
		return "none"
	}
	var out []string
	for _, e := range list.Elts {
		if text, ok := e.(*ast.BasicLit); ok {
			out = append(out, unquote(t, text))
		}
	}
	return strings.Join(out, ", ")
}

func unquote(t *testing.T, l *ast.BasicLit) string {
	t.Helper()
	s, err := strconv.Unquote(l.Value)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
